"""A session: fresh processes of a bench file, until they agree."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inductor_probe.bench.bench_run import run_once
from inductor_probe.bench.results import result_of
from inductor_probe.bench.verdict import MORE_PROCESSES, PROCESSES, wants_more
from inductor_probe.errors import NotFoundError, RunFailedError
from inductor_probe.files import write_whole
from inductor_probe.machine.gpu import gpu_remarks, gpu_state
from inductor_probe.machine.roofline import measure_roofline
from inductor_probe.machine.toolchain import flags_environment
from inductor_probe.model.bench import BenchResult, BenchSettings
from inductor_probe.model.codec import to_json
from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.timing import KernelWork, Samples
from inductor_probe.reader.python_source import read_python_source
from inductor_probe.store.samples import process_of, samples_text

RESULTS_SUFFIX = ".json"

Works = Callable[[BenchResult], Sequence[KernelWork]]
"""What each kernel has to do in a call, by the result: it knows which operators count flops."""


def run_bench_file(
    path: Path,
    settings: BenchSettings | None = None,
    hazards: Sequence[Remark] = (),
    progress: Callable[[str], None] | None = None,
    works: Works | None = None,
    *,
    source: str | None = None,
) -> BenchResult:
    """Run a bench file in several processes and return what they measured; this executes the code in it.

    Baselines are loaded and set up first in every other process, candidates in the rest; seeds differ. All
    samples are written beside the file as JSON, after each process. The machine's roofline is measured last.

    Args:
        path: `output_code_bench.py` of a graph.
        settings: see there; the usual ones if None.
        hazards: what will spoil the times, known before: written with the samples.
        progress: is told what comes next before each process, and nothing while one runs.
        works: what kernels have to do, to hold them against the machine; None: they are not.
        source: the text to run, where it was read and judged before; else `path` is read, once for all.

    Raises:
        NotFoundError: no such file, or no such kernel, size or kind of inputs in it.
        UnreadableError: the file is not Python text in UTF-8.
        RunFailedError: it crashed; carries the last lines of its traceback.
        ProbeError: the results cannot be written beside it, or a flag is no flag.
    """
    settings = settings or BenchSettings()
    margin = settings.margin
    most, fewest = settings.processes or MORE_PROCESSES, settings.processes or PROCESSES
    share = settings.budget / most
    results = samples_path(path, settings)
    source = _source(path) if source is None else source
    gpu = gpu_state() if "'cuda" in source else None
    processes: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        environment = flags_environment(settings.cxxflags, Path(folder))
        while True:
            number = len(processes)
            if progress is not None:
                last = fewest if number < fewest else most
                progress(f"process {number + 1} of {last}: load, check, time for {share:.2g} s")
            options = [*_options(settings, share), "--seed", str(2 * number)]
            options += ["--copies-first"] if number % 2 else []
            processes.append(run_once(path, source, options, environment))
            if not number:
                processes[-1]["warnings"] = [*map(to_json, hazards), *processes[-1]["warnings"]]
            if gpu is not None:
                before, gpu = gpu, gpu_state()
                processes[-1]["gpu"] = {"before": asdict(before), "after": asdict(gpu)}
                processes[-1]["warnings"] += map(to_json, gpu_remarks(before, gpu, [os.getpid()]))
            write_whole(results, samples_text(processes, margin))
            if not processes[0]["comparisons"]:  # nothing is right, or compared: no other process will
                break
            if len(processes) >= fewest:
                result = result_of(Samples(tuple(map(process_of, processes)), margin))
                if len(processes) >= most or not any(wants_more(each, margin) for each in result.comparisons):
                    break
    result = result_of(Samples(tuple(map(process_of, processes)), margin))
    if works is None or result.overheads is None:
        return result
    if progress is not None:
        progress("what this machine can copy and multiply")
    kernels = tuple(works(result))
    try:
        dtypes = [work.dtype for work in kernels if work.dtype]
        roofline = measure_roofline(result.overheads.device, threads=settings.threads, dtypes=dtypes)
    except RunFailedError as error:  # the times are good without it
        roofline = None
        missing = measured(
            "roofline-not-measured", "analysis", Subject("machine", ""), {"error": error.message}
        )
        processes[-1]["warnings"].append(to_json(missing))
    write_whole(results, samples_text(processes, margin, roofline, kernels))
    return result_of(Samples(tuple(map(process_of, processes)), margin, roofline, kernels))


def time_configs(
    path: Path, settings: BenchSettings, text: str, *, source: str | None = None
) -> tuple[dict[str, Any], ...]:
    """Time every config of a graph's Triton kernels in one process; this executes the code in the file.

    Args:
        path: `output_code_bench.py` of a graph.
        settings: `kernel`, `budget` (for each kernel), `cold`, `inputs`, `sizes` and `threads` count.
        text: more configs: `XBLOCK=1,8 num_warps=4`.
        source: as for `run_bench_file`.

    Returns:
        For each kernel the fields of a `ConfigSweep` as JSON has them.

    Raises:
        NotFoundError: no such kernel, or the graph has no Triton kernels. RunFailedError: it crashed.
    """
    options = [*_options(settings, settings.budget), "--configs", text]
    source = _source(path) if source is None else source
    return tuple(run_once(path, source, options)["configs"])


def _source(path: Path) -> str:
    try:
        return read_python_source(path).text
    except NotFoundError as error:
        raise NotFoundError(error.message, "probe bench-kernel writes it") from error


def samples_path(path: Path, settings: BenchSettings) -> Path:
    """Return where the samples of a bench file are: other settings than usual are in the name."""
    words = [] if settings.inputs == "random" else [settings.inputs]
    words += [f"{name}={number}" for name, number in settings.sizes]
    words += [f"{settings.threads}threads"] if settings.threads != 1 else []
    return path.with_suffix("".join(f".{word}" for word in words) + RESULTS_SUFFIX)


def _options(settings: BenchSettings, share: float) -> list[str]:
    options = ["--threads", str(settings.threads), "--inputs", settings.inputs]
    options += ["--budget", f"{share:.6g}", "--precision", f"{settings.margin / 4:.6g}"]
    options += ["--kernel", settings.kernel] if settings.kernel is not None else []
    options += ["--copies"] if settings.copies else []
    options += [] if settings.cold is None else ["--data", "cold" if settings.cold else "warm"]
    for name, number in settings.sizes:
        options += ["--size", f"{name}={number}"]
    for module in settings.imports:
        options += ["--import", str(Path(module).resolve()) if module.endswith(".py") else module]
    return options
