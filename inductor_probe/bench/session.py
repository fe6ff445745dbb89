"""A session: measuring processes of a bench file, until they agree."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from inductor_probe.bench.result import result_of
from inductor_probe.bench.state import COPY, State, plain
from inductor_probe.bench.stop_rule import StopRule
from inductor_probe.errors import NotFoundError, RunFailedError
from inductor_probe.executors.child import Event
from inductor_probe.executors.server import JobFailedError, Server
from inductor_probe.files import write_whole
from inductor_probe.harness.budget import COMPARISONS, OVERHEADS, ROOFLINE, share_of
from inductor_probe.machine.gpu import gpu_remarks, gpu_state, names_gpu
from inductor_probe.machine.toolchain import flags_environment
from inductor_probe.model.autotuning import ConfigSweep
from inductor_probe.model.bench import BenchResult, BenchSettings
from inductor_probe.model.codec import ShapeError, from_json
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.timing import KernelWork, Roofline, Samples
from inductor_probe.reader.python_text import read_python_source
from inductor_probe.store.samples import process_of, samples_text

Works = Callable[[BenchResult], Sequence[KernelWork]]
"""What each kernel has to do in a call, by the result: it knows which operators count flops."""
Progress = Callable[[str], None]

_OWN_CORE = "inductor_probe.harness.own_core:measure"
_EXCEEDED = 1.25
"""Times the budget: a report warns beyond it."""
_KERNEL = re.compile(r"(?m)^\w+ = async_compile\.\w+\(")


def run_bench_file(
    path: Path,
    settings: BenchSettings | None = None,
    hazards: Sequence[Remark] = (),
    progress: Progress | None = None,
    works: Works | None = None,
    *,
    source: str | None = None,
    other_harness: bool = False,
    shared: Server | None = None,
) -> BenchResult:
    """Run a bench file in several processes and return what they measured; this executes the code in it.

    One process imports torch and forks the others. The first checks every variant; baselines are loaded and
    set up first in every other process, candidates in the rest; seeds differ. All samples are written beside
    the file as JSON, after each process. The machine's roofline is measured last.

    Args:
        path: `output_code_bench.py` of a graph.
        settings: see there; its defaults if None.
        hazards: what will spoil the times, known before: written with the samples.
        progress: called with what is done next: `compiling 3 of 20 kernels`.
        works: what kernels have to do, to hold them against the machine; None: they are not.
        source: the text to run, where it was read and judged before; else `path` is read, once for all.
        other_harness: the harness in the file is not that of this package: the file runs by its own.
        shared: a process that files before this one were run by, with the same imports and flags: torch is
            imported there already. It is left as it is; None: one for this file alone.

    Raises:
        NotFoundError: no such file, or no such kernel, size or kind of inputs in it.
        UnreadableError: the file is not Python text in UTF-8.
        RunFailedError: it cannot be loaded, or no process measured anything.
        ProbeError: the results cannot be written beside it, or a flag is no flag.
    """
    settings = settings or BenchSettings()
    source = _source(path) if source is None else source
    results = samples_path(path, settings)
    progress = progress or (lambda text: None)
    alone = other_harness or not settings.has_overheads  # there is no roofline either
    comparisons = settings.budget * (1 if alone else COMPARISONS)
    state = State(warnings=list(map(plain, hazards)), total=comparisons)
    gpu = gpu_state() if names_gpu(source) else None
    with nullcontext(shared) if shared else server_of(path, settings) as server:
        _start(server, path, source, state, progress, other_harness=other_harness)
        while True:
            number = len(state.processes)
            rule = StopRule(settings.budget, settings.margin, state.most or settings.processes)
            progress(f"measuring {number + 1} of {rule.fewest if number < rule.fewest else rule.most}")
            share = share_of(state.total, number, rule.processes)
            job = _OWN_CORE if other_harness else "measure"
            if not (_measure(server, job, settings, share, state, progress) or state.gave_up):
                continue
            state.processes[-1]["warnings"] += state.warnings
            state.processes[-1]["command"] = [*settings.command(path.parent.name)]
            state.warnings = []
            if gpu is not None:
                before, gpu = gpu, gpu_state()
                state.processes[-1]["gpu"] = {"before": asdict(before), "after": asdict(gpu)}
                state.processes[-1]["warnings"] += map(plain, gpu_remarks(before, gpu, [os.getpid()]))
            if enough := _enough(state, settings):
                _note_budget(state, settings)
            write_whole(results, samples_text(state.processes, settings.margin))
            if enough:
                break
        result = result_of(Samples(tuple(map(process_of, state.processes)), settings.margin))
        if works is None or result.overheads is None:
            return result
        progress("measuring what this machine can copy and multiply")
        kernels = tuple(works(result))
        dtypes = [work.dtype for work in kernels if work.dtype]
        device, seconds = result.overheads.device, settings.budget * ROOFLINE
        reached = roofline_of(server, settings, device, dtypes, seconds)
    if isinstance(reached, Remark):
        state.processes[-1]["warnings"].append(plain(reached))
    roofline = None if isinstance(reached, Remark) else reached
    write_whole(results, samples_text(state.processes, settings.margin, roofline, kernels))
    samples = Samples(tuple(map(process_of, state.processes)), settings.margin, roofline, kernels)
    return result_of(samples)


@contextmanager
def server_of(
    path: Path, settings: BenchSettings, variables: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Give a process that can run a bench file, and others with the same imports and compiler flags after it.

    Args:
        variables: of its environment, besides those of this process.

    Raises:
        ProbeError: a compiler flag is none.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        environment = {**flags_environment(settings.cxxflags, Path(folder)), **(variables or {})}
        with Server(path, "", imports=settings.imports, environment=environment) as server:
            yield server


def _note_budget(state: State, settings: BenchSettings) -> None:
    """Warn where measuring took much longer than it should have."""
    state.processes[-1]["warnings"] += map(plain, over_budget(state.spent, settings.budget))


def over_budget(spent: float, budget: float) -> Iterator[Remark]:
    """Yield that measuring took much longer than it should have, in seconds."""
    if spent > _EXCEEDED * budget:
        numbers = {"measured_s": spent, "budget_s": budget}
        yield measured("budget-exceeded", "analysis", Subject("machine", ""), numbers)


def _enough(state: State, settings: BenchSettings) -> bool:
    """Tell whether no further process is needed."""
    if state.gave_up or not state.processes[0]["comparisons"]:  # nothing is right, or compared
        return True

    def comparisons() -> Iterator[Comparison]:  # made only where they count
        yield from result_of(Samples(tuple(map(process_of, state.processes)), settings.margin)).comparisons

    rule = StopRule(settings.budget, settings.margin, state.most or settings.processes)
    spent = state.spent + state.processes[-1].get("measured", 0.0)
    return rule.enough(len(state.processes), comparisons(), spent)


def _start(
    server: Server, path: Path, source: str, state: State, progress: Progress, *, other_harness: bool
) -> None:
    """Import torch in the server, and compile all kernels where its children can load them."""
    progress("importing torch and inductor")
    server.use(path, source)
    if other_harness:
        state.warn("other-harness")
    elif server.no_fork is None:
        _compile(server, source, state, progress)
    else:
        state.warn("no-fork", {"reason": server.no_fork})


def _compile(server: Server, source: str, state: State, progress: Progress) -> None:
    """Compile all kernels on all cores, and note the variants that do not compile.

    A pristine kernel that does not compile is left to the process that loads it: nothing runs without it.
    """
    count, begun, done = kernel_count(source), list[str](), 0
    if count:
        progress(f"compiling {count} kernels" if count > 1 else "compiling 1 kernel")
    try:
        for event in compiled(server, count):
            if event["event"] == "compiling":
                begun.append(event["name"])
            if event["event"] == "kernel":
                done += 1
                begun.remove(event["name"])
                progress(f"compiling {min(done + 1, count)} of {count} kernels")
                if event["error"] and COPY.search(event["name"]):
                    state.refused[event["name"]] = event["error"]
    except JobFailedError as error:
        if error.kind in ("load", "usage"):
            raise error.error(server.path) from error
        state.lose_compiler(error, begun)  # of the others, all kernels are compiled


def _measure(  # noqa: PLR0917 - what is measured, and how
    server: Server, job: str, settings: BenchSettings, share: float, state: State, progress: Progress
) -> bool:
    """Run one measuring process, `job` of the server; tell whether it is to count.

    A process that ends in the middle counts with what it had measured; `State.lose` says what then.

    Raises:
        RunFailedError, NotFoundError: no other process would do better.
    """
    number, process, checks = len(state.processes), dict[str, Any](), list[Event]()
    options = {
        "kernel": settings.kernel,
        "budget": share,
        "precision": settings.margin / 4,
        "threads": settings.threads,
        "cold": settings.cold,
        "inputs": settings.inputs,
        "sizes": list(settings.sizes),
        "copies_first": bool(number % 2),
        "copies": settings.copies,
        "seed": 2 * number,
        "whole_call": settings.whole_call,
        "overheads": settings.budget * OVERHEADS if state.overheads and settings.has_overheads else 0.0,
        "skipped": state.skipped,
        "total": state.total,
        "processes": settings.processes,
        "kernels": state.kernels,
        "profile": state.profile,
    }

    request = {
        "job": job,
        "options": options,
        "refused": state.refused,
        "crashed": state.crashed,
        "compiled": server.no_fork is None and job != _OWN_CORE,
        "check": state.variants is None,
        "variants": state.variants or [],
        "needed": state.needed,
        "added": state.added,
        "turns": str(settings.turns) if settings.turns else None,
    }
    complete, failure = True, None
    try:
        for event in server.events(request):
            state.take(event)
            match event["event"]:
                case "phase":
                    progress(_doing(event, number))
                case "check":
                    checks.append(event["variant"])
                case "checked":
                    state.checks = checks
                case "process":
                    process |= {key: value for key, value in event["process"].items() if key != "variants"}
                case "comparison":
                    process["comparisons"].append(event["comparison"])
                case "plan":
                    process["timed_once"] = event["once"]
                case "warning":
                    process["warnings"].append(event["warning"])
    except JobFailedError as error:
        complete, failure = False, error
        state.lose(server.path, error)
    if "schema" in process and (process["comparisons"] or complete or (state.gave_up and not number)):
        process["variants"] = [] if number else state.checks
        state.overheads = state.overheads and process.get("overheads") is None
        state.spent += process.get("measured", 0.0)
        try:
            process_of(process)
        except ValueError as error:  # of a core that was edited
            raise _unreadable(server.path, "results", error) from error
        state.processes.append(process)
        return True
    state.warnings += process.get("warnings", [])
    if failure and state.gave_up and not number:
        raise failure.error(server.path) from failure
    return False


def _doing(event: Event, number: int) -> str:
    """Return what a measuring process says that it does: `checking k_v2`, `measuring 2: k and k_v2`."""
    if event["phase"] == "checking":
        return " ".join(["checking", *event["names"]])
    phase = "" if event["phase"] == "timing" else event["phase"]
    return f"measuring {number + 1}: " + f"{phase} {' and '.join(event['names'])}".strip()


def roofline_of(
    server: Server, settings: BenchSettings, device: str, dtypes: Sequence[str], seconds: float
) -> Roofline | Remark:
    """Measure what the machine reaches; a remark where that fails: times are good without it."""
    try:
        return server.roofline(device, settings.threads, dtypes, seconds)
    except (JobFailedError, RunFailedError) as error:
        numbers = {"error": error.message}
        return measured("roofline-not-measured", "analysis", Subject("machine", ""), numbers)


def compiled(server: Server, count: int) -> Iterator[Event]:
    """Compile the kernels of the server's file on all cores, `count` of them; yield what is said of each."""
    if count:
        yield from server.events({"job": "compile", "children": min(count, len(os.sched_getaffinity(0)))})


def kernel_count(source: str) -> int:
    """Return how many kernels a bench file compiles."""
    return len(_KERNEL.findall(source))


def sweep_configs(
    path: Path,
    settings: BenchSettings,
    text: str,
    *,
    source: str | None = None,
    other_harness: bool = False,
) -> tuple[ConfigSweep, ...]:
    """Time every config of a graph's Triton kernels in one process; this executes the code in the file.

    Args:
        path: `output_code_bench.py` of a graph.
        settings: `kernel`, `budget` (for each kernel), `cold`, `inputs`, `sizes` and `threads` count.
        text: more configs: `XBLOCK=1,8 num_warps=4`.
        source, other_harness: as for `run_bench_file`.

    Raises:
        NotFoundError: no such kernel, or the graph has no Triton kernels.
        RunFailedError: it crashed, or what it wrote cannot be read.
    """
    source = _source(path) if source is None else source
    job = _OWN_CORE if other_harness else "measure"
    configs = _measure_configs(path, source, job, settings, text)
    try:
        return tuple(from_json(ConfigSweep, sweep) for sweep in configs)
    except (KeyError, TypeError, AttributeError, ShapeError) as error:
        raise _unreadable(path, "times of configs", error) from error


def _unreadable(path: Path, what: str, error: Exception) -> RunFailedError:
    return RunFailedError(
        f"{path} wrote {what} that cannot be read: {error}",
        f"if its harness was edited, restore it, or delete {path.name} to have it written again",
    )


def _measure_configs(path: Path, source: str, job: str, settings: BenchSettings, text: str) -> list[Event]:
    options = {
        "kernel": settings.kernel,
        "budget": settings.budget,
        "threads": settings.threads,
        "cold": settings.cold,
        "inputs": settings.inputs,
        "sizes": list(settings.sizes),
        "configs": text,
    }
    request = {"job": job, "options": options, "refused": {}, "crashed": {}, "check": False}
    with Server(path, source, imports=settings.imports, environment={}) as server:
        try:
            events = [*server.events({**request, "variants": []})]
        except JobFailedError as error:
            raise error.error(path) from error
    processes = [event["process"] for event in events if event["event"] == "process"]
    return list(processes[-1]["configs"]) if processes else []


def _source(path: Path) -> str:
    try:
        return read_python_source(path).text
    except NotFoundError as error:
        raise NotFoundError(error.message, "probe bench-kernel writes it") from error


def samples_path(path: Path, settings: BenchSettings) -> Path:
    """Return where the samples of a bench file are: settings other than the defaults are in the name."""
    words = [] if settings.inputs == "random" else [settings.inputs]
    words += [f"{name}={number}" for name, number in settings.sizes]
    words += [f"{settings.threads}threads"] if settings.threads != 1 else []
    return path.with_suffix("".join(f".{word}" for word in words) + ".json")
