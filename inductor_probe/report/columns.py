"""A table of short texts in columns, for thousands of rows.

rich's own table measures, wraps and renders each cell by itself. Here a cell is one text in one style, and a
row is written at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

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
            the next line, which begins with a word. One that does not fold is cut behind an ellipsis.
        path: its texts begin with a file or a place in one, `model.py:12 +3`: where there is no room, this
            first word loses its start behind an ellipsis, and is never broken into lines.
    """

    title: str
    right: bool = False
    most: int | None = None
    folds: bool = True
    path: bool = False


class Columns:
    """Rows of cells under titles, without lines between them."""

    def __init__(
        self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], indent: int = 0, gap: int = GAP
    ) -> None:
        self.columns = columns
        self.indent = " " * indent
        self.gap = " " * gap
        self.rows = [[_shown(cell) for cell in row] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width - len(self.indent))
        titles = [_shown((column.title, "dim")) for column in self.columns]
        for row in (titles, *self.rows):
            for line in self._lines(row, widths):
                if console.color_system is None:  # a pipe: a line without styles is one text
                    yield Segment(f"{self.indent}{''.join(line)}\n")
                    continue
                yield Segment(self.indent)
                for text, cell in zip(line, row, strict=True):
                    yield Segment(text, console.get_style(cell.style) if cell.style else None)
                yield Segment.line()

    def _widths(self, room: int) -> list[int]:
        widths = []
        for at, column in enumerate(self.columns):
            longest = max((row[at].width for row in self.rows), default=0)
            wanted = max(longest, len(column.title))
            widths.append(wanted if column.most is None else min(wanted, max(column.most, len(column.title))))
        while (over := sum(widths) + len(self.gap) * (len(widths) - 1) - room) > 0:
            folding = [
                at for at, column in enumerate(self.columns) if column.folds and widths[at] > _NARROWEST
            ]
            if not folding:
                break
            widest, *others = sorted(folding, key=lambda at: -widths[at])
            level = max(widths[others[0]] if others else 0, _NARROWEST)
            widths[widest] -= min(max(widths[widest] - level, 1), over)
        return widths

    def _lines(self, row: Sequence[_Shown], widths: Sequence[int]) -> Iterator[list[str]]:
        """Lay out a row; a text that is wider than its column takes several lines."""
        if all(cell.width <= width for cell, width in zip(row, widths, strict=True)):
            yield self._line(row, widths)
            return
        parts = [
            [cell] if cell.width <= width else _folded(cell, width, column)
            for cell, width, column in zip(row, widths, self.columns, strict=True)
        ]
        for number in range(max(map(len, parts))):
            yield self._line([part[number] if number < len(part) else _NOTHING for part in parts], widths)

    def _line(self, cells: Sequence[_Shown], widths: Sequence[int]) -> list[str]:
        line = []
        for cell, width, column in zip(cells, widths, self.columns, strict=True):
            pad = " " * (width - cell.width)
            line.append(f"{pad}{cell.text}{self.gap}" if column.right else f"{cell.text}{pad}{self.gap}")
        line[-1] = line[-1].rstrip(" ")
        return line


class _Shown(NamedTuple):
    """A cell fit to be shown on one line, and how wide it is there."""

    text: str
    style: str
    width: int


_NOTHING = _Shown("", "", 0)


def _shown(cell: Cell) -> _Shown:
    text, style = (cell, "") if isinstance(cell, str) else cell
    if not text.isprintable():
        text = " ".join(visible(text).split("\n")).expandtabs(1)
    return _Shown(text, style, len(text) if text.isascii() else cell_len(text))


def _folded(cell: _Shown, width: int, column: Column) -> list[_Shown]:
    """Return the lines that a cell takes in a column narrower than it."""
    if column.path:
        place, space, rest = cell.text.partition(" ")
        texts = _wrapped(f"{shorten_path(place, width)}{space}{rest}", width)
    elif column.folds:
        texts = _wrapped(cell.text, width)
    else:
        texts = [f"{set_cell_size(cell.text, max(width - 1, 0))}…"]
    return [_Shown(text, cell.style, cell_len(text)) for text in texts]


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text between words; `op0, op1, OUTPUT` at 9 columns is `op0, op1,` and `OUTPUT`.

    A word that is wider than the column goes on in the next line.
    """
    lines: list[str] = []
    for word in text.split(" "):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines += chop_cells(word, width) or [""]
    return lines


def shorten_path(text: str, room: int) -> str:
    """Cut the start off a place in a file: `…/models/attention.py:12`. Its end says which it is."""
    if cell_len(text) <= room:
        return text
    return f"…{text[len(text) - max(room - 1, 0) :]}"


def not_shown(titles: Sequence[str], width: int) -> Text:
    """Say which columns of a table are left out for want of room."""
    return Text(f"left out at {width} columns: {', '.join(titles)} (a pipe has them)", style="dim")
