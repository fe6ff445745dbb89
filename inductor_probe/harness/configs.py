"""Configs of a Triton kernel compared: each compiled, checked against the chosen one, and timed in turn."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import logging
import random
import re
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from inductor_probe.harness.bench import Call, replaced
from inductor_probe.harness.checks import Slack, compare, slack_of
from inductor_probe.harness.inputs import changed, clone, tensors_of
from inductor_probe.harness.reference import first_line
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.replays import Launch

HEURISTICS = "torch._inductor.runtime.triton_heuristics"  # imported when a kernel is there: that takes long
CONFIG_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")  # beside block sizes
CONFIG_ROUNDS = 7
CONFIG_BLOCK_S = 0.001
LOOSEST = 1e-3  # of the largest value: a config that differs by more is wrong, it sums in no other order


@dataclass
class ConfigTime:
    """A config, and the result of running the kernel with it: `ConfigTime` of `probe` says what each is.

    `correct` is None when it did not run; `samples` is empty when it was not timed.
    """

    values: dict[str, int]
    origin: str
    chosen: bool = False
    registers: int | None = None
    spills: int | None = None
    shared: int | None = None
    correct: bool | None = None
    samples: list[float] = field(default_factory=list)
    remark: Remark | None = None

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        median = statistics.median(self.samples) if self.samples else None
        mad = statistics.median(abs(sample - median) for sample in self.samples) if median else None
        return {**asdict(self), "median": median, "mad": mad}


@dataclass
class Trial:
    """A config of torch, what launches the kernel with it (None: it did not compile), and the result."""

    config: Any
    launcher: Callable[..., object] | None
    result: ConfigTime


class ConfigArguments:
    """Arguments of a launch to run configs on; what calls change and read is restored before each."""

    def __init__(self, kernel: Any, launch: Launch) -> None:
        self.original = (launch.args, {k: v for k, v in launch.kwargs.items() if k != "stream"})
        self.stream = launch.kwargs.get("stream")
        signature = kernel.triton_meta.get("signature", {})
        blocks = {name for name, kind in signature.items() if kind == "constexpr" and name.endswith("BLOCK")}
        names = [name for name in kernel.fn.arg_names if name not in blocks]
        leaves = tree_leaves(self.original)
        self.written = [
            index
            for index, (name, value) in enumerate(zip(names, leaves, strict=False))
            if isinstance(value, torch.Tensor)
            and name.startswith("out_ptr")
            and name not in kernel.mutated_arg_names
        ]
        self.device = next((tensor.device for tensor in tensors_of(leaves)), None)
        self.on_cuda = any(tensor.is_cuda for tensor in tensors_of(leaves))
        self.drifting: list[int] = []
        self.values = clone(self.original)

    def start(self, launcher: Callable[..., object], values: Any) -> Call:
        """Return a function that launches on `values`, on the current stream."""
        args, kwargs = values
        if not self.on_cuda or self.device is None:
            return lambda: launcher(*args, stream=self.stream, **kwargs)
        current, index = torch._C._cuda_getCurrentRawStream, self.device.index
        return lambda: launcher(*args, stream=current(index), **kwargs)

    def outputs(self, launcher: Callable[..., object]) -> list[Any]:
        """Run once on a poisoned copy; return all tensors after it."""
        values = clone(self.original)
        leaves = tree_leaves(values)
        for index in self.written:
            leaves[index].fill_(float("nan") if leaves[index].dtype.is_floating_point else 1)
        before = clone(leaves)
        self.start(launcher, values)()
        if self.on_cuda:
            torch.cuda.synchronize()
        self.drifting = [index for index in changed(before, leaves) if index not in self.written]
        return tensors_of(leaves)

    def restorer(self) -> Callable[[], None] | None:
        """Return what gives arguments that calls change their first values again; None without any."""
        source, target, drifting = tree_leaves(self.original), tree_leaves(self.values), self.drifting

        def restore() -> None:
            for index in drifting:
                target[index].copy_(source[index])

        return restore if drifting else None


def time_configs(
    kernel: Any,
    launch: Launch,
    extra: str = "",
    *,
    clock: Callable[..., float],
    seconds: float,
    remarks: list[Remark],
    fresh: Callable[[Any, list[Remark]], Any] | None = None,
) -> list[ConfigTime]:
    """Compile, check and time every config that inductor tries for `kernel`, and those of `extra`.

    Args:
        kernel: as `output_code.py` has it: a CachingAutotuner.
        launch: with the arguments that it really gets; they are not changed.
        extra: `XBLOCK=1,8,32 num_warps=4`: each combination, other values as in the chosen config.
        clock: `clock(run, calls, before)` in seconds a call; `before` restores arguments outside of the time.
        seconds: for timing all of them.
        remarks: what could not be done is appended.
        fresh: see `fresh_autotuner`.

    Raises:
        ValueError: `extra` is of another form, or names what the kernel has not.
    """
    arguments = ConfigArguments(kernel, launch)
    expected = arguments.outputs(kernel.run)
    chosen = kernel.launchers[0].config
    tuner = (fresh or fresh_autotuner)(kernel, remarks)
    by_descent = getattr(chosen, "found_by_coordesc", False)
    configs = [(config, "inductor") for config in tuner.configs]
    configs.append((chosen, "coordinate descent" if by_descent else "inductor"))
    configs += [(config, "asked") for config in asked_configs(extra, chosen, list(kernel.fn.arg_names))]

    def key(config: Any) -> tuple[Any, ...]:
        return tuple(sorted(config_values(config).items()))

    trials: dict[tuple[Any, ...], Trial] = {}
    for config, origin in configs:
        if key(config) not in trials:
            trials[key(config)] = compiled_trial(tuner, config, origin)
    for launcher in _scaled(tuner, list(trials.values()), remarks):
        trials.setdefault(key(launcher.config), _trial(launcher.config, "scaled", launcher))
    if key(chosen) in trials:
        trials[key(chosen)].result.chosen = True
    _check(arguments, list(trials.values()), expected)
    limit = kernel.inductor_meta.get("spill_threshold", 16)
    for trial in trials.values():
        if trial.result.remark is None and not kernel.custom_kernel and (trial.result.spills or 0) > limit:
            trial.result.remark = remark("config-left-out", limit=limit)
    _time(arguments, [trial for trial in trials.values() if trial.result.correct], clock, seconds)
    results = [trial.result for trial in trials.values()]
    return sorted(results, key=lambda result: result.plain()["median"] or float("inf"))


def parse_configs(text: str) -> dict[str, list[int]]:
    """Read `XBLOCK=1,8,32 num_warps=4,8`: each combination is a config.

    Raises:
        ValueError: another form; says which part.
    """
    values: dict[str, list[int]] = {}
    for part in text.split():
        match = re.fullmatch(r"([A-Za-z_]\w*)=(\d+(?:,\d+)*)", part)
        if match is None:
            raise ValueError(
                f"cannot read {part!r}: write NAME=1,8,32 for each block size, num_warps, num_stages"
            )
        values.setdefault(match[1], []).extend(int(number) for number in match[2].split(","))
    return values


def asked_configs(text: str, base: Any, parameters: list[str]) -> list[Any]:
    """Return a config for each combination in `text`; what it does not name is as in `base`.

    `RBLOCK` means `R0_BLOCK` where the kernel has that.

    Raises:
        ValueError: the kernel has no such parameter; says which it has.
    """
    values: dict[str, list[int]] = {}
    known = [name for name in parameters if name in base.kwargs or name.endswith("BLOCK")]
    for name, numbers in parse_configs(text).items():
        parameter = "R0_BLOCK" if name == "RBLOCK" and name not in parameters else name
        if parameter not in known and parameter not in CONFIG_OPTIONS:
            names = ", ".join([*known, *CONFIG_OPTIONS[:2]])
            raise ValueError(f"this kernel has no {name} to set; it has {names}")
        values[parameter] = numbers
    configs = []
    for combination in itertools.product(*values.values()) if values else ():
        config = deepcopy(base)
        for name, number in zip(values, combination, strict=True):
            if name in CONFIG_OPTIONS:
                setattr(config, name, number)
            else:
                config.kwargs[name] = number
        config.found_by_coordesc = False
        configs.append(config)
    return configs


def config_values(config: Any) -> dict[str, int]:
    """Return a config as a dictionary: block sizes, then options that are not at their default."""
    options = {name: getattr(config, name, None) for name in CONFIG_OPTIONS}
    if options["num_ctas"] == 1:
        del options["num_ctas"]
    return {**config.kwargs, **{name: value for name, value in options.items() if value is not None}}


def fresh_autotuner(kernel: Any, remarks: list[Remark]) -> Any:
    """Return the kernel as if it was just read: with all its configs, and nothing compiled.

    A kernel that has run keeps the config that it chose; one that is in the autotune cache starts with it.

    Raises:
        ValueError: its source file is gone.
    """
    file = kernel.filename
    if not file:
        jit = kernel.fn if kernel.fn.fn is not None else kernel._reload_kernel().fn  # a worker compiled it
        file = jit.fn.__code__.co_filename
    path, name = Path(file), "check_autotune_cache"
    spec = importlib.util.spec_from_file_location(f"configs_of_{path.stem}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise ValueError(f"the source of {kernel.fn.__name__} is not at {path} any more")
    module = importlib.util.module_from_spec(spec)
    heuristics = importlib.import_module(HEURISTICS)
    if hasattr(heuristics, name):
        no_cache: Any = replaced(vars(heuristics), {name: lambda configs, *_: (configs, None, {})})
    else:
        no_cache = nullcontext()
        remarks.append(remark("autotune-cache-in-use", function=name, torch=torch.__version__))
    with no_cache:
        spec.loader.exec_module(module)
    return getattr(module, kernel.fn.__name__)


def _trial(config: Any, origin: str, launcher: Any) -> Trial:
    result = ConfigTime(config_values(config), origin)
    result.registers = getattr(launcher, "n_regs", None)
    result.spills = getattr(launcher, "n_spills", None)
    result.shared = getattr(launcher, "shared", None)
    return Trial(config, launcher, result)


def compiled_trial(tuner: Any, config: Any, origin: str) -> Trial:
    """Compile one config; what the compiler or the GPU refuses is listed with its reason."""
    log = logging.getLogger(HEURISTICS)
    quiet, log.disabled = log.disabled, True  # it prints the whole kernel of a config that does not compile
    try:
        # Inductor leaves out masks that blocks beyond its own limits would need.
        limits = getattr(importlib.import_module(HEURISTICS), "check_max_block", None)
        if origin == "asked" and limits is not None:
            limits(config.kwargs)
        return _trial(config, origin, tuner._precompile_config(config).make_launcher())
    except Exception as error:  # each of triton's passes has exceptions of its own
        trial = _trial(config, origin, None)
        trial.result.remark = remark("config-not-compiled", error=_root_cause(error))
        return trial
    finally:
        log.disabled = quiet


def _scaled(tuner: Any, trials: list[Trial], remarks: list[Remark]) -> list[Any]:
    """Return launchers of the configs that inductor adds because others use many registers."""
    scale = getattr(tuner, "_dynamic_scale_rblock", None)
    tried = [trial for trial in trials if trial.launcher and trial.result.origin == "inductor"]
    if scale is None or not tried:
        return []
    try:
        tuner.compile_results = [tuner._precompile_config(trial.config) for trial in tried]
        tuner.launchers = []
        tuner._make_launchers()
        scale()
    except Exception as error:  # a private method, which may ask for more than it did
        remarks.append(remark("scaled-configs-missing", error=_root_cause(error)))
        return []
    return list(tuner.launchers)


def _check(arguments: ConfigArguments, trials: list[Trial], expected: list[Any]) -> None:
    """Compare the output of every config with that of the chosen one.

    Reductions sum in another order with other blocks: a config may be off twice as far as the configs that
    inductor itself tries are from each other.
    """
    outputs: list[tuple[ConfigTime, list[Any]]] = []
    slack = [Slack() for _ in expected]
    for trial in trials:
        if trial.launcher is None:
            continue
        try:
            values = arguments.outputs(trial.launcher)
        except Exception as error:  # a launch may fail in as many ways as a compile
            trial.result.remark = remark("config-not-run", error=_root_cause(error))
            continue
        outputs.append((trial.result, values))
        if trial.result.origin != "asked":
            for tensor_slack, value, right in zip(slack, values, expected, strict=True):
                _widen_slack(tensor_slack, value, right)
    for result, values in outputs:
        check = compare(str(result.values), values, expected, slack)
        result.correct = check.correct
        if not check.correct:
            result.remark = remark(
                "config-wrong",
                mismatches=check.mismatches,
                elements=check.elements,
                index=", ".join(map(str, check.first_bad or ())),
                value=str(check.value),
                expected=str(check.expected),
            )


def _widen_slack(slack: Slack, value: torch.Tensor, right: torch.Tensor) -> None:
    """Let through twice the error of `value`, LOOSEST of the largest value at most."""
    if not right.dtype.is_floating_point or value.shape != right.shape:
        return
    finite = right.isfinite() & value.isfinite()
    if finite.any():
        spread = slack_of(value[finite], right[finite], 2.0)
        most = LOOSEST * float(right[finite].abs().max().item())
        slack.absolute = max(slack.absolute, min(spread.absolute, most))
        slack.tolerances = max(slack.tolerances, spread.tolerances)


def _time(
    arguments: ConfigArguments, trials: list[Trial], clock: Callable[..., float], seconds: float
) -> None:
    """Time all configs in turn, in random order, round by round."""
    before, rng = arguments.restorer(), random.Random(0)  # noqa: S311 - an order, no secret
    blocks: list[tuple[ConfigTime, Call, int]] = []
    for trial in trials:
        if trial.launcher:
            run = arguments.start(trial.launcher, arguments.values)
            calls = round(CONFIG_BLOCK_S / max(clock(run, 3, before), 1e-7))
            blocks.append((trial.result, run, max(3, min(calls, 200))))
    end, rounds = time.perf_counter() + seconds, 0
    while blocks and (rounds < CONFIG_ROUNDS or time.perf_counter() < end):
        for result, run, calls in rng.sample(blocks, len(blocks)):
            result.samples.append(clock(run, calls, before))
        rounds += 1


def _root_cause(error: BaseException) -> str:
    while error.__cause__ is not None:  # of a compile error the text is the kernel's
        error = error.__cause__
    return first_line(error)
