"""What became of an FX node, or of a line of the user's."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.linking.fx_index import FxIndex, fx_index
from inductor_probe.analysis.linking.fx_ops import ITEM, VIEWS
from inductor_probe.analysis.links import links
from inductor_probe.analysis.names import lines_called
from inductor_probe.analysis.nodes import node_rows
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxNode
from inductor_probe.model.links import Links
from inductor_probe.model.pages import Absence, SourceTrace, TracePage
from inductor_probe.model.proof import KERNEL_COMMENT, PROVENANCE_FILE, Proof
from inductor_probe.model.span import SourceLine


def fx_trace(graph: CompiledGraph, name: str) -> TracePage:
    """Return what became of the FX node `name`, of the graph before inductor's passes or after."""
    index = index_of(graph)
    after = [index.fx[name]] if name in index.fx else []
    before: list[FxNode] = []
    if not after:
        before = [node for node in (graph.fx_before.nodes if graph.fx_before else ()) if node.name == name]
        after = _made_of(graph, [name])
    lines = index.sources(node.name for node in after)
    own = [node.source for node in before if node.source is not None]
    return _trace(graph, name, tuple(dict.fromkeys([*own, *lines])), before=before, after=after)


def line_trace(graph: CompiledGraph, place: str) -> TracePage:
    """Return what became of the line `file.py:12`."""
    lines = lines_called(graph, place)
    places = {(line.path, line.line) for line in lines}
    fx = index_of(graph).fx
    after = [
        node
        for node in fx.values()
        if node.source is not None and (node.source.path, node.source.line) in places
    ]
    before = [
        node
        for node in (graph.fx_before.nodes if graph.fx_before else ())
        if node.source is not None and (node.source.path, node.source.line) in places and node.name not in fx
    ]
    return _trace(graph, place, lines, before=before, after=after)


def source_traces(graph: CompiledGraph) -> tuple[SourceTrace, ...]:
    """Return the user's lines in order, with what came of each."""
    fx: dict[tuple[str, int], list[str]] = {}
    first: dict[tuple[str, int], SourceLine] = {}
    for node in index_of(graph).fx.values():
        if line := node.source:
            first.setdefault((line.path, line.line), line)
            fx.setdefault((line.path, line.line), []).append(node.name)
    nodes: dict[tuple[str, int], list[str]] = {}
    kernels: dict[tuple[str, int], list[str]] = {}
    for link in links(graph).nodes.values():
        for line in link.sources if link.fx else ():
            nodes.setdefault((line.path, line.line), []).append(link.node)
            if link.kernel is not None:
                kernels.setdefault((line.path, line.line), []).append(link.kernel)
    return tuple(
        SourceTrace(
            line=line,
            fx=tuple(fx[place]),
            nodes=tuple(dict.fromkeys(nodes.get(place, ()))),
            kernels=tuple(dict.fromkeys(kernels.get(place, ()))),
        )
        for place, line in first.items()
    )


def _made_of(graph: CompiledGraph, names: Iterable[str]) -> list[FxNode]:
    """Return what inductor's passes made of FX nodes, as far as torch tells."""
    made = graph.provenance.pre_to_post if graph.provenance else {}
    later = {after for name in names for after in made.get(name, ())}
    return [node for node in index_of(graph).fx.values() if node.name in later]


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
    nodes = tuple(row for row in rows if names.intersection(row.link.fx))
    maybe = tuple(row for row in rows if names.intersection(row.link.fx_candidates) - {*row.link.fx})
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
        nodes=nodes,
        maybe=tuple(row for row in maybe if row not in nodes),
        kernels=tuple(pair for pair in linked.kernel_fx if pair.fx in names),
        absent=_absent(graph, names, linked),
    )


def _absent(graph: CompiledGraph, names: set[str], linked: Links) -> tuple[Absence, ...]:
    """Return those of `names` that no kernel and no node is known to compute, and what is known of why."""
    linked_names = {name for link in linked.nodes.values() for name in (*link.fx, *link.fx_candidates)}
    missing = [name for name in names if name not in linked_names and not linked.kernels_of_fx(name)]
    fx = fx_index(graph) if missing else None
    if fx is None:
        return ()
    searched = [PROVENANCE_FILE] if graph.provenance else []
    if any(
        kernel.comment and kernel.comment.fx_nodes for kernel in (graph.code.kernels if graph.code else ())
    ):
        searched.append(KERNEL_COMMENT)
    return tuple(_absence(fx, name, linked, tuple(searched)) for name in fx.sorted(missing))


def _absence(fx: FxIndex, name: str, linked: Links, searched: tuple[Proof, ...]) -> Absence:
    node = fx.nodes[name]
    users = fx.users.get(name, ())
    if node.target == "self":
        return Absence(name, "attribute")
    if name in fx.sizes:
        return Absence(name, "number")
    if node.target == ITEM:
        return Absence(name, "item", node.inputs[:1])
    if fx.op[name] in VIEWS and node.inputs:
        return Absence(name, "view", node.inputs[:1])
    if not users and name not in fx.graph.outputs and not fx.op[name].endswith("_"):
        return Absence(name, "unused", searched=searched)
    kernels = (pair.kernel for user in users for pair in linked.kernels_of_fx(user))
    return Absence(name, "unknown", tuple(dict.fromkeys(kernels)), searched)
