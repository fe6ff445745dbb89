"""A graph as a drawing: nodes and buffers in boxes, arrows between them, and below it what was chosen.

It is one SVG, the same in a notebook and on the page of `probe report`. In a notebook choosing is a radio
button for each box and CSS: it works in a rendered copy without a kernel or a script; on the page a script
does it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.nodes import NodeBuffer, NodeRow
from inductor_probe.report.html import escaped
from inductor_probe.report.pages.layouts import FORMAT_STYLES
from inductor_probe.report.pages.nodes import buffer_text, does, ranges_text
from inductor_probe.report.plots.outline import Outline, Read, Unit, costly_path, known_bytes
from inductor_probe.report.plots.placing import Placed, Point, place
from inductor_probe.report.units import bytes_text, counted
from inductor_probe.report.words.layouts import format_text, pattern_text
from inductor_probe.report.wrapping import shorten

_COLOURS = 8
_LETTER, _LINE = 7.3, 16
_NAME, _KERNEL_NAME = 30, 36
_MOST_MEMBERS, _MOST_BESIDE, _MOST_MISSED = 4, 3, 8
_LEAST_SHARE = 0.001


def drawing_html(
    outline: Outline, panels: Mapping[str, str], missed: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return a drawing with what there is to say about each of its boxes, for a notebook.

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
    hint = "choose a node, a buffer or a kernel to read about it below" if ids else ""
    legend = legend_html(outline, missed or {}, ids, hint)
    svg = f'<div class="ip-scroll">{drawing_svg(outline, missed or {}, ids)}</div>'
    return f"<style>{style}</style>{legend}{svg}{''.join(_panels(panels, ids, group, first))}"


def _first(outline: Outline, ids: Mapping[str, str]) -> str | None:
    """What is chosen at first: a node that reads non-contiguously, or the first that computes anything."""
    slow = [f"node {read.unit}" for read in outline.reads if read.slow]
    return next((what for what in (*slow, *ids) if what in ids), None)


def legend_html(
    outline: Outline,
    missed: Mapping[str, Sequence[str]],
    ids: Mapping[str, str] | None = None,
    hint: str = "",
) -> str:
    """Return what the marks of a drawing mean, and with `ids` its kernels to choose."""
    colours = _colours(outline) if ids else {}
    items = "".join(
        f'<label{_for(ids or {}, f"kernel {name}")} class="{colour}"><i></i>{escaped(name)}</label>'
        for name, colour in colours.items()
    )
    what = "time" if outline.timed else "bytes"
    marks = {
        "red arrow: a non-contiguous read": any(read.slow for read in outline.reads),
        "red frame: a buffer with remarks, which choosing it shows": any(
            row.remarks for row in outline.buffers
        ),
        "!: a missed optimisation, which its title says": bool(missed),
        f"thick frame: on the path that takes most {what}": bool(costly_path(outline)),
        f"bar: share of the {'time' if outline.timed else 'bytes of all nodes'}": any(
            unit.cost for unit in outline.units
        ),
        "beside a node: inputs that it alone reads, outputs (→) that only it has": any(
            unit.beside for unit in outline.units
        ),
        "dashed: several nodes, folded": any(len(unit.parts) > 1 for unit in outline.units),
        "colour on the left: the kernel": not ids and len({unit.kernel for unit in outline.units}) > 1,
        hint: bool(hint),
    }
    notes = "".join(f'<span class="ip-dim">{text}</span>' for text, is_there in marks.items() if is_there)
    return f'<div class="ip-legend">{items}{notes}</div>'


def _colours(outline: Outline) -> dict[str, str]:
    """Return the class of each kernel, which has its colour."""
    names = dict.fromkeys(unit.kernel for unit in outline.units if unit.kernel)
    return {name: f"ip-k{number % _COLOURS}" for number, name in enumerate(names)}


def drawing_svg(
    outline: Outline, missed: Mapping[str, Sequence[str]], ids: Mapping[str, str] | None = None
) -> str:
    """Return an outline as SVG; boxes have names as `data-name`, and with `ids` a label to choose them."""
    ids = ids or {}
    pictures = {f"node {unit.name}": _Box(_unit_lines(unit), unit.beside) for unit in outline.units}
    pictures |= {f"buffer {row.buffer}": _Box(_buffer_lines(row)) for row in outline.buffers}
    reads = {(f"buffer {read.buffer}", f"node {read.unit}"): read for read in outline.reads}
    writes = [(f"node {unit}", f"buffer {buffer}") for unit, buffer in outline.writes]
    inner = {what: box.own for what, box in pictures.items()}
    placed = place({what: box.size for what, box in pictures.items()}, [*writes, *reads], inner)
    path = costly_path(outline)
    rows = {f"buffer {row.buffer}": row for row in outline.buffers}
    total = sum(unit.cost for unit in outline.units) or 1.0
    colours = _colours(outline)
    parts = [*_wires(placed, rows, reads, missed, path)]
    for unit in outline.units:
        what = f"node {unit.name}"
        colour = colours.get(unit.kernel or "", "")
        classes = [
            "ip-node",
            colour,
            "ip-path" if unit.name in path else "",
            "ip-fold" if len(unit.parts) > 1 else "",
        ]
        title = _title(unit.name, missed.get(what, ()))
        inside = pictures[what].svg(bool(missed.get(what)), unit.cost / total)
        inside += pictures[what].label(_for(ids, what))
        if unit.kernel:
            inside += pictures[what].label(_for(ids, f"kernel {unit.kernel}"), last=True)
        folded = sorted(unit.nodes) if len(unit.parts) > 1 else ()
        names = " ".join(filter(None, classes))
        parts.append(_group(names, unit.name, placed.corners[what], title, inside, nodes=folded))
    for what, row in rows.items():
        ends = " ip-ends" if row.role != "intermediate" else ""
        marked = " ip-marked" if row.remarks else ""
        about = f"{row.role} {row.buffer}, {format_text(row, always=True)}"
        title = _title(about, missed.get(what, ()))
        inside = pictures[what].svg(bool(missed.get(what)), round_=13) + pictures[what].label(_for(ids, what))
        on_path = " ip-path" if row.buffer in path else ""
        parts.append(
            _group(f"ip-buffer{ends}{marked}{on_path}", row.buffer, placed.corners[what], title, inside)
        )
    size = f'width="{placed.width:.0f}" height="{placed.height:.0f}"'
    box = f'viewBox="0 0 {placed.width:.0f} {placed.height:.0f}"'
    return f'<svg class="ip-map" {size} {box}>{"".join(parts)}</svg>'


def _title(about: str, missed: Sequence[str]) -> str:
    """Return what is read where one points: of folded nodes thousands of optimisations may be missed."""
    more = [f"and {len(missed) - _MOST_MISSED} more"] if len(missed) > _MOST_MISSED else []
    return "\n".join((about, *(f"! {sentence}" for sentence in missed[:_MOST_MISSED]), *more))


def _group(
    classes: str, name: str, corner: Point, title: str, inside: str, *, nodes: Sequence[str] = ()
) -> str:
    """Return a box with its name, and with the nodes that are folded in it."""
    names = f'data-name="{escaped(name)}"' + (f' data-nodes="{escaped(" ".join(nodes))}"' if nodes else "")
    at = f'transform="translate({corner[0]:.0f} {corner[1]:.0f})"'
    return f'<g class="{classes}" {names} {at}><title>{escaped(title)}</title>{inside}</g>'


_Line = tuple[tuple[str, str], ...]
"""Texts of a line in a box, each with its class."""


class _Box(Struct, frozen=True):
    """What stands in a box, and the inputs beside it."""

    lines: tuple[_Line, ...]
    beside: tuple[LayoutRow, ...] = ()

    @property
    def own(self) -> tuple[float, float]:
        """Width and height of the box alone."""
        letters = [sum(len(text) for text, _ in line) + len(line) - 1 for line in self.lines]
        letters[0] += 9 if len(self.lines) > 2 else 2  # a sign, and the share of a node
        return max(letters) * _LETTER + 26, len(self.lines) * _LINE + 10

    @property
    def size(self) -> tuple[float, float]:
        """Width and height with what is beside it."""
        width, height = self.own
        texts = self._beside()
        if not texts:
            return width, height
        return width + 14 + max(len(text) for text, _ in texts) * _LETTER * 0.92, max(
            height, len(texts) * _LINE + 4
        )

    def _beside(self) -> list[tuple[str, str]]:
        """`arg1_1 f32[64, 64] 16 KiB`, at most three inputs and three outputs (`→`), each with its name."""
        texts: list[tuple[str, str]] = []
        for sign, is_output in (("", False), ("→ ", True)):
            rows = [row for row in self.beside if (row.role == "output") == is_output]
            shown = rows if len(rows) <= _MOST_BESIDE else rows[: _MOST_BESIDE - 1]
            for row in shown:
                text = f"{sign}{shorten(_layout(row), 2 * _NAME)} {bytes_text(row.size_bytes)}"
                texts.append((text, row.buffer))
            if rest := rows[len(shown) :]:
                texts.append((f"{sign}and {len(rest)} more, {bytes_text(sum(map(known_bytes, rest)))}", ""))
        return texts

    def svg(self, marked: bool, share: float = 0.0, round_: int = 5) -> str:
        """Return its shapes and texts; `share` of the cost of a graph is a bar at its lower edge."""
        width, height = self.own
        parts = [f'<rect class="ip-box" width="{width:.0f}" height="{height:.0f}" rx="{round_}"></rect>']
        if round_ < _LINE / 2:
            parts.append(f'<rect class="ip-of" width="5" height="{height:.0f}" rx="2"></rect>')
        for number, line in enumerate(self.lines):
            sign = '<tspan class="ip-red ip-bold">! </tspan>' if marked and not number else ""
            spans = " ".join(
                f'<tspan class="{classes}">{escaped(text)}</tspan>' if classes else escaped(text)
                for text, classes in line
            )
            parts.append(f'<text x="13" y="{number * _LINE + 17}">{sign}{spans}</text>')
        if share >= _LEAST_SHARE:
            text = f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"
            parts.append(f'<text class="ip-share" x="{width - 8:.0f}" y="17" text-anchor="end">{text}</text>')
            wide = max((width - 12) * share, 1)
            parts.append(
                f'<rect class="ip-cost" x="7" y="{height - 4:.0f}" width="{wide:.1f}" height="2.5"></rect>'
            )
        for number, (text, name) in enumerate(self._beside()):
            named = f' data-name="{escaped(name)}"' if name else ""
            y = number * _LINE + 15
            parts.append(f'<path class="ip-tie" d="M{width + 9:.0f} {y - 4}h-9"></path>')
            parts.append(
                f'<text class="ip-beside"{named} x="{width + 12:.0f}" y="{y}">{escaped(text)}</text>'
            )
        return "".join(parts)

    def label(self, target: str, *, last: bool = False) -> str:
        """Return what a click of the box, or of its last line, chooses in a notebook."""
        if not target:
            return ""
        width, height = self.own
        y, height = (height - _LINE - 6, _LINE) if last else (0.0, height)
        size = f'y="{y:.0f}" width="{width:.0f}" height="{height:.0f}"'
        return f'<foreignObject x="0" {size}><label{target}></label></foreignObject>'


def _unit_lines(unit: Unit) -> tuple[_Line, ...]:
    """Return the name and what it does; the nodes in it where it is fused; loops; and the kernel."""
    if len(unit.parts) > 1:
        return _fold_lines(unit)
    last = unit.rows[-1]
    loops = [ranges_text(row.ranges) for row in unit.rows if row.ranges]
    kernel = (shorten(unit.kernel or "no kernel", _KERNEL_NAME), "ip-kernel")
    below = (((f"loops {loops[-1]}" if loops else last.ir, ""),), (kernel,))
    if len(unit.rows) == 1:
        return (((last.node, "ip-bold"), (_does(last), "")), *below)
    rows = unit.rows if len(unit.rows) <= _MOST_MEMBERS else unit.rows[: _MOST_MEMBERS - 1]
    members = [((row.node, "ip-bold"), (_does(row), "")) for row in rows]
    rest = len(unit.rows) - len(rows)
    more = [((f"and {rest} more", "ip-dim"),)] if rest else []
    return (((f"{len(unit.rows)} fused", "ip-dim"),), *members, *more, *below)


def _fold_lines(unit: Unit) -> tuple[_Line, ...]:
    layers = len(unit.parts) // unit.period if unit.period else 0
    what = f"{counted(layers, 'more layer')} of {counted(unit.period, 'node')} as above" if layers else ""
    what = what if unit.period != 1 else f"{layers} more nodes as above"
    kernels = len({row.link.kernel for row in unit.rows if row.link.kernel})
    return (
        ((unit.name, "ip-bold"),),
        ((what or counted(len(unit.parts), "node"), ""),),
        ((counted(kernels, "kernel"), "ip-kernel"),),
    )


def _does(row: NodeRow) -> str:
    return ", ".join([does(row), *(f"mutates {name}" for name in row.mutates[:1])])


def _layout(row: LayoutRow) -> str:
    return buffer_text(NodeBuffer(row.buffer, row.layout))


def _buffer_lines(row: LayoutRow) -> tuple[_Line, ...]:
    name, _, rest = shorten(_layout(row), 2 * _NAME).partition(" ")
    colour = FORMAT_STYLES.get(row.memory_format, "")
    size = shorten(bytes_text(row.size_bytes), _NAME)
    return (
        ((name, "ip-bold"), (rest, "")),
        ((row.memory_format, f"ip-{colour}" if colour else "ip-dim"), (size, "ip-dim")),
    )


def _wires(
    placed: Placed,
    rows: Mapping[str, LayoutRow],
    reads: Mapping[tuple[str, str], Read],
    missed: Mapping[str, Sequence[str]],
    path: tuple[str, ...],
) -> Iterator[str]:
    """Yield arrows, each as thick as its buffer is large."""
    steps = {*pairwise(path)}
    for arrow, points in placed.routes.items():
        read = reads.get(arrow)
        kind, _, _ = arrow[0].partition(" ")
        names = [end.partition(" ")[2] for end in arrow]
        row = rows[arrow[0] if kind == "buffer" else arrow[1]]
        classes = " ip-slow" if read and read.slow else ""
        classes += " ip-path" if tuple(names) in steps else ""
        patterns = [pattern_text(access.pattern) for access in read.accesses] if read else ["writes"]
        about = f"{', '.join(dict.fromkeys(patterns))}: {row.buffer}, {bytes_text(row.size_bytes)}"
        apart = missed.get(f"read {read.buffer} {read.unit}", ()) if read else ()
        title = escaped(_title(about, apart))
        width = 1.2 + 0.55 * math.log10(max(known_bytes(row), 1) / 1024) if known_bytes(row) > 1024 else 1.2
        x, y = points[-1]
        yield (
            f'<path class="ip-wire{classes}" stroke-width="{min(width, 4.5):.1f}" d="{_curve(points)}">'
            f"<title>{title}</title></path>"
            f'<path class="ip-tip{classes}" d="M{x - 4:.1f} {y - 7:.1f}h8l-4 7z"></path>'
        )


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
