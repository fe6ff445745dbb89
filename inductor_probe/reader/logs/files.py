"""Where a run's logs are: kept by `probe dump`, or redirected by whoever ran the script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inductor_probe.model.debug_dir import TREE
from inductor_probe.model.manifest import LOGS_DIR
from inductor_probe.model.span import Problem

_PID = re.compile(r"-pid_(\d+)")


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Files that belong together; of several places the first that has a log is taken.

    `near`: beside the run, so that lines of other processes may be among them.
    """

    files: tuple[Path, ...]
    near: bool = False


def log_places(run: Path, problems: list[Problem]) -> list[LogPlace]:
    """Return the places where logs of the run may be, best first."""
    kept = list(_files(run / LOGS_DIR, ("*.log",), problems))
    inside = [*_files(run, _PATTERNS, problems), *_files(run / "torchdynamo", ("debug.log",), problems)]
    places = [LogPlace(tuple(_fusion_first(kept))), LogPlace(tuple(inside))]
    if not kept:
        beside = [run.parent, *([run.parent.parent] if run.parent.name == TREE else [])]
        places += [LogPlace(tuple(_files(folder, _PATTERNS, problems)), near=True) for folder in beside]
    return [place for place in places if place.files]


def pid_of(run: Path) -> int | None:
    """Return the process that made the run, if its folder's name tells."""
    match = _PID.search(run.name)
    return int(match[1]) if match and len(match[1]) < 20 else None


_PATTERNS = ("*.log", "stderr*.txt")


def _fusion_first(files: Iterable[Path]) -> list[Path]:
    """Lines of one millisecond are read in the order of their files: a graph's fusion before its scores."""
    return sorted(files, key=lambda path: (path.name != "fusion.log", path.name))


def _files(folder: Path, patterns: Iterable[str], problems: list[Problem]) -> Iterator[Path]:
    for pattern in patterns:
        try:
            found = sorted(path for path in folder.glob(pattern) if path.is_file() and path.stat().st_size)
        except OSError as error:
            problems.append(Problem(f"cannot list {folder}: {error.strerror or error}"))
            continue
        yield from found
