"""Where a dump writes: the run that torch makes, and the temporary folder of the dump in progress.

Whose a temporary folder is can be proved, so that the next dump removes what a killed one left: its
supervisor and its script hold a lock (`flock`) on a file in it for as long as they live, whatever ends them.
A folder of this user's whose lock is free belongs to nobody any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from inductor_probe.capture.events import process_folders
from inductor_probe.errors import ProbeError
from inductor_probe.model.debug_dir import TREE
from inductor_probe.model.manifest import LOGS_DIR, MANIFEST_NAME
from inductor_probe.store.manifest import read_manifest

_PREFIX = "inductor_probe_dump_"
_LOCK = "lock"
_RUN = "run"  # a file that holds the run's path; a link would look like a second run
_STAGING = "staging"


def runs_below(root: Path) -> set[Path]:
    """Return the run directories in `root/torch_compile_debug`."""
    return set((root / TREE).glob("run_*-pid_*"))


def find_run(root: Path, pid: int, before: set[Path], graphs: Sequence[str]) -> Path | None:
    """Return the run that process `pid` made, or None when it made none.

    Args:
        root: where the process writes by its settings.
        pid: its id. The name of a run ends with it.
        before: runs that were there before; a process of the same id may have made one.
        graphs: folders of graphs as the process named them, which a script can have put elsewhere.
    """
    if graphs:
        return Path(graphs[0]).parents[1]  # <run>/torchinductor/<graph>
    of_process = [run for run in runs_below(root) - before if run.name.endswith(f"-pid_{pid}")]
    return max(of_process, default=None, key=lambda run: run.name)


def make_run(root: Path, pid: int, started: datetime) -> Path:
    """Make an empty run, named as torch names them (torch/_dynamo/utils.py, get_debug_dir).

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
            "name a writable folder with --out; `probe doctor` tries every folder that is written to",
        ) from error


def move_logs(staging: Path, run: Path) -> None:
    """Move the compiler's logs into `run/probe_logs`, each whole or not at all.

    Raises:
        ProbeError: they cannot be written there.
    """
    make_folder(run / LOGS_DIR)
    for log in sorted((staging / LOGS_DIR).glob("*.log")):
        unfinished = run / LOGS_DIR / f".{log.name}.tmp"
        try:
            shutil.copyfile(log, unfinished)
            unfinished.replace(run / LOGS_DIR / log.name)
            log.unlink()
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise ProbeError(
                f"cannot write {run / LOGS_DIR / log.name}: {error.strerror or error}",
                "`probe doctor` shows the free space of each disk",
            ) from error


class TemporaryFolder(Struct, frozen=True):
    """The folder of a dump in progress. `lock`: descriptors that the script must have as well."""

    path: Path
    lock: tuple[int, ...]

    @property
    def staging(self) -> Path:
        """Where the child writes events and logs."""
        return self.path / _STAGING


@contextmanager
def temporary_folder() -> Iterator[TemporaryFolder]:
    """Make a dump's temporary folder, and remove it at the end."""
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (path / _STAGING).mkdir()
    locked: tuple[int, ...] = ()
    descriptor = os.open(path / "new", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        # Locked before it has its name: `remove_leftovers` never sees the lock of a living dump free.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        (path / "new").rename(path / _LOCK)
        locked = (descriptor,)
    except OSError:  # a file system without locks: nothing will prove whose folder this was
        pass
    try:
        yield TemporaryFolder(path, locked)
    finally:
        # Leftovers of a killed child's compile workers must not turn its end into an error of ours.
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def remove_leftovers() -> None:
    """Finish and remove the temporary folders of this user's dumps whose supervisors were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            status = path.lstat()
            if status.st_uid != os.geteuid() or status.st_mode != 0o040700:  # a folder, as mkdtemp makes them
                continue
            descriptor = os.open(path / _LOCK, os.O_WRONLY | os.O_NOFOLLOW)
        except OSError:  # removed meanwhile by another dump; without a lock, so perhaps just being made
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for folder in (path / _STAGING, *process_folders(path / _STAGING)):
                _finish(folder)
            shutil.rmtree(path, ignore_errors=True)
        except (OSError, ProbeError):  # somebody has the lock; the logs cannot be moved now: they stay there
            continue
        finally:
            os.close(descriptor)


def set_run(folder: Path, run: Path) -> None:
    """Write down in the folder of a process where its logs belong, if there is nobody left to move them."""
    unfinished = folder / f"{_RUN}.tmp"
    unfinished.write_bytes(os.fsencode(run))
    unfinished.rename(folder / _RUN)


def _finish(folder: Path) -> None:
    """Do for the run of a process what the end of its dump would have done; the manifest is there already.

    `folder` is that of the process, for events and logs.
    """
    if not (folder / _RUN).exists():  # nothing was compiled
        return
    run = Path(os.fsdecode((folder / _RUN).read_bytes()))
    if not (run / MANIFEST_NAME).is_file():  # the user has removed the run
        return
    for unfinished in run.glob(f".{MANIFEST_NAME}.*.tmp"):
        unfinished.unlink()
    if read_manifest(run / MANIFEST_NAME).exit_status is None:
        move_logs(folder, run)
