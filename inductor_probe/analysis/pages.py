"""What `probe show` shows about a name: which page it is, and what is on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.analysis.collectives import collectives
from inductor_probe.analysis.formula.code import node_code
from inductor_probe.analysis.formula.formula import formula
from inductor_probe.analysis.graph import index_of, once_per_graph
from inductor_probe.analysis.index import dims_sum
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import layout_rows, outlines
from inductor_probe.analysis.linking.fx_index import fx_index
from inductor_probe.analysis.linking.fx_ops import ITEM, VIEWS
from inductor_probe.analysis.links import fx_of, launches, links, nodes_of
from inductor_probe.analysis.memory_format import size_bytes
from inductor_probe.analysis.names import ANYTHING, lines_called, nodes_called, resolve
from inductor_probe.analysis.nodes import node_kind, node_rows
from inductor_probe.analysis.symbols import symbols
from inductor_probe.errors import NotFoundError
from inductor_probe.model.cause import Cause
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.formula import Formula
from inductor_probe.model.fx import FxNode
from inductor_probe.model.ir import BufferLayout, SchedulerNode
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.nodes import NodeBuffer, NodeRow
from inductor_probe.model.pages import (
    Absence,
    BufferPage,
    FusedNode,
    GraphPage,
    NodePage,
    NodePart,
    SourceTrace,
    TracePage,
)
from inductor_probe.model.proof import KERNEL_COMMENT, PROVENANCE_FILE
from inductor_probe.model.record import collected
from inductor_probe.model.remark import Subject
from inductor_probe.model.runs import GraphSummary
from inductor_probe.model.span import SourceLine

Page: TypeAlias = NodePage | BufferPage | KernelRow | TracePage


def page_of(graph: CompiledGraph, name: str) -> Page:
    """Return the page about `name`: see `names.resolve`.

    Raises:
        NotFoundError: the graph has nothing of that name; near names are offered.
        ProbeError: several kernels start so.
    """
    subject = resolve(graph, name, ANYTHING)
    match subject.type:
        case "node":
            return _node_page(graph, subject.name)
        case "buffer":
            return _buffer_page(graph, subject.name)
        case "kernel":
            return next(row for row in kernel_rows(graph) if row.name == subject.name)
        case "fx":
            return fx_trace(graph, subject.name)
        case "operator":
            return _operator_trace(graph, subject)
    return _line_trace(graph, subject.name)


def graph_page(graph: CompiledGraph, summary: GraphSummary) -> GraphPage:
    """Return a graph in outline; `summary` is its row in the run's."""
    index = index_of(graph)
    buffers = outlines(graph)
    inputs = tuple(row for row in buffers if row.role == "input" and row.subgraph is None)
    names = {row.buffer for row in inputs}
    constants = tuple(
        NodeBuffer(
            dict(item.layout.extras).get("original_fqn", item.name) if item.layout else item.name, item.layout
        )
        for item in index.allocations.values()
        if item.kind == "constant"
    )
    return GraphPage(
        graph=graph.name,
        torch_version=graph.torch_version,
        recorded=graph.record,
        summary=summary,
        inputs=inputs,
        outputs=tuple(row for row in buffers if row.buffer in index.returned and row.role != "input"),
        sizes=tuple(name for name in (graph.code.inputs if graph.code else ()) if name not in names),
        kinds=tuple(Counter(map(node_kind, index.nodes.leaves)).most_common()),
        fused=tuple(
            FusedNode(top.name, top.kind, len(index.nodes.members[top.name]))
            for top in graph.nodes
            if top.children
        ),
        kernels=kernel_rows(graph),
        lines=_source_traces(graph),
        unlinked=tuple(link.node for link in links(graph).unlinked),
        problems=len(graph.problems),
        symbols=symbols(graph),
        constants=constants,
        collectives=collectives(graph),
        constant_bytes=dims_sum(size for item in constants if (size := size_bytes(item.layout)) is not None),
    )


def _node_page(graph: CompiledGraph, name: str) -> NodePage:
    """Return the page of the node `name`, which the graph has before or after fusion."""
    index = index_of(graph)
    names = nodes_called(graph, name)
    removed = any(node not in index.nodes.leaf for node in names)
    nodes = index.before if removed else index.nodes
    rows = {row.node: row for row in node_rows(graph, pre=removed)}
    buffers = layout_rows(graph)
    leaves = [nodes.leaf[node] for node in names]
    inside = {leaf.name for leaf in leaves}
    written = [buffer.name for leaf in leaves for buffer in leaf.outputs]
    read = dict.fromkeys(
        _loaded(graph, name, inside) for leaf in leaves for name in _read(graph, leaf, rows[leaf.name])
    )
    outputs = [buffers[name] for name in written if name in buffers]
    private = [row for row in outputs if _is_private(row, inside)] if len(leaves) > 1 else []
    return NodePage(
        graph=graph.name,
        name=name,
        node_class=nodes.node[name].kind if name in nodes.node else "",
        parts=tuple(_node_part(graph, leaf, rows[leaf.name]) for leaf in leaves),
        writes=tuple(row for row in outputs if row not in private),
        reads=tuple(buffers[name] for name in read if name in buffers and name not in written),
        inside=tuple(private),
        removed=removed,
        conflicts=tuple(
            pair
            for kernel in dict.fromkeys(rows[leaf.name].link.kernel for leaf in leaves)
            for pair in links(graph).fx_of_kernel(kernel or "")
            if pair.conflict and (not pair.nodes or inside.intersection(pair.nodes))
        ),
        causes=_recorded(graph, name),
    )


def _recorded(graph: CompiledGraph, name: str) -> tuple[Cause, ...]:
    """Return the recorded decisions about a node or buffer."""
    if graph.decisions is None:
        return ()
    return tuple(cause for cause in graph_causes(graph, [name]).causes if cause.decision is not None)


def _read(graph: CompiledGraph, leaf: SchedulerNode, row: NodeRow) -> Sequence[str]:
    """Return what a node reads: a library call in the order of its arguments, but what it changes."""
    calls = launches(graph).get(row.link.kernel or "", ()) if leaf.body is None else ()
    call = next((call for call in calls if call.span in row.link.launches), None)
    if call is None:
        return row.reads
    mutated = {name for buffer in leaf.outputs for name in buffer.mutations}
    passed = [item.buffer for item in call.passed]
    reads = [name for name in row.reads if name not in mutated or passed.count(name) > 1]
    return sorted(reads, key=lambda name: passed.index(name) if name in passed else len(passed))


def _loaded(graph: CompiledGraph, name: str, inside: set[str]) -> str:
    """Return the name under which a node loads a buffer: what was changed in place goes by its first one."""
    rows, buffers = layout_rows(graph), index_of(graph).nodes.buffers
    loaded = name
    seen = {name}
    while loaded in rows and not any(access.node in inside for access in rows[loaded].reads):
        buffer = buffers.get(loaded)
        loaded = buffer.mutations[0] if buffer and buffer.mutations else name
        if loaded in seen:
            return name
        seen.add(loaded)
    return loaded if loaded in rows else name


def _is_private(row: LayoutRow, inside: set[str]) -> bool:
    readers = {access.node for access in row.reads}
    return row.role == "intermediate" and bool(readers) and readers <= inside


@once_per_graph
def _layouts(graph: CompiledGraph) -> dict[str, BufferLayout]:
    """Return the layouts of buffers, those too that the IR does not print."""
    return {name: row.layout for name, row in layout_rows(graph).items() if row.layout is not None}


def _node_part(graph: CompiledGraph, leaf: SchedulerNode, row: NodeRow) -> NodePart:
    """Return an unfused node with its formula."""
    return NodePart(
        row=row,
        formula=formula(leaf, _layouts(graph), node_code(graph, leaf, row.link.kernel))
        if leaf.body
        else None,
        met=leaf.met_dependencies,
        unmet=leaf.unmet_dependencies,
        body=leaf.body.span if leaf.body is not None else None,
    )


def formulas(graph: CompiledGraph) -> dict[str, Formula]:
    """Return what each unfused node computes, by its name; those without a loop body are left out."""
    rows = {row.node: row for row in node_rows(graph)}
    parts = (_node_part(graph, leaf, rows[leaf.name]) for leaf in index_of(graph).nodes.leaves if leaf.body)
    return {part.row.node: part.formula for part in parts if part.formula is not None}


def _buffer_page(graph: CompiledGraph, name: str) -> BufferPage:
    """Return the page of the buffer or input `name`.

    Raises:
        NotFoundError: only a node before fusion, or the line of a layout, names it.
    """
    row = layout_rows(graph).get(name)
    index = index_of(graph)
    if row is not None:
        leaf = index.nodes.leaf.get(row.producer or "")
        rows = {other.node: other for other in node_rows(graph)}
        part = _node_part(graph, leaf, rows[leaf.name]) if leaf else None
        return BufferPage(row, part, _recorded(graph, name))
    # Fusion removed it, or the node that wrote it is lost.
    for leaf in (*index.before.leaves, *index.nodes.leaves):
        spans = [buffer.span for buffer in leaf.outputs if buffer.name == name]
        for span in [*spans, *(span for other, _, span in leaf.layouts if other == name)]:
            place = f"no node of the generated code writes {name}; {leaf.name} names it at {span}"
            raise NotFoundError(f"{graph.name}: {place}", f"probe show {leaf.name}")
    raise NotFoundError(
        f"{graph.name} has no memory of the name {name} any more", f"probe why {name} has what was decided"
    )


def fx_trace(graph: CompiledGraph, name: str) -> TracePage:
    """Return what became of the FX node `name`, of the graph before inductor's passes or after."""
    index = index_of(graph)
    if name in index.fx:
        return _trace(graph, name, index.sources([name]), before=[], after=[index.fx[name]])
    early = [*graph.fx_before.nodes, *graph.fx_before.inputs] if graph.fx_before else []
    early += graph.fx.inputs if graph.fx else ()
    before = [node for node in early if node.name == name][:1]
    made_of_it = graph.provenance.pre_to_post.get(name, ()) if graph.provenance else ()
    after = [node for node in index.fx.values() if node.name in made_of_it]
    lines = dict.fromkeys(node.source for node in (*before, *after) if node.source is not None)
    return _trace(graph, name, tuple(lines), before=before, after=after)


def _line_trace(graph: CompiledGraph, place: str) -> TracePage:
    """Return what became of the line `file.py:12`."""
    lines = lines_called(graph, place)
    places = {line.place for line in lines}
    fx = index_of(graph).fx
    early = graph.fx_before.nodes if graph.fx_before else ()
    before, after = (
        [node for node in nodes if node.source and node.source.place in places]
        for nodes in ((node for node in early if node.name not in fx), fx.values())
    )
    return _trace(graph, place, lines, before=before, after=after)


def _operator_trace(graph: CompiledGraph, subject: Subject) -> TracePage:
    """Return what became of the FX nodes that call an operator, or that took its place."""
    names = fx_of(graph, subject)
    computed = {name for node in nodes_of(graph, subject) for name in links(graph).nodes[node].fx}
    fx, early = index_of(graph).fx, graph.fx_before.nodes if graph.fx_before else ()
    before = [node for node in early if node.name in names and node.name not in fx]
    after = [node for node in fx.values() if node.name in (names or computed)]
    lines = dict.fromkeys(node.source for node in (*before, *after) if node.source is not None)
    return _trace(graph, subject.name, tuple(lines), before=before, after=after)


def _source_traces(graph: CompiledGraph) -> tuple[SourceTrace, ...]:
    """Return the user's lines in order, with what came of each."""
    fx = collected((node.source.place, node) for node in index_of(graph).fx.values() if node.source)
    linked = [link for link in links(graph).nodes.values() if link.fx]
    links_of = collected((line.place, link) for link in linked for line in link.sources)
    return tuple(
        SourceTrace(
            next(node.source for node in nodes if node.source),
            tuple(node.name for node in nodes),
            tuple(dict.fromkeys(link.node for link in links_of.get(place, ()))),
            tuple(dict.fromkeys(link.kernel for link in links_of.get(place, ()) if link.kernel)),
        )
        for place, nodes in fx.items()
    )


def _trace(
    graph: CompiledGraph,
    what: str,
    lines: tuple[SourceLine, ...],
    *,
    before: list[FxNode],
    after: list[FxNode],
) -> TracePage:
    names = {node.name for node in after}
    linked = links(graph)
    rows = node_rows(graph)
    return TracePage(
        graph=graph.name,
        what=what,
        lines=lines,
        before=tuple(before),
        fx=tuple(after),
        holds=tuple(
            (origin.node, buffer)
            for buffer, origin in linked.origins.items()
            if origin.node in names and origin.node is not None
        ),
        nodes=tuple(row for row in rows if names.intersection(row.link.fx)),
        maybe=tuple(
            row
            for row in rows
            if names.intersection(row.link.fx_candidates) - {*row.link.fx}
            and not names.intersection(row.link.fx)
        ),
        kernels=tuple(pair for pair in linked.kernel_fx if pair.fx in names),
        absent=tuple(_absences(graph, names)),
        rewrites=tuple(one for one in _recorded(graph, what) if one.topic in ("rewrite", "freezing")),
    )


def _absences(graph: CompiledGraph, names: set[str]) -> Iterator[Absence]:
    """Yield those of `names` that no kernel and no node is known to compute, with what is known of why."""
    linked = links(graph)
    computed = {name for link in linked.nodes.values() for name in (*link.fx, *link.fx_candidates)}
    missing = [name for name in names if name not in computed and not linked.kernels_of_fx(name)]
    fx = fx_index(graph) if missing else None
    if fx is None:
        return
    comments = [kernel.comment for kernel in graph.kernels]
    searched = (
        *((PROVENANCE_FILE,) if graph.provenance else ()),
        *((KERNEL_COMMENT,) if any(comment and comment.fx_nodes for comment in comments) else ()),
    )
    for name in fx.sorted(missing):
        node, users = fx.nodes[name], fx.users.get(name, ())
        if node.target == "self":
            yield Absence(name, "attribute")
        elif name in fx.sizes:
            yield Absence(name, "number")
        elif node.target == ITEM:
            yield Absence(name, "item", node.inputs[:1])
        elif fx.op[name] in VIEWS and node.inputs:
            yield Absence(name, "view", node.inputs[:1])
        elif not users and name not in fx.graph.outputs and not fx.op[name].endswith("_"):
            yield Absence(name, "unused", searched=searched)
        else:
            kernels = dict.fromkeys(pair.kernel for user in users for pair in linked.kernels_of_fx(user))
            yield Absence(name, "unknown", tuple(kernels), searched)
