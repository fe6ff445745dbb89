"""The FX node whose value a buffer holds, and the user's line it came from."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_probe.analysis.graph import GraphIndex
from inductor_probe.analysis.linking.computed import Computed, FxLinks
from inductor_probe.analysis.linking.fx_index import FxIndex
from inductor_probe.analysis.linking.shapes import Shape, may_hold
from inductor_probe.analysis.linking.values import Value
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.layouts import Origin
from inductor_probe.model.proof import Proof, inferred, read

_UNKNOWN = Shape()


def buffer_origins(index: GraphIndex, fx: FxIndex, linked: FxLinks) -> dict[str, Origin]:
    """Return where each buffer and input came from, as far as it can be told."""
    origins = {name: Origin(name, None, (read("graph-input"),)) for name in fx.inputs}
    for leaf in index.nodes.leaves:
        origins.update(_written(leaf, fx, linked, index))
    return origins


def _written(
    leaf: SchedulerNode, fx: FxIndex, linked: FxLinks, index: GraphIndex
) -> Iterator[tuple[str, Origin]]:
    computed = linked.nodes[leaf.name]
    for buffer in leaf.outputs:
        value = linked.values[buffer.name]
        shape = linked.shapes.get(buffer.name, _UNKNOWN)
        if value.exact is not None:
            yield buffer.name, _of_node(value.exact, index, *_proofs(value))
        elif len(leaf.outputs) == 1 and (last := _last(computed, value.nodes, fx, shape)):
            yield buffer.name, _of_node(last, index, inferred("last-fx-of-node", node=leaf.name))
        elif value.nodes:
            yield buffer.name, Origin(None, None, _proofs(value), value.nodes)
        elif (found := _of_computed(computed, fx, index, shape)) is not None:
            yield buffer.name, found


def _proofs(value: Value) -> tuple[Proof, ...]:
    return () if value.proof is None else (value.proof,)


def _last(computed: Computed, values: tuple[str, ...], fx: FxIndex, shape: Shape) -> str | None:
    """Return the FX node that the one buffer of a node holds, if nothing after it may be what it holds.

    All that a node computes leads to what it writes: of `sum_1` and `log(sum_1)` it writes the second.
    `values` are those that the buffer may hold, empty when nothing tells.
    """
    if values:
        return values[-1] if values[-1] in computed.fx else None
    last = computed.fx[-1] if len(computed.fx) > 1 else None
    if last not in fx.place or not may_hold(shape, fx.shape[last]):
        return None
    return None if any(last in fx.before(name, fx.place) for name in computed.candidates) else last


def _of_computed(computed: Computed, fx: FxIndex, index: GraphIndex, shape: Shape) -> Origin | None:
    """A buffer whose value is not known came from what its node computes, if told from what has its shape."""
    names = computed.fx or computed.candidates
    fitting = tuple(name for name in names if name in fx.nodes and may_hold(shape, fx.shape[name]))
    if len(computed.fx) == 1:
        return _of_node(names[0], index, *computed.proofs)
    if len(fitting) == 1 and computed.fx:
        return _of_node(fitting[0], index, *computed.proofs, inferred("only-of-shape"))
    if names:
        of_shape = (inferred("of-shape"),) if fitting else ()
        return Origin(None, None, (*computed.proofs, *of_shape), fitting or names)
    return None


def _of_node(name: str, index: GraphIndex, *proofs: Proof) -> Origin:
    return Origin(name, index.source(name), proofs)
