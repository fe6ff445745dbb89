"""The layout of each buffer, and which nodes write and read it with which strides."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from inductor_probe.analysis.access import touched
from inductor_probe.analysis.buffer_drafts import Draft, drafts
from inductor_probe.analysis.graph import index_of, once_per_graph
from inductor_probe.analysis.layout_remarks import with_remarks
from inductor_probe.analysis.links import links
from inductor_probe.analysis.memory_format import memory_format, size_bytes
from inductor_probe.analysis.names import NameType, not_found, resolve
from inductor_probe.analysis.symbols import recorded, used_symbols
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.links import Links

_TYPES: tuple[NameType, ...] = ("buffer", "node")


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
        return tuple(layout_rows(graph).values())
    resolve(graph, name, _TYPES)
    node = index_of(graph).nodes.node.get(name)
    leaves = tuple(node.leaves()) if node else ()
    buffers = {name} | {buffer for leaf in leaves for buffer in touched(leaf)}
    rows = _rows(graph, buffers)
    if name in rows:
        return (rows[name],)
    if node is None:  # only a node before fusion, or the line of a layout, has this name
        raise not_found(graph, name, _TYPES)
    inside = {leaf.name for leaf in leaves}
    written = [row for row in rows.values() if any(access.node in inside for access in row.writes)]
    read = [row for row in rows.values() if any(access.node in inside for access in row.reads)]
    return tuple(dict.fromkeys([*written, *read]))


@once_per_graph
def outlines(graph: CompiledGraph) -> tuple[LayoutRow, ...]:
    """Return the rows of all buffers without accesses and remarks, which take longest to work out."""
    return tuple(_rows(graph, ()).values())


@once_per_graph
def layout_rows(graph: CompiledGraph) -> dict[str, LayoutRow]:
    """Return the row of each buffer by name."""
    return _rows(graph, None)


def _rows(graph: CompiledGraph, buffers: Collection[str] | None) -> dict[str, LayoutRow]:
    """Return a row for each buffer without `buffers`; else for those, and what the same nodes reach.

    If `buffers` is empty, rows of all buffers without accesses.
    """
    linked = links(graph)
    index = index_of(graph)
    rows = {
        name: _row(graph, draft, index.returned, linked)
        for name, draft in drafts(graph, linked, buffers).items()
        if not buffers or name in buffers or draft.reads or draft.writes
    }
    if buffers is not None and not buffers:
        return rows
    return with_remarks(rows, {leaf.name for leaf in index.nodes.leaves if leaf.body})


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
