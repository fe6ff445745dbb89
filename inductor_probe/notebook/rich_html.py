"""What `report` renders for a terminal, as HTML: its tables as tables, its lines as lines.

So every verb has HTML, also one that nobody wrote a page for, and both faces say the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.table import Column as RichColumn
from rich.table import Table
from rich.text import Text

from inductor_probe.notebook.code import formula
from inductor_probe.notebook.index_picture import index_picture
from inductor_probe.notebook.page import escaped
from inductor_probe.report.columns import Columns
from inductor_probe.report.formula import FormulaText
from inductor_probe.report.layouts import LayoutPage
from inductor_probe.report.shown import plain_console

_WIDTH = 140
"""Columns that `report` may lay things out for; a wider table scrolls."""
_LONG = 60
"""A cell with more characters may be broken into lines; one with less is read at one glance."""
_TAG = re.compile(r"<[^>]*>")
_COLOURS = frozenset(("red", "green", "yellow", "cyan"))
_PICTURE_AFTER = 2
"""Parts of a layout's page: its head, its facts, then the picture."""


def rich_html(renderable: RenderableType) -> str:
    """Return the HTML of what a terminal would show."""
    console = plain_console(file=StringIO(), width=_WIDTH)
    return "".join(_parts(renderable, console))


def _parts(shown: Any, console: Console) -> Iterator[str]:
    make = next((make for kind, make in _MADE.items() if isinstance(shown, kind)), None)
    if make is not None:
        yield from make(shown, console)
    elif hasattr(shown, "__rich__"):
        yield from _parts(shown.__rich__(), console)
    elif hasattr(shown, "__rich_console__"):
        line: list[str] = []
        for part in shown.__rich_console__(console, console.options):
            if not isinstance(part, Segment):
                yield from _parts(part, console)
            elif part.text == "\n":
                yield _block("".join(line))
                line = []
            else:
                line.append(_segment(part))
        if line:
            yield _block("".join(line))
    else:
        raise TypeError(f"{type(shown).__name__} has no HTML: say how in notebook/rich_html.py")


def _line(shown: str | Text, console: Console) -> Iterator[str]:
    yield _block(_inline(shown, console))


def _block(inside: str) -> str:
    return f'<div class="ip-line">{inside}</div>' if inside else '<div class="ip-gap"></div>'


def _inline(shown: RenderableType, console: Console) -> str:
    """Return what stands in a line or in a cell."""
    if isinstance(shown, str):
        return escaped(shown)
    if isinstance(shown, Text):
        style = console.get_style(shown.style)
        return "".join(_segment(segment, style) for segment in shown.render(console, end=""))
    return "".join(_parts(shown, console))


def _segment(segment: Segment, around: Style | None = None) -> str:
    style = (around or Style.null()) + segment.style
    classes = _classes(style)
    return f'<span class="{classes}">{escaped(segment.text)}</span>' if classes else escaped(segment.text)


def _classes(style: Style) -> str:
    names = [name for name, on in (("bold", style.bold), ("dim", style.dim)) if on]
    names += [style.color.name] if style.color and style.color.name in _COLOURS else []
    return " ".join(f"ip-{name}" for name in names)


def _columns(shown: Columns, console: Console) -> Iterator[str]:
    right = [column.right for column in shown.columns]
    rows = [
        "".join(
            _cell("td", escaped(cell.text), at, console.get_style(cell.style))
            for at, cell in zip(right, row, strict=True)
        )
        for row in shown.rows
    ]
    head = "".join(_cell("th", escaped(column.title), column.right) for column in shown.columns)
    yield table(head, rows)


def _table(shown: Table, console: Console) -> Iterator[str]:
    cells: list[list[RenderableType]] = [list(column.cells) for column in shown.columns]
    rows = []
    for at in range(shown.row_count):
        style = console.get_style(shown.rows[at].style or "")
        rows.append(
            "".join(
                _rich_cell("td", column[at], shown.columns[number], style, console)
                for number, column in enumerate(cells)
            )
        )
    head = "".join(_rich_cell("th", column.header, column, Style.null(), console) for column in shown.columns)
    yield table(head if shown.show_header else "", rows)


def _rich_cell(kind: str, inside: RenderableType, column: RichColumn, style: Style, console: Console) -> str:
    own = Style.null() if kind == "th" else console.get_style(column.style)
    return _cell(kind, _inline(inside, console), column.justify == "right", own + style)


def _cell(kind: str, inside: str, right: bool, style: Style | None = None) -> str:
    long = "ip-long" if len(_TAG.sub("", inside)) > _LONG else ""
    classes = " ".join(filter(None, (long, "ip-right" if right else "", _classes(style) if style else "")))
    return f'<{kind} class="{classes}">{inside}</{kind}>' if classes else f"<{kind}>{inside}</{kind}>"


def table(head: str, rows: list[str]) -> str:
    """Return a table of rows of cells; `head` is empty for facts that need none."""
    titles = f"<thead><tr>{head}</tr></thead>" if head else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table class="ip-table{" ip-rows" if head else ""}">{titles}<tbody>{body}</tbody></table>'


def _padding(shown: Padding, console: Console) -> Iterator[str]:
    yield f'<div style="margin-left:{shown.left}ch">{"".join(_parts(shown.renderable, console))}</div>'


def _group(shown: Group, console: Console) -> Iterator[str]:
    for part in shown.renderables:
        yield from _parts(part, console)


def _formula(shown: FormulaText, console: Console) -> Iterator[str]:
    yield formula(shown.formula)


def _layout(shown: LayoutPage, console: Console) -> Iterator[str]:
    for at, part in enumerate(shown.__rich_console__(console, console.options)):
        if at == _PICTURE_AFTER:
            yield index_picture(shown.row)
        yield from _parts(part, console)


_MADE: dict[type, Callable[[Any, Console], Iterator[str]]] = {
    str: _line,
    Text: _line,
    Columns: _columns,
    Table: _table,
    Padding: _padding,
    Group: _group,
    FormulaText: _formula,
    LayoutPage: _layout,
}
