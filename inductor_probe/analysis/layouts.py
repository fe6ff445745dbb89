"""The layout of each buffer, and which nodes write and read it with which strides."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from inductor_probe.analysis.access import touched
from inductor_probe.analysis.buffer_drafts import Draft, drafts
from inductor_probe.analysis.kept import kept
from inductor_probe.analysis.layout_remarks import with_remarks
from inductor_probe.analysis.links import links, returned_buffers
from inductor_probe.analysis.memory_format import memory_format, size_bytes
from inductor_probe.analysis.symbols import recorded, used_symbols
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.links import Links


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
    """Return the rows of all buffers without accesses and remarks, which take longest to work out."""
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
    if wanted is not None and not wanted:
        return rows
    return with_remarks(rows, {leaf.name for top in graph.nodes for leaf in top.leaves() if leaf.body})


def _node_called(graph: CompiledGraph, name: str) -> SchedulerNode | None:
    for top in graph.nodes:
        for node in (top, *top.children, *top.leaves()):
            if node.name == name:
                return node
    return None


def _row(graph: CompiledGraph, draft: Draft, returned: frozenset[str], linked: Links) -> LayoutRow:
    described = memory_format(draft.layout)
    size = size_bytes(draft.layout)
    symbols = used_symbols(graph, (size,))
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
        size_bytes=size,
        recorded_bytes=recorded(size, symbols),
        symbols=symbols,
        producer=draft.producer,
        kernel=draft.kernel,
        writes=tuple(draft.writes),
        reads=tuple(draft.reads),
        origin=linked.origins.get(draft.name),
        local=draft.local,
        evidence=tuple(draft.evidence),
    )
