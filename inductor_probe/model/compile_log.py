"""What torch's trace log says of the time of compiles, before it is put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


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


class LoggedCache(Struct, frozen=True):
    """An answer of a cache of graphs at a time, and each part of the key by its name, or its digest."""

    compile_id: str
    time: float
    result: str
    reason: str
    parts: Mapping[str, str]


class LoggedBuild(Struct, frozen=True):
    """A run of a compiler: of which `digest` names the kernel, or whose name is known."""

    kind: str
    compiler: str
    seconds: float
    digest: str = ""
    kernel: str = ""
    compile_id: str = ""


class CompileLog(Struct, frozen=True):
    """All that a trace log says of the time of compiles.

    Attributes:
        metrics: of each compile that ended, as torch writes them. kernels: by digest `(name, compile id)`, of
            all graphs; None where several have this text. guards: the tree of each, with its compile id.
    """

    regions: tuple[Region, ...]
    metrics: tuple[Mapping[str, Any], ...]
    caches: tuple[LoggedCache, ...]
    builds: tuple[LoggedBuild, ...]
    kernels: Mapping[str, tuple[str, str] | None]
    guards: tuple[tuple[str, str], ...] = ()
