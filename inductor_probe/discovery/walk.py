"""Runs of a `torch_compile_debug` tree in order, and every dump below a folder, by a walk with bounds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from inductor_probe.discovery.dump_files import is_archive
from inductor_probe.discovery.package import is_package
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError
from inductor_probe.model.debug_dir import TREE, DebugDir, GraphDir
from inductor_probe.model.span import Problem
from inductor_probe.reader.debug_dir import graph_dir, is_empty, is_run, leads_to, not_followed, read_run

_STAMP = re.compile(r"run_(\d{4}(?:_\d{2}){5}_\d{6})", re.ASCII)


def runs_in(folder: Path) -> list[Path]:
    """Return the runs directly in `folder`, or in the tree in it, oldest first.

    Raises:
        UnreadableError: a folder that may not be listed.
    """
    tree = folder / TREE if (folder / TREE).is_dir() else folder
    return sorted((entry for entry in folders_in(tree) if is_run(entry)), key=when_made)


def runs_below(path: Path) -> list[Path]:
    """Return the runs of the tree at, in or above `path`, oldest first."""
    for folder in (path, *path.parents):
        if is_run(folder):
            return [folder]
        if folder.name == TREE:
            return runs_in(folder)
        if folder == path and (folder / TREE).is_dir() and (runs := runs_in(folder)):
            return runs
    return []


def when_made(run: Path) -> tuple[float, str]:
    """Return a key that sorts runs by age, seconds since the epoch first.

    torch stamps the folder's name with its local time; a renamed folder without a stamp has its own time.
    """
    if match := _STAMP.search(run.name):
        try:
            return (datetime.strptime(match[1], "%Y_%m_%d_%H_%M_%S_%f").timestamp(), run.name)
        except (ValueError, OverflowError, OSError):
            pass  # digits that are no date
    try:
        return (run.stat().st_mtime, run.name)
    except OSError:
        return (0, run.name)


def folders_in(folder: Path) -> list[Path]:
    """Return the folders in `folder`, by name, without links to folders elsewhere.

    Raises:
        UnreadableError: it may not be listed.
    """
    try:
        return sorted(
            entry for entry in folder.iterdir() if entry.is_dir() and leads_to(entry, folder) is None
        )
    except OSError as error:
        raise UnreadableError(f"cannot list {folder}: {error.strerror or error}") from error


MAX_DEPTH = 24
MAX_ENTRIES = 500_000
_SHOWN_LINKS = 5
_SKIPPED = ("__pycache__", "node_modules", "site-packages", "dist-packages")
_CACHED = re.compile(r"c[a-z2-7]{20,}\.debug")
"""Inductor's cache keeps a graph's folder beside its code: `<cache>/oa/coa7klbe....debug`."""


class Below(Struct, frozen=True):
    """What a walk found. Loose graphs are a `DebugDir` of the folder that they lie in, without a manifest.

    `problems`: folders that could not be listed, and bounds that were reached.
    """

    runs: tuple[DebugDir, ...]
    problems: tuple[Problem, ...]

    def __iter__(self) -> Iterator[DebugDir]:
        return iter(self.runs)


def everything_below(path: Path, *, archives: bool = True) -> Below:
    """Find all runs, and graphs outside of runs, at and below `path`, by path.

    Hidden folders and environments are passed over. `path` may be a link; below it none is followed: what
    lies below as well is met without it, and a link to anything else is a problem.

    Args:
        path: a folder, or an archive of one.
        archives: unpack archives that are met below, too. `path` itself is unpacked in any case.

    Raises:
        NotFoundError: `path` is not there. UnreadableError: the archive `path` cannot be read.
    """
    path = path.absolute()
    walk = _Walk(archives)
    if is_archive(path) or is_package(path):
        walk.archive(path)
    elif not os.path.exists(path):  # noqa: PTH110 - no name is too long for it
        raise NotFoundError(f"{path} does not exist")
    elif not path.is_dir() and not path.is_file():
        raise NotFoundError(f"{path} is neither a folder nor a file")
    else:
        walk.folder(path if path.is_dir() else path.parent)
    return walk.finish()


@dataclass(slots=True)
class _Walk:
    archives: bool
    runs: list[DebugDir] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    loose: dict[Path, list[GraphDir]] = field(default_factory=dict)
    seen: set[tuple[int, int]] = field(default_factory=set)
    entries: int = 0
    unpacked: int = 0
    links: int = 0

    def finish(self) -> Below:
        for folder, graphs in self.loose.items():
            graphs.sort(key=compile_order)
            self.runs.append(DebugDir(folder, tuple(graphs), None))
        self.runs.sort(key=lambda run: run.path)
        if self.links > _SHOWN_LINKS:
            self.problems.append(
                Problem(f"beside these, links that lead elsewhere, not followed: {self.links - _SHOWN_LINKS}")
            )
        return Below(tuple(self.runs), tuple(self.problems))

    def folder(self, top: Path) -> None:
        """Look at `top` and all folders below it."""
        waiting = [(top, 0)]
        real = Path(os.path.realpath(top))
        while waiting:
            folder, depth = waiting.pop()
            if not self._is_new(folder) or self._take(folder):
                continue
            if depth == MAX_DEPTH:
                self.problems.append(Problem(f"{folder}: not searched, it lies {depth} folders deep"))
                continue
            folders = self._list(folder, real)
            if folders is None:
                return
            waiting.extend((entry, depth + 1) for entry in folders)

    def _is_new(self, folder: Path) -> bool:
        """A folder can be reached twice, where a file system is mounted at two places."""
        try:
            status = folder.stat()
        except OSError as error:
            self.problems.append(Problem(f"cannot read {folder}: {error.strerror or error}"))
            return False
        identity = (status.st_dev, status.st_ino)
        is_new = identity not in self.seen
        self.seen.add(identity)
        return is_new

    def _take(self, folder: Path) -> bool:
        """Keep `folder` if it is a run or a graph; there is nothing to look for inside of one."""
        try:
            if is_run(folder):
                self.runs.append(read_run(folder))
            elif (graph := graph_dir(folder)) and not is_empty(folder):
                self.loose.setdefault(owner(folder), []).append(graph)
            else:
                return False
        except OSError as error:
            self.problems.append(Problem(f"cannot read {folder}: {error.strerror or error}"))
        return True

    def _list(self, folder: Path, top: Path) -> list[Path] | None:
        """Return the folders in `folder` to look into; None when there were too many entries overall.

        `top` is the real path of the folder that the walk began in.
        """
        folders: list[Path] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self.entries += 1
                    if self.entries > MAX_ENTRIES:
                        self.problems.append(
                            Problem(f"{folder}: stopped after {MAX_ENTRIES:,} entries, name a folder below")
                        )
                        return None
                    if entry.name == "pyvenv.cfg":
                        return []
                    if entry.name.startswith(".") or entry.name in _SKIPPED:
                        continue
                    if entry.is_symlink():
                        self._link(Path(entry.path), top)
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(folder / entry.name)
                    elif self.archives and is_archive(folder / entry.name):
                        self._try(folder / entry.name)
        except OSError as error:
            self.problems.append(Problem(f"cannot list {folder}: {error.strerror or error}"))
        return sorted(folders, reverse=True)  # the last one is looked into first

    def _link(self, link: Path, top: Path) -> None:
        """Report a link to a dump outside of the real folder `top`. A project has other links: no matter."""
        real = leads_to(link, top)
        if real is None or not _holds_dump(real):
            return
        self.links += 1
        if self.links <= _SHOWN_LINKS:
            self.problems.append(not_followed(link, real))

    def archive(self, archive: Path) -> None:
        """Unpack `archive` and look at all folders in it."""
        from inductor_probe.discovery.archive import MAX_UNPACKED, unpack  # noqa: PLC0415 - most dumps are in none

        if self.unpacked >= MAX_UNPACKED:
            raise UnreadableError(
                f"{archive}: not unpacked, those before it take {MAX_UNPACKED >> 20} MiB; name it by itself"
            )
        unpacked = unpack(archive)
        self.unpacked += unpacked.size
        self.problems.extend(unpacked.problems)
        self.folder(unpacked.folder)

    def _try(self, archive: Path) -> None:
        try:
            self.archive(archive)
        except ProbeError as error:
            self.problems.append(Problem(error.message))


def _holds_dump(path: Path) -> bool:
    """Whether `path` is a run, a graph, a tree of runs or an archive; what lies deeper is not looked for."""
    try:
        if not path.is_dir():
            return is_archive(path)
        has_tree = path.name == TREE or (path / TREE).is_dir()
        return has_tree or is_run(path) or graph_dir(path) is not None
    except OSError:
        return False


def owner(graph: Path) -> Path:
    """Return the folder that a loose graph is listed under: for one in inductor's cache, the whole cache."""
    in_cache = _CACHED.fullmatch(graph.name) and len(graph.parent.name) == 2
    return graph.parent.parent if in_cache else graph.parent


def compile_order(graph: GraphDir) -> tuple[int, float, str]:
    """Sort key: torch's counter; where a folder has none, the time when its code was written."""
    try:
        when = 0.0 if graph.order else (graph.path / "output_code.py").stat().st_mtime
    except OSError:
        when = 0.0
    return (graph.order, when, graph.name)
