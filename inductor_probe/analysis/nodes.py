"""A row for each node of the scheduler: what it does, reads and writes, and what it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from inductor_probe.analysis.access import STORES
from inductor_probe.analysis.graph import OUTPUT, GraphIndex, NodeIndex, index_of, once_per_graph, read_names
from inductor_probe.analysis.links import links
from inductor_probe.analysis.names import nodes_called
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import LoopBody, MemoryDep, SchedulerNode, StarDep, WeakDep
from inductor_probe.model.links import NodeLink
from inductor_probe.model.nodes import MemoryEffect, NodeBuffer, NodeKind, NodeRow, Ranges
from inductor_probe.model.proof import read


def node_rows(graph: CompiledGraph, pre: bool = False) -> tuple[NodeRow, ...]:
    """Return a row for each unfused node, in the order of the IR file.

    With `pre` those before fusion, also what was removed since; they are linked all the same.
    """
    return _rows_before(graph) if pre else _rows_after(graph)


@once_per_graph
def _rows_after(graph: CompiledGraph) -> tuple[NodeRow, ...]:
    return _rows(graph, index_of(graph).nodes)


@once_per_graph
def _rows_before(graph: CompiledGraph) -> tuple[NodeRow, ...]:
    return _rows(graph, index_of(graph).before)


def _rows(graph: CompiledGraph, nodes: NodeIndex) -> tuple[NodeRow, ...]:
    index, linked = index_of(graph), links(graph)
    agrees = {top.name: _agree(top) for top in index.nodes.tops if top.children}
    rows = []
    for leaf in nodes.leaves:
        top = index.nodes.top.get(leaf.name)
        fused = top if top is not None and top.name != leaf.name else None
        operations, reductions, modes = _body_facts(leaf.body)
        users = (user.node for buffer in leaf.outputs for user in buffer.users)
        users = (user for user in users if user == OUTPUT or nodes_called(graph, user))  # others are removed
        # A node before fusion that is not there after it: nothing uses what it computes.
        buffers = tuple(buffer.name for buffer in leaf.outputs)
        link = linked.nodes.get(leaf.name) or NodeLink(
            leaf.name, leaf.name, buffers, None, read("removed-node")
        )
        # Layouts are as the IR prints them; where it does not (torch before 2.4), as the wrapper allocates.
        allocated = {name: item.layout for name in buffers if (item := index.allocations.get(name))}
        modes_of_deps = (dep.mode for dep in leaf.writes if isinstance(dep, MemoryDep | StarDep))
        rows.append(
            NodeRow(
                graph=graph.name,
                node=leaf.name,
                kind=node_kind(leaf),
                node_class=leaf.kind,
                ir=leaf.ir,
                top=fused.name if fused else None,
                top_class=fused.kind if fused else None,
                link=link,
                writes=tuple(
                    NodeBuffer(name, nodes.layouts.get(name) or allocated.get(name)) for name in buffers
                ),
                reads=read_names(leaf),
                waits=tuple(dict.fromkeys(dep.name for dep in leaf.reads if isinstance(dep, WeakDep))),
                ranges=_ranges(leaf),
                agrees=agrees.get(fused.name) if fused else None,
                operations=tuple(operations.most_common()),
                reductions=reductions,
                effects=tuple(dict.fromkeys(_effects(leaf, index))),
                store_modes=tuple(
                    dict.fromkeys([*modes, *(mode for mode in modes_of_deps if mode and mode != "None")])
                ),
                users=tuple(dict.fromkeys(users)),
                device=leaf.device,
                subgraph=index.subgraph(leaf.name),
                span=leaf.span,
            )
        )
    return tuple(rows)


def node_kind(leaf: SchedulerNode) -> NodeKind:
    """Return what an unfused node does, by its class and its loop body."""
    operations, reductions, modes = _body_facts(leaf.body)
    match leaf.kind, leaf.ir:
        case "NopKernelSchedulerNode", _:
            return "nop"
        case "ExternKernelSchedulerNode", "MultiOutput":
            return "result"
        case "ExternKernelSchedulerNode", "FallbackKernel":
            return "fallback"
        case "ExternKernelSchedulerNode", _:
            return "extern"
    if "Template" in leaf.ir:
        return "template"
    if leaf.body is None:
        return "other"
    if reductions:
        return "reduction"
    if operations["sort"]:
        return "sort"
    if any(op.target.startswith(("ops.scan", "self.scan")) for op in leaf.ops):
        return "scan"
    return "scatter" if modes else "pointwise"


def _body_facts(body: LoopBody | None) -> tuple[Counter[str], tuple[str, ...], tuple[str, ...]]:
    """Return the operations of a loop body, its reductions, and the modes of its stores."""
    operations: Counter[str] = Counter()
    reductions: list[str] = []
    modes: list[str] = []
    for op in body.ops if body else ():
        if op.target.startswith("ops."):
            operations[op.target.removeprefix("ops.")] += 1
        if op.target == "ops.reduction" and len(op.args) > 2:
            reductions.append(str(op.args[2]))
        if op.target in STORES and len(op.args) > 3 and isinstance(op.args[3], str):
            modes.append(op.args[3])
    return operations, tuple(reductions), tuple(dict.fromkeys(modes))


def _effects(leaf: SchedulerNode, index: GraphIndex) -> Iterator[MemoryEffect]:
    for buffer in leaf.outputs:
        yield from (MemoryEffect("mutates", name) for name in buffer.mutations)
        yield from (MemoryEffect("aliases", name) for name in buffer.aliases)
        allocation = index.allocations.get(buffer.name)
        if allocation is not None and allocation.kind == "reuse" and allocation.of:
            yield MemoryEffect("reuses", allocation.of)
        elif allocation is not None and allocation.kind == "view" and allocation.of and not buffer.aliases:
            yield MemoryEffect("view_of", allocation.of)


def _ranges(leaf: SchedulerNode) -> Ranges | None:
    """Return the trip counts of the loops; those of a template or of a library call are not printed."""
    if leaf.body is None or leaf.sizes is None:
        return None
    iteration, reduction, *_ = (*leaf.sizes, (), ())
    return Ranges(iteration, reduction)


def _agree(top: SchedulerNode) -> bool | None:
    """Whether the nodes in `top` fit into one nest of loops; None when fewer than two have loops.

    A node fits when its ranges, reduced ones last, are the first ranges of the longest.
    """
    ranges = [ranges for leaf in top.leaves() if (ranges := _ranges(leaf)) is not None]
    nests = [tuple(steps for steps in (*nest.iteration, *nest.reduction) if steps != 1) for nest in ranges]
    longest = max(nests, key=len, default=())
    return all(nest == longest[: len(nest)] for nest in nests) if len(nests) > 1 else None
