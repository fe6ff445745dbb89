"""The page of a scheduler node, and of a buffer."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.analysis.formula.formula import formula
from inductor_probe.analysis.graph import NodeIndex, index_of, once_per_graph
from inductor_probe.analysis.layouts import layout_rows
from inductor_probe.analysis.links import links
from inductor_probe.analysis.nodes import node_rows
from inductor_probe.errors import NotFoundError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, SchedulerNode
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.nodes import NodeRow
from inductor_probe.model.pages import BufferPage, NodePage, NodePart


def node_page(graph: CompiledGraph, name: str) -> NodePage:
    """Return the page of the node `name`, which the graph has before or after fusion."""
    index = index_of(graph)
    removed = name not in index.nodes.node
    node = (index.before if removed else index.nodes).node[name]
    rows = {row.node: row for row in node_rows(graph, pre=removed)}
    buffers = layout_rows(graph)
    leaves = list(node.leaves())
    inside = {leaf.name for leaf in leaves}
    written = [buffer.name for leaf in leaves for buffer in leaf.outputs]
    read = dict.fromkeys(
        _loaded(name, buffers, index.nodes, inside) for leaf in leaves for name in rows[leaf.name].reads
    )
    own = [buffers[name] for name in written if name in buffers]
    private = [row for row in own if _is_private(row, inside)] if len(leaves) > 1 else []
    return NodePage(
        graph=graph.name,
        name=node.name,
        node_class=node.kind,
        parts=tuple(node_part(leaf, rows[leaf.name], _layouts(graph)) for leaf in leaves),
        writes=tuple(row for row in own if row not in private),
        reads=tuple(buffers[name] for name in read if name in buffers and name not in written),
        inside=tuple(private),
        removed=removed,
        conflicts=tuple(
            pair
            for kernel in dict.fromkeys(rows[leaf.name].link.kernel for leaf in leaves)
            for pair in links(graph).fx_of_kernel(kernel or "")
            if pair.conflict and (not pair.nodes or inside.intersection(pair.nodes))
        ),
    )


def buffer_page(graph: CompiledGraph, name: str) -> BufferPage:
    """Return the page of the buffer or input `name`.

    Raises:
        NotFoundError: only a node before fusion, or the line of a layout, names it.
    """
    buffers = layout_rows(graph)
    if name not in buffers:
        raise _gone(graph, name)
    row = buffers[name]
    leaf = index_of(graph).nodes.leaf.get(row.producer or "")
    if leaf is None:
        return BufferPage(row, None)
    node_row = next(other for other in node_rows(graph) if other.node == leaf.name)
    return BufferPage(row, node_part(leaf, node_row, _layouts(graph)))


def _gone(graph: CompiledGraph, name: str) -> NotFoundError:
    """Say where a buffer is named that the generated code has not: fusion removed it, or its node is lost."""
    index = index_of(graph)
    for leaf in (*index.before.leaves, *index.nodes.leaves):
        written = [buffer.span for buffer in leaf.outputs if buffer.name == name]
        for span in [*written, *(span for other, _, span in leaf.layouts if other == name)]:
            said = f"no node of the generated code writes {name}; {leaf.name} names it at {span}"
            return NotFoundError(f"{graph.name}: {said}", f"probe show {leaf.name}")
    return NotFoundError(f"{graph.name} has no buffer {name}", "probe layouts lists them")


@once_per_graph
def _layouts(graph: CompiledGraph) -> dict[str, BufferLayout]:
    return {name: row.layout for name, row in layout_rows(graph).items() if row.layout is not None}


def node_part(leaf: SchedulerNode, row: NodeRow, layouts: Mapping[str, BufferLayout]) -> NodePart:
    """Return an unfused node with its formula. `layouts` has those too that the IR does not print."""
    return NodePart(
        row=row,
        formula=formula(leaf, layouts) if leaf.body is not None else None,
        met=leaf.met_dependencies,
        unmet=leaf.unmet_dependencies,
        body=leaf.body.span if leaf.body is not None else None,
    )


def _loaded(name: str, rows: Mapping[str, LayoutRow], nodes: NodeIndex, inside: set[str]) -> str:
    """Return the name under which a node loads a buffer: what was changed in place goes by its first one."""
    loaded = name
    seen = {name}
    while loaded in rows and not any(access.node in inside for access in rows[loaded].reads):
        buffer = nodes.buffers.get(loaded)
        loaded = buffer.mutations[0] if buffer and buffer.mutations else name
        if loaded in seen:
            return name
        seen.add(loaded)
    return loaded if loaded in rows else name


def _is_private(row: LayoutRow, inside: set[str]) -> bool:
    readers = {access.node for access in row.reads}
    return row.role == "intermediate" and bool(readers) and readers <= inside
