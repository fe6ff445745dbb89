"""A script run without a dump, in fresh processes with torch's trace: with empty caches, then full ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inductor_probe.capture.events import EventReader
from inductor_probe.capture.isa_checks import isa_checks_kept
from inductor_probe.errors import ProbeError, RunFailedError

_CHILD = Path(__file__).with_name("trace_child.py")
_TRACE = "dedicated_log_torch_trace_*.log"


def run_traced(
    script: Path,
    args: Sequence[str],
    variables: Mapping[str, str],
    settings: Sequence[tuple[str, str]],
    *,
    times: int,
) -> Iterator[tuple[list[Path], int]]:
    """Run a script some times with caches of its own, and yield after each its trace logs and exit status.

    Args:
        variables: of the environment. settings: of torch, each with its value as a text.

    The caches have one thing from the start: the programs by which torch tries the compiler, which are made
    once on a machine (`isa_checks.py`). What it prints goes to standard error. Where it fails, what it
    compiled until then counts all the same.

    Raises:
        RunFailedError: it failed, and compiled nothing. ProbeError: there is no such setting.
    """
    with tempfile.TemporaryDirectory(prefix="inductor_probe_trace_", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "inductor").mkdir()
        for number in range(times):
            trace = folder / f"trace{number}"
            environment = {
                **{key: value for key, value in os.environ.items() if key != "TORCH_COMPILE_DEBUG"},
                **variables,
                "TORCH_TRACE": str(trace),
                "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
                "TRITON_CACHE_DIR": str(folder / "triton"),
            }
            command = [
                sys.executable,
                str(_CHILD),
                str(os.getpid()),
                name,
                json.dumps(settings),
                str(script),
                *args,
            ]
            with isa_checks_kept(folder / "inductor"):
                ended = subprocess.run(command, env=environment, stdout=2, check=False)
            logs = sorted(trace.glob(_TRACE))
            if ended.returncode and not logs and not number:
                raise _failure(script, ended.returncode, EventReader(folder).new_events(ended=True))
            yield logs, ended.returncode


def _failure(script: Path, status: int, events: Sequence[Mapping[str, Any]]) -> ProbeError:
    """Return why nothing was compiled: a setting that was refused, or what the script itself says."""
    for event in events:
        if event.get("event") == "refused":
            return ProbeError(str(event.get("message")), event.get("hint"))
    return RunFailedError(f"{script} ended with status {status}, and compiled nothing", "see what it printed")
