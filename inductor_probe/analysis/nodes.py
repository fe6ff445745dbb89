"""A row for each node of the scheduler: what it does, reads and writes, and what it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from inductor_probe.analysis.graph import GraphIndex, NodeIndex, index_of, once_per_graph, read_names
from inductor_probe.analysis.links import links
from inductor_probe.model.code import Allocation
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, Dim, LoopBody, MemoryDep, SchedulerNode, StarDep, WeakDep
from inductor_probe.model.links import Links, NodeLink
from inductor_probe.model.nodes import MemoryEffect, NodeBuffer, NodeKind, NodeRow, Ranges
from inductor_probe.model.proof import read

_NOP = "NopKernelSchedulerNode"
_EXTERN = "ExternKernelSchedulerNode"
_STORES = ("ops.store", "ops.store_reduction")


def node_rows(graph: CompiledGraph, pre: bool = False) -> tuple[NodeRow, ...]:
    """Return a row for each unfused node, in the order of the IR file.

    Args:
        graph: as read.
        pre: the nodes before fusion, with those that were removed since; they are linked all the same.
    """
    return _rows_before(graph) if pre else _rows_after(graph)


@once_per_graph
def _rows_after(graph: CompiledGraph) -> tuple[NodeRow, ...]:
    index = index_of(graph)
    return _Rows(graph.name, index, index.nodes, links(graph)).rows()


@once_per_graph
def _rows_before(graph: CompiledGraph) -> tuple[NodeRow, ...]:
    index = index_of(graph)
    return _Rows(graph.name, index, index.before, links(graph)).rows()


class _Rows:
    """Makes the rows of `nodes`, of a graph that was indexed."""

    def __init__(self, graph: str, index: GraphIndex, nodes: NodeIndex, linked: Links) -> None:
        self._graph = graph
        self._index = index
        self._nodes = nodes
        self._linked = linked
        self._agrees = {top.name: _agree(top) for top in index.nodes.tops if top.children}

    def rows(self) -> tuple[NodeRow, ...]:
        return tuple(map(self._row, self._nodes.leaves))

    def _row(self, leaf: SchedulerNode) -> NodeRow:
        top = self._index.nodes.top.get(leaf.name)
        fused = top if top is not None and top.name != leaf.name else None
        operations, reductions, modes = _body_facts(leaf.body)
        users = (user.node for buffer in leaf.outputs for user in buffer.users)
        return NodeRow(
            graph=self._graph,
            node=leaf.name,
            kind=_kind(leaf, reductions, modes),
            node_class=leaf.kind,
            ir=leaf.ir,
            top=fused.name if fused else None,
            top_class=fused.kind if fused else None,
            link=self._linked.nodes.get(leaf.name) or _removed(leaf),
            writes=tuple(NodeBuffer(buffer.name, self._layout(buffer.name)) for buffer in leaf.outputs),
            reads=read_names(leaf),
            waits=tuple(dict.fromkeys(dep.name for dep in leaf.reads if isinstance(dep, WeakDep))),
            ranges=_ranges(leaf),
            agrees=self._agrees.get(fused.name) if fused else None,
            operations=tuple(operations.most_common()),
            reductions=reductions,
            effects=tuple(dict.fromkeys(_effects(leaf, self._index.allocations))),
            store_modes=tuple(dict.fromkeys(_store_modes(leaf, modes))),
            users=tuple(dict.fromkeys(users)),
            device=leaf.device,
            span=leaf.span,
        )

    def _layout(self, buffer: str) -> BufferLayout | None:
        """As the IR prints it; where it does not (torch before 2.4), as the wrapper allocates it."""
        if printed := self._nodes.layouts.get(buffer):
            return printed
        allocation = self._index.allocations.get(buffer)
        return allocation.layout if allocation else None


def _removed(leaf: SchedulerNode) -> NodeLink:
    """A node before fusion that is not there after it: nothing uses what it computes."""
    buffers = tuple(buffer.name for buffer in leaf.outputs)
    return NodeLink(leaf.name, leaf.name, buffers, None, read("removed-node"))


def node_kind(leaf: SchedulerNode) -> NodeKind:
    """Return what an unfused node does."""
    _, reductions, modes = _body_facts(leaf.body)
    return _kind(leaf, reductions, modes)


def _kind(leaf: SchedulerNode, reductions: tuple[str, ...], modes: tuple[str, ...]) -> NodeKind:
    if leaf.kind == _NOP:
        return "nop"
    if leaf.kind == _EXTERN:
        return "item" if leaf.ir == "MultiOutput" else "fallback" if leaf.ir == "FallbackKernel" else "extern"
    if "Template" in leaf.ir:
        return "template"
    if leaf.body is None:
        return "other"
    targets = {op.target for block in leaf.body.blocks for op in block.ops}
    if reductions:
        return "reduction"
    if "ops.sort" in targets:
        return "sort"
    if any(target.startswith(("ops.scan", "self.scan")) for target in targets):
        return "scan"
    return "scatter" if modes else "pointwise"


def _body_facts(body: LoopBody | None) -> tuple[Counter[str], tuple[str, ...], tuple[str, ...]]:
    """Return the operations of a loop body, its reductions, and the modes of its stores."""
    operations: Counter[str] = Counter()
    reductions: list[str] = []
    modes: list[str] = []
    for block in body.blocks if body else ():
        for op in block.ops:
            if op.target.startswith("ops."):
                operations[op.target.removeprefix("ops.")] += 1
            if op.target == "ops.reduction" and len(op.args) > 2:
                reductions.append(str(op.args[2]))
            if op.target in _STORES and len(op.args) > 3 and isinstance(op.args[3], str):
                modes.append(op.args[3])
    return operations, tuple(reductions), tuple(dict.fromkeys(modes))


def _effects(leaf: SchedulerNode, memory: Mapping[str, Allocation]) -> Iterator[MemoryEffect]:
    for buffer in leaf.outputs:
        yield from (MemoryEffect("mutates", name) for name in buffer.mutations)
        yield from (MemoryEffect("aliases", name) for name in buffer.aliases)
        allocation = memory.get(buffer.name)
        if allocation is not None and allocation.kind == "reuse" and allocation.of:
            yield MemoryEffect("reuses", allocation.of)
        elif allocation is not None and allocation.kind == "view" and allocation.of and not buffer.aliases:
            yield MemoryEffect("view_of", allocation.of)


def _store_modes(leaf: SchedulerNode, modes: tuple[str, ...]) -> Iterator[str]:
    yield from modes
    modes_of_deps = (dep.mode for dep in leaf.writes if isinstance(dep, MemoryDep | StarDep))
    yield from (mode for mode in modes_of_deps if mode and mode != "None")


def _ranges(leaf: SchedulerNode) -> Ranges | None:
    """Return the trip counts of the loops; those of a template or of a library call are not printed."""
    if leaf.body is None or leaf.sizes is None:
        return None
    reduced: tuple[Dim, ...] = leaf.sizes[1] if len(leaf.sizes) > 1 else ()
    return Ranges(leaf.sizes[0] if leaf.sizes else (), reduced)


def _agree(top: SchedulerNode) -> bool | None:
    """Whether the nodes in `top` fit into one nest of loops; None when fewer than two have loops.

    A node fits when its ranges, reduced ones last, are the first ranges of the longest.
    """
    found = [ranges for leaf in top.leaves() if (ranges := _ranges(leaf)) is not None]
    nests = [tuple(steps for steps in (*each.iteration, *each.reduction) if steps != 1) for each in found]
    longest = max(nests, key=len, default=())
    return all(nest == longest[: len(nest)] for nest in nests) if len(nests) > 1 else None
