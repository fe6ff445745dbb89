"""The page of a graph."""

from __future__ import annotations

from collections import Counter

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import outlines
from inductor_probe.analysis.links import links, returned_buffers
from inductor_probe.analysis.nodes import node_kind
from inductor_probe.analysis.pages.trace import source_traces
from inductor_probe.analysis.symbols import symbols
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.pages import FusedNode, GraphPage
from inductor_probe.model.summary import GraphSummary


def graph_page(graph: CompiledGraph, summary: GraphSummary) -> GraphPage:
    """Return a graph in outline; `summary` is its row in the run's."""
    linked = links(graph)
    buffers = {row.buffer: row for row in outlines(graph)}
    inputs = tuple(row for row in buffers.values() if row.role == "input")
    named = {row.buffer for row in inputs}
    returned = returned_buffers(graph)
    return GraphPage(
        graph=graph.name,
        torch_version=graph.torch_version,
        recorded=graph.record,
        summary=summary,
        inputs=inputs,
        outputs=tuple(row for name, row in buffers.items() if name in returned and row.role != "input"),
        sizes=tuple(name for name in (graph.code.inputs if graph.code else ()) if name not in named),
        kinds=tuple(Counter(node_kind(leaf) for top in graph.nodes for leaf in top.leaves()).most_common()),
        fused=tuple(
            FusedNode(top.name, top.kind, sum(1 for _ in top.leaves())) for top in graph.nodes if top.children
        ),
        kernels=kernel_rows(graph),
        lines=source_traces(graph, linked),
        unlinked=tuple(link.node for link in linked.unlinked),
        problems=len(graph.problems),
        symbols=symbols(graph),
    )
