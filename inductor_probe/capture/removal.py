"""Taking a run away: only what is provably a run, and nothing that a user put there or changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from inductor_probe.discovery.archive import archive_of
from inductor_probe.discovery.dump_files import BENCH_NAME, is_run_folder, writer
from inductor_probe.discovery.inductor_cache import trace_log
from inductor_probe.discovery.run_facts import maker
from inductor_probe.errors import ProbeError
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.manifest import MANIFEST_NAME
from inductor_probe.model.runs import Blocker, Removal
from inductor_probe.store.made_here import COMPARED_FILES, edited_files

_AFTER_MANIFEST_S = 2
_AFTER_OTHERS_S = 600
"""Where no manifest tells when the run ended: inductor writes a graph's code within minutes of its IR."""
_NAMED = 3
_RESULTS = b'{"schema": '
_IN_GRAPH = 2  # slashes in torchinductor/<graph>/<file>


def plan_removal(run: DebugDir, is_as_made: Callable[[Path], bool]) -> Removal:
    """Say what removing `run`, read by its path without links, takes away, and what stands against it.

    Args:
        is_as_made: tells of a bench file whether nobody has edited it.
    """
    if blockers := tuple(_place_blockers(run)):
        return Removal(run.path, (), (), (), 0, blockers)
    found = _Contents(run.path, is_as_made, run.manifest is not None and run.manifest.exit_status is not None)
    found.collect()
    log = trace_log(run.path)
    beside = (log,) if log and os.path.realpath(log) == str(log) else ()
    size = found.size + sum(path.stat().st_size for path in beside)
    return Removal(run.path, tuple(found.files), tuple(found.folders), beside, size, tuple(found.blockers()))


def remove(removal: Removal) -> None:
    """Remove a run as planned: file by file, never a folder that holds anything else.

    Raises:
        ProbeError: something stands against it, or changed meanwhile; says what is left.
    """
    if removal.blockers:
        first = removal.blockers[0]
        raise ProbeError(f"{removal.run} is kept: {first.code} {first.subject}".rstrip())
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
    elif run.manifest is None and not _has_structure(run):
        yield Blocker("not-a-run")
    elif (pid := maker(run)) is not None:
        yield Blocker("still-made", str(pid))


def _has_structure(run: DebugDir) -> bool:
    """Tell whether torch made this: the folder `torchinductor` alone may be anyone's."""
    folder = run.path / "torchinductor"
    return folder.is_dir() and (
        bool(run.graphs) or (run.path / "torchdynamo").is_dir() or any(folder.glob("aot_*_debug.log"))
    )


@dataclass(slots=True)
class _Contents:
    """What is in a run: what goes, and what stands against it."""

    run: Path
    is_as_made: Callable[[Path], bool]
    is_ended: bool
    """Whether its manifest was written when the script had ended."""
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    size: int = 0
    strange: list[Blocker] = field(default_factory=list)
    written: dict[str, float] = field(default_factory=dict)
    changed: dict[str, float] = field(default_factory=dict)

    def collect(self) -> None:
        for path, below, names in os.walk(self.run, onerror=self._unlistable):
            here = PurePosixPath(path).relative_to(self.run)
            for name in below:
                self._folder(here / name)
            for name in names:
                self._file(here / name)

    def blockers(self) -> Iterator[Blocker]:
        """Yield what stands against removing the run; of many only the first."""
        problems = [*self.strange, *self._changed()]
        yield from problems[:_NAMED]
        if len(problems) > _NAMED:
            yield Blocker("more", str(len(problems) - _NAMED))

    def _unlistable(self, error: OSError) -> None:
        self.strange.append(Blocker("unlistable", str(error.filename)))

    def _folder(self, place: PurePosixPath) -> None:
        path = self.run / place
        if path.is_symlink():
            self.strange.append(Blocker("link", str(place)))
        elif path.is_mount():
            self.strange.append(Blocker("mount", str(place)))
        elif not is_run_folder(place):
            self.strange.append(Blocker("foreign-folder", str(place)))
        else:
            self.folders.append(str(place))

    def _file(self, place: PurePosixPath) -> None:
        path, who = self.run / place, writer(place)
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            self.strange.append(
                Blocker("link" if stat.S_ISLNK(about.st_mode) else "special-file", str(place))
            )
        elif who is None:
            self.strange.append(Blocker("foreign-file", str(place)))
        elif place.name == BENCH_NAME and not self.is_as_made(path):
            self.strange.append(Blocker("edited", str(place)))
        elif who == "bench" and place.suffix == ".json" and not _is_of_bench(path):
            self.strange.append(Blocker("foreign-file", str(place)))
        else:
            self.files.append(str(place))
            self.size += about.st_size
            if who in ("torch", "probe"):
                self.written[str(place)] = about.st_mtime
                self.changed[str(place)] = about.st_ctime

    def _changed(self) -> Iterator[Blocker]:
        """Yield which of torch's files are not as it left them: people edit `output_code.py` in place.

        What was made here is compared with its digests. For the rest their times tell: that of the content,
        which an editor or `touch -r` can set, and that of the last change of any kind, which nobody can. The
        latter is new for a copy, but then for all files of a folder.
        """
        graphs = sorted(
            {PurePosixPath(place).parent for place in self.written if place.count("/") == _IN_GRAPH}
        )
        try:
            edited = edited_files(self.run / graph for graph in graphs)
        except ProbeError as error:
            yield Blocker("record-unreadable", error.message)
            return
        compared: set[str] = set()
        for graph in graphs:
            if (names := edited.get(self.run / graph)) is not None:
                compared.update(str(graph / name) for name in COMPARED_FILES)
                yield from (Blocker("edited", str(graph / name)) for name in names)
            else:
                yield from self._changed_code(graph)
        yield from (Blocker("changed-after-run", place) for place in self._late() if place not in compared)

    def _changed_code(self, graph: PurePosixPath) -> Iterator[Blocker]:
        code = str(graph / "output_code.py")
        others = [
            when for place, when in self.changed.items() if place.startswith(f"{graph}/") and place != code
        ]
        if code in self.changed and others and self.changed[code] > max(others) + _AFTER_OTHERS_S:
            yield Blocker("changed-after-graph", code)

    def _late(self) -> Iterator[str]:
        """Yield the files whose content was written after the run."""
        end = self.written.get(MANIFEST_NAME)
        if end is not None and self.is_ended:
            limit = end + _AFTER_MANIFEST_S
        else:
            others = [when for place, when in self.written.items() if not place.endswith("output_code.py")]
            limit = max(others, default=0) + _AFTER_OTHERS_S if others else float("inf")
        yield from (place for place, when in self.written.items() if when > limit)


def _is_of_bench(path: Path) -> bool:
    """Tell whether a results file begins as `probe bench-kernel` writes it."""
    try:
        with path.open("rb") as file:
            return file.read(len(_RESULTS)) == _RESULTS
    except OSError:
        return False
