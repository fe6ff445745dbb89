"""A graph as a drawing: nodes and buffers in boxes, arrows between them, and below it what was chosen.

Choosing is a radio button for each box and CSS: it works in a rendered copy without a kernel or a script.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence

from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.nodes import NodeBuffer
from inductor_probe.notebook.index_picture import small_picture
from inductor_probe.notebook.layouts import format_chip
from inductor_probe.notebook.outline import Outline, Read, Unit
from inductor_probe.notebook.page import escaped, page
from inductor_probe.notebook.placing import Placed, Point, place
from inductor_probe.report.nodes import buffer_text, does, ranges_text
from inductor_probe.report.units import bytes_text, counted, shorten
from inductor_probe.report.words.layouts import format_text, pattern_text

MOST_UNITS = 60
"""Nodes after fusion that a drawing has at most: more cannot be taken in."""

_KERNELS = ("#3b82f6", "#e08c1a", "#3fa35b", "#a371f7", "#e5534b", "#1aa3a8", "#d4679f", "#8a8f29")
_NONE = "#888888"
_LETTER, _LINE = 7.3, 16
_NAME, _KERNEL_NAME = 30, 36


def drawing_html(outline: Outline, panels: Mapping[str, str]) -> str:
    """Return a drawing with what there is to say about each of its boxes.

    Args:
        outline: what to draw.
        panels: HTML by what is chosen: `node op0`, `buffer buf0`, `kernel cpp_fused_0`. What has none cannot
            be chosen.
    """
    if len(outline.units) > MOST_UNITS:
        return page(f'<div class="ip-dim">{escaped(too_many(outline))}</div>')
    own = f"ip{secrets.token_hex(4)}"  # a page may show one graph twice
    ids = {what: f"{own}-{at}" for at, what in enumerate(panels)}
    style = "".join(
        f'.ip:has(#{id_}:checked) [for="{id_}"]{{outline:2px solid var(--ip-blue)}}' for id_ in ids.values()
    )
    first = _first(outline, ids)
    return page(
        _legend(outline, ids),
        _map(outline, ids),
        *_panels(panels, ids, own, first),
        style=style,
    )


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


def _legend(outline: Outline, ids: Mapping[str, str]) -> str:
    colours = _colours(outline)
    items = "".join(
        f"<label{_for(ids, f'kernel {name}')}{_style(colour)}><i></i>{escaped(name)}</label>"
        for name, colour in colours.items()
    )
    hint = "choose a node, a buffer or a kernel to read about it below" if ids else ""
    slow = "red arrow: a non-contiguous read" if any(read.slow for read in outline.reads) else ""
    notes = "".join(f'<span class="ip-dim">{text}</span>' for text in (slow, hint) if text)
    return f'<div class="ip-legend">{items}{notes}</div>'


def _colours(outline: Outline) -> dict[str, str]:
    names = dict.fromkeys(unit.kernel for unit in outline.units if unit.kernel)
    return {name: _KERNELS[at % len(_KERNELS)] for at, name in enumerate(names)}


def _map(outline: Outline, ids: Mapping[str, str]) -> str:
    boxes = {f"node {unit.name}": _unit_size(unit) for unit in outline.units}
    boxes |= {f"buffer {row.buffer}": _buffer_size(row) for row in outline.buffers}
    reads = {(f"buffer {read.buffer}", f"node {read.unit}"): read for read in outline.reads}
    writes = [(f"node {unit}", f"buffer {buffer}") for unit, buffer in outline.writes]
    placed = place(boxes, [*writes, *reads])
    colours = _colours(outline)
    parts = [_wires(placed, reads)]
    for unit in outline.units:
        parts += _unit(unit, placed.corners[f"node {unit.name}"], ids, colours.get(unit.kernel or "", _NONE))
    parts += [_buffer(row, placed.corners[f"buffer {row.buffer}"], ids) for row in outline.buffers]
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
    said = ", ".join([*kinds[:2], *mutated[:1]])
    return name, said, f"loops {loops[-1]}" if loops else last.ir


def _unit_size(unit: Unit) -> tuple[float, float]:
    name, said, loops = _unit_lines(unit)
    kernel = shorten(unit.kernel or "no kernel", _KERNEL_NAME)
    letters = max(len(name) + 2 + len(said), len(loops), len(kernel))
    return letters * _LETTER + 26, 3 * _LINE + 8


def _unit(unit: Unit, corner: Point, ids: Mapping[str, str], colour: str) -> Iterator[str]:
    name, said, loops = _unit_lines(unit)
    width, height = _unit_size(unit)
    kernel = shorten(unit.kernel or "no kernel", _KERNEL_NAME)
    box = _style(colour, corner, (width, height))
    below = _style(colour, (corner[0] + 14, corner[1] + 2 * _LINE + 3), (width - 18, _LINE))
    yield (
        f'<label class="ip-node"{_for(ids, f"node {unit.name}")}{box} title="{escaped(unit.name)}">'
        f"<b>{escaped(name)}</b>  {escaped(said)}<br>{escaped(loops)}</label>"
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
    return max(len(first), second) * _LETTER + 30, 2 * _LINE + 10


def _buffer(row: LayoutRow, corner: Point, ids: Mapping[str, str]) -> str:
    first, size = _buffer_lines(row)
    name, _, rest = first.partition(" ")
    ends = " ip-ends" if row.role != "intermediate" else ""
    marked = " ip-marked" if row.remarks else ""
    title = escaped(f"{row.role} {row.buffer}, {format_text(row, always=True)}")
    box = _style(_NONE, corner, _buffer_size(row))
    return (
        f'<label class="ip-buffer{ends}{marked}"{_for(ids, f"buffer {row.buffer}")}{box} title="{title}">'
        f"<b>{escaped(name)}</b> {escaped(rest)}<br>{format_chip(row)} "
        f'<span class="ip-dim">{escaped(size)}</span> {small_picture(row)}</label>'
    )


def _wires(placed: Placed, reads: Mapping[tuple[str, str], Read]) -> str:
    parts = []
    for arrow, points in placed.routes.items():
        read = reads.get(arrow)
        slow = " ip-slow" if read and read.slow else ""
        said = (
            ", ".join(dict.fromkeys(pattern_text(access.pattern) for access in read.accesses))
            if read
            else "writes"
        )
        x, y = points[-1]
        tip = f'<path class="ip-tip{slow}" d="M{x - 4:.1f} {y - 7:.1f}h8l-4 7z"></path>'
        parts.append(
            f'<path class="ip-wire{slow}" d="{_curve(points)}"><title>{escaped(said)}</title></path>{tip}'
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


def _panels(panels: Mapping[str, str], ids: Mapping[str, str], own: str, first: str | None) -> Iterator[str]:
    for what, inside in panels.items():
        chosen = " checked" if what == first else ""
        yield f'<input type="radio" class="ip-pick" name="{own}" id="{ids[what]}"{chosen}>'
        yield f'<div class="ip-panel">{inside}</div>'


def _for(ids: Mapping[str, str], what: str) -> str:
    return f' for="{ids[what]}"' if what in ids else ""


def _style(colour: str, corner: Point | None = None, size: Point | None = None) -> str:
    rules = f"--ip-of:{colour}"
    if corner and size:
        rules += f";left:{corner[0]:.0f}px;top:{corner[1]:.0f}px;width:{size[0]:.0f}px;height:{size[1]:.0f}px"
    return f' style="{rules}"'
