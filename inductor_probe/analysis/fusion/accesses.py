"""What two sets of nodes have in common: buffers, and the accesses that torch counts as the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from inductor_probe.analysis.memory_format import ITEM_BYTES
from inductor_probe.model.fusion import Relation, SharedBuffer
from inductor_probe.model.ir import BufferLayout, Dep, MemoryDep, SchedulerNode, WeakDep

_SYMBOL = re.compile(r"[A-Za-z_]\w*")
_INDIRECT = re.compile(r"(?:tmp|indirect)\d+")


def shared_buffers(
    first: Iterable[SchedulerNode], second: Iterable[SchedulerNode], layouts: dict[str, BufferLayout]
) -> tuple[SharedBuffer, ...]:
    """Return the buffers that both of two sets of nodes use, those with most bytes in common first."""
    one, other = _Uses(first), _Uses(second)
    found = [
        _shared(name, one, other, layouts)
        for name in one.names
        if name in other.reads or name in other.writes or name in other.orders
    ]
    return tuple(sorted(found, key=lambda row: (not row.matches, -(row.bytes or 0))))


class _Uses:
    """The deps of some nodes by buffer, each once."""

    def __init__(self, nodes: Iterable[SchedulerNode]) -> None:
        self.reads: dict[str, dict[Dep, None]] = {}
        self.writes: dict[str, dict[Dep, None]] = {}
        self.orders: dict[str, dict[Dep, None]] = {}
        for node in nodes:
            for dep in node.reads:
                kind = self.orders if isinstance(dep, WeakDep) else self.reads
                kind.setdefault(dep.name, {})[dep] = None
            for dep in node.writes:
                self.writes.setdefault(dep.name, {})[dep] = None

    @property
    def names(self) -> dict[str, None]:
        """All buffers."""
        return dict.fromkeys((*self.writes, *self.reads, *self.orders))

    def of(self, name: str) -> dict[Dep, None]:
        """Every access to a buffer that moves data."""
        return self.writes.get(name, {}) | self.reads.get(name, {})


def _shared(name: str, one: _Uses, other: _Uses, layouts: dict[str, BufferLayout]) -> SharedBuffer:
    firsts, seconds = one.of(name), other.of(name)
    equal = [dep for dep in firsts if dep in seconds]
    sizes = [_bytes(dep, layouts.get(name)) for dep in equal]
    known = [size for size in sizes if size is not None]
    return SharedBuffer(
        buffer=name,
        relation=_relation(name, one, other),
        first=tuple(firsts or one.orders.get(name, {})),
        second=tuple(seconds or other.orders.get(name, {})),
        matches=bool(equal),
        bytes=sum(known) if equal and len(known) == len(sizes) else None,
    )


def _relation(name: str, one: _Uses, other: _Uses) -> Relation:
    if name in one.writes:
        if name in other.reads:
            return "first_writes_second_reads"
        return "first_writes_second_writes" if name in other.writes else "first_writes_second_waits"
    if name in other.writes:
        return "second_writes_first_reads" if name in one.reads else "second_writes_first_waits"
    return "both_read" if name in one.reads and name in other.reads else "order_only"


def _bytes(dep: Dep, layout: BufferLayout | None) -> int | None:
    """Bytes of an access by torch's count: each element of the loops in its index once."""
    if layout is None or layout.dtype not in ITEM_BYTES:
        return None
    item = ITEM_BYTES[layout.dtype]
    sizes: Iterator[object]
    if isinstance(dep, MemoryDep) and not _INDIRECT.search(dep.index):
        used = set(_SYMBOL.findall(dep.index))
        sizes = (size for name, size in dep.ranges if name in used)
    elif layout.size is not None:
        sizes = iter(layout.size)
    else:
        return None
    total = item
    for size in sizes:
        if not isinstance(size, int):
            return None
        total *= size
    return total
