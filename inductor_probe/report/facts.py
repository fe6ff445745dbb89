"""The parts that pages are made of: a name with what it is, facts under it, and places."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inductor_probe.model.span import SourceLine, Span

_MOST_NAMES = 24


def facts(rows: Iterable[tuple[str, str | Text]]) -> Padding:
    """Return names and what there is to say about them, in two columns. Empty ones are left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        if text:
            grid.add_row(name, text if isinstance(text, Text) else Text(text))
    return Padding(grid, (0, 0, 0, 2), expand=False)


def table(titles: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Padding:
    """Return a table whose cells fold where there is no room."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for at, title in enumerate(titles):
        made.add_column(title, overflow="fold", no_wrap=at == 0)
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return Padding(made, (0, 0, 0, 2), expand=False)


def code_text(text: str | Text, style: str = "") -> Text:
    """Return source code that no line of is cut or broken: a terminal wraps what it has no room for.

    rich crops what is wider than the console all the same, unless it prints with `crop=False`.
    """
    shown = Text(text, style=style) if isinstance(text, str) else text
    shown.no_wrap, shown.overflow = True, "ignore"
    return shown


def names(found: Sequence[str], most: int = _MOST_NAMES) -> str:
    """`a, b and 3 more`."""
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def place(span: Span) -> str:
    """`output_code.py:12`: the folder is the graph's, which the page names."""
    return str(span).rpartition(os.sep)[2]


def in_order(sources: Iterable[SourceLine]) -> list[SourceLine]:
    """Return lines as they stand in their files."""
    return sorted(sources, key=lambda source: (source.path, source.line))


def source_text(source: SourceLine) -> str:
    """`/home/u/a.py:12 in f: x = y + 1`."""
    inside = f" in {source.function}" if source.function else ""
    return f"{source}{inside}: {source.code}"
