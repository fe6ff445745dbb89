"""Remarks about layouts: accesses that are not contiguous, and nodes that write another order than they read.

Codes and their numbers, in order:

- `noncontiguous-access` of the nodes fused into a kernel: buffer, direction (`read`, `write`), pattern
  (`strided`, `indirect`), loop, steps and stride of the loop that is innermost around the access;
  unit_stride_loop and unit_stride_steps where another loop has stride 1; accesses (how many of a node's are
  so, at most); format and dim_order of the buffer; written, written_format and written_dim_order where the
  node writes a buffer in another order. `missed` where another loop has stride 1, else `analysis`.
- `short-contiguous-runs` of the same: buffer, direction, loop, steps (the length of a run, in elements),
  run_bytes, accesses.
- `layout-change` of a node that reads contiguously all the same: buffer, format, dim_order, written,
  written_format, written_dim_order.

The cost of an access is the bytes it moves over all loops, that of a layout change the bytes written. Below
`SMALLEST_COST` there is no remark, nor about a buffer that is smaller: a thousand floats read one by one take
less time than the kernel's start, and stay in the first cache however often they are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

from msgspec.structs import replace

from inductor_probe.analysis.access import CACHE_LINE_BYTES, Direction
from inductor_probe.analysis.index import INDIRECT, all_numbers, known_sum
from inductor_probe.analysis.memory_format import ITEM_BYTES, orders_differ
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import Access, LayoutRow
from inductor_probe.model.record import collected, grouped
from inductor_probe.model.remark import Remark, RemarkCode, Subject, by_cost, known_numbers
from inductor_probe.model.span import Span

SMALLEST_COST = 4096
"""Bytes below which nothing is said."""


class _Slow(NamedTuple):
    """What is not contiguous about an access."""

    code: RemarkCode
    pattern: str
    loop: str | None
    steps: Dim | None
    stride: Dim | None
    unit_stride_loop: str | None = None
    unit_stride_steps: Dim | None = None
    read: bool = True


def with_remarks(rows: Mapping[str, LayoutRow], looping: Collection[str]) -> dict[str, LayoutRow]:
    """Return the rows with their remarks, most bytes at stake first.

    A remark about a layout change is one of both buffers. Nodes that are not `looping`, in loop bodies, are
    left out: what a library call does to memory is not known.
    """
    about: dict[str, list[Remark]] = {name: [] for name in rows}
    writers = collected(
        (row.producer or "", row) for row in rows.values() if row.producer in looping and not row.local
    )
    for row in rows.values():
        if _is_empty(row) or (isinstance(row.size_bytes, int) and row.size_bytes < SMALLEST_COST):
            continue
        writes = [access for access in row.writes if access.node in looping]
        reads = [access for access in row.reads if access.node in looping]
        for remark in (*_accesses(row, "write", writes, {}), *_reads(row, reads, writers)):
            about[row.buffer].append(remark)
            if (written := remark.number("written")) is not None:
                about[str(written)].append(remark)
    return {
        name: replace(row, remarks=tuple(sorted(about[name], key=by_cost))) if about[name] else row
        for name, row in rows.items()
    }


def remarks(rows: Iterable[LayoutRow]) -> tuple[Remark, ...]:
    """Return the remarks of some rows, each once, most bytes at stake first."""
    return tuple(sorted(dict.fromkeys(remark for row in rows for remark in row.remarks), key=by_cost))


def _is_empty(row: LayoutRow) -> bool:
    """Whether it has no order: no elements, or one."""
    return row.layout is not None and row.layout.size is not None and set(row.layout.size) <= {0, 1}


def _reads(
    row: LayoutRow, reads: list[Access], writers: Mapping[str, Sequence[LayoutRow]]
) -> Iterator[Remark]:
    """A node that writes another order than it reads is named once: where it reads, if that is slow."""
    by_node = grouped(reads, lambda access: access.node)
    reordered = {
        node: written
        for node, accesses in by_node.items()
        if (written := _reordered(row, accesses, writers.get(node, ()))) is not None
    }
    named = set()
    for remark in _accesses(row, "read", reads, reordered):
        named |= {subject.name for subject in remark.subjects}
        yield remark
    for node, written in reordered.items():
        if node not in named:
            yield from _change(row, node, by_node[node], written)


def _accesses(
    row: LayoutRow, direction: Direction, accesses: Iterable[Access], reordered: Mapping[str, LayoutRow]
) -> Iterator[Remark]:
    """One remark for all accesses of a kernel to a buffer that are slow in the same way.

    Codegen emits a load once for all nodes that are fused into a kernel (`CSE` in
    `torch/_inductor/codegen/common.py`), so the bytes are those of the node that makes most accesses.
    """
    groups: dict[tuple[str, _Slow, str | None], dict[str, list[Access]]] = {}
    for access in accesses:
        slow = None if 0 in (steps for _, steps in access.ranges) else _slow(row, access)
        if slow is not None:
            written = reordered.get(access.node)
            key = (access.kernel or access.node, slow, written.buffer if written else None)
            groups.setdefault(key, {}).setdefault(access.node, []).append(access)
    for (_, slow, _), nodes in groups.items():
        costs = all_numbers(_bytes(row, accesses) for accesses in nodes.values())
        cost = None if costs is None else max(costs)
        if cost is not None and cost < SMALLEST_COST:
            continue
        numbers: dict[str, Dim | None] = {"buffer": row.buffer, "direction": direction}
        count = max(sum(access.count for access in accesses) for accesses in nodes.values())
        if slow.code == "short-contiguous-runs":
            run_bytes = slow.steps * _item(row) if isinstance(slow.steps, int) else None
            numbers |= {"loop": slow.loop, "steps": slow.steps, "run_bytes": run_bytes, "accesses": count}
        else:
            numbers |= {name: value for name, value in slow._asdict().items() if name not in ("code", "read")}
            numbers |= {"accesses": count, **_formats(row, reordered.get(next(iter(nodes))))}
        subject, *also = (Subject("node", node) for node in nodes)
        yield Remark(
            slow.code,
            "missed" if slow.unit_stride_loop else "analysis",
            subject,
            known_numbers(numbers.items()),
            cost,
            _evidence(access for accesses in nodes.values() for access in accesses),
            knowledge="read" if slow.read else "inferred",
            also=tuple(also),
        )


def _slow(row: LayoutRow, access: Access) -> _Slow | None:
    """What the generated kernel does is what counts; the IR only where no kernel is linked.

    A plain reversal is what the user asked for: no layout would make it contiguous.
    """
    ir, generated = access.pattern, access.generated
    if generated is not None:
        short = ir.run is not None and generated.steps == ir.run and ir.run * _item(row) < CACHE_LINE_BYTES
        if generated.contiguous and generated.form == "vector" and short:
            return _Slow("short-contiguous-runs", "contiguous", generated.loop, generated.steps, 1)
        if generated.contiguous is not False or generated.stride in (-1, 0, 1):
            return None
        other = (generated.unit_stride_loop, generated.unit_stride_steps)
        if other[0] is None and generated.form == "block":
            other = _unit_stride(access)
        pattern = "indirect" if generated.stride == INDIRECT else "strided"
        return _Slow(
            "noncontiguous-access", pattern, generated.loop, generated.steps, generated.stride, *other
        )
    if access.kernel is not None or row.local or access.contiguous is not False:
        return None
    if ir.kind == "contiguous":
        return _Slow("short-contiguous-runs", "contiguous", access.innermost, ir.run, 1, read=False)
    if ir.stride == -1:
        return None
    pattern, stride = ("indirect", INDIRECT) if ir.kind == "indirect" else ("strided", ir.stride)
    steps = dict(access.ranges).get(access.innermost or "")
    other = _unit_stride(access)
    return _Slow("noncontiguous-access", pattern, access.innermost, steps, stride, *other, read=False)


def _unit_stride(access: Access) -> tuple[str | None, Dim | None]:
    """The loop of the IR, other than the innermost, that has stride 1."""
    steps = dict(access.ranges)
    for name, stride in access.strides:
        if stride == 1 and name != access.innermost and steps[name] != 1:
            return name, steps[name]
    return None, None


def _reordered(row: LayoutRow, reads: list[Access], written: Iterable[LayoutRow]) -> LayoutRow | None:
    """The first buffer that the node of these reads writes in another order than this one has."""
    if row.local:
        return None
    for other in written:
        if other.buffer == row.buffer or _is_empty(other) or not orders_differ(row.layout, other.layout):
            continue
        stores = [access for access in other.writes if access.node == reads[0].node]
        if any(not _in_same_order(store, read) for store in stores for read in reads):
            return other
    return None


def _in_same_order(store: Access, read: Access) -> bool:
    """Whether it is certain that both walk memory with the loops in the same order.

    The dimensions of two buffers are compared by their places, and a node may permute them: `x.permute(0, 2,
    1).contiguous()` walks both with p0, p1, p2 in other orders though both are contiguous, and a transposed
    view of a transposed buffer in the same order though they differ.
    """
    stored, loaded, steps = dict(store.strides), dict(read.strides), dict(read.ranges)
    strides = [(stored[name], loaded[name]) for name in stored if name in loaded and steps[name] != 1]
    numbers = [(abs(a), abs(b)) for a, b in strides if isinstance(a, int) and isinstance(b, int)]
    moving = [(a, b) for a, b in numbers if a and b]
    return len(numbers) == len(strides) and all(
        (a - c) * (b - d) >= 0 for (a, b), (c, d) in combinations(moving, 2)
    )


def _change(row: LayoutRow, node: str, reads: list[Access], written: LayoutRow) -> Iterator[Remark]:
    cost = written.size_bytes if isinstance(written.size_bytes, int) else None
    if any(read.generated is not None and read.generated.form == "none" for read in reads):
        return  # the value never was in memory
    if cost is not None and cost < SMALLEST_COST:
        return
    linked = all(read.generated is not None for read in reads)
    yield Remark(
        "layout-change",
        "analysis",
        Subject("node", node),
        known_numbers({"buffer": row.buffer, **_formats(row, written)}.items()),
        cost,
        _evidence([*reads, *(access for access in written.writes if access.node == node)]),
        knowledge="read" if linked else "inferred",
    )


def _formats(row: LayoutRow, written: LayoutRow | None) -> dict[str, Dim | None]:
    formats: dict[str, Dim | None] = {}
    for prefix, lies in (("", row), ("written_", written)):
        if lies is not None:
            formats |= {"written": lies.buffer} if prefix else {}
            order = None if lies.dim_order is None else str(list(lies.dim_order))
            formats |= {f"{prefix}format": lies.memory_format, f"{prefix}dim_order": order}
    return formats


def _item(row: LayoutRow) -> int:
    return ITEM_BYTES.get(row.layout.dtype or "", 4) if row.layout else 4


def _bytes(row: LayoutRow, accesses: Iterable[Access]) -> int | None:
    """What the accesses move over all their loops, None where a trip count is symbolic."""
    loops = ((access, all_numbers(steps for _, steps in access.ranges)) for access in accesses)
    elements = known_sum(None if sizes is None else access.count * prod(sizes) for access, sizes in loops)
    return None if elements is None else elements * _item(row)


def _evidence(accesses: Iterable[Access]) -> tuple[Span, ...]:
    spans = ((access.span, access.generated.span if access.generated else None) for access in accesses)
    return tuple(dict.fromkeys(span for pair in spans for span in pair if span is not None))
