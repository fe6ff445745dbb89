"""A bench file run by the core that is pasted into it, in a fresh process: an edited one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import inductor_probe.harness
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError
from inductor_probe.machine.python_child import hint_for, python_command
from inductor_probe.model.bench import BenchSettings
from inductor_probe.store.samples import process_of

_OWN_CORE = Path(inductor_probe.harness.__file__).with_name("own_core.py")
_USAGE = 2
_MOST_LINES = 12
_COMPILER = re.compile(r"(?:^|: )(?:fatal )?error: ")


def alone_options(settings: BenchSettings, share: float) -> list[str]:
    """Return the options of a bench file's own command line: `share` is the budget of one process."""
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
        command = python_command(_OWN_CORE, str(path.resolve()), str(results), *options)
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
    hint = hint_for(text)
    compiler = [line for line in lines if _COMPILER.search(line)]
    last = [line for line in lines if line.strip()][-_MOST_LINES:]
    reason = "\n".join(dict.fromkeys(compiler[:_MOST_LINES] or last))
    ended = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return RunFailedError(f"{path} {ended} before it had results" + (f":\n{reason}" if reason else ""), hint)
