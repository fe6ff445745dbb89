"""Where torch wrote: the run's directory of a process, and what is added to it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from inductor_probe.errors import ProbeError
from inductor_probe.model.debug_dir import TREE
from inductor_probe.model.manifest import LOGS_DIR


def runs_below(root: Path) -> set[Path]:
    """Return the run directories in `root/torch_compile_debug`."""
    return set((root / TREE).glob("run_*-pid_*"))


def find_run(root: Path, pid: int, before: set[Path], graphs: Sequence[str]) -> Path | None:
    """Return the run that process `pid` made, or None when it made none.

    Args:
        root: where the process was told to write.
        pid: its id. The name of a run ends with it.
        before: runs that were there before; a process of the same id may have made one.
        graphs: folders of graphs as the process named them, which a script can have put elsewhere.
    """
    if graphs:
        return Path(graphs[0]).parents[1]  # <run>/torchinductor/<graph>
    mine = [run for run in runs_below(root) - before if run.name.endswith(f"-pid_{pid}")]
    return max(mine, default=None, key=lambda run: run.name)


def make_run(root: Path, pid: int, started: datetime) -> Path:
    """Make an empty run, named as torch names them.

    Raises:
        ProbeError: the folder cannot be made.
    """
    run = root / TREE / f"run_{started:%Y_%m_%d_%H_%M_%S_%f}-pid_{pid}"
    make_folder(run)
    return run


def make_folder(path: Path) -> None:
    """Make `path` with its parents.

    Raises:
        ProbeError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProbeError(
            f"cannot make {path}: {error.strerror or error}",
            "name a folder that can be written with --out; `probe doctor` tries all that are written to",
        ) from error


def move_logs(staging: Path, run: Path) -> None:
    """Move the compiler's logs into `run/probe_logs`, each whole or not at all.

    Raises:
        ProbeError: they cannot be written there.
    """
    logs = sorted((staging / LOGS_DIR).glob("*.log"))
    make_folder(run / LOGS_DIR)
    for log in logs:
        try:
            unfinished = run / LOGS_DIR / f".{log.name}.tmp"
            shutil.copyfile(log, unfinished)
            unfinished.replace(run / LOGS_DIR / log.name)
            log.unlink()
        except OSError as error:
            raise ProbeError(
                f"cannot write {run / LOGS_DIR / log.name}: {error.strerror or error}",
                "`probe doctor` says how much room is left where",
            ) from error
