"""How inputs, outputs and the buffers between them lie on both sides."""

from __future__ import annotations

from dataclasses import replace

from inductor_probe.analysis.diff.matching import Half, Matching
from inductor_probe.analysis.diff.order import moved
from inductor_probe.analysis.diff.side import ComparedGraph
from inductor_probe.analysis.memory_format import memory_format
from inductor_probe.model.diff import BufferChange, FactChange, Weight
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.proof import inferred, read

_MEMORY = {
    "new": "own",
    "copy": "own",
    "reuse": "reused",
    "view": "view",
    "alias": "view",
    "none": "inlined",
}
_TELLING_ORDER = ("transposed", "padded", "other")


def input_changes(found: Matching) -> tuple[BufferChange, ...]:
    """Return the inputs that differ, moved, came or went, in the order of A."""
    a, b = found.a.side, found.b.side
    order_a, order_b = _input_order(a), _input_order(b)
    elsewhere = _moved(found, order_a, order_b)
    changes = []
    for name, at in order_a.items():
        other = found.buffers.get(name)
        if other is None or other not in order_b:
            changes.append(BufferChange(name, None, "input", (), None, at, None, _layout(a, name)))
            continue
        facts = _layout_facts(found, _layout(a, name), _layout(b, other), "minor")
        if name in elsewhere:
            facts = (*facts, FactChange("position", str(at), str(order_b[other])))
        if facts:
            layouts = _layout(a, name), _layout(b, other)
            changes.append(
                BufferChange(name, other, "input", facts, read("same-input"), at, order_b[other], *layouts)
            )
    kept = {found.buffers.get(name) for name in order_a}
    for name, at in order_b.items():
        if name not in kept:
            changes.append(BufferChange(None, name, "input", (), None, None, at, None, _layout(b, name)))
    return tuple(changes)


def _input_order(side: ComparedGraph) -> dict[str, int]:
    names = side.graph.code.inputs if side.graph.code else ()
    if not names and side.graph.fx:
        names = tuple(node.name for node in side.graph.fx.inputs)
    return {name: at for at, name in enumerate(names)}


def _moved(found: Matching, order_a: dict[str, int], order_b: dict[str, int]) -> set[str]:
    """Return the inputs of A that stand elsewhere among those that both sides have."""
    both = [(name, other) for name in order_a if (other := found.buffers.get(name)) in order_b]
    elsewhere = moved([order_b[other] for _, other in both if other is not None])
    return {name for at, (name, _) in enumerate(both) if at in elsewhere}


def pair_outputs(found: Matching) -> dict[int, int]:
    """Return the position in B of each value that A returns; their buffers become partners."""
    by_label = {label: at for at, label in found.b.labels.items()}
    pairs = {at: by_label[label] for at, label in found.a.labels.items() if label in by_label}
    for at, other in pairs.items():
        mine, theirs = found.a.side.returns[at].buffer, found.b.side.returns[other].buffer
        if mine is not None and theirs is not None:
            found.pair_buffers(mine, theirs)
    return pairs


def output_changes(found: Matching, pairs: dict[int, int]) -> tuple[BufferChange, ...]:
    """Return the outputs that differ, moved, came or went, in the order of A.

    `value`: A returns what B computes as the first buffer named, and B returns the second.
    """
    a, b = found.a, found.b
    changes = []
    order = sorted(pairs)
    elsewhere = {order[rank] for rank in moved([pairs[at] for at in order])}
    for at in a.labels:
        other = pairs.get(at)
        name, layout = _output(a, at)
        if other is None:
            changes.append(BufferChange(name, None, "output", (), None, at, None, layout))
            continue
        theirs, layout_b = _output(b, other)
        facts = _layout_facts(found, layout, layout_b, "minor")
        partner = found.buffers.get(name or "")
        if partner not in (None, theirs) and found.proved(name or ""):
            facts = (FactChange("value", partner, theirs, "major"), *facts)
        if at in elsewhere:
            facts = (*facts, FactChange("position", str(at), str(other)))
        if facts:
            proof = read("same-return-position") if at == other else inferred("same-fx-value")
            changes.append(BufferChange(name, theirs, "output", facts, proof, at, other, layout, layout_b))
    kept = set(pairs.values())
    for other in b.labels:
        if other not in kept:
            theirs, layout_b = _output(b, other)
            changes.append(BufferChange(None, theirs, "output", (), None, None, other, None, layout_b))
    return tuple(changes)


def _output(half: Half, at: int) -> tuple[str | None, BufferLayout | None]:
    value = half.side.returns[at]
    layout = _layout(half.side, value.buffer or "")
    if value.view is None:
        return value.buffer, layout
    known = (layout.device, layout.dtype) if layout else (None, None)
    return value.buffer, replace(value.view, device=known[0], dtype=known[1])


def buffer_changes(found: Matching, pairs: dict[int, int]) -> tuple[BufferChange, ...]:
    """Return the buffers between inputs and outputs that lie differently, in the order of A.

    An output that is returned as it is was compared as an output.
    """
    a, b = found.a.side, found.b.side
    inputs = {*_input_order(a)}
    plain = {
        a.returns[at].buffer
        for at, other in pairs.items()
        if a.returns[at].view is None and b.returns[other].view is None
    }
    changes = []
    place = {name: at for at, name in enumerate(a.placed)}
    for mine, other in sorted(found.buffers.items(), key=lambda pair: place.get(pair[0], -1)):
        placed_a, placed_b = a.placed.get(mine), b.placed.get(other)
        if mine in inputs or placed_a is None or placed_b is None:
            continue
        planned = _layout_facts(found, placed_a.layout, placed_b.layout, "cosmetic")
        facts = () if mine in plain else planned
        if not planned and placed_a.planned and placed_b.planned:
            allocated = _layout_facts(found, placed_a.allocated, placed_b.allocated, "cosmetic")
            facts = tuple(replace(fact, name=f"allocated {fact.name}") for fact in allocated)
        memory = [_MEMORY.get(placed.memory or "") for placed in (placed_a, placed_b)]
        if None not in memory and memory[0] != memory[1]:
            facts = (*facts, FactChange("memory", memory[0], memory[1]))
        if facts:
            proof = found.proofs.get(a.producer.get(mine, ""), read("same-return-position"))
            changes.append(
                BufferChange(
                    mine, other, "intermediate", facts, proof, None, None, placed_a.layout, placed_b.layout
                )
            )
    return tuple(changes)


def _layout(side: ComparedGraph, name: str) -> BufferLayout | None:
    placed = side.placed.get(name)
    return placed.layout if placed else None


def format_words(layout: BufferLayout | None) -> str:
    """`transposed [0, 2, 1, 3]`, `channels_last`: the order is told where the name does not tell it."""
    found = memory_format(layout)
    order = f" {list(found.dim_order)}" if found.dim_order and found.name in _TELLING_ORDER else ""
    return f"{found.name}{order}"


def _layout_facts(
    found: Matching, a: BufferLayout | None, b: BufferLayout | None, of_ones: Weight
) -> tuple[FactChange, ...]:
    """Compare two layouts; strides of dimensions of size 1 weigh `of_ones`. The unknown is no change."""
    if a is None or b is None:
        return ()
    facts: list[FactChange] = []
    size_a, size_b = found.a.side.symbols.dims(a.size), found.b.side.symbols.dims(b.size)
    stride_a, stride_b = found.a.side.symbols.dims(a.stride), found.b.side.symbols.dims(b.stride)
    if a.dtype and b.dtype and a.dtype != b.dtype:
        facts.append(FactChange("dtype", a.dtype, b.dtype, "major"))
    if size_a is not None and size_b is not None and size_a != size_b:
        facts.append(FactChange("size", dims_words(a.size), dims_words(b.size), "major"))
    if stride_a is not None and stride_b is not None and stride_a != stride_b:
        same_size = size_a is not None and size_a == size_b
        real = [at for at, dim in enumerate(size_a or ()) if dim != "1"]
        steps_a, steps_b = ([steps[at] for at in real if at < len(steps)] for steps in (stride_a, stride_b))
        weight: Weight = of_ones if same_size and steps_a == steps_b else "major"
        formats = format_words(a), format_words(b)
        if formats[0] != formats[1] and "unknown" not in formats:
            facts.append(FactChange("format", *formats, weight))
        facts.append(FactChange("stride", dims_words(a.stride), dims_words(b.stride), weight))
    offset_a, offset_b = found.a.side.symbols.dim(a.offset), found.b.side.symbols.dim(b.offset)
    if offset_a != offset_b:
        facts.append(FactChange("offset", str(a.offset), str(b.offset)))
    # A graph that moved as a whole is said once, not for each of its buffers.
    if (
        a.device
        and b.device
        and a.device != b.device
        and len(found.a.side.devices) + len(found.b.side.devices) > 2
    ):
        facts.append(FactChange("device", a.device, b.device, "major"))
    return tuple(facts)


def dims_words(dims: tuple[Dim, ...] | None) -> str:
    """`[4, 3, s77]`."""
    return f"[{', '.join(str(dim) for dim in dims or ())}]"
