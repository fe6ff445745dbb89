"""A table of short texts in columns, for thousands of rows.

rich's own table measures, wraps and renders each cell by itself. Here a cell is one text in one style, and a
row is written at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from inductor_probe.report.visible import visible

GAP = 2
_NARROWEST = 6

Cell: TypeAlias = "str | tuple[str, str]"
"""A text, or a text and its style."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        title: its head.
        right: texts end at its right edge.
        most: width at which longer texts go on in the next line; None for no such width.
        folds: where the table is wider than the console, the column gets narrower and its texts go on in
            the next line. One that does not fold is cut.
    """

    title: str
    right: bool = False
    most: int | None = None
    folds: bool = True


class Columns:
    """Rows of cells under titles, without lines between them."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        self.columns = columns
        self.rows = [[_split(cell) for cell in row] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width)
        yield from self._line([(column.title, "dim") for column in self.columns], widths, console)
        for row in self.rows:
            yield from self._line(row, widths, console)

    def _widths(self, room: int) -> list[int]:
        widths = []
        for at, column in enumerate(self.columns):
            longest = max((_width(row[at][0]) for row in self.rows), default=0)
            wanted = max(longest, len(column.title))
            widths.append(wanted if column.most is None else min(wanted, max(column.most, len(column.title))))
        while (over := sum(widths) + GAP * (len(widths) - 1) - room) > 0:
            folding = [
                at for at, column in enumerate(self.columns) if column.folds and widths[at] > _NARROWEST
            ]
            if not folding:
                break
            widest, *others = sorted(folding, key=lambda at: -widths[at])
            level = max(widths[others[0]] if others else 0, _NARROWEST)
            widths[widest] -= min(max(widths[widest] - level, 1), over)
        return widths

    def _line(
        self, cells: Sequence[tuple[str, str]], widths: Sequence[int], console: Console
    ) -> Iterator[Segment]:
        """Write a row; a text that is wider than its column takes several lines."""
        texts = [
            _lines(text, width, column.folds)
            for (text, _), width, column in zip(cells, widths, self.columns, strict=True)
        ]
        last = len(widths) - 1
        for number in range(max(map(len, texts))):
            for at, (lines, width, column) in enumerate(zip(texts, widths, self.columns, strict=True)):
                text = lines[number] if number < len(lines) else ""
                pad = " " * (width - _width(text))
                style = _style(console, cells[at][1]) if text else None
                text = f"{pad}{text}" if column.right else text if at == last else f"{text}{pad}"
                yield Segment(text if at == last else f"{text}{' ' * GAP}", style)
            yield Segment.line()


def _split(cell: Cell) -> tuple[str, str]:
    """Return the text of a cell, fit to be shown on one line, and its style."""
    text, style = (cell, "") if isinstance(cell, str) else cell
    if text.isprintable():
        return text, style
    return " ".join(visible(text).split("\n")).expandtabs(1), style


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def _lines(text: str, width: int, folds: bool) -> list[str]:
    """Return the lines that `text` takes in a column of `width`."""
    if _width(text) <= width:
        return [text]
    return chop_cells(text, width) if folds else [f"{set_cell_size(text, max(width - 1, 0))}…"]


def _style(console: Console, name: str) -> Style | None:
    return console.get_style(name) if name else None
