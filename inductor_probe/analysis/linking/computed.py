"""Which FX nodes each scheduler node computes, and whose value each buffer holds.

Strongest first: what was recorded while compiling; torch's own provenance and the comments above kernels,
which list the FX nodes of a kernel and so those of a node that has a kernel to itself; and the flow of data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.graph import GraphIndex, NodeIndex, index_of
from inductor_probe.analysis.linking.fx_index import Cone, FxIndex, Shape, buffer_shapes
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.linking.provenance import KernelNodes, may_run, proved_values, without_waits
from inductor_probe.analysis.linking.steps import NodeStep, is_nop
from inductor_probe.analysis.linking.values import Path, Value, Values, may_compute
from inductor_probe.analysis.operators import operator
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.layouts import Origin
from inductor_probe.model.manifest import BufferOrigin
from inductor_probe.model.proof import RECORDED, FxCode, Proof, inferred, read
from inductor_probe.model.record import collected

_COPY = {"ops.load", "ops.store", "self.get_index"}


class Computed(Struct, frozen=True):
    """FX nodes of a scheduler node; `proofs` show them.

    Attributes:
        candidates: further FX nodes that it may compute.
        flow: those of `fx` that the flow of data shows, whatever else does.
    """

    fx: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    candidates: tuple[str, ...] = ()
    flow: frozenset[str] = frozenset()


class FxLinks(NamedTuple):
    """The links to an FX graph: by node, and by buffer. `shapes` are those of the buffers."""

    nodes: dict[str, Computed]
    values: dict[str, Value]
    shapes: dict[str, Shape]


def link_fx(
    graph: CompiledGraph, fx: FxIndex, runs: Mapping[str, NodeStep], origins: Mapping[str, BufferOrigin]
) -> FxLinks:
    """Link the nodes of `graph` to FX nodes. `origins` are recorded ones, by buffer."""
    index = index_of(graph).nodes
    shapes = buffer_shapes(index.leaves, graph.code)
    kernels = KernelNodes(graph, index.leaves, runs)
    values = Values(fx, shapes, proved_values(graph.code, fx, shapes, kernels, origins))
    nodes: dict[str, Computed] = {}
    for leaf in index.leaves:
        run = runs[leaf.name]
        within = kernels.of(run.step)
        path = values.follow(leaf, run.kernel, None if within is None else frozenset(within))
        computed = _by_data(leaf, fx, values, path, None if within is None else frozenset(within))
        named = [
            name for buffer in leaf.outputs if buffer.name in origins for name in origins[buffer.name].origins
        ]
        if recorded := without_waits(named, run.kernel or "", fx.nodes):
            computed = Computed(fx.sorted(set(recorded)), (RECORDED,), flow=computed.flow)
        elif within and (len(within) == 1 or (run.step and len(kernels.members.get(run.step, ())) == 1)):
            names = fx.sorted({*within, *computed.fx})
            proof = read("only-fx-of-kernel" if len(names) == 1 else "all-fx-of-kernel")
            computed = Computed(names, (proof,), flow=computed.flow)
        nodes[leaf.name] = computed
    for step, members in kernels.members.items():
        _share_out(fx, [leaf.name for leaf in members], kernels.of(step) or (), nodes)
    _link_copies(index, nodes)
    return FxLinks(nodes, values.written, shapes)


def _by_data(
    leaf: SchedulerNode, fx: FxIndex, values: Values, path: Path, within: Set[str] | None
) -> Computed:
    """Return the FX nodes that lie between what `leaf` reads and writes: those on all of several paths."""

    def computed(names: set[str], code: FxCode, possible: set[str]) -> Computed:
        """Return `names` as what the node computes, with those `possible` ones that its operations allow."""
        rest = possible - names
        allowed = set(may_compute(fx, leaf, rest))
        return Computed(fx.sorted(names), (inferred(code),), fx.sorted(allowed or rest), frozenset(names))

    ways = [_names(cone, leaf, fx, within, path.complete) for cone in path.cones]
    within = within or frozenset()
    possible = set().union(*ways)
    written = [values.written[buffer.name] for buffer in leaf.outputs]
    if path.continues or is_nop(leaf) or not ways:  # only the last of the path is certainly computed here
        exact = [value.exact for value in written]
        last = {name if name in within else fx.result(name) for name in exact if name is not None}
        last = {name for name in last if may_run(leaf.kernel or "", fx.nodes[name].target)}
        if last and None not in exact and not fx.roots.intersection(last):
            if not is_nop(leaf):
                possible.update(*(fx.before(name, within) for name in last))
            return computed(last, "value-written", possible)
    elif common := ways[0].intersection(*ways):
        held = {name for value in written for name in value.nodes if fx.result(name) not in common}
        return computed(common, "between-reads-and-writes", possible | held)
    if possible:
        return computed(set(), "may-be-between", possible)
    if not within:
        return Computed()
    shared = computed(set(), "fx-of-shared-kernel", set(within))
    if len(shared.candidates) == 1:
        return Computed(shared.candidates, (inferred("operations-allow"),))
    return shared


def _names(cone: Cone, leaf: SchedulerNode, fx: FxIndex, within: Set[str] | None, complete: bool) -> set[str]:
    """Return the FX nodes of a cone as torch names them: items of a result only where it does.

    What torch does not list for the kernel is among them only where the path is `complete`, and no view.
    """
    kernel = leaf.kernel or ""
    results = {name for name in map(fx.result, cone.nodes) if may_run(kernel, fx.nodes[name].target)}
    if within is None:
        if leaf.body is not None:
            return results
        called = operator(kernel).name  # it is passed other views, and does not compute them
        return {name for name in results if fx.op[name] not in VIEWS or fx.op[name] == called}
    listed = results.union(cone.nodes).intersection(within)
    if complete and leaf.body is not None:
        items = {fx.result(name) for name in listed}
        listed |= {name for name in results - items if fx.op[name] not in VIEWS}
    return listed


def _share_out(fx: FxIndex, members: list[str], within: tuple[str, ...], nodes: dict[str, Computed]) -> None:
    """What torch lists for a kernel belongs to the one node of it that may compute it, if there is one.

    Of `exp` and three nodes of a softmax only the one whose loop body calls `ops.exp` may.
    """
    linked = {name for node in members for name in nodes[node].fx}
    may = collected((name, node) for node in members for name in nodes[node].candidates)
    for node in members:
        names = tuple(name for name in within if name not in linked and may.get(name) == (node,))
        if names:
            before = nodes[node]
            nodes[node] = Computed(
                fx.sorted((*before.fx, *names)),
                (*(before.proofs if before.fx else ()), inferred("listed-for-kernel", fx=names)),
                tuple(name for name in before.candidates if name not in names),
                before.flow,
            )


def _link_copies(index: NodeIndex, nodes: dict[str, Computed]) -> None:
    """A node that copies for a library call, which needs another layout, belongs to the call's FX node."""
    for leaf in index.leaves:
        if nodes[leaf.name].fx or leaf.body is None:
            continue
        readers = {user.node for buffer in leaf.outputs for user in buffer.users if not user.is_weak}
        reader = index.leaf.get(readers.pop()) if len(readers) == 1 else None
        if reader is None or reader.body is not None or is_nop(reader) or not nodes[reader.name].fx:
            continue
        if {op.target for op in leaf.ops} <= _COPY:
            names = nodes[reader.name].fx
            nodes[leaf.name] = Computed(names, (inferred("copy-for-call"),), flow=frozenset(names))


def buffer_origins(index: GraphIndex, fx: FxIndex, linked: FxLinks) -> dict[str, Origin]:
    """Return where each buffer and input came from, as far as it is known."""
    origins = {name: Origin(name, None, (read("graph-input"),)) for name in fx.inputs}
    for leaf in index.nodes.leaves:
        for name, origin in _node_origins(leaf, fx, linked):
            origins[name] = (
                origin if origin.node is None else replace(origin, source=index.source(origin.node))
            )
    return origins


def _node_origins(leaf: SchedulerNode, fx: FxIndex, linked: FxLinks) -> Iterator[tuple[str, Origin]]:
    computed = linked.nodes[leaf.name]
    for buffer in leaf.outputs:
        value = linked.values[buffer.name]
        shape = linked.shapes.get(buffer.name, Shape())
        proofs = () if value.proof is None else (value.proof,)
        if value.exact is not None:
            yield buffer.name, Origin(value.exact, None, proofs)
        elif len(leaf.outputs) == 1 and (last := _last(computed, value.nodes, fx, shape)):
            yield buffer.name, Origin(last, None, (inferred("last-fx-of-node", node=leaf.name),))
        elif value.nodes:
            yield buffer.name, Origin(None, None, proofs, value.nodes)
        elif origin := _computed_origin(computed, fx, shape):
            yield buffer.name, origin


def _last(computed: Computed, values: tuple[str, ...], fx: FxIndex, shape: Shape) -> str | None:
    """Return the FX node that the one buffer of a node holds, if nothing after it may be what it holds.

    All that a node computes leads to what it writes: of `sum_1` and `log(sum_1)` it writes the second.
    `values` are those that the buffer may hold, empty when unknown.
    """
    if values:
        return values[-1] if values[-1] in computed.fx else None
    last = computed.fx[-1] if len(computed.fx) > 1 else None
    if last not in fx.position or not shape.may_hold(fx.shape[last]):
        return None
    return None if any(last in fx.before(name, fx.position) for name in computed.candidates) else last


def _computed_origin(computed: Computed, fx: FxIndex, shape: Shape) -> Origin | None:
    """A buffer of unknown value came from what its node computes, if possible from what has its shape."""
    names = computed.fx or computed.candidates
    fitting = tuple(name for name in names if name in fx.nodes and shape.may_hold(fx.shape[name]))
    if len(computed.fx) == 1:
        return Origin(names[0], None, computed.proofs)
    if len(fitting) == 1 and computed.fx:
        return Origin(fitting[0], None, (*computed.proofs, inferred("only-of-shape")))
    if names:
        of_shape = (inferred("of-shape"),) if fitting else ()
        return Origin(None, None, (*computed.proofs, *of_shape), fitting or names)
    return None
