"""What one measuring process does: it binds inputs, checks every variant, times what is right."""

from __future__ import annotations

import gc
import os
import platform
import random
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from inductor_probe.harness.bench import Bench, original_of
from inductor_probe.harness.budget import (
    COMPARISONS,
    PROCESSES,
    Budget,
    overheads_fit,
    processes_within,
    share_of,
)
from inductor_probe.harness.call_profile import MOST_KERNELS, Profile, profile_call
from inductor_probe.harness.checks import Check, Reason
from inductor_probe.harness.configs import time_configs
from inductor_probe.harness.constants import bind_constants
from inductor_probe.harness.gpu_clock import device_error
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.launches import OPERATORS
from inductor_probe.harness.overheads import measure_overheads
from inductor_probe.harness.quads import (
    Quad,
    Ring,
    Side,
    gpu_clock,
    make_ring,
    make_side,
    time_long_calls,
    time_quads,
)
from inductor_probe.harness.reference import first_line
from inductor_probe.harness.references import VariantCheck, Watch, check_all
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.replays import Launch, Pair, call_pairs, kernel_pairs, record, record_all
from inductor_probe.harness.saved_inputs import KINDS, choose_inputs
from inductor_probe.harness.sides import LAPS
from inductor_probe.harness.timing import LAP_S

SCHEMA = 2
SETTLED = 24  # calls of a side that a comparison takes at least, with its calibration and warm-up
SHORT_S = 0.001  # single calls of less are not timed
COPIED = 1e9  # bytes a second, into memory that is touched for the first time
COPIED_ON_GPU = 1e11  # a device copies ten times as fast at least; the rest is asking the driver for memory
RING_SHARE = 1 / 8  # of a comparison's time that copies of its arguments may take
SLACK = 1.1  # of its budget a process may use for all but its first comparison
BRIEF_S, GRACE_S = 0.03, 0.3  # comparisons that take no longer may use so much more: a busy core is slow
CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Options:
    """What a measuring process is asked for.

    Attributes:
        kernel: check everything, time this kernel and its variants only.
        whole_call: check everything, time variants of the whole call only, and not against eager.
        budget: seconds of measuring, for all comparisons of this process: see `harness/budget.py`.
        precision: width of the interval of a log-ratio at which timing a pair ends.
        threads: of torch and OpenMP.
        cold: calls find none of their data in a cache; None until `bind_inputs` knows the device.
        inputs, sizes: which values the inputs have, and the symbolic sizes that are bound.
        configs: time the configs of Triton kernels instead, with those of this text.
        copies_first: candidates are set up before baselines.
        copies: time unedited copies, too.
        seed: of inputs, their places in memory, and the order of timing.
        check_only: time nothing.
        overheads: seconds for where the time of a call goes; 0: it is not measured.
        skipped: subjects that are not timed, by name: an earlier process ended while it timed them, or had
            no time for them.
        total: seconds for the comparisons of all processes; 0: this is the only one.
        processes: how many were asked for; None for as many as it takes.
        kernels: those to compare, as the first process chose them; None: this process chooses.
        profile: of a call, as the first process has it; None: this process takes it.
    """

    kernel: str | None = None
    whole_call: bool = False
    budget: float = 3.0
    precision: float = 0.0025
    threads: int = 1
    cold: bool | None = None
    inputs: str = KINDS[0]
    sizes: tuple[tuple[str, int], ...] = ()
    configs: str | None = None
    copies_first: bool = False
    copies: bool = False
    seed: int = 0
    check_only: bool = False
    overheads: float = 0.75
    skipped: tuple[str, ...] = ()
    total: float = 0.0
    processes: int | None = None
    kernels: tuple[str, ...] | None = None
    profile: Profile | None = None


@dataclass
class Checked:
    """What the checks said, the inputs that they ran on, and remarks on the constants of the graph."""

    inputs: list[Any]
    pristine: Check
    checks: list[VariantCheck]
    remarks: list[Remark] = field(default_factory=list)

    @property
    def correct(self) -> bool:
        """Whether the pristine call and all variants are right."""
        return self.pristine.correct and all(check.correct for check in self.checks)

    def to_time(self, copies: bool) -> set[str]:
        """Return the variants that are right, unedited ones with `copies` only."""
        return {check.name for check in self.checks if check.correct and (copies or not check.unedited)}


@dataclass
class Timed:
    """The quads of a baseline and a candidate, and the seconds spent on them; it may be timed alone.

    `core` is the part of those seconds in which this thread had a core; None of a GPU.
    """

    baseline: str
    candidate: str | None
    quads: list[Quad]
    spent: float = 0.0
    core: float | None = None


@dataclass
class Times:
    """What was timed: `comparisons` of pairs, `overheads` of the call, or `configs` of each kernel.

    `measured`: the seconds that count against the budget.
    """

    comparisons: list[Timed]
    overheads: dict[str, Any] | None = None
    configs: list[dict[str, Any]] | None = None
    measured: float = 0.0


def bind_inputs(bench: Bench, options: Options) -> Options:
    """Give `bench` its kind of inputs and its sizes; return the options with `cold` as the device has it.

    Raises:
        InputsError: there are no inputs of that kind or of those sizes.
        ValueError: configs are asked for of a graph without Triton kernels, or a size does not fit.
    """
    choose_inputs(bench, options.inputs, dict(options.sizes))
    on_cuda = any(tensor.is_cuda for tensor in tensors_of(bench.inputs(options.seed)))
    if options.configs is not None and not on_cuda:
        raise ValueError("--configs is for Triton kernels, and this graph has none")
    return replace(options, cold=on_cuda) if options.cold is None else options


def run_checks(
    bench: Bench,
    options: Options,
    watch: Watch = lambda name, check: None,
    excluded: Mapping[str, list[Reason]] | None = None,
) -> Checked:
    """Check the pristine call and every variant; `options` come from `bind_inputs`; see `check_all`.

    Raises:
        InputsError: the graph does not run, as constants of it cannot be had.
    """
    remarks = bind_constants(bench)
    with torch.no_grad():
        rounds, pristine, checks = check_all(bench, options.seed, watch, excluded)
    return Checked(rounds[0].inputs, pristine, checks, remarks)


@dataclass
class Plan:
    """What the first process of a run tells those that follow.

    Attributes:
        kernels: those that are compared.
        once: seconds of other kernels in one call.
        processes: how many the budget is enough for; None for as many as are wanted.
        total: seconds for the comparisons of all processes.
        profile: of a call.
    """

    kernels: list[str]
    once: dict[str, float]
    processes: int | None
    total: float
    profile: Profile


@dataclass
class Listener:
    """What hears of a measurement while it runs; by default nobody.

    Attributes:
        phase: what comes next (`timing`, `overheads`), and of what: names of both sides, or a kernel's.
        timed: a pair that was timed.
        warn: what spoils times, or could not be timed.
        planned: what the first process found out, for those that follow.
        untimed: subjects that there is no time for; the kernels that have anything timed.
    """

    phase: Callable[[str, tuple[str, ...]], None] = lambda phase, names: None
    timed: Callable[[Timed], None] = lambda pair: None
    warn: Callable[[Remark], None] = lambda remark: None
    planned: Callable[[Plan], None] = lambda plan: None
    untimed: Callable[[list[str], list[str]], None] = lambda names, kernels: None


def run_timing(
    bench: Bench,
    options: Options,
    inputs: list[Any],
    variants: set[str],
    listener: Listener,
) -> Times:
    """Time the graph, its kernels and those `variants` of them on copies of `inputs`; then overheads.

    What cannot be timed is a remark to the listener, and the rest is timed all the same.
    """
    bind_constants(bench)
    inputs, times = clone(inputs), Times([])
    rng = random.Random(options.seed)  # noqa: S311 - no secret
    with torch.no_grad():
        if options.configs is not None:
            return Times([], configs=sweep_configs(bench, options, inputs))
        prepare(bench, options, inputs)
        budget, launches = Budget(options.budget), dict[str, list[Launch]]()
        profile, first = options.profile or Profile(), options.kernels is None
        if options.profile is None and not bench.missing:
            listener.phase("profiling", ())
            names = [options.kernel] if options.kernel else bench.kernels
            few = len(names) <= MOST_KERNELS and not options.whole_call
            recorded = few and "profiling" not in options.skipped
            profile, launches = profile_call(bench, inputs, names if recorded else ())
        if options.kernels is None:
            edited = {*variants, *bench.namespace.get("ABLATIONS", {})}
            names = [options.kernel] if options.kernel else profile.longest(bench.kernels, edited)
            names = [] if options.whole_call else names
            options = replace(options, kernels=tuple(names))
        pairs = pairs_of(bench, options, inputs, variants, listener, launches)
        overheads = (
            bool(pairs)
            and options.overheads > 0
            and not (options.kernel or bench.missing)
            and overheads_fit(profile.call, sum(map(len, profile.launches.values())), options.overheads)
        )
        pairs.sort(key=lambda pair: rank(pair, profile))
        if first:
            pairs, options = planned(pairs, options, profile, listener, overheads=overheads)
            budget.seconds = options.budget
        gc.disable()
        times.comparisons = time_pairs(pairs, options, budget, profile, rng, listener)
        times.measured = budget.spent
        if overheads:
            listener.phase("overheads", ())
            budget = Budget(options.overheads)
            times.overheads = measure_overheads(bench, inputs, budget, rng)
            times.measured += budget.spent
        elif first and pairs and options.overheads > 0 and not (options.kernel or bench.missing):
            listener.warn(remark("overheads-left-out", call_s=profile.call))
        gc.enable()
    return times


def prepare(bench: Bench, options: Options, inputs: list[Any]) -> None:
    """Do what a GPU needs before anything is measured: load Triton kernels, and calibrate its clock."""
    device = next((str(tensor.device) for tensor in tensors_of(inputs) if tensor.is_cuda), None)
    if device is not None:
        gpu_clock(device, bool(options.cold))
        if options.profile is not None and not bench.missing:  # no check ran them in this process
            bench.run("call", clone(inputs))


def planned(
    pairs: list[Pair], options: Options, profile: Profile, listener: Listener, *, overheads: bool
) -> tuple[list[Pair], Options]:
    """Tell the listener what this process found out; return the pairs to time, and the time for them.

    Where there is not enough time for all pairs, long kernels without a variant have the time that they took
    in the profile.
    """
    total = options.total or options.budget
    if not overheads and options.overheads > 0:
        total, options = total / COMPARISONS, replace(options, budget=options.budget / COMPARISONS)
    processes = None
    if sum(least_seconds(pair, profile) for pair in pairs) > options.budget:
        short = [pair for pair in pairs if pair[1] or profile.expected(pair[0].name) <= SHORT_S]
        pairs = short or pairs[:1]
        recording = profile.call if " alone" in pairs[0][0].name else 0.0
        least = recording + least_seconds(pairs[0], profile)
        if options.total:
            processes = processes_within(total, least, options.processes or PROCESSES)
            options = replace(options, budget=share_of(total, 0, processes or options.processes))
    compared = set(options.kernels or ())
    alone = {pair[0].name.partition(" ")[0] for pair in pairs}
    once = {
        name: sum(times)
        for name, times in profile.launches.items()
        if times and not options.kernel and (name not in compared or name not in alone)
    }
    kernels = [name for name in options.kernels or () if name not in once]
    listener.planned(Plan(kernels, once, processes, total, profile))
    return pairs, options


def rank(pair: Pair, profile: Profile) -> tuple[bool, bool, float]:
    """Return by what pairs are sorted: edited variants come first, the shortest ahead, then eager.

    What comes late may find no time left. A graph of many kernels has a long call: there eager comes last.
    """
    eager = pair[0].name == OPERATORS
    alone = pair[1] is None or (eager and len(profile.launches) > MOST_KERNELS)
    return alone, eager, least_seconds(pair, profile)


def least_seconds(pair: Pair, profile: Profile) -> float:
    """Return about how long timing a pair takes at least, in seconds.

    One call of each side where they are long; where they are short, calibration, warm-up and six quads. Its
    arguments are copied twice before: of 100 MB, in 0.2 s, or in 2 ms on a GPU.
    """
    call_s = profile.expected(pair[0].name)
    storages = {tensor.untyped_storage().data_ptr(): tensor for tensor in tensors_of(pair[0].values)}
    copy_s: float = sum(
        2 * tensor.untyped_storage().nbytes() / (COPIED_ON_GPU if tensor.is_cuda else COPIED)
        for tensor in storages.values()
    )
    calls_s = 2 * call_s if call_s > SHORT_S else 2 * SETTLED * max(call_s, LAPS * LAP_S)
    return calls_s + copy_s


def time_pairs(  # noqa: PLR0917 - what is known of the pairs
    pairs: list[Pair],
    options: Options,
    budget: Budget,
    profile: Profile,
    rng: random.Random,
    listener: Listener,
) -> list[Timed]:
    """Time pairs, each for an equal part of what is left of the budget; warn of those that get none."""
    comparisons, untimed = list[Timed](), list[str]()
    for number, pair in enumerate(pairs):
        names, least = tuple(subject.name for subject in pair if subject), least_seconds(pair, profile)
        grace = GRACE_S if least <= BRIEF_S else 0.0
        if comparisons and budget.spent + least > SLACK * budget.seconds + grace:
            name = names[0] if names[0] == OPERATORS else names[-1]  # the call has other comparisons
            untimed.append(name)
            listener.warn(remark("no-budget-left", name, least_s=least, left_s=max(budget.left, 0.0)))
            continue
        listener.phase("timing", names)
        share = max(budget.left / (len(pairs) - number), least)
        try:
            timed = time_pair(pair, options, share, rng, listener.warn, profile.expected(names[0]))
        except (MemoryError, RuntimeError) as error:  # torch has its own for memory: a RuntimeError
            if device_error():  # nothing more can be timed in this process
                raise
            listener.warn(remark("pair-not-timed", names[-1], error=first_line(error)))
        else:
            comparisons.append(timed)
            listener.timed(timed)
    if untimed:
        listener.untimed(untimed, [timed.baseline.partition(" ")[0] for timed in comparisons])
    return comparisons


def pairs_of(  # noqa: PLR0917 - what is known of the graph
    bench: Bench,
    options: Options,
    inputs: list[Any],
    variants: set[str],
    listener: Listener,
    launches: dict[str, list[Launch]],
) -> list[Pair]:
    """Return what is to be compared: the call with eager and with its variants, then kernel by kernel.

    The call is left out if it has no real constants, and so are the kernels that take those. `launches` are
    those that were recorded already.
    """
    missing, pairs = bench.missing or {}, list[Pair]()
    if missing and not options.kernel:
        listener.warn(remark("call-not-timed", kernels=", ".join(missing)))
    elif not options.kernel:
        if bench.namespace.get("WRAPPER_IN_CPP"):
            listener.warn(remark("wrapper-as-python"))
        if "ONE_RANK" in bench.namespace:
            listener.warn(remark("one-rank"))
        if bench.aten_graph is None and not options.whole_call:
            listener.warn(remark("eager-not-timed", reason=bench.no_reference))
        pairs += call_pairs(bench, inputs, variants, eager=not options.whole_call)
    kernels = [name for name in options.kernels or () if name not in {*missing, *options.skipped}]
    if kernels and not launches:
        listener.phase("recording", tuple(kernels))
        with suppress(MemoryError, RuntimeError):  # one by one, then: whichever cannot be had is named
            launches = record_all(bench, kernels, inputs)
    for kernel in kernels:
        try:
            pairs += kernel_pairs(
                bench,
                kernel,
                inputs,
                variants,
                listener.warn,
                launches.get(kernel),
                few=len(bench.kernels) > MOST_KERNELS and not options.kernel,
            )
        except (MemoryError, RuntimeError) as error:
            listener.warn(remark("pair-not-timed", kernel, error=first_line(error)))
    skipped = set(options.skipped)
    return [pair for pair in pairs if not skipped & {subject.name for subject in pair if subject}]


def time_pair(  # noqa: PLR0917 - what is known of a pair
    pair: Pair,
    options: Options,
    seconds: float,
    rng: random.Random,
    warn: Callable[[Remark], None],
    expected: float = 0.0,
) -> Timed:
    """Time two subjects against each other for `seconds`, on one ring if they take the same values.

    Of calls so long (`expected` seconds) that they cannot be warmed up in that time, a few are timed.
    """
    baseline, candidate = pair
    rings: dict[int, Ring] = {}
    sides: dict[str, Side] = {}
    subjects = [baseline, candidate] if candidate else [baseline]
    ordered = subjects[::-1] if options.copies_first else subjects
    budget, cpu_s = Budget(seconds), time.thread_time()
    for subject in ordered:
        key = id(subject.values)
        rings[key] = rings.get(key) or make_ring(
            subject.values, bool(options.cold), rng, warn, RING_SHARE * seconds
        )
    if expected > SHORT_S and 2 * SETTLED * expected > budget.left:
        several = [rings[id(subject.values)] for subject in subjects]
        quads = time_long_calls(pair, several, budget.left, expected, rng)
    else:
        for subject in ordered:
            sides[subject.name] = make_side(subject, rings[id(subject.values)])
        b = sides[candidate.name] if candidate else None
        quads = time_quads(sides[baseline.name], b, max(budget.left, 0.0), options.precision, rng)
    spent, on_cuda = budget.spent, any(tensor.is_cuda for tensor in tensors_of(baseline.values))
    core = None if on_cuda else min((time.thread_time() - cpu_s) / max(spent, 1e-9), 1.0)
    return Timed(baseline.name, candidate.name if candidate else None, quads, spent, core)


def sweep_configs(bench: Bench, options: Options, inputs: list[Any]) -> list[dict[str, Any]]:
    """Check and time every config of the Triton kernels, on what their first launch gets."""
    sweeps = []
    for name in [options.kernel] if options.kernel else bench.kernels:
        launches = record(bench, "call", name, inputs)
        if not launches or launches[0].method is None:
            continue
        remarks: list[Remark] = []
        clock, kernel = gpu_clock("cuda", bool(options.cold)), bench.namespace[name]
        text, seconds = options.configs or "", options.budget
        times = time_configs(kernel, launches[0], text, clock=clock, seconds=seconds, remarks=remarks)
        sweeps.append({"kernel": name, "configs": [time.plain() for time in times], "remarks": remarks})
    return sweeps


def environment() -> dict[str, Any]:
    """Return versions, machine, cores, threads and load."""
    models = re.findall(r"model name\s*: (.*)", CPUINFO.read_text()) if CPUINFO.exists() else []
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cpu": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def describe(inputs: list[Any]) -> str:
    """Say size, dtype and memory format of the largest input: `1x3x224x224 uint8 channels_last`."""
    tensors = tensors_of(inputs)
    if not tensors:
        return "no tensor inputs"
    main = max(tensors, key=torch.Tensor.numel)
    size = "x".join(map(str, main.shape)) or "scalar"
    dtype = str(main.dtype).removeprefix("torch.")
    return f"{size} {dtype} {memory_format(main)}"


def memory_format(tensor: torch.Tensor) -> str:
    """Name how a tensor lies: `contiguous`, `channels_last` (of 4 or 5 dimensions), else `strided`."""
    if tensor.is_contiguous():
        return "contiguous"
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    last = formats.get(tensor.dim())
    return "channels_last" if last and tensor.is_contiguous(memory_format=last) else "strided"


def resources(bench: Bench) -> dict[str, dict[str, int]]:
    """Return `registers` and `spills` of a thread, `shared` bytes of a block, of Triton kernels that ran."""
    attributes = {"registers": "n_regs", "spills": "n_spills", "shared": "shared"}
    kernels: dict[str, dict[str, int]] = {}
    for name, kernel in bench.namespace.items():
        generated = original_of(name) in bench.kernels
        launchers = getattr(kernel, "launchers", None) if generated else None
        if isinstance(launchers, list) and len(launchers) == 1:  # all but one lost when it was autotuned
            values = {key: getattr(launchers[0], attribute, None) for key, attribute in attributes.items()}
            known = {key: value for key, value in values.items() if isinstance(value, int)}
            if len(known) == len(attributes):
                kernels[name] = known
    return kernels


def process_record(
    bench: Bench,
    options: Options,
    times: Times,
    *,
    inputs: list[Any],
    variants: list[dict[str, Any]],
    warnings: list[Remark],
    machine: dict[str, Any],
    command: list[str],
) -> dict[str, Any]:
    """Return all that one process measured, for JSON: the keys of `Process` in `store/samples.py`."""
    return {
        "schema": SCHEMA,
        "graph": bench.graph,
        "kernels": bench.kernels,
        "inputs": describe(inputs),
        "data": "cold" if options.cold else "warm",
        "values": options.inputs,
        "sizes": bench.sizes,
        "threads": options.threads,
        "seed": options.seed,
        "first": "candidate" if options.copies_first else "baseline",
        "command": command,
        "environment": machine,
        "warnings": warnings,
        "variants": variants,
        "comparisons": [asdict(pair) for pair in times.comparisons],
        "ablations": dict(bench.namespace.get("ABLATIONS", {})),
        "overheads": times.overheads,
        "resources": resources(bench),
        "configs": times.configs or [],
        "measured": times.measured,
    }
