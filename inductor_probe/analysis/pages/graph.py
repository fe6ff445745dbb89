"""The page of a graph."""

from __future__ import annotations

from collections import Counter

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import outlines
from inductor_probe.analysis.links import links
from inductor_probe.analysis.nodes import node_kind
from inductor_probe.analysis.pages.trace import source_traces
from inductor_probe.analysis.symbols import symbols
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.pages import FusedNode, GraphPage
from inductor_probe.model.runs import GraphSummary


def graph_page(graph: CompiledGraph, summary: GraphSummary) -> GraphPage:
    """Return a graph in outline; `summary` is its row in the run's."""
    buffers = {row.buffer: row for row in outlines(graph)}
    inputs = tuple(row for row in buffers.values() if row.role == "input")
    named = {row.buffer for row in inputs}
    index = index_of(graph)
    return GraphPage(
        graph=graph.name,
        torch_version=graph.torch_version,
        recorded=graph.record,
        summary=summary,
        inputs=inputs,
        outputs=tuple(row for name, row in buffers.items() if name in index.returned and row.role != "input"),
        sizes=tuple(name for name in (graph.code.inputs if graph.code else ()) if name not in named),
        kinds=tuple(Counter(map(node_kind, index.nodes.leaves)).most_common()),
        fused=tuple(
            FusedNode(top.name, top.kind, len(index.nodes.members[top.name]))
            for top in graph.nodes
            if top.children
        ),
        kernels=kernel_rows(graph),
        lines=source_traces(graph),
        unlinked=tuple(link.node for link in links(graph).unlinked),
        problems=len(graph.problems),
        symbols=symbols(graph),
    )
