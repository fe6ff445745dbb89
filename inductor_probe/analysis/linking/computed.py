"""Which FX nodes each node of the scheduler computes, and whose value each buffer holds.

Strongest first: what was recorded while compiling; torch's own provenance and the comments above kernels,
which tell the FX nodes of a kernel and so those of a node that has a kernel to itself; and the flow of data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inductor_probe.analysis.linking.fx_index import Cone, FxIndex
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.linking.kernel_nodes import KernelNodes
from inductor_probe.analysis.linking.proofs import RECORDED, proved_values
from inductor_probe.analysis.linking.runs import Run
from inductor_probe.analysis.linking.shapes import Shape, buffer_shapes
from inductor_probe.analysis.linking.units import is_nop
from inductor_probe.analysis.linking.values import Value, Values, Way
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.manifest import BufferOrigin

_ONLY = "the only FX node of its kernel"
_ALL = "all FX nodes of its kernel, which runs nothing else"
_SHARED = "FX nodes of its kernel, which runs other nodes too"
_BETWEEN = "on the way from what it reads to what it writes"
_POSSIBLE = "on the ways from what it reads to what it may write"
_WRITTEN = "its value is written; how much of the way there is done before could not be told"
_COPIED = "it copies what the node that computes this reads"


@dataclass(frozen=True, slots=True)
class Computed:
    """FX nodes of a node of the scheduler, or candidates; `how` proves them."""

    fx: tuple[str, ...] = ()
    how: str | None = None
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FxLinks:
    """What linking to an FX graph finds: by node, and by buffer. `shapes` are those of the buffers."""

    nodes: dict[str, Computed]
    values: dict[str, Value]
    shapes: dict[str, Shape]


def link_fx(
    graph: CompiledGraph, fx: FxIndex, runs: Mapping[str, Run], origins: Mapping[str, BufferOrigin]
) -> FxLinks:
    """Link the nodes of `graph` to FX nodes. `origins` are recorded ones, by buffer."""
    leaves = [leaf for top in graph.nodes for leaf in top.leaves()]
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
        recorded = [
            name for buffer in leaf.outputs if buffer.name in origins for name in origins[buffer.name].origins
        ]
        if recorded:
            nodes[leaf.name] = Computed(fx.sorted(dict.fromkeys(recorded)), RECORDED)
        elif within and len(within) == 1:
            nodes[leaf.name] = Computed(within, _ONLY)
        elif within and kernels.alone(run.step):
            nodes[leaf.name] = Computed(fx.sorted(within), _ALL)
        else:
            nodes[leaf.name] = _by_data(leaf, fx, values, way, within)
    _copies(leaves, nodes)
    return FxLinks(nodes, values.of, shapes)


def _by_data(
    leaf: SchedulerNode, fx: FxIndex, values: Values, way: Way, within: tuple[str, ...] | None
) -> Computed:
    ways = [_names(cone, leaf, fx, within) for cone in way.cones if cone.closed]
    if way.continues or is_nop(leaf) or not ways:  # only the last of the way is certainly its own
        exact = [values.of[buffer.name].exact for buffer in leaf.outputs]
        last = [name if name in (within or ()) else fx.whole(name) for name in exact if name is not None]
        if last and len(last) == len(exact) and not fx.roots.intersection(last):
            return Computed(fx.sorted(dict.fromkeys(last)), _WRITTEN)
    elif common := ways[0].intersection(*ways):
        return Computed(fx.sorted(common), _BETWEEN)
    if possible := set().union(*ways):
        return Computed((), _POSSIBLE, fx.sorted(possible))
    return Computed((), _SHARED, fx.sorted(within)) if within else Computed()


def _names(cone: Cone, leaf: SchedulerNode, fx: FxIndex, within: tuple[str, ...] | None) -> set[str]:
    """Return the FX nodes of a cone as torch names them: items of a result only where it does."""
    whole = {fx.whole(name) for name in cone.nodes}
    if within is not None:
        return whole.union(cone.nodes).intersection(within)
    if leaf.body is None:  # a library call is handed views, and does not compute them
        return {name for name in whole if fx.op[name] not in VIEWS}
    return whole


def _copies(leaves: list[SchedulerNode], nodes: dict[str, Computed]) -> None:
    """A node that copies for a library call, which wants another layout, belongs to the call's FX node."""
    by_name = {leaf.name: leaf for leaf in leaves}
    for leaf in leaves:
        if nodes[leaf.name].fx or leaf.body is None:
            continue
        readers = {user.node for buffer in leaf.outputs for user in buffer.users if not user.is_weak}
        reader = by_name.get(readers.pop()) if len(readers) == 1 else None
        if reader is None or reader.body is not None or is_nop(reader) or not nodes[reader.name].fx:
            continue
        called = {op.target for block in leaf.body.blocks for op in block.ops}
        if called <= {"ops.load", "ops.store", "self.get_index"}:
            nodes[leaf.name] = Computed(nodes[reader.name].fx, _COPIED)
