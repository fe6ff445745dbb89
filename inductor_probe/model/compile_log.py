"""What torch's trace log says of the time of compiles, before it is put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Frame(Struct, frozen=True):
    """A frame of Python's stack: its line, and the code there, empty where torch does not log it."""

    file: str
    line: int
    name: str
    code: str = ""


class Region(Struct, frozen=True):
    """A region that torch timed.

    Attributes:
        seconds: in all. own: without regions inside of it. depth: how many are around it.
        ended: the log has its end.
    """

    name: str
    compile_id: str
    begin: float
    seconds: float
    own: float
    depth: int
    ended: bool = True


class KeyPart(Struct, frozen=True):
    """A part of the key of a cache: torch's digest of it, and its text (of the graph all of its code)."""

    digest: str
    text: str


class LoggedCache(Struct, frozen=True):
    """An answer of a cache of graphs at a time, with the parts of the key by their names."""

    compile_id: str
    time: float
    result: str
    reason: str
    parts: Mapping[str, KeyPart]


class LoggedBuild(Struct, frozen=True):
    """A run of a compiler: of which `digest` names the kernel, or whose name is known."""

    kind: str
    compiler: str
    seconds: float
    digest: str = ""
    kernel: str = ""
    compile_id: str = ""


class LoggedSpecialisation(Struct, frozen=True):
    """A symbol that became a constant: torch's names of it, and the frames of the program, innermost last."""

    compile_id: str
    sources: tuple[str, ...]
    value: str
    frames: tuple[Frame, ...]


class CompileLog(Struct, frozen=True):
    """All that a trace log says of the time of compiles.

    Attributes:
        metrics: of each compile that ended, as torch writes them. kernels: by digest `(name, compile id)` of
            each graph that has this text. guards: the tree of each, with its compile id.
        starts: the frames on the stack as each compile began, with its id.
    """

    regions: tuple[Region, ...]
    metrics: tuple[Mapping[str, Any], ...]
    caches: tuple[LoggedCache, ...]
    builds: tuple[LoggedBuild, ...]
    kernels: Mapping[str, tuple[tuple[str, str], ...]]
    guards: tuple[tuple[str, str], ...] = ()
    specialisations: tuple[LoggedSpecialisation, ...] = ()
    starts: tuple[tuple[str, tuple[Frame, ...]], ...] = ()
