"""One run of a bench file: a child process, what it prints passed on, its results kept beside it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Thread

from inductor_probe.bench.results import read_results
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError
from inductor_probe.files import write_whole
from inductor_probe.model.bench import BenchResult

RESULTS_SUFFIX = ".json"
_USAGE = 2
_KEPT = 5000  # lines: a compiler that refuses a kernel prints thousands
_SHOWN = 12
_COMPILER = re.compile(r"(?:^|: )(?:fatal )?error: ")
_HINTS = (
    (("InvalidCxxCompiler", "No working C++ compiler"), "install a C++ compiler (apt install g++)"),
    (("No module named 'torch'",), "run it with a Python that has torch"),
    (
        ("No module named 'triton'", "Cannot find a working triton"),
        "install triton, or run it where a GPU is",
    ),
    (
        ("Torch not compiled with CUDA", "No CUDA GPUs", "no NVIDIA driver"),
        "run it on a machine with that GPU",
    ),
    (("No space left on device",), "free some space: kernels are compiled into the temporary folder"),
)


def run_bench_file(
    path: Path,
    *,
    kernel: str | None = None,
    min_run_time: float | None = None,
    threads: int | None = None,
    echo: Callable[[str], None] | None = None,
) -> BenchResult:
    """Run a bench file and return what it found; this executes the code in it.

    The results, raw samples included, are kept beside it as JSON.

    Args:
        path: `output_code_bench.py` of a graph.
        kernel: time this kernel only.
        min_run_time: seconds spent on each comparison.
        threads: of torch and OpenMP; torch's own choice if None.
        echo: is given every line the file prints, when it prints it, with its line end.

    Raises:
        NotFoundError: no such file, or no such kernel in it.
        RunFailedError: it crashed; carries the last lines of its traceback.
        ProbeError: the results cannot be written beside it.
    """
    if not path.exists():
        raise NotFoundError(f"{path} does not exist", "probe bench-kernel writes it")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        results = Path(folder, "results.json")
        command = [sys.executable, str(path.resolve()), "--json", str(results)]
        if kernel is not None:
            command += ["--kernel", kernel]
        if min_run_time is not None:
            command += ["--min-run-time", str(min_run_time)]
        if threads is not None:
            command += ["--threads", str(threads)]
        status, errors = _run(command, path.parent, echo)
        if not results.exists():
            raise _failure(path, status, errors)
        text = results.read_text(encoding="utf-8")
    write_whole(path.with_suffix(RESULTS_SUFFIX), text)
    return read_results(text, path)


def _run(command: list[str], cwd: Path, echo: Callable[[str], None] | None) -> tuple[int, list[str]]:
    """Run `command`, hand its lines to `echo`, and return its status and its stderr."""
    tail: deque[str] = deque(maxlen=_KEPT)

    def pass_on(stream: Iterable[str], keep: bool) -> None:
        for line in stream:
            if keep:
                tail.append(line.rstrip("\n"))
            if echo is not None:
                echo(line)

    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as child:
        reader = Thread(target=pass_on, args=(child.stderr or (), True))
        reader.start()
        try:
            pass_on(child.stdout or (), keep=False)
        finally:
            reader.join()
    return child.returncode, list(tail)


def _failure(path: Path, status: int, errors: list[str]) -> ProbeError:
    everything = "\n".join(errors)
    if status == _USAGE and ": error: " in everything:
        message, _, known = everything.rpartition(": error: ")[2].partition("; ")
        return NotFoundError(f"{path}: {message}", known or None)
    hint = next((hint for signs, hint in _HINTS if any(sign in everything for sign in signs)), None)
    refused = [line for line in errors if _COMPILER.search(line)]
    last = [line for line in errors if line.strip()][-_SHOWN:]
    said = "\n".join(dict.fromkeys(refused[:_SHOWN] or last))
    ended = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return RunFailedError(f"{path} {ended} before it had results" + (f":\n{said}" if said else ""), hint)
