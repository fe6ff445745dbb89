"""Who writes and reads each buffer, how it lies in memory, and who pays for that."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal

from inductor_probe.analysis.access import touched
from inductor_probe.analysis.buffer_drafts import Draft, drafts
from inductor_probe.analysis.kept import kept
from inductor_probe.analysis.links import links, returned_buffers
from inductor_probe.analysis.memory_format import memory_format, size_bytes
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.layouts import Access, LayoutRow, Mark
from inductor_probe.model.links import Links

_MEANINGFUL_RANK = 3
"""Formats are compared from this rank on: a matrix next to its transpose is the rule, not a surprise."""


def layouts(graph: CompiledGraph, name: str | None = None) -> tuple[LayoutRow, ...]:
    """Return a row for each buffer of the graph, inputs first, then in the order they are written.

    Args:
        graph: as read.
        name: a buffer or input (`buf3`, `arg0_1`), or a node (`op3`, `op3_op4`): then the buffers it writes
            come first, and those it reads follow.

    Raises:
        NotFoundError: the graph has nothing of that name; near names are offered.
    """
    if name is None:
        return tuple(_all_rows(graph).values())
    node = _node_called(graph, name)
    leaves = list(node.leaves()) if node else []
    wanted = {name} | {buffer for leaf in leaves for buffer in touched(leaf)}
    rows = _rows(graph, wanted)
    if name in rows:
        return (rows[name],)
    if node is None:
        known = [*_all_rows(graph), *(leaf.name for top in graph.nodes for leaf in top.leaves())]
        raise NotFoundError(f"{graph.name} has no buffer or node {name}", near_names(name, known))
    inside = {leaf.name for leaf in leaves}
    written = [row for row in rows.values() if any(access.node in inside for access in row.writes)]
    read = [row for row in rows.values() if any(access.node in inside for access in row.reads)]
    return tuple(dict.fromkeys([*written, *read]))


@kept
def outlines(graph: CompiledGraph) -> tuple[LayoutRow, ...]:
    """Return the rows of all buffers without accesses and marks, which take longest to work out."""
    return tuple(_rows(graph, ()).values())


@kept
def _all_rows(graph: CompiledGraph) -> dict[str, LayoutRow]:
    return _rows(graph, None)


def _rows(graph: CompiledGraph, wanted: Collection[str] | None) -> dict[str, LayoutRow]:
    """Return a row for each buffer without `wanted`; else for those, and what the same nodes reach.

    If `wanted` is empty, rows of all buffers without accesses.
    """
    linked = links(graph)
    returned = returned_buffers(graph)
    rows = {
        name: _row(graph, draft, returned, linked)
        for name, draft in drafts(graph, linked, wanted).items()
        if not wanted or name in wanted or draft.reads or draft.writes
    }
    read_by: dict[str, list[LayoutRow]] = {}
    for row in rows.values():
        for reader in dict.fromkeys(access.node for access in row.reads):
            read_by.setdefault(reader, []).append(row)
    for buffer, row in rows.items():
        if marks := tuple(_marks(row, read_by.get(row.producer or "", []))):
            rows[buffer] = replace(row, marks=marks)
    return rows


def _node_called(graph: CompiledGraph, name: str) -> SchedulerNode | None:
    for top in graph.nodes:
        for node in (top, *top.children, *top.leaves()):
            if node.name == name:
                return node
    return None


def _row(graph: CompiledGraph, draft: Draft, returned: frozenset[str], linked: Links) -> LayoutRow:
    described = memory_format(draft.layout)
    role: Literal["input", "output", "intermediate"] = "intermediate"
    if draft.producer is None:
        role = "input"
    elif draft.name in returned:
        role = "output"
    return LayoutRow(
        graph=graph.name,
        buffer=draft.name,
        role=role,
        layout=draft.layout,
        memory_format=described.name,
        dim_order=described.dim_order,
        size_bytes=size_bytes(draft.layout),
        producer=draft.producer,
        kernel=draft.kernel,
        writes=tuple(draft.writes),
        reads=tuple(draft.reads),
        origin=linked.origins.get(draft.name),
        local=draft.local,
        evidence=tuple(draft.evidence),
    )


def _marks(row: LayoutRow, sources: list[LayoutRow]) -> Iterator[Mark]:
    """Say where the layout disagrees with its producer's inputs, and whose contiguity it costs.

    `sources` are the rows that its producer reads.
    """
    for other in sources:
        own_reads = [access for access in other.reads if access.node == row.producer]
        if other.buffer == row.buffer or not _disagree(row, other):
            continue
        text = (
            f"{row.buffer} is {row.format_in_words}, but {row.producer} makes it from {other.buffer}, "
            f"which is {other.format_in_words}"
        )
        paying = next((access for access in own_reads if _costs(access)), None)
        if paying:
            text += f"; {paying.node} pays: reads {other.buffer} {_how(paying)}"
        yield Mark("disagrees", paying.node if paying else str(row.producer), text)
    seen = set()
    for verb, uses in (("writes", row.writes), ("reads", row.reads)):
        for access in uses:
            text = f"{access.node} {verb} it {_how(access)}"
            if _costs(access) and text not in seen:
                seen.add(text)
                yield Mark("costs", access.node, text)


def _disagree(row: LayoutRow, other: LayoutRow) -> bool:
    if row.layout is None or other.layout is None or row.layout.size is None or other.layout.size is None:
        return False
    if len(row.layout.size) != len(other.layout.size) or len(row.layout.size) < _MEANINGFUL_RANK:
        return False
    if row.dim_order is None or other.dim_order is None:
        return False
    return _real_order(row) != _real_order(other)


def _real_order(row: LayoutRow) -> list[int]:
    """The order of the dimensions that are longer than 1."""
    size = row.layout.size if row.layout and row.layout.size else ()
    return [dim for dim in row.dim_order or () if size[dim] != 1]


def _costs(access: Access) -> bool:
    """A plain reversal is what the user asked for: no layout would make it contiguous."""
    return access.contiguous is False and not access.pattern.startswith("reversed")


def _how(access: Access) -> str:
    """`strided by 3 (innermost loop p2, 256 steps), though p1 is the loop it is contiguous along`."""
    steps = dict(access.ranges).get(access.innermost or "")
    text = f"{access.pattern} (innermost loop {access.innermost}, {steps} steps)"
    better = next((name for name, stride in access.strides if stride == 1 and name != access.innermost), None)
    return f"{text}, though {better} is the loop it is contiguous along" if better else text
