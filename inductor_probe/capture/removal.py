"""Removing a run: only what is provably a run, and nothing that a user put there or changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from inductor_probe.discovery.archive import archive_of
from inductor_probe.discovery.dump_files import is_run_folder, writer
from inductor_probe.discovery.run_facts import maker
from inductor_probe.errors import ProbeError
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.manifest import MANIFEST_NAME
from inductor_probe.model.profile import PROFILE_NAME
from inductor_probe.model.runs import Blocker, BlockerCode, Removal
from inductor_probe.model.whatif import WHATIF_NAME
from inductor_probe.reader.logs.trace import trace_log
from inductor_probe.store.made_here import COMPARED_FILES, edited_files

_AFTER_MANIFEST_S = 2
_AFTER_OTHERS_S = 600
"""Where no manifest says when the run ended: inductor writes a graph's code within minutes of its IR."""
_MOST_BLOCKERS = 3
_RESULTS = b'{"schema": '
"""How a results file begins that `probe bench-kernel` has written."""
_WRITTEN_WHENEVER = (WHATIF_NAME, PROFILE_NAME)
_IN_GRAPH = 2  # slashes in torchinductor/<graph>/<file>


def plan_removal(run: DebugDir, is_as_made: Callable[[Path], bool]) -> Removal:
    """Say what removing `run`, read by its path without links, takes away, and what stands against it.

    Args:
        is_as_made: whether nobody has edited a bench file.
    """
    if blockers := list(_place_blockers(run)):
        return Removal(run.path, (), (), (), 0, tuple(blockers))
    files: dict[str, os.stat_result] = {}
    folders: list[str] = []

    def add_unlistable(error: OSError) -> None:
        blockers.append(Blocker("unlistable", str(error.filename)))

    for folder, names_of_folders, names in os.walk(run.path, onerror=add_unlistable):
        here = PurePosixPath(folder).relative_to(run.path)
        for place in (here / name for name in names_of_folders):
            if code := _folder_blocker(run.path / place, place):
                blockers.append(Blocker(code, str(place)))
            else:
                folders.append(str(place))
        for place in (here / name for name in names):
            status = (run.path / place).lstat()
            if code := _file_blocker(run.path / place, place, status, is_as_made):
                blockers.append(Blocker(code, str(place)))
            else:
                files[str(place)] = status
    blockers += _change_blockers(run, files)
    if len(blockers) > _MOST_BLOCKERS:
        blockers[_MOST_BLOCKERS:] = [Blocker("more", str(len(blockers) - _MOST_BLOCKERS))]
    log = trace_log(run.path)
    beside = (log,) if log and os.path.realpath(log) == str(log) else ()
    size = sum(status.st_size for status in (*files.values(), *(path.stat() for path in beside)))
    return Removal(run.path, tuple(files), tuple(folders), beside, size, tuple(blockers))


def remove(removal: Removal) -> None:
    """Remove a run as planned: file by file, never a folder that holds anything else.

    Raises:
        ValueError: something stands against it: no plan with blockers may get here.
        ProbeError: something changed meanwhile; says what is left.
    """
    if removal.blockers:
        raise ValueError(removal.blockers)
    files, folders = set(removal.files), set(removal.folders)
    try:
        # Through descriptors: a folder that is replaced by a link meanwhile is not followed.
        for path, below, names, descriptor in os.fwalk(removal.run, topdown=False, follow_symlinks=False):
            here = PurePosixPath(path).relative_to(removal.run)
            for name in names:
                if str(here / name) in files:
                    os.unlink(name, dir_fd=descriptor)
            for name in below:
                if str(here / name) in folders:
                    os.rmdir(name, dir_fd=descriptor)
        removal.run.rmdir()
        for log in removal.beside:
            log.unlink()
    except OSError as error:
        raise ProbeError(
            f"{removal.run} is removed in part only: {error.filename or ''}: {error.strerror or error}",
            "something was written there during the removal, or may not be removed; remove the rest by hand",
        ) from error


def _place_blockers(run: DebugDir) -> Iterator[Blocker]:
    real = os.path.realpath(run.path)
    if real != str(run.path):
        yield Blocker("behind-link", real)
    elif archive := archive_of(run.path):
        yield Blocker("in-archive", str(archive))
    elif run.manifest is None and not _was_made_by_torch(run):
        yield Blocker("not-a-run")
    elif (pid := maker(run)) is not None:
        yield Blocker("still-made", str(pid))


def _was_made_by_torch(run: DebugDir) -> bool:
    """Decide by what is in it: the folder `torchinductor` alone may be anyone's."""
    folder = run.path / "torchinductor"
    return folder.is_dir() and (
        bool(run.graphs) or (run.path / "torchdynamo").is_dir() or any(folder.glob("aot_*_debug.log"))
    )


def _folder_blocker(path: Path, place: PurePosixPath) -> BlockerCode | None:
    if path.is_symlink():
        return "link"
    if path.is_mount():
        return "mount"
    return None if is_run_folder(place) else "foreign-folder"


def _file_blocker(
    path: Path, place: PurePosixPath, status: os.stat_result, is_as_made: Callable[[Path], bool]
) -> BlockerCode | None:
    who = writer(place)
    if not stat.S_ISREG(status.st_mode):
        return "link" if stat.S_ISLNK(status.st_mode) else "special-file"
    if who is None:
        return "foreign-file"
    if who == "bench" and place.suffix == ".py" and not is_as_made(path):
        return "edited"
    if who == "bench" and place.suffix == ".json":
        try:
            with path.open("rb") as file:
                return None if file.read(len(_RESULTS)) == _RESULTS else "foreign-file"
        except OSError:
            return "foreign-file"
    return None


def _change_blockers(run: DebugDir, files: Mapping[str, os.stat_result]) -> Iterator[Blocker]:
    """Yield which of torch's files are not as it left them: people edit `output_code.py` in place.

    What was made here is compared with its digests. The rest is compared by times: that of the content, which
    an editor or `touch -r` can set, and that of the last change of any kind, which nobody can. The latter is
    new for a copy, but then for all files of a folder.
    """
    made = {
        place: status
        for place, status in files.items()
        if writer(PurePosixPath(place)) in ("torch", "probe") and place not in _WRITTEN_WHENEVER
    }
    graphs = sorted({PurePosixPath(place).parent for place in made if place.count("/") == _IN_GRAPH})
    try:
        edited = edited_files(run.path / graph for graph in graphs)
    except ProbeError as error:
        yield Blocker("record-unreadable", error.message)
        return
    compared: set[str] = set()
    for graph in graphs:
        if (names := edited.get(run.path / graph)) is not None:
            compared.update(str(graph / name) for name in COMPARED_FILES)
            yield from (Blocker("edited", str(graph / name)) for name in names)
            continue
        code = str(graph / "output_code.py")
        others = [made[place].st_ctime for place in made if place.startswith(f"{graph}/") and place != code]
        if code in made and others and made[code].st_ctime > max(others) + _AFTER_OTHERS_S:
            yield Blocker("changed-after-graph", code)
    if MANIFEST_NAME in made and run.manifest is not None and run.manifest.exit_status is not None:
        latest = made[MANIFEST_NAME].st_mtime + _AFTER_MANIFEST_S  # written when the script had ended
    else:
        others = [made[place].st_mtime for place in made if not place.endswith("output_code.py")]
        latest = max(others, default=float("inf")) + _AFTER_OTHERS_S
    for place, status in made.items():
        if status.st_mtime > latest and place not in compared:
            yield Blocker("changed-after-run", place)
