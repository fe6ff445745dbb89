"""A client reads and writes below the root, and nowhere else: links and `..` are followed first."""

from __future__ import annotations

import errno
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inductor_probe.errors import ProbeError

_PARTS = re.compile(r"[=,:]")
"""Between a path and what stands beside it: `NAME_v2=FILE`, `FILE:LINE`, `LABEL:1`."""
_OPENED = ("open", "os.listdir", "os.scandir")
"""Python's audit events of files that are looked into, with the path first."""
_STARTED = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty")
"""Those of a process that is started."""


def refuse_outside(arguments: Any, root: Path) -> None:
    """Refuse arguments in which something would be a path that leads out of the root; names never do.

    Raises:
        ProbeError: says which.
    """
    for text in _texts(arguments):
        for part in (text, *_PARTS.split(text)):
            if "\0" in part or not is_below(root / os.path.expanduser(part), root):  # noqa: PTH111 - `~nobody` may not raise
                raise ProbeError(
                    f"{text} is outside of {root}, below which this server works",
                    "name a path below it, or ask the user to start `probe mcp` with another --root",
                    code="usage",
                )


def is_below(path: Path | str, root: Path) -> bool:
    """Whether a path is in a folder, with all links in it followed; the path of the folder has none."""
    return Path(os.path.realpath(path)).is_relative_to(root)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (*_texts(key), *_texts(inner))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


def confine(root: Path, *, reading: bool) -> None:
    """Let this process open no file below the root that is elsewhere, through a link, from here on.

    A dump may have links in it, and texts that name files: where `reading` is all that the process does, it
    opens nothing outside of the root at all, but for Python, this package's own state, and the system's, and
    starts nothing.
    """
    from inductor_probe.discovery.archive import archives_folder  # noqa: PLC0415 - for one process in two
    from inductor_probe.store.made_here import record_path  # noqa: PLC0415

    programs = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *filter(None, sys.path)}
    own = {str(archives_folder()), str(record_path().parent), "/proc", "/sys", "/dev"}
    code = _real({*programs, str(Path(__file__).parents[1])})
    trusted = (*code, *_real(own))

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if reading and event in _STARTED:
            raise ProbeError("this server runs nothing", "ask the user to start `probe mcp` with --allow-run")
        if event not in _OPENED or not arguments or not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        asked = Path(os.path.abspath(os.fsdecode(arguments[0])))  # noqa: PTH100 - with the links in it
        real = Path(os.path.realpath(asked))
        is_link_out = asked.is_relative_to(root)
        allowed = code if is_link_out else trusted
        if real.is_relative_to(root) or any(map(real.is_relative_to, allowed)):
            return
        if reading or is_link_out:
            raise PermissionError(errno.EACCES, f"it is outside of {root}", str(asked))

    sys.addaudithook(hear)


def _real(folders: set[str]) -> tuple[Path, ...]:
    return tuple(Path(os.path.realpath(folder)) for folder in folders)
