"""Layout rows: a page for one buffer, a table for many."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import Access, GeneratedAccess, LayoutRow, Origin
from inductor_probe.report.columns import Cell, Column, Columns
from inductor_probe.report.remark_lines import name_style, remark_line, remark_lines
from inductor_probe.report.units import (
    bytes_were,
    bytes_with,
    dims_text,
    shorten,
    symbols_text,
    table_symbols,
)
from inductor_probe.report.words.layouts import format_text, generated_text, pattern_text
from inductor_probe.report.words.links import origin_text
from inductor_probe.report.words.remarks import sentence

_WIDE = 110
"""Columns from which the table has room for strides and dimension orders."""
_SHORTEST_KERNEL = 24


_MOST_NAMED = 6
"""So many buffers whose layout is not known for the same reason are named."""


class LayoutTable:
    """All buffers of one or more graphs, a table each; columns are left out where there is no room."""

    def __init__(self, rows: Sequence[LayoutRow]) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= _WIDE
        graphs: dict[str, list[LayoutRow]] = {}
        for row in self.rows:
            graphs.setdefault(row.graph, []).append(row)
        for graph, rows in graphs.items():
            yield Text(graph, style="bold")
            if symbols := table_symbols(symbol for row in rows for symbol in row.symbols):
                yield Text(symbols, style="dim")
            yield _table(rows, wide)
            yield from _unknown(rows)
            remarks = [remark for row in rows for remark in row.remarks]
            yield from remark_lines(remarks)
            if remarks:
                yield Text()


def _unknown(rows: Sequence[LayoutRow]) -> Iterator[RenderableType]:
    """Say why layouts in the table are not known, once for all of which it is so."""
    buffers: dict[str, list[str]] = {}
    for row in rows:
        if row.memory_format == "unknown":
            buffers.setdefault(_why_unknown(row), []).append(row.buffer)
    for why, names in buffers.items():
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        yield Text(f"{', '.join(names[:_MOST_NAMED])}{more}: {why}", style="dim")


def _why_unknown(row: LayoutRow) -> str:
    layout = row.layout
    if layout is None:
        return "no layout in the dump: this torch prints none, or it is a constant of the module"
    if layout.kind == "MultiOutputLayout":
        return "the result of a call whose values are buffers of their own: those have layouts, it has none"
    printed = dict(layout.extras).get("printed stride")
    if printed is not None:
        return (
            f"a constant with the stride {printed}, which cannot be that of its memory: most likely a weight "
            "that freezing packed for a library"
        )
    return f"{layout.kind} without a size and stride that can be compared"


def _table(rows: Sequence[LayoutRow], wide: bool) -> Columns:
    columns = [
        Column("buffer", folds=False),
        Column("dtype", folds=False),
        Column("size", folds=False),
        *([Column("stride", folds=False)] if wide else []),
        Column("format", folds=False),
        Column("bytes", right=True),
        Column("writer"),
        Column("readers"),
    ]
    lines: list[list[Cell]] = []
    for row in rows:
        layout = row.layout
        line: list[Cell] = [
            (row.buffer, name_style(row.remarks)),
            layout.dtype if layout and layout.dtype else "?",
            dims_text(layout.size if layout else None),
            *([dims_text(layout.stride if layout else None)] if wide else []),
            format_text(row) if wide else row.memory_format,
            bytes_were(row.size_bytes, row.recorded_bytes),
            row.producer or row.role,
            ", ".join([*dict.fromkeys(access.node for access in row.reads), *_output(row)]) or "-",
        ]
        lines.append(line)
    return Columns(columns, lines)


def _output(row: LayoutRow) -> list[str]:
    return ["OUTPUT"] if row.role == "output" else []


class LayoutPage:
    """One buffer on one page: how it lies, who writes and reads it and how, where it came from.

    `below_another` sets it off from the page above.
    """

    def __init__(self, row: LayoutRow, below_another: bool = False) -> None:
        self.row = row
        self.below_another = below_another

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.below_another:
            yield Text()
        yield from _page(self.row, options.max_width)


def _page(row: LayoutRow, width: int) -> Iterator[RenderableType]:
    layout = row.layout
    yield Text.assemble((row.buffer, "bold"), "  ", (format_text(row, always=True), "cyan"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    if layout:
        where = f" on {layout.device}" if layout.device else ""
        facts.add_row("layout", f"{layout.kind}{where}, {layout.dtype or 'dtype unknown'}")
        facts.add_row("size", dims_text(layout.size))
        facts.add_row(
            "stride", dims_text(layout.stride) + (f", offset {layout.offset}" if layout.offset else "")
        )
    else:
        facts.add_row("layout", _why_unknown(row))
    if layout and row.memory_format == "unknown":
        facts.add_row("unknown", _why_unknown(row))
    local = ", no memory of its own in the wrapper (kernel-local or fused away)" if row.local else ""
    facts.add_row("bytes", bytes_with(row.size_bytes, row.recorded_bytes, row.symbols) + local)
    if row.symbols:
        facts.add_row("symbols", symbols_text(row.symbols))
    facts.add_row("role", f"{row.role} of {row.graph}")
    if row.origin:
        facts.add_row("from", _origin_text(row.origin))
    if row.evidence:
        places = ", ".join(f"{each.fact} {_short(str(each.span))}" for each in row.evidence)
        facts.add_row("read at", places)
    yield Padding(facts, (0, 0, 0, 2), expand=False)
    for title, accesses in (("written by", row.writes), ("read by", row.reads)):
        yield from _accesses(title, accesses, width)
    if row.role == "output":
        yield Text("returned by the graph", style="bold")
    for remark in row.remarks:
        yield remark_line(sentence(remark), remark.kind, indent=0)


def _accesses(title: str, accesses: Sequence[Access], width: int) -> Iterator[RenderableType]:
    """Accesses that differ only in which indirect value they use are one entry."""
    groups: dict[tuple[object, ...], list[Access]] = {}
    for access in accesses:
        groups.setdefault(
            (access.node, access.pattern, access.strides, access.ranges, access.generated), []
        ).append(access)
    for members in groups.values():
        access = members[0]
        count = sum(member.count for member in members)
        times = f" {count} times" if count > 1 else ""
        where = f" ({_short(str(access.span))})" if access.span else ""
        head = f"{title} {access.node}{times}"
        room = max(width - len(head) - len(where) - len(" in "), _SHORTEST_KERNEL)
        kernel = f" in {shorten(access.kernel, room)}" if access.kernel else ""
        yield Text.assemble((head, "bold"), kernel, where)
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        made = access.generated
        contiguous = access.contiguous if made is None else made.contiguous
        style = "yellow" if contiguous is False else "green"
        others = f"  (and {len(members) - 1} like it)" if len(members) > 1 else ""
        if access.index is not None:
            grid.add_row("index", f"{access.index}{others}")
        grid.add_row("pattern", Text(pattern_text(access.pattern), style=style if made is None else ""))
        if made is not None:
            grid.add_row("generated", Text(f"{generated_text(made)}{_line(made)}", style=style))
        if access.strides:
            grid.add_row("strides", Text.assemble(*_strides(access)))
        for name, variables in access.indirect:
            depends = f"varies with {', '.join(variables)}" if variables else "does not vary with the loops"
            grid.add_row("indirect", f"{name} {depends}")
        yield Padding(grid, (0, 0, 0, 2), expand=False)


def _line(made: GeneratedAccess) -> str:
    return f" ({_short(str(made.span))})" if made.span else ""


def _strides(access: Access) -> Iterator[str | tuple[str, str]]:
    steps = dict(access.ranges)
    for at, (name, stride) in enumerate(access.strides):
        text = f"{name} {stride} ({_steps(steps[name])})"
        yield "  " if at else ""
        yield (f"{text} innermost", "bold") if name == access.innermost else text


def _steps(steps: Dim) -> str:
    return f"{steps} step" if steps == 1 else f"{steps} steps"


def _origin_text(origin: Origin) -> str:
    text = origin_text(origin)
    if origin.source is None:
        return text
    inside = f" in {origin.source.function}" if origin.source.function else ""
    return f"{text}\n{origin.source}{inside}: {origin.source.code}"


def _short(place: str) -> str:
    """`ir_post_fusion.txt:12`: the folder is the graph's, which the page names."""
    return place.rpartition(os.sep)[2] if Path(place).is_absolute() else place
