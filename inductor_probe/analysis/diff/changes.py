"""What changed of matched nodes and buffers: where bodies differ first and in what, and how buffers lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Literal

from msgspec.structs import replace

from inductor_probe.analysis.diff.matching import Matching
from inductor_probe.analysis.diff.normal_forms import BodyText, statement
from inductor_probe.analysis.diff.pairing import moved
from inductor_probe.analysis.diff.side import ComparedGraph
from inductor_probe.analysis.memory_format import memory_format
from inductor_probe.model.diff import BufferChange, Count, FactChange, NodeChange, Statement, Weight
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.proof import inferred, read

_MEMORY = {"new": "own", "copy": "own", "reuse": "reused", "view": "view", "alias": "view", "none": "inlined"}


def node_changes(matching: Matching) -> tuple[NodeChange, ...]:
    """Return the matched nodes that differ, in the order of A, then those without a partner."""
    a, b = matching.a, matching.b
    changed = [
        _node_change(matching, name, matching.nodes[name])
        for name in a.nodes
        if name in matching.nodes and a.work[name] != b.work[matching.nodes[name]]
    ]
    removed = [NodeChange(name, None, "removed") for name in a.unmatched()]
    added = [NodeChange(None, name, "added") for name in b.unmatched()]
    return (*changed, *removed, *added)


def _node_change(matching: Matching, name: str, other: str) -> NodeChange:
    a, b, proof = matching.a, matching.b, matching.proofs[name]
    text_a, text_b = a.texts.get(name), b.texts.get(other)
    if text_a is None or text_b is None:
        return NodeChange(name, other, "calls", proof, None, _call(a, name), _call(b, other))
    loops = None
    if text_a.loops != text_b.loops:
        loops = FactChange("loops", _trip_counts(a, name), _trip_counts(b, other), "major")
    kind: Literal["computes", "loops", "indexes"] = "loops" if loops else "indexes"
    statements = text_a.full, text_b.full
    operations: list[Count] = []
    if text_a.bare != text_b.bare:
        kind, statements = "computes", (text_a.bare, text_b.bare)
        counts = (
            (name, text_a.targets[name], text_b.targets[name]) for name in text_a.targets | text_b.targets
        )
        operations = [Count(*count) for count in counts if count[1] != count[2]]
    pairs = enumerate(zip_longest(*statements))
    first = next((number for number, (one, two) in pairs if one != two), len(statements[0]))
    first_a, first_b = _statement(a, name, text_a, first), _statement(b, other, text_b, first)
    return NodeChange(name, other, kind, proof, loops, first_a, first_b, tuple(operations))


def _statement(side: ComparedGraph, name: str, text: BodyText, number: int) -> Statement | None:
    body = side.nodes[name].body
    return statement(body, *text.ops[number]) if body is not None and number < len(text.ops) else None


def _call(side: ComparedGraph, name: str) -> Statement:
    node = side.nodes[name]
    return Statement(node.kernel or node.ir, node.span, generated=node.kernel is None)


def _trip_counts(side: ComparedGraph, name: str) -> str:
    body = side.nodes[name].body
    return _dims_text(tuple(dim for _, dim in body.var_ranges) if body else ())


_Positions = Mapping[int, tuple[str | None, BufferLayout | None]]


def input_changes(matching: Matching) -> tuple[BufferChange, ...]:
    """Return the inputs that differ, moved, came or went, in the order of A."""
    a, b = matching.a, matching.b
    place_b = {name: place for place, name in enumerate(b.inputs)}
    partners = {place: matching.buffers.get(name, "") for place, name in enumerate(a.inputs)}
    pairs = {place: place_b[other] for place, other in partners.items() if other in place_b}
    inputs_a, inputs_b = (
        {place: (name, side.layout(name)) for place, name in enumerate(side.inputs)} for side in (a, b)
    )
    return tuple(_changes(matching, "input", inputs_a, inputs_b, pairs))


def pair_outputs(matching: Matching) -> dict[int, int]:
    """Return the position in B of each value that A returns; their buffers become partners."""
    by_label = {label: place for place, label in matching.b.labels.items()}
    pairs = {place: by_label[label] for place, label in matching.a.labels.items() if label in by_label}
    for place, other in pairs.items():
        buffer, other_buffer = matching.a.returns[place][0], matching.b.returns[other][0]
        if buffer is not None and other_buffer is not None:
            matching.pair_buffers(buffer, other_buffer)
    return pairs


def output_changes(matching: Matching, pairs: dict[int, int]) -> tuple[BufferChange, ...]:
    """Return the outputs that differ, moved, came or went, in the order of A.

    `value`: A returns what B computes as the first buffer named, and B returns the second.
    """
    outputs_a, outputs_b = (
        {place: _output(side, place) for place in side.labels} for side in (matching.a, matching.b)
    )
    return tuple(_changes(matching, "output", outputs_a, outputs_b, pairs))


def _output(side: ComparedGraph, place: int) -> tuple[str | None, BufferLayout | None]:
    """Return a returned value's buffer, and how it lies: as a view where one is returned."""
    buffer, view = side.returns[place]
    layout = side.layout(buffer)
    if view is None:
        return buffer, layout
    return buffer, replace(view, device=layout.device, dtype=layout.dtype) if layout else view


def _changes(
    matching: Matching,
    role: Literal["input", "output"],
    a: _Positions,
    b: _Positions,
    pairs: dict[int, int],
) -> Iterator[BufferChange]:
    """Compare buffers by position, given the position in B of each that both have."""
    order = sorted(pairs)
    elsewhere = {order[index] for index in moved([pairs[place] for place in order])}
    for place, (name, layout_a) in a.items():
        other = pairs.get(place)
        if other is None:
            yield BufferChange(name, None, role, (), None, place, None, layout_a)
            continue
        name_b, layout_b = b[other]
        facts = _layout_facts(matching, layout_a, layout_b, "minor")
        partner = matching.buffers.get(name or "")
        if partner not in (None, name_b) and matching.proved(name or ""):
            facts.insert(0, FactChange("value", partner, name_b, "major"))
        if place in elsewhere:
            facts.append(FactChange("position", str(place), str(other)))
        proof = read("same-input") if role == "input" else read("same-return-position")
        if role == "output" and place != other:
            proof = inferred("same-fx-value")
        if facts:
            yield BufferChange(name, name_b, role, tuple(facts), proof, place, other, layout_a, layout_b)
    matched = set(pairs.values())
    for other, (name_b, layout_b) in b.items():
        if other not in matched:
            yield BufferChange(None, name_b, role, (), None, None, other, None, layout_b)


def buffer_changes(matching: Matching, pairs: dict[int, int]) -> tuple[BufferChange, ...]:
    """Return the buffers between inputs and outputs that lie differently, in the order of A.

    An output that is returned as it is was compared as an output.
    """
    a, b = matching.a, matching.b
    compared = {
        a.returns[place][0]
        for place, other in pairs.items()
        if a.returns[place][1] is None and b.returns[other][1] is None
    }
    changes = []
    for name, placed_a in a.placed.items():
        other = matching.buffers.get(name, "")
        placed_b = b.placed.get(other)
        if name in a.inputs or placed_b is None:
            continue
        planned = _layout_facts(matching, placed_a.layout, placed_b.layout, "cosmetic")
        facts = [] if name in compared else planned
        if not planned and placed_a.planned and placed_b.planned:
            allocated = _layout_facts(matching, placed_a.allocated, placed_b.allocated, "cosmetic")
            facts = [replace(fact, name=f"allocated {fact.name}") for fact in allocated]
        memory_a, memory_b = (_MEMORY.get(placed.memory or "") for placed in (placed_a, placed_b))
        if memory_a and memory_b and memory_a != memory_b:
            facts.append(FactChange("memory", memory_a, memory_b))
        if facts:
            proof = matching.proofs.get(a.producer.get(name, ""), read("same-return-position"))
            layouts = placed_a.layout, placed_b.layout
            changes.append(
                BufferChange(name, other, "intermediate", tuple(facts), proof, None, None, *layouts)
            )
    return tuple(changes)


def _layout_facts(
    matching: Matching, a: BufferLayout | None, b: BufferLayout | None, of_ones: Weight
) -> list[FactChange]:
    """Compare two layouts; strides of dimensions of size 1 weigh `of_ones`. The unknown counts as equal."""
    if a is None or b is None:
        return []
    facts: list[FactChange] = []
    symbols_a, symbols_b = matching.a.symbols, matching.b.symbols
    size_a, size_b = symbols_a.dims(a.size), symbols_b.dims(b.size)
    stride_a, stride_b = symbols_a.dims(a.stride), symbols_b.dims(b.stride)
    if a.dtype and b.dtype and a.dtype != b.dtype:
        facts.append(FactChange("dtype", a.dtype, b.dtype, "major"))
    if size_a is not None and size_b is not None and size_a != size_b:
        facts.append(FactChange("size", _dims_text(a.size), _dims_text(b.size), "major"))
    if stride_a is not None and stride_b is not None and stride_a != stride_b:
        steps_a, steps_b = (
            [step for length, step in zip(size_a or (), steps, strict=False) if length != "1"]
            for steps in (stride_a, stride_b)
        )
        weight: Weight = (
            of_ones if size_a is not None and size_a == size_b and steps_a == steps_b else "major"
        )
        formats = _format_text(a), _format_text(b)
        if formats[0] != formats[1] and "unknown" not in formats:
            facts.append(FactChange("format", *formats, weight))
        facts.append(FactChange("stride", _dims_text(a.stride), _dims_text(b.stride), weight))
    if symbols_a.dim(a.offset) != symbols_b.dim(b.offset):
        facts.append(FactChange("offset", str(a.offset), str(b.offset)))
    # A graph that moved to another device is reported once, not for each of its buffers.
    devices = (*matching.a.devices, *matching.b.devices)
    if a.device and b.device and a.device != b.device and len(devices) > 2:
        facts.append(FactChange("device", a.device, b.device, "major"))
    return facts


def _format_text(layout: BufferLayout) -> str:
    """`transposed [0, 2, 1, 3]`, `channels_last`: with the order where the name does not imply it."""
    named = memory_format(layout)
    is_told = named.dim_order and named.name in ("transposed", "padded", "other")
    return f"{named.name} {list(named.dim_order or ())}" if is_told else named.name


def _dims_text(dims: tuple[Dim, ...] | None) -> str:
    """`[4, 3, s77]`."""
    return f"[{', '.join(map(str, dims or ()))}]"
