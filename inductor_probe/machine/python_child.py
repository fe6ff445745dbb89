"""Running Python in a process of its own, so that nothing else in the folder of a file is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inductor_probe.errors import RunFailedError

_TIMEOUT_S = 600
"""The first answer on a machine compiles a program for each kind of vector that it may have: some 20 s."""
_WRITE_FILES = ("TORCH_TRACE", "TORCH_COMPILE_DEBUG")
PROGRESS = "progress: "
"""Before what a program that is asked says of itself, in a line before its answer."""
_HINTS = (
    (
        ("InvalidCxxCompiler", "No working C++ compiler"),
        "install a C++ compiler (apt install g++); `probe doctor` says more",
    ),
    (("No module named 'torch'",), "run probe with a Python that has torch; `probe doctor` says more"),
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
_START = (
    "import sys; getattr(sys.flags, 'safe_path', False) or sys.path.pop(0); sys.argv.pop(0); "
    "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
)


def python_command(file: Path, *arguments: str, python: Path | None = None) -> list[str]:
    """Return the command that runs `file` as a program, without its folder on the path for imports.

    `python` is the interpreter: this one if None.

    `python FILE` puts that first, so that a `torch.py` or `json.py` which lies beside FILE would be run, too.
    Give the process a working folder that is empty: what it starts itself may look there.
    """
    return [str(python or sys.executable), "-c", _START, str(file.resolve()), *arguments]


def without_writing(variables: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what would have a child write where the user's own runs write."""
    return {name: value for name, value in variables.items() if name not in _WRITE_FILES}


def hint_for(text: str) -> str | None:
    """Return the next step for an error of torch or a compiler; None for an error that is not known."""
    return next((hint for signs, hint in _HINTS if any(sign in text for sign in signs)), None)


def ask_torch(
    child: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Run a program that asks torch something, in an empty folder, and return the JSON that it prints last.

    `child` may import this package, and prints one object in one line; `environment` is this process's if
    None. Each line `progress: TEXT` that it prints before that is passed to `progress` as it comes.

    Raises RunFailedError: it did not answer; says why, in the last line that it wrote or by its status.
    """
    variables = os.environ if environment is None else environment
    try:
        with (
            tempfile.TemporaryDirectory(prefix="inductor_probe_", ignore_cleanup_errors=True) as folder,
            tempfile.TemporaryFile("w+", errors="replace") as errors,
        ):
            command = python_command(child, *arguments)
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=without_writing(variables),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
            )
            last, status = _last_line(process, command, timeout_s, progress)
            errors.seek(0)
            written = errors.read()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunFailedError(f"cannot query torch: {error}") from error
    if status or not last.startswith("{"):
        killed = f"killed by signal {-status}" if status < 0 else f"status {status}"
        why = (written.strip().splitlines() or [killed])[-1]
        raise RunFailedError(f"cannot query torch: {why}", hint_for(written))
    answer: dict[str, Any] = json.loads(last)
    return answer


def _last_line(
    process: subprocess.Popen[str],
    command: list[str],
    timeout_s: float,
    progress: Callable[[str], None] | None,
) -> tuple[str, int]:
    """Return the last line that a process prints, and its status; it has ended by then."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer, last = threading.Timer(timeout_s, end), ""
    timer.daemon = True
    timer.start()
    try:
        with process:
            for line in process.stdout or ():
                if line.startswith(PROGRESS):
                    if progress is not None:
                        progress(line.removeprefix(PROGRESS).strip())
                elif line.strip():
                    last = line.strip()
    except BaseException:
        process.kill()
        raise
    finally:
        timer.cancel()
    if late.is_set():
        raise subprocess.TimeoutExpired(command, timeout_s)
    return last, process.returncode
