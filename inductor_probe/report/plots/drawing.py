"""A graph as a drawing: nodes and buffers in boxes, arrows between them, and below it what was chosen.

Choosing is a radio button for each box and CSS: it works in a rendered copy without a kernel or a script.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from inductor_probe.model.cause import Cause
from inductor_probe.model.decision import Decision
from inductor_probe.model.layouts import Access, LayoutRow
from inductor_probe.model.nodes import NodeBuffer, NodeRow
from inductor_probe.model.record import grouped
from inductor_probe.report.html import escaped
from inductor_probe.report.pages.layouts import FORMAT_STYLES
from inductor_probe.report.pages.nodes import buffer_text, does, ranges_text
from inductor_probe.report.pages.why import cause_sentence
from inductor_probe.report.plots.index_picture import small_picture
from inductor_probe.report.plots.placing import Placed, Point, place
from inductor_probe.report.units import bytes_text, counted
from inductor_probe.report.words.layouts import format_text, pattern_text
from inductor_probe.report.wrapping import shorten

MOST_UNITS = 60
"""Nodes after fusion that a drawing has at most: more cannot be taken in."""

_KERNELS = ("#3b82f6", "#e08c1a", "#3fa35b", "#a371f7", "#e5534b", "#1aa3a8", "#d4679f", "#8a8f29")
_NONE = "#888888"
_LETTER, _LINE = 7.3, 16
_NAME, _KERNEL_NAME = 30, 36


class Unit(Struct, frozen=True):
    """A node after fusion: its name, and the unfused nodes in it."""

    name: str
    rows: tuple[NodeRow, ...]

    @property
    def kernel(self) -> str | None:
        """What runs it, None where that is not known, or it needs none."""
        return next((row.link.kernel for row in self.rows if row.link.kernel), None)

    @property
    def nodes(self) -> frozenset[str]:
        """The names of its nodes."""
        return frozenset(row.node for row in self.rows)


class Read(Struct, frozen=True):
    """A unit reads a buffer; `slow` if a remark says that it does so non-contiguously."""

    buffer: str
    unit: str
    accesses: tuple[Access, ...]
    slow: bool = False


class Outline(Struct, frozen=True):
    """A graph, or the part of it around something.

    Attributes:
        buffers: those that more than their writer uses; what lives inside of one unit is not drawn.
        writes: unit and buffer.
    """

    units: tuple[Unit, ...]
    buffers: tuple[LayoutRow, ...]
    writes: tuple[tuple[str, str], ...]
    reads: tuple[Read, ...]


def outline_of(nodes: Sequence[NodeRow], buffers: Sequence[LayoutRow], around: str | None = None) -> Outline:
    """Return what is drawn of a graph.

    Args:
        nodes: its unfused nodes. buffers: all of its buffers.
        around: a node, a buffer, a kernel or the start of its name: only what has to do with it, and who
            is next to that. Nothing is drawn if the graph has none of that name.
    """
    groups = grouped(nodes, lambda row: row.top or row.node)
    units = tuple(Unit(name, tuple(rows)) for name, rows in groups.items())
    writer = {buffer.name: unit.name for unit in units for row in unit.rows for buffer in row.writes}
    shown = {row.buffer: row for row in buffers if _is_between(row, units, writer)}
    writes = tuple((unit, buffer) for buffer, unit in writer.items() if buffer in shown)
    reads = tuple(
        Read(
            name,
            unit.name,
            tuple(access for access in shown[name].reads if access.node in unit.nodes),
            not shown[name].noncontiguous_readers.isdisjoint(unit.nodes),
        )
        for unit in units
        for name in dict.fromkeys(name for row in unit.rows for name in row.reads)
        if name in shown and writer.get(name) != unit.name
    )
    outline = Outline(units, tuple(shown.values()), writes, reads)
    return outline if around is None else _part(outline, around)


def _is_between(row: LayoutRow, units: Sequence[Unit], writer: dict[str, str]) -> bool:
    producer = writer.get(row.buffer)
    if row.role == "output" and producer is not None:
        return True
    return any(row.buffer in node.reads for unit in units if unit.name != producer for node in unit.rows)


def _part(outline: Outline, name: str) -> Outline:
    """Of a buffer: who writes and reads it, and all they touch. Of a node: its buffers, and who has them."""
    named = {unit.name for unit in outline.units if _is_meant(unit, name)}
    of_buffer = {unit for unit, buffer in outline.writes if buffer == name}
    of_buffer |= {read.unit for read in outline.reads if read.buffer == name}
    core = of_buffer or named
    touched = {buffer for unit, buffer in outline.writes if unit in core}
    touched |= {read.buffer for read in outline.reads if read.unit in core}
    near = {unit for unit, buffer in outline.writes if buffer in touched}
    near |= {read.unit for read in outline.reads if read.buffer in touched}
    names = core if of_buffer else near | core
    return Outline(
        tuple(unit for unit in outline.units if unit.name in names),
        tuple(row for row in outline.buffers if row.buffer in touched),
        tuple((unit, buffer) for unit, buffer in outline.writes if unit in names and buffer in touched),
        tuple(read for read in outline.reads if read.unit in names and read.buffer in touched),
    )


def _is_meant(unit: Unit, name: str) -> bool:
    written = (buffer.name for row in unit.rows for buffer in row.writes)  # inside of it, maybe
    return name in (unit.name, *unit.nodes, *written) or bool(unit.kernel and unit.kernel.startswith(name))


def missed_of(outline: Outline, causes: Sequence[Cause]) -> dict[str, tuple[str, ...]]:
    """Return what the compiler missed, in sentences, by what is drawn: `node op1`, `buffer buf1`.

    That two nodes were not fused stands at the arrow between them: `read buf1 op3`.
    """
    sentences: dict[str, list[str]] = {}
    for cause in causes:
        if cause.kind == "missed" and cause.decision is not None:
            for what in _drawn(outline, cause.decision):
                sentences.setdefault(what, []).append(cause_sentence(cause))
    return {what: tuple(texts) for what, texts in sentences.items()}


def _drawn(outline: Outline, decision: Decision) -> Iterator[str]:
    """Yield what in a drawing a decision is about."""
    if decision.subject_type == "buffer":
        yield from (f"buffer {name}" for group in decision.subjects for name in group)
        return
    sides = [
        [unit.name for unit in outline.units if not unit.nodes.isdisjoint(group)]
        for group in decision.subjects
    ]
    if len(sides) == 1:
        yield from (f"node {name}" for name in sides[0])
    elif len(sides) == 2:
        written = {buffer for unit, buffer in outline.writes if unit in sides[0]}
        reads = ((read.buffer, read.unit) for read in outline.reads)
        yield from (f"read {name} {unit}" for name, unit in reads if name in written and unit in sides[1])


def drawing_html(
    outline: Outline, panels: Mapping[str, str], missed: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return a drawing with what there is to say about each of its boxes.

    Args:
        outline: what to draw. missed: see `missed_of`.
        panels: HTML by what is chosen: `node op0`, `buffer buf0`, `kernel cpp_fused_0`. What has none cannot
            be chosen.
    """
    group = f"ip{secrets.token_hex(4)}"  # a page may show one graph twice
    ids = {what: f"{group}-{number}" for number, what in enumerate(panels)}
    style = "".join(
        f'.ip:has(#{id_}:checked) [for="{id_}"]{{outline:2px solid var(--ip-blue)}}' for id_ in ids.values()
    )
    first = _first(outline, ids)
    missed = missed or {}
    parts = (_legend(outline, ids, missed), _map(outline, ids, missed), *_panels(panels, ids, group, first))
    return f"<style>{style}</style>{''.join(parts)}"


def too_many(outline: Outline) -> str:
    """Say why there is no drawing, and how to get one."""
    return (
        f"{counted(len(outline.units), 'node')} after fusion, too many for a drawing: "
        'graph.draw("buf3") draws what is around a buffer, a node or a kernel'
    )


def _first(outline: Outline, ids: Mapping[str, str]) -> str | None:
    """What is chosen at first: a node that reads non-contiguously, or the first that computes anything."""
    slow = [f"node {read.unit}" for read in outline.reads if read.slow]
    return next((what for what in (*slow, *ids) if what in ids), None)


def _legend(outline: Outline, ids: Mapping[str, str], missed: Mapping[str, Sequence[str]]) -> str:
    colours = _colours(outline)
    items = "".join(
        f"<label{_for(ids, f'kernel {name}')}{_style(colour)}><i></i>{escaped(name)}</label>"
        for name, colour in colours.items()
    )
    hint = "choose a node, a buffer or a kernel to read about it below" if ids else ""
    slow = "red arrow: a non-contiguous read" if any(read.slow for read in outline.reads) else ""
    marks = "!: a missed optimisation, which its title says" if missed else ""
    notes = "".join(f'<span class="ip-dim">{text}</span>' for text in (slow, marks, hint) if text)
    return f'<div class="ip-legend">{items}{notes}</div>'


def _colours(outline: Outline) -> dict[str, str]:
    names = dict.fromkeys(unit.kernel for unit in outline.units if unit.kernel)
    return {name: _KERNELS[number % len(_KERNELS)] for number, name in enumerate(names)}


def _map(outline: Outline, ids: Mapping[str, str], missed: Mapping[str, Sequence[str]]) -> str:
    boxes = {f"node {unit.name}": _unit_size(unit) for unit in outline.units}
    boxes |= {f"buffer {row.buffer}": _buffer_size(row) for row in outline.buffers}
    reads = {(f"buffer {read.buffer}", f"node {read.unit}"): read for read in outline.reads}
    writes = [(f"node {unit}", f"buffer {buffer}") for unit, buffer in outline.writes]
    placed = place(boxes, [*writes, *reads])
    colours = _colours(outline)
    parts = [_wires(placed, reads, missed)]
    for unit in outline.units:
        what = f"node {unit.name}"
        colour = colours.get(unit.kernel or "", _NONE)
        parts += _unit(unit, placed.corners[what], ids, colour, missed.get(what, ()))
    for row in outline.buffers:
        what = f"buffer {row.buffer}"
        parts.append(_buffer(row, placed.corners[what], ids, missed.get(what, ())))
    size = f"width:{placed.width:.0f}px;height:{placed.height:.0f}px"
    return f'<div class="ip-scroll"><div class="ip-map" style="{size}">{"".join(parts)}</div></div>'


def _unit_lines(unit: Unit) -> tuple[str, str, str]:
    """Return the name, what it does, and over which loops."""
    names = [row.node for row in unit.rows]
    name = names[0] if len(names) == 1 else f"{names[0]} + {names[1]}"
    name += f" + {len(names) - 2} more" if len(names) > 2 else ""
    last = unit.rows[-1]
    kinds = list(dict.fromkeys(does(row) for row in unit.rows))
    loops = [ranges_text(row.ranges) for row in unit.rows if row.ranges]
    mutated = [f"mutates {name}" for row in unit.rows for name in row.mutates]
    text = ", ".join([*kinds[:2], *mutated[:1]])
    return name, text, f"loops {loops[-1]}" if loops else last.ir


def _unit_size(unit: Unit) -> tuple[float, float]:
    name, text, loops = _unit_lines(unit)
    kernel = shorten(unit.kernel or "no kernel", _KERNEL_NAME)
    letters = max(len(name) + 4 + len(text), len(loops), len(kernel))  # with a sign before the name
    return letters * _LETTER + 26, 3 * _LINE + 8


def _unit(
    unit: Unit, corner: Point, ids: Mapping[str, str], colour: str, missed: Sequence[str]
) -> Iterator[str]:
    name, text, loops = _unit_lines(unit)
    width, height = _unit_size(unit)
    kernel = shorten(unit.kernel or "no kernel", _KERNEL_NAME)
    box = _style(colour, corner, (width, height))
    below = _style(colour, (corner[0] + 14, corner[1] + 2 * _LINE + 3), (width - 18, _LINE))
    yield (
        f'<label class="ip-node"{_for(ids, f"node {unit.name}")}{box} title="{_title(unit.name, missed)}">'
        f"{_sign(missed)}<b>{escaped(name)}</b>  {escaped(text)}<br>{escaped(loops)}</label>"
    )
    yield (
        f'<label class="ip-kernel"{_for(ids, f"kernel {unit.kernel}")}{below} '
        f'title="{escaped(unit.kernel or "")}">{escaped(kernel)}</label>'
    )


def _buffer_lines(row: LayoutRow) -> tuple[str, str]:
    name = buffer_text(NodeBuffer(row.buffer, row.layout))
    return shorten(name, 2 * _NAME), shorten(bytes_text(row.size_bytes), _NAME)


def _buffer_size(row: LayoutRow) -> tuple[float, float]:
    first, size = _buffer_lines(row)
    second = len(row.memory_format) + 4 + len(size) + (18 if small_picture(row) else 0)
    return max(len(first) + 2, second) * _LETTER + 30, 2 * _LINE + 10


def _title(text: str, missed: Sequence[str]) -> str:
    return escaped("\n".join((text, *(f"! {sentence}" for sentence in missed))))


def _sign(missed: Sequence[str]) -> str:
    return '<b class="ip-red">!</b> ' if missed else ""


def _buffer(row: LayoutRow, corner: Point, ids: Mapping[str, str], missed: Sequence[str]) -> str:
    first, size = _buffer_lines(row)
    name, _, rest = first.partition(" ")
    ends = " ip-ends" if row.role != "intermediate" else ""
    marked = " ip-marked" if row.remarks else ""
    title = _title(f"{row.role} {row.buffer}, {format_text(row, always=True)}", missed)
    box = _style(_NONE, corner, _buffer_size(row))
    return (
        f'<label class="ip-buffer{ends}{marked}"{_for(ids, f"buffer {row.buffer}")}{box} title="{title}">'
        f"{_sign(missed)}<b>{escaped(name)}</b> {escaped(rest)}<br>{_format_chip(row)} "
        f'<span class="ip-dim">{escaped(size)}</span> {small_picture(row)}</label>'
    )


def _format_chip(row: LayoutRow) -> str:
    """Return the memory format as a small label."""
    colour = FORMAT_STYLES.get(row.memory_format, "")
    return f'<span class="ip-chip{f" ip-{colour}" if colour else ""}">{escaped(row.memory_format)}</span>'


def _wires(placed: Placed, reads: Mapping[tuple[str, str], Read], missed: Mapping[str, Sequence[str]]) -> str:
    parts = []
    for arrow, points in placed.routes.items():
        read = reads.get(arrow)
        slow = " ip-slow" if read and read.slow else ""
        text = (
            ", ".join(dict.fromkeys(pattern_text(access.pattern) for access in read.accesses))
            if read
            else "writes"
        )
        apart = missed.get(f"read {read.buffer} {read.unit}", ()) if read else ()
        x, y = points[-1]
        tip = f'<path class="ip-tip{slow}" d="M{x - 4:.1f} {y - 7:.1f}h8l-4 7z"></path>'
        parts.append(
            f'<path class="ip-wire{slow}" d="{_curve(points)}">'
            f"<title>{_title(text, apart)}</title></path>{tip}"
        )
    size = (
        f"width:{placed.width:.0f}px;height:{placed.height:.0f}px"  # as a style: JupyterLab has one for svg
    )
    return f'<svg style="{size}">{"".join(parts)}</svg>'


def _curve(points: Sequence[Point]) -> str:
    """Return a path that leaves and enters each point downwards."""
    (x, y), *others = points
    path = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in others:
        middle = (y + to_y) / 2
        path += f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return path


def _panels(
    panels: Mapping[str, str], ids: Mapping[str, str], group: str, first: str | None
) -> Iterator[str]:
    for what, inside in panels.items():
        chosen = " checked" if what == first else ""
        yield f'<input type="radio" class="ip-pick" name="{group}" id="{ids[what]}"{chosen}>'
        yield f'<div class="ip-panel">{inside}</div>'


def _for(ids: Mapping[str, str], what: str) -> str:
    return f' for="{ids[what]}"' if what in ids else ""


def _style(colour: str, corner: Point | None = None, size: Point | None = None) -> str:
    rules = f"--ip-of:{colour}"
    if corner and size:
        rules += f";left:{corner[0]:.0f}px;top:{corner[1]:.0f}px;width:{size[0]:.0f}px;height:{size[1]:.0f}px"
    return f' style="{rules}"'
