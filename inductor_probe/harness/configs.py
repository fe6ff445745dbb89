"""Configs of a Triton kernel compared: each compiled, checked against the chosen one, and timed in turn."""

from __future__ import annotations

import importlib
import logging
import math
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from inductor_probe.harness.checks import Slack, compare, slack_of
from inductor_probe.harness.config_arguments import ConfigArguments
from inductor_probe.harness.config_list import (
    HEURISTICS,
    asked_configs,
    config_values,
    fresh_autotuner,
)
from inductor_probe.harness.launches import Launch
from inductor_probe.harness.remarks import Remark, remark

ROUNDS = 7
CONFIG_BLOCK_S = 0.001
LOOSEST = (
    1e-3  # of the largest value: configs that differ by more do not sum in another order, they are wrong
)


@dataclass
class ConfigTime:
    """A config and what was found of it.

    Attributes:
        values: block sizes, `num_warps`, `num_stages`.
        origin: `inductor` (tried by it), `scaled` (tried because others need many registers), `coordinate
            descent` (found by it), or `asked`.
        chosen: the one that inductor runs.
        registers, spills: of a thread; spills are words of 4 bytes in local memory. shared: bytes a block.
        correct: None when it did not run. samples: seconds a call, one a block; empty when not timed.
        note: why it has no time, or what inductor makes of it.
    """

    values: dict[str, int]
    origin: str
    chosen: bool = False
    registers: int | None = None
    spills: int | None = None
    shared: int | None = None
    correct: bool | None = None
    samples: list[float] = field(default_factory=list)
    note: str | None = None

    def median(self) -> float:
        """Return the median of the samples, seconds a call; NaN without any."""
        return statistics.median(self.samples) if self.samples else math.nan

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        median = self.median() if self.samples else None
        mad = statistics.median(abs(each - self.median()) for each in self.samples) if self.samples else None
        return {**asdict(self), "median": median, "mad": mad}


@dataclass
class _Trial:
    found: ConfigTime
    launcher: Callable[..., object] | None = None
    config: Any = None


def time_configs(
    kernel: Any,
    launch: Launch,
    extra: str = "",
    *,
    clock: Callable[..., float],
    seconds: float = 2.0,
    seed: int = 0,
    remarks: list[Remark] | None = None,
    fresh: Callable[[Any, list[Remark]], Any] = fresh_autotuner,
) -> list[ConfigTime]:
    """Compile, check and time every config that inductor tries for `kernel`, and those of `extra`.

    Args:
        kernel: as `output_code.py` has it: a CachingAutotuner.
        launch: with the arguments that it really gets; they are not changed.
        extra: `XBLOCK=1,8,32 num_warps=4,8`: each combination, other values as in the chosen config.
        clock: `clock(run, calls, before)` in seconds a call; `before` restores arguments outside of the time.
        seconds: for timing all of them.
        remarks: what could not be done is appended.

    Raises:
        ValueError: `extra` is of another form, or names what the kernel has not.
    """
    remarks = [] if remarks is None else remarks
    arguments = ConfigArguments(kernel, launch)
    expected = arguments.outputs(kernel.run)
    chosen = kernel.launchers[0].config
    tuner = fresh(kernel, remarks)
    parameters = list(kernel.fn.arg_names)
    wanted = [(config, "inductor") for config in tuner.configs]
    wanted.append(
        (chosen, "coordinate descent" if getattr(chosen, "found_by_coordesc", False) else "inductor")
    )
    wanted += [(config, "asked") for config in asked_configs(extra, chosen, parameters)]
    trials: dict[tuple[Any, ...], _Trial] = {}
    for config, origin in wanted:
        key = _key(config)
        if key not in trials:
            trials[key] = _compiled(tuner, config, origin)
    for config, launcher in _scaled(tuner, trials, remarks):
        trials.setdefault(_key(config), _trial(config, "scaled", launcher))
    if _key(chosen) in trials:
        trials[_key(chosen)].found.chosen = True
    _check(arguments, list(trials.values()), expected)
    _mark_skipped(kernel, [trial.found for trial in trials.values()])
    right = [trial for trial in trials.values() if trial.found.correct]
    _time(arguments, right, clock, seconds, random.Random(seed))  # noqa: S311 - an order, no secret
    return sorted((trial.found for trial in trials.values()), key=_rank)


def _key(config: Any) -> tuple[Any, ...]:
    return tuple(sorted(config_values(config).items()))


def _trial(config: Any, origin: str, launcher: Any) -> _Trial:
    found = ConfigTime(config_values(config), origin)
    if launcher is not None:
        found.registers = getattr(launcher, "n_regs", None)
        found.spills = getattr(launcher, "n_spills", None)
        found.shared = getattr(launcher, "shared", None)
    return _Trial(found, launcher, config)


def _compiled(tuner: Any, config: Any, origin: str) -> _Trial:
    """Compile one config; what the compiler or the GPU refuses is listed with its reason."""
    log = logging.getLogger(HEURISTICS)
    quiet, log.disabled = log.disabled, True  # it prints the whole kernel of a config that does not compile
    try:
        if origin == "asked":
            _within_limits(config)
        return _trial(config, origin, tuner._precompile_config(config).make_launcher())
    except Exception as error:  # each of triton's passes has exceptions of its own
        trial = _trial(config, origin, None)
        trial.found.note = f"does not compile: {_first_line(error)}"
        return trial
    finally:
        log.disabled = quiet


def _within_limits(config: Any) -> None:
    """Refuse blocks beyond what inductor's masks allow for: it leaves masks out that such blocks would need.

    Raises:
        AssertionError: says the largest.
    """
    check = getattr(importlib.import_module(HEURISTICS), "check_max_block", None)
    if check is not None:
        check(config.kwargs)


def _scaled(
    tuner: Any, trials: dict[tuple[Any, ...], _Trial], remarks: list[Remark]
) -> list[tuple[Any, Any]]:
    """Return the configs that inductor adds because others use many registers, with their launchers."""
    scale = getattr(tuner, "_dynamic_scale_rblock", None)
    own = [trial for trial in trials.values() if trial.launcher and trial.found.origin == "inductor"]
    if scale is None or not own:
        return []
    try:
        tuner.compile_results = [tuner._precompile_config(trial.config) for trial in own]
        tuner.launchers = []
        tuner._make_launchers()
        scale()
    except Exception as error:  # a private method, which may ask for more than it did
        remarks.append(remark("scaled-configs-missing", error=_first_line(error)))
        return []
    return [(launcher.config, launcher) for launcher in tuner.launchers]


def _check(arguments: ConfigArguments, trials: list[_Trial], expected: list[Any]) -> None:
    """Compare the output of every config with that of the chosen one.

    Reductions sum in another order with other blocks: a config may be off twice as far as the configs that
    inductor itself tries are from each other.
    """
    outputs: list[tuple[_Trial, list[Any]]] = []
    for trial in trials:
        if trial.launcher is None:
            continue
        try:
            outputs.append((trial, arguments.outputs(trial.launcher)))
        except Exception as error:  # a launch may fail in as many ways as a compile
            trial.found.correct, trial.found.note = None, f"does not run: {_first_line(error)}"
    slack = [Slack() for _ in expected]
    for trial, values in outputs:
        if trial.found.origin != "asked":
            for own, value, wanted in zip(slack, values, expected, strict=True):
                _widen_slack(own, value, wanted)
    for trial, values in outputs:
        check = compare(str(trial.found.values), values, expected, slack)
        trial.found.correct = check.correct
        if not check.correct:
            where = ", ".join(map(str, check.first_bad or ()))
            trial.found.note = (
                f"WRONG in {check.mismatches} of {check.elements} elements, first at [{where}]: "
                f"{check.value} instead of {check.expected}"
            )


def _widen_slack(slack: Slack, value: torch.Tensor, wanted: torch.Tensor) -> None:
    """Let through twice the error of `value`, LOOSEST of the largest value at most."""
    if not wanted.dtype.is_floating_point or value.shape != wanted.shape:
        return
    known = wanted.isfinite() & value.isfinite()
    if known.any():
        spread = slack_of(value[known], wanted[known], 2.0)
        most = LOOSEST * float(wanted[known].abs().max().item())
        slack.absolute = max(slack.absolute, min(spread.absolute, most))
        slack.tolerances = max(slack.tolerances, spread.tolerances)


def _mark_skipped(kernel: Any, found: list[ConfigTime]) -> None:
    limit = kernel.inductor_meta.get("spill_threshold", 16)
    for each in found:
        if each.note is None and not kernel.custom_kernel and (each.spills or 0) > limit:
            each.note = f"inductor leaves it out: more than {limit} words are spilled"


def _time(
    arguments: ConfigArguments,
    trials: list[_Trial],
    clock: Callable[..., float],
    seconds: float,
    rng: random.Random,
) -> None:
    """Time all configs in turn, in an order of chance, round by round."""
    before = arguments.restorer()
    runs = [(trial, arguments.start(trial.launcher, arguments.values)) for trial in trials if trial.launcher]
    calls = {
        id(trial): max(3, min(round(CONFIG_BLOCK_S / max(clock(run, 3, before), 1e-7)), 200))
        for trial, run in runs
    }
    end, rounds = time.perf_counter() + seconds, 0
    while runs and (rounds < ROUNDS or time.perf_counter() < end):
        for trial, run in rng.sample(runs, len(runs)):
            trial.found.samples.append(clock(run, calls[id(trial)], before))
        rounds += 1


def _rank(found: ConfigTime) -> tuple[bool, float]:
    return (not found.samples, found.median() if found.samples else 0.0)


def _first_line(error: BaseException) -> str:
    while error.__cause__ is not None:  # of a compile error the text is the kernel's
        error = error.__cause__
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
