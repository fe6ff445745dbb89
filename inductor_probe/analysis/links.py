"""What belongs to what in a graph: user's line, FX node, scheduler node, kernel, launch.

Only what is proved is linked, and every link says its proof. Where several are possible they are all named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from inductor_probe.analysis.kept import kept
from inductor_probe.analysis.linking.computed import Computed, FxLinks, link_fx
from inductor_probe.analysis.linking.fx_index import FxIndex
from inductor_probe.analysis.linking.kernel_fx import kernel_fx
from inductor_probe.analysis.linking.origins import buffer_origins
from inductor_probe.analysis.linking.runs import Run, node_runs
from inductor_probe.analysis.linking.steps import buffer_in, read_steps
from inductor_probe.analysis.linking.user_lines import UserLines
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.links import Links, NodeLink
from inductor_probe.model.manifest import BufferOrigin

__all__ = ["buffer_in", "links", "returned_buffers"]

_NAME = re.compile(r"[A-Za-z_]\w*")


def links(graph: CompiledGraph, origins: Mapping[str, BufferOrigin] | None = None) -> Links:
    """Link every unfused node of `graph`. The links of the graphs asked for last are kept.

    Args:
        graph: as read.
        origins: FX origins of buffers from elsewhere (the compiler's logs), by buffer; what `probe dump`
            recorded goes before them.
    """
    return _link_graph(graph, origins) if origins else _kept(graph)


@kept
def _kept(graph: CompiledGraph) -> Links:
    return _link_graph(graph, {})


def _link_graph(graph: CompiledGraph, origins: Mapping[str, BufferOrigin]) -> Links:
    known = dict(origins)
    known.update((origin.buffer, origin) for origin in (graph.record.origins if graph.record else ()))
    runs = node_runs(graph.nodes, read_steps(graph.code))
    lines = UserLines(graph)
    fx = FxIndex(graph.fx) if graph.fx else None
    linked = link_fx(graph, fx, runs, known) if fx else FxLinks({}, {}, {})
    nodes = {
        leaf.name: _link(leaf, top.name, runs[leaf.name], linked.nodes.get(leaf.name, Computed()), lines)
        for top in graph.nodes
        for leaf in top.leaves()
    }
    return Links(
        nodes,
        buffer_origins(graph, fx, linked, lines) if fx else {},
        kernel_fx(graph, fx, nodes, linked.nodes),
    )


def _link(leaf: SchedulerNode, top: str, run: Run, computed: Computed, lines: UserLines) -> NodeLink:
    steps = (run.step,) if run.step else run.candidates
    names = dict.fromkeys(step.name for step in run.candidates)
    return NodeLink(
        node=leaf.name,
        top=top,
        buffers=tuple(buffer.name for buffer in leaf.outputs),
        kernel=run.kernel,
        kernel_how=run.how,
        kernel_candidates=() if run.kernel else tuple(names),
        launches=tuple(step.span for step in steps if step.span is not None),
        fx=computed.fx,
        fx_how=computed.how,
        fx_candidates=computed.candidates,
        sources=lines.of_all(computed.fx or computed.candidates),
    )


def returned_buffers(graph: CompiledGraph) -> frozenset[str]:
    """Return the buffers that the graph returns, by what the wrapper says or else by their users."""
    if graph.code is not None:
        return frozenset(buffer_in(text) for text in graph.code.returns if _NAME.match(text))
    leaves = (leaf for top in graph.nodes for leaf in top.leaves())
    return frozenset(
        buffer.name
        for leaf in leaves
        for buffer in leaf.outputs
        if any(user.node == "OUTPUT" for user in buffer.users)
    )
