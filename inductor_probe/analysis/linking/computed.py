"""Which FX nodes each node of the scheduler computes, and whose value each buffer holds.

Strongest first: what was recorded while compiling; torch's own provenance and the comments above kernels,
which tell the FX nodes of a kernel and so those of a node that has a kernel to itself; and the flow of data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inductor_probe.analysis.graph import NodeIndex, index_of
from inductor_probe.analysis.linking.candidates import may_compute
from inductor_probe.analysis.linking.fx_index import Cone, FxIndex
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.linking.kernel_nodes import KernelNodes
from inductor_probe.analysis.linking.proofs import proved_values
from inductor_probe.analysis.linking.runs import NodeStep
from inductor_probe.analysis.linking.shapes import Shape, buffer_shapes
from inductor_probe.analysis.linking.units import is_nop
from inductor_probe.analysis.linking.values import Value, Values, Way
from inductor_probe.analysis.operators import operator
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.manifest import BufferOrigin
from inductor_probe.model.proof import RECORDED, Proof, inferred, read

_ONLY = read("only-fx-of-kernel")
_ALL = read("all-fx-of-kernel")
_SHARED = inferred("fx-of-shared-kernel")
_BETWEEN = inferred("between-reads-and-writes")
_POSSIBLE = inferred("may-be-between")
_WRITTEN = inferred("value-written")
_COPIED = inferred("copy-for-call")
_ALLOWED = inferred("operations-allow")


@dataclass(frozen=True, slots=True)
class Computed:
    """FX nodes of a node of the scheduler; `proofs` show them.

    Attributes:
        candidates: further FX nodes that it may compute.
        flow: those of `fx` that the flow of data tells, whatever else does.
    """

    fx: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    candidates: tuple[str, ...] = ()
    flow: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FxLinks:
    """What linking to an FX graph finds: by node, and by buffer. `shapes` are those of the buffers."""

    nodes: dict[str, Computed]
    values: dict[str, Value]
    shapes: dict[str, Shape]


def link_fx(
    graph: CompiledGraph, fx: FxIndex, runs: Mapping[str, NodeStep], origins: Mapping[str, BufferOrigin]
) -> FxLinks:
    """Link the nodes of `graph` to FX nodes. `origins` are recorded ones, by buffer."""
    index = index_of(graph).nodes
    leaves = index.leaves
    shapes = buffer_shapes(leaves, graph.code)
    kernels = KernelNodes(graph, leaves, runs)
    values = Values(
        fx, shapes, proved_values(graph.code, fx, shapes=shapes, runs=runs, kernels=kernels, origins=origins)
    )
    nodes: dict[str, Computed] = {}
    for leaf in leaves:
        run = runs[leaf.name]
        within = kernels.of(run.step)
        way = values.follow(leaf, run.kernel, None if within is None else frozenset(within))
        by_data = _by_data(leaf, fx, values, way, within)
        recorded = [
            name for buffer in leaf.outputs if buffer.name in origins for name in origins[buffer.name].origins
        ]
        if recorded:
            nodes[leaf.name] = Computed(fx.sorted(dict.fromkeys(recorded)), (RECORDED,), flow=by_data.flow)
        elif within and (len(within) == 1 or kernels.alone(run.step)):
            names = fx.sorted({*within, *by_data.fx})
            nodes[leaf.name] = Computed(names, (_ONLY if len(names) == 1 else _ALL,), flow=by_data.flow)
        else:
            nodes[leaf.name] = by_data
    for members in kernels.members.values():
        _share_out(fx, members, kernels.of(runs[members[0].name].step) or (), nodes)
    _copies(index, nodes)
    return FxLinks(nodes, values.written, shapes)


def _by_data(
    leaf: SchedulerNode, fx: FxIndex, values: Values, way: Way, within: tuple[str, ...] | None
) -> Computed:
    ways = [_names(cone, leaf, fx, within, way.complete) for cone in way.cones if cone.closed]
    possible = set().union(*ways)
    written = [values.written[buffer.name] for buffer in leaf.outputs]
    if way.continues or is_nop(leaf) or not ways:  # only the last of the way is certainly its own
        exact = [value.exact for value in written]
        last = {name if name in (within or ()) else fx.whole(name) for name in exact if name is not None}
        if last and None not in exact and not fx.roots.intersection(last):
            if not is_nop(leaf):
                possible.update(*(fx.before(name, within or ()) for name in last))
            return _told(leaf, fx, last, _WRITTEN, possible)
    elif common := ways[0].intersection(*ways):
        held = {name for value in written for name in value.nodes if fx.whole(name) not in common}
        return _told(leaf, fx, common, _BETWEEN, possible | held)
    if possible:
        return _told(leaf, fx, set(), _POSSIBLE, possible)
    if not within:
        return Computed()
    found = _told(leaf, fx, set(), _SHARED, set(within))
    return Computed(found.candidates, (_ALLOWED,)) if len(found.candidates) == 1 else found


def _told(leaf: SchedulerNode, fx: FxIndex, names: set[str], proof: Proof, possible: set[str]) -> Computed:
    """Return `names` as what `leaf` computes, with those `possible` ones that its operations allow."""
    rest = possible - names
    allowed = set(may_compute(fx, leaf, rest))
    return Computed(fx.sorted(names), (proof,), fx.sorted(allowed or rest), frozenset(names))


def _names(
    cone: Cone, leaf: SchedulerNode, fx: FxIndex, within: tuple[str, ...] | None, complete: bool
) -> set[str]:
    """Return the FX nodes of a cone as torch names them: items of a result only where it does.

    What torch does not list for the kernel is among them only where the way is `complete`, and no view.
    """
    whole = {fx.whole(name) for name in cone.nodes}
    if within is None:
        if leaf.body is not None:
            return whole
        called = operator(leaf.kernel or "").name  # it is handed other views, and does not compute them
        return {name for name in whole if fx.op[name] not in VIEWS or fx.op[name] == called}
    listed = whole.union(cone.nodes).intersection(within)
    if complete and leaf.body is not None:
        items = {fx.whole(name) for name in listed}
        listed |= {name for name in whole - items if fx.op[name] not in VIEWS}
    return listed


def _share_out(
    fx: FxIndex, members: list[SchedulerNode], within: tuple[str, ...], nodes: dict[str, Computed]
) -> None:
    """What torch lists for a kernel belongs to the one node of it that may compute it, if there is one.

    Of `exp` and three nodes of a softmax only the one whose loop body calls `ops.exp` may.
    """
    told = {name for leaf in members for name in nodes[leaf.name].fx}
    may: dict[str, list[str]] = {}
    for leaf in members:
        for name in nodes[leaf.name].candidates:
            may.setdefault(name, []).append(leaf.name)
    own: dict[str, list[str]] = {}
    for name in within:
        if name not in told and len(may.get(name, ())) == 1:
            own.setdefault(may[name][0], []).append(name)
    for node, names in own.items():
        found = nodes[node]
        listed = inferred("listed-for-kernel", fx=tuple(names))
        rest = tuple(name for name in found.candidates if name not in names)
        nodes[node] = Computed(
            fx.sorted((*found.fx, *names)), (*(found.proofs if found.fx else ()), listed), rest, found.flow
        )


def _copies(index: NodeIndex, nodes: dict[str, Computed]) -> None:
    """A node that copies for a library call, which wants another layout, belongs to the call's FX node."""
    for leaf in index.leaves:
        if nodes[leaf.name].fx or leaf.body is None:
            continue
        readers = {user.node for buffer in leaf.outputs for user in buffer.users if not user.is_weak}
        reader = index.leaf.get(readers.pop()) if len(readers) == 1 else None
        if reader is None or reader.body is not None or is_nop(reader) or not nodes[reader.name].fx:
            continue
        called = {op.target for block in leaf.body.blocks for op in block.ops}
        if called <= {"ops.load", "ops.store", "self.get_index"}:
            names = nodes[reader.name].fx
            nodes[leaf.name] = Computed(names, (_COPIED,), flow=frozenset(names))
