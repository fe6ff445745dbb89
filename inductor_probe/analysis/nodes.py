"""A row for each node of the scheduler: what it does, reads and writes, and what it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from inductor_probe.analysis.linking.units import read_names
from inductor_probe.analysis.links import links
from inductor_probe.model.code import Allocation
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, Dim, LoopBody, MemoryDep, SchedulerNode, StarDep, WeakDep
from inductor_probe.model.links import Links, NodeLink
from inductor_probe.model.nodes import NodeBuffer, NodeKind, NodeRow, Ranges

_NOP = "NopKernelSchedulerNode"
_EXTERN = "ExternKernelSchedulerNode"
_STORES = ("ops.store", "ops.store_reduction")


def node_rows(graph: CompiledGraph, pre: bool = False, linked: Links | None = None) -> tuple[NodeRow, ...]:
    """Return a row for each unfused node, in the order of the IR file.

    Args:
        graph: as read.
        pre: the nodes before fusion, with those that were removed since; they are linked all the same.
        linked: the graph's links, when they are known already.
    """
    maker = _Maker(graph, linked or links(graph))
    tops = graph.pre if pre and graph.pre else graph.nodes
    return tuple(maker.row(leaf) for top in tops for leaf in top.leaves())


class _Maker:
    """Makes rows from indexes that are built once."""

    def __init__(self, graph: CompiledGraph, linked: Links) -> None:
        self._graph = graph
        self._linked = linked
        self._top = {leaf.name: top for top in graph.nodes for leaf in top.leaves()}
        self._agrees = {top.name: _agree(top) for top in graph.nodes if top.children}
        allocations = graph.code.allocations if graph.code else ()
        self._memory = {allocation.name: allocation for allocation in allocations}

    def row(self, leaf: SchedulerNode) -> NodeRow:
        top = self._top.get(leaf.name)
        fused = top if top is not None and top.name != leaf.name else None
        operations, reductions, modes = _body_facts(leaf.body)
        users = (user.node for buffer in leaf.outputs for user in buffer.users)
        return NodeRow(
            graph=self._graph.name,
            node=leaf.name,
            kind=_kind(leaf, reductions, modes),
            node_class=leaf.kind,
            ir=leaf.ir,
            top=fused.name if fused else None,
            top_class=fused.kind if fused else None,
            link=self._linked.nodes.get(leaf.name) or _removed(leaf),
            writes=tuple(NodeBuffer(buffer.name, self._layout(leaf, buffer.name)) for buffer in leaf.outputs),
            reads=read_names(leaf),
            waits=tuple(dict.fromkeys(dep.name for dep in leaf.reads if isinstance(dep, WeakDep))),
            ranges=_ranges(leaf),
            agrees=self._agrees.get(fused.name) if fused else None,
            operations=tuple(operations.most_common()),
            reductions=reductions,
            marks=tuple(dict.fromkeys(_marks(leaf, modes, self._memory))),
            users=tuple(dict.fromkeys(users)),
            device=leaf.device,
            span=leaf.span,
        )

    def _layout(self, leaf: SchedulerNode, name: str) -> BufferLayout | None:
        """As the IR prints it; where it does not (torch before 2.4), as the wrapper allocates it."""
        for buffer in leaf.outputs:
            if buffer.name == name and buffer.layout is not None:
                return buffer.layout
        for printed, layout, _ in leaf.layouts:
            if printed == name:
                return layout
        allocation = self._memory.get(name)
        return allocation.layout if allocation else None


def _removed(leaf: SchedulerNode) -> NodeLink:
    """A node before fusion that is not there after it: nothing uses what it computes."""
    buffers = tuple(buffer.name for buffer in leaf.outputs)
    return NodeLink(
        leaf.name, leaf.name, buffers, None, "needs no kernel: it was removed before code was written"
    )


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


def _marks(leaf: SchedulerNode, modes: tuple[str, ...], memory: Mapping[str, Allocation]) -> Iterator[str]:
    for buffer in leaf.outputs:
        yield from (f"mutates {name}" for name in buffer.mutations)
        yield from (f"aliases {name}" for name in buffer.aliases)
        allocation = memory.get(buffer.name)
        if allocation is not None and allocation.how == "reuse" and allocation.of:
            yield f"takes over {allocation.of}"
        elif allocation is not None and allocation.how == "view" and allocation.of and not buffer.aliases:
            yield f"lies in {allocation.of}"
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
