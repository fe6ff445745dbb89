"""What belongs to what in a graph: user's line, FX node, scheduler node, kernel, launch.

Only what is proved is linked, and every link says its proof. Where several are possible they are all named.
"""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.analysis.graph import GraphIndex, index_of, once_per_graph
from inductor_probe.analysis.linking.computed import Computed, FxLinks, link_fx
from inductor_probe.analysis.linking.fx_index import fx_index
from inductor_probe.analysis.linking.kernel_fx import kernel_fx
from inductor_probe.analysis.linking.origins import buffer_origins
from inductor_probe.analysis.linking.runs import NodeStep, node_runs
from inductor_probe.analysis.linking.steps import read_steps
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.links import Links, NodeLink
from inductor_probe.model.manifest import BufferOrigin


def links(graph: CompiledGraph, origins: Mapping[str, BufferOrigin] | None = None) -> Links:
    """Link every unfused node of `graph`. They are worked out once, but for `origins`.

    Args:
        graph: as read.
        origins: FX origins of buffers from elsewhere (the compiler's logs), by buffer; what `probe dump`
            recorded goes before them.
    """
    return _link_graph(graph, origins) if origins else _own_links(graph)


@once_per_graph
def _own_links(graph: CompiledGraph) -> Links:
    return _link_graph(graph, {})


def _link_graph(graph: CompiledGraph, origins: Mapping[str, BufferOrigin]) -> Links:
    known = dict(origins)
    known.update((origin.buffer, origin) for origin in (graph.record.origins if graph.record else ()))
    index = index_of(graph)
    runs = node_runs(index.nodes, read_steps(graph.code))
    fx = fx_index(graph)
    linked = link_fx(graph, fx, runs, known) if fx else FxLinks({}, {}, {})
    nodes = {
        name: _link(leaf, index.nodes.top[name].name, runs[name], linked.nodes.get(name, Computed()), index)
        for name, leaf in index.nodes.leaf.items()
    }
    return Links(
        nodes,
        buffer_origins(index, fx, linked) if fx else {},
        kernel_fx(graph, fx, nodes, linked.nodes),
    )


def _link(leaf: SchedulerNode, top: str, run: NodeStep, computed: Computed, index: GraphIndex) -> NodeLink:
    steps = (run.step,) if run.step else run.candidates
    names = dict.fromkeys(step.name for step in run.candidates)
    return NodeLink(
        node=leaf.name,
        top=top,
        buffers=tuple(buffer.name for buffer in leaf.outputs),
        kernel=run.kernel,
        kernel_proof=run.proof,
        kernel_candidates=() if run.kernel else tuple(names),
        launches=tuple(step.span for step in steps if step.span is not None),
        fx=computed.fx,
        fx_proofs=computed.proofs,
        fx_candidates=computed.candidates,
        sources=index.sources(computed.fx or computed.candidates),
    )
