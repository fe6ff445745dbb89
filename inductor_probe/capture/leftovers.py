"""A dump's temporary folder: whose it is can be proved, so that the next dump removes what a killed one left.

Its supervisor and its script hold a lock (`flock`) on a file in it for as long as they live, whatever ends
them. A folder of this user's whose lock is free belongs to nobody any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inductor_probe.capture.run_dir import move_logs
from inductor_probe.errors import ProbeError
from inductor_probe.model.manifest import MANIFEST_NAME
from inductor_probe.store.manifest import read_manifest

_PREFIX = "inductor_probe_dump_"
_LOCK = "lock"
_RUN = "run"  # a file that holds the run's path; a link would be taken for a second run


@dataclass(frozen=True, slots=True)
class TemporaryFolder:
    """The folder of a dump in progress. `lock`: descriptors that the script must have as well."""

    path: Path
    lock: tuple[int, ...]

    @property
    def staging(self) -> Path:
        """Where the child writes events and logs."""
        return _staging(self.path)

    def belongs_to(self, run: Path) -> None:
        """Write down where the logs belong, if there is nobody left to move them."""
        unfinished = self.path / f"{_RUN}.tmp"
        unfinished.write_bytes(os.fsencode(run))
        unfinished.rename(self.path / _RUN)


@contextmanager
def temporary_folder() -> Iterator[TemporaryFolder]:
    """Make a dump's temporary folder, and remove it at the end."""
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    _staging(path).mkdir()
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
            about = path.lstat()
            if about.st_uid != os.geteuid() or about.st_mode != 0o040700:  # a folder, as mkdtemp makes them
                continue
            descriptor = os.open(path / _LOCK, os.O_WRONLY | os.O_NOFOLLOW)
        except OSError:  # removed meanwhile by another dump; without a lock, so perhaps just being made
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _finish(path)
            shutil.rmtree(path, ignore_errors=True)
        except (OSError, ProbeError):  # somebody has the lock; the logs cannot be moved now: they stay there
            continue
        finally:
            os.close(descriptor)


def _finish(path: Path) -> None:
    """Do for a run what the end of its dump would have done, but for the manifest, which is there already."""
    if not (path / _RUN).exists():  # nothing was compiled
        return
    run = Path(os.fsdecode((path / _RUN).read_bytes()))
    if not (run / MANIFEST_NAME).is_file():  # the user has removed the run
        return
    for unfinished in run.glob(f".{MANIFEST_NAME}.*.tmp"):
        unfinished.unlink()
    if read_manifest(run / MANIFEST_NAME).exit_status is None:
        move_logs(_staging(path), run)


def _staging(path: Path) -> Path:
    return path / "staging"
