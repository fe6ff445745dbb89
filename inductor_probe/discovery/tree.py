"""The runs of a `torch_compile_debug` tree, in the order they were made."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from inductor_probe.errors import UnreadableError
from inductor_probe.model.debug_dir import TREE
from inductor_probe.reader.debug_dir import is_run
from inductor_probe.reader.link import leads_to

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
