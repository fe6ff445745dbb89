"""The page of a scheduler node, and of a buffer."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.analysis.formula import formula
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.nodes import node_rows
from inductor_probe.errors import NotFoundError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, SchedulerNode
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.links import Links
from inductor_probe.model.nodes import NodeRow
from inductor_probe.model.pages import BufferPage, NodePage, NodePart


def node_page(graph: CompiledGraph, name: str, linked: Links) -> NodePage:
    """Return the page of the node `name`, which the graph has before or after fusion."""
    node, removed = _node(graph, name)
    rows = {row.node: row for row in node_rows(graph, pre=removed, linked=linked)}
    buffers = {row.buffer: row for row in layouts(graph)}
    known = {name: row.layout for name, row in buffers.items() if row.layout is not None}
    leaves = list(node.leaves())
    inside = {leaf.name for leaf in leaves}
    written = [buffer.name for leaf in leaves for buffer in leaf.outputs]
    renamed = {
        buffer.name: buffer.mutations[0]
        for top in graph.nodes
        for leaf in top.leaves()
        for buffer in leaf.outputs
        if buffer.mutations
    }
    read = dict.fromkeys(
        _loaded(name, buffers, renamed, inside) for leaf in leaves for name in rows[leaf.name].reads
    )
    own = [buffers[name] for name in written if name in buffers]
    private = [row for row in own if _is_private(row, inside)] if len(leaves) > 1 else []
    return NodePage(
        graph=graph.name,
        name=node.name,
        node_class=node.kind,
        parts=tuple(node_part(leaf, rows[leaf.name], known) for leaf in leaves),
        writes=tuple(row for row in own if row not in private),
        reads=tuple(buffers[name] for name in read if name in buffers and name not in written),
        inside=tuple(private),
        removed=removed,
        conflicts=tuple(
            pair
            for kernel in dict.fromkeys(rows[leaf.name].link.kernel for leaf in leaves)
            for pair in linked.fx_of_kernel(kernel or "")
            if pair.conflict and (not pair.nodes or inside.intersection(pair.nodes))
        ),
    )


def buffer_page(graph: CompiledGraph, name: str, linked: Links) -> BufferPage:
    """Return the page of the buffer or input `name`.

    Raises:
        NotFoundError: only a node before fusion, or the line of a layout, names it.
    """
    buffers = {row.buffer: row for row in layouts(graph)}
    if name not in buffers:
        raise _gone(graph, name)
    row = buffers[name]
    known = {other: found.layout for other, found in buffers.items() if found.layout is not None}
    leaf = next((leaf for top in graph.nodes for leaf in top.leaves() if leaf.name == row.producer), None)
    if leaf is None:
        return BufferPage(row, None)
    of_leaf = next(found for found in node_rows(graph, linked=linked) if found.node == leaf.name)
    return BufferPage(row, node_part(leaf, of_leaf, known))


def _gone(graph: CompiledGraph, name: str) -> NotFoundError:
    """Say where a buffer is named that the generated code has not: fusion removed it, or its node is lost."""
    for top in (*graph.pre, *graph.nodes):
        for leaf in top.leaves():
            written = [buffer.span for buffer in leaf.outputs if buffer.name == name]
            for span in [*written, *(span for other, _, span in leaf.layouts if other == name)]:
                said = f"no node of the generated code writes {name}; {leaf.name} names it at {span}"
                return NotFoundError(f"{graph.name}: {said}", f"probe show {leaf.name}")
    return NotFoundError(f"{graph.name} has no buffer {name}", "probe layouts lists them")


def node_part(leaf: SchedulerNode, row: NodeRow, known: Mapping[str, BufferLayout]) -> NodePart:
    """Return an unfused node with its formula. `known` are layouts that the IR does not print."""
    return NodePart(
        row=row,
        formula=formula(leaf, known) if leaf.body is not None else None,
        met=leaf.met_dependencies,
        unmet=leaf.unmet_dependencies,
        body=leaf.body.span if leaf.body is not None else None,
    )


def _loaded(name: str, buffers: Mapping[str, LayoutRow], renamed: Mapping[str, str], inside: set[str]) -> str:
    """Return the name under which a node loads a buffer: what was changed in place goes by its first one."""
    found = name
    seen = {name}
    while found in buffers and not any(access.node in inside for access in buffers[found].reads):
        found = renamed.get(found, name)
        if found in seen:
            return name
        seen.add(found)
    return found if found in buffers else name


def _node(graph: CompiledGraph, name: str) -> tuple[SchedulerNode, bool]:
    """Return the node after fusion, or else before it, and whether it was removed in between."""
    for tops, removed in ((graph.nodes, False), (graph.pre, True)):
        for top in tops:
            for node in (top, *top.children, *top.leaves()):
                if node.name == name:
                    return node, removed
    raise KeyError(name)


def _is_private(row: LayoutRow, inside: set[str]) -> bool:
    readers = {access.node for access in row.reads}
    return row.role == "intermediate" and bool(readers) and readers <= inside
