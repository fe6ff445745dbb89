"""A session: fresh processes of a bench file, until they agree."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inductor_probe.bench.result import result_of
from inductor_probe.bench.verdict import MORE_PROCESSES, PROCESSES, wants_more
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError
from inductor_probe.files import write_whole
from inductor_probe.machine.gpu import gpu_remarks, gpu_state
from inductor_probe.machine.python_child import source_command
from inductor_probe.machine.roofline import measure_roofline
from inductor_probe.machine.toolchain import flags_environment
from inductor_probe.model.autotuning import ConfigSweep
from inductor_probe.model.bench import BenchResult, BenchSettings
from inductor_probe.model.codec import ShapeError, from_json, to_json
from inductor_probe.model.remark import Remark, Subject, measured, reported
from inductor_probe.model.timing import KernelWork, Samples
from inductor_probe.reader.python_text import read_python_source
from inductor_probe.store.samples import process_of, samples_text

Works = Callable[[BenchResult], Sequence[KernelWork]]
"""What each kernel has to do in a call, by the result: it knows which operators count flops."""

_USAGE = 2
_MOST_LINES = 12
_COMPILER = re.compile(r"(?:^|: )(?:fatal )?error: ")
_HINTS = (
    (
        ("InvalidCxxCompiler", "No working C++ compiler"),
        "install a C++ compiler (apt install g++); `probe doctor` says more",
    ),
    (("No module named 'torch'",), "run it with a Python that has torch; `probe doctor` says more"),
    (
        ("No module named 'triton'", "Cannot find a working triton"),
        "install triton, or run it where a GPU is; `probe doctor` says more",
    ),
    (
        ("Torch not compiled with CUDA", "No CUDA GPUs", "no NVIDIA driver"),
        "run it on a machine with that GPU; `probe doctor` says what is seen here",
    ),
    (
        ("'_OpNamespace' '",),
        "the graph calls an operator that the program registered: --import MODULE, or --import FILE.py, "
        "runs what registers it",
    ),
    (
        ("No space left on device",),
        "free some space: kernels are compiled into the temporary folder; `probe doctor` says how much",
    ),
)


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
        settings: see there; its defaults if None.
        hazards: what will spoil the times, known before: written with the samples.
        progress: called with what comes next before each process.
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
                if len(processes) >= most or not any(wants_more(pair, margin) for pair in result.comparisons):
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


def sweep_configs(
    path: Path, settings: BenchSettings, text: str, *, source: str | None = None
) -> tuple[ConfigSweep, ...]:
    """Time every config of a graph's Triton kernels in one process; this executes the code in the file.

    Args:
        path: `output_code_bench.py` of a graph.
        settings: `kernel`, `budget` (for each kernel), `cold`, `inputs`, `sizes` and `threads` count.
        text: more configs: `XBLOCK=1,8 num_warps=4`.
        source: as for `run_bench_file`.

    Raises:
        NotFoundError: no such kernel, or the graph has no Triton kernels.
        RunFailedError: it crashed, or what it wrote cannot be read.
    """
    options = [*_options(settings, settings.budget), "--configs", text]
    result = run_once(path, _source(path) if source is None else source, options)
    try:
        for config in (config for sweep in result["configs"] for config in sweep["configs"]):
            if config.get("note") is not None:  # written by the harness of an older probe
                config["remark"] = to_json(reported(str(config["note"]), Subject("kernel", "")))
        return tuple(from_json(ConfigSweep, sweep) for sweep in result["configs"])
    except (KeyError, TypeError, AttributeError, ShapeError) as error:
        raise RunFailedError(
            f"{path} wrote times of configs that cannot be read: {error}",
            f"if its harness was edited, restore it, or delete {path.name} to have it written again",
        ) from error


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


def run_once(
    path: Path, source: str, options: Sequence[str], environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a bench file in a fresh process and return the JSON that it writes; this executes the code in it.

    Nothing else runs here meanwhile: what it prints goes to files, and is read when it has ended.

    Args:
        path: of the bench file: what it and its errors are called, and where it looks for saved inputs.
        source: its text, which is what runs: `path` is not read.
        options: of the command line of a bench file.
        environment: on top of this process's.

    Raises:
        NotFoundError: no such kernel in it.
        RunFailedError: it crashed (carries the last lines of its traceback), or what it wrote is not the
            JSON of a bench file (the harness in it was edited).
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        results, errors = Path(folder, "results.json"), Path(folder, "stderr")
        command = source_command(path, "--json", str(results), *options)
        with errors.open("wb") as stderr:
            completed = subprocess.run(
                command,
                input=source.encode(),
                cwd=folder,
                env={**os.environ, **(environment or {})},
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                check=False,
            )
        if not results.exists():
            lines = errors.read_text(encoding="utf-8", errors="replace").splitlines()
            raise _failure(path, completed.returncode, lines)
        text = results.read_text(encoding="utf-8", errors="replace")
    try:
        result: dict[str, Any] = json.loads(text)
        process_of(result)
    except (ValueError, RecursionError) as error:
        raise RunFailedError(
            f"{path} wrote results that cannot be read: {error}",
            f"if its harness was edited, restore it, or delete {path.name} to have it written again",
        ) from error
    return result


def _failure(path: Path, status: int, lines: list[str]) -> ProbeError:
    text = "\n".join(lines)
    if status == _USAGE and ": error: " in text:
        message, _, known = text.rpartition(": error: ")[2].partition("; ")
        return NotFoundError(f"{path}: {message}", known or None)
    hint = next((hint for signs, hint in _HINTS if any(sign in text for sign in signs)), None)
    compiler = [line for line in lines if _COMPILER.search(line)]
    last = [line for line in lines if line.strip()][-_MOST_LINES:]
    reason = "\n".join(dict.fromkeys(compiler[:_MOST_LINES] or last))
    ended = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return RunFailedError(f"{path} {ended} before it had results" + (f":\n{reason}" if reason else ""), hint)
