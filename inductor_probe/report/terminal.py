"""Documents for a terminal or a pipe: what has no room is cut, left out, or goes on in the next line.

rich's own tables measure, wrap and render each cell by itself, which takes seconds for thousands of rows.
Here a cell that fits is written as it is, and only others become rich's `Text`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from typing import Any, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

from inductor_probe.model.remark import RemarkKind
from inductor_probe.report.document import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Fold,
    FormulaBlock,
    Heading,
    Inline,
    Line,
    Name,
    Picture,
    RemarkLine,
    Table,
)
from inductor_probe.report.formula import formula_lines
from inductor_probe.report.units import NO_BREAK, one_word
from inductor_probe.report.visible import visible
from inductor_probe.report.wrapping import (
    LONGEST,
    broken,
    line_spans,
    longest_part,
    short_forms,
    shorten,
    shorten_path,
    start_of,
    with_broken_commands,
    with_short_names,
)

PIPE = 1000
"""From so many columns on nothing is cut or left out: it is a pipe, where `grep` sees whole lines."""
_GAP = 2
_NAME = 24
"""So many columns of a name are enough to recognise it in a sentence."""
_LEAST = 6
"""The narrowest that a column of paths gets; one of names, before words are broken."""
_LEAST_WORD = 30
"""A word of so many columns is broken at its separators before a place is cut."""
_LEAST_IN_TEXT = 36
"""A name in a column of texts is not cut to less before texts are broken."""
_LEAST_NAME = 18
"""The narrowest that a column of names gets, before more than names and spaces is broken."""
_BELOW = 4
"""Columns from the left edge of a table to what stands below a row."""
_SIGNS: dict[RemarkKind, tuple[str, str]] = {
    "passed": ("+ ", "green"),
    "missed": ("! ", "bold yellow"),
    "analysis": ("- ", "cyan"),
    "hazard": ("! ", "bold red"),
}
_HANG = 4
"""So many columns further to the right a line of code goes on that was too long."""
_DIFF = {"+": "green", "-": "red", "@": "cyan"}

Pieces = list[tuple[str, str]]


def plain_console(**options: Any) -> Console:
    """Return a console that takes text as it is: `[s77, s27]` is a size here, not rich markup.

    In a notebook it writes to its file like anywhere else, where rich's own would show everything there.
    """
    return Console(markup=False, highlight=False, emoji=False, force_jupyter=False, **options)


def to_text(document: Document, width: int = 140) -> str:
    """Return a document without colours for `width` columns; a longer line of code stays whole."""
    file = StringIO()
    plain_console(file=file, width=width, color_system=None).print(Terminal(document), crop=False)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


class Terminal:
    """A document as something that rich prints."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for block in self.document:
            yield from _block(block, console, options.max_width)


def _block(block: Block, console: Console, width: int) -> Iterator[Segment]:
    match block:
        case Heading(text=text):
            yield from _hanging(_pieces(text), console, width)
        case Line(text=text, indent=indent, whole=whole):
            pieces = _pieces(text) if whole else _short(_pieces(text), width)
            yield from _hanging(pieces, console, width, [(" " * indent, "")], whole=whole)
        case RemarkLine(kind=kind, text=text, at=at) if at and width >= PIPE:
            yield from _hanging([(visible(f"{at}: {kind}: {text}"), "")], console, width)
        case RemarkLine(kind=kind, text=text, indent=indent):
            yield from _hanging(
                _short(_pieces(text), width), console, width, [(" " * indent, ""), _SIGNS[kind]]
            )
        case Facts(rows=rows, indent=indent):
            facts = [(visible(name), _short(_pieces(text), width)) for name, text in rows if text]
            widest = max((cell_len(name) for name, _ in facts), default=0)
            for name, pieces in facts:
                space = " " * (widest - cell_len(name) + _GAP)
                yield from _hanging(pieces, console, width, [(" " * indent, ""), (name, "dim"), (space, "")])
        case Table():
            yield from _table(block, console, width)
        case Code(text=text, language="sh"):
            yield from _hanging([(one_word(visible(text)), "")], console, width, whole=True)
        case Code():
            yield from _code(block, console, width)
        case FormulaBlock(formula=formula, indent=indent):
            for line in formula_lines(formula, width - indent):
                yield from _source_line(_formula_line(visible(line)), console, width, [(" " * indent, "")])
        case Picture() | Fold():
            return


def _pieces(inline: Inline) -> Pieces:
    """Return the parts of a text with their styles; what would act on a terminal is shown as an escape."""
    pieces = inline if isinstance(inline, list) else [inline]
    styled = [(piece, "") if isinstance(piece, str) else piece for piece in pieces]
    return [(type(text)(visible(text).expandtabs(8)), style) for text, style in styled]


def _short(pieces: Pieces, width: int) -> Pieces:
    """Return pieces in which names of kernels are as short as on any screen; a pipe has them whole."""
    if width >= PIPE:
        return pieces
    return [(with_short_names(text), style) for text, style in pieces]


def _hanging(
    pieces: Pieces,
    console: Console,
    width: int,
    head: Sequence[tuple[str, str]] = (),
    *,
    whole: bool = False,
) -> Iterator[Segment]:
    """Write a text behind `head`; its further lines begin where its first one does."""
    hang = sum(cell_len(text) for text, _ in head)
    for number, line in enumerate(_wrapped(pieces, max(width - hang, 1), whole=whole)):
        yield from (_segment(piece, console) for piece in (head if number == 0 else [(" " * hang, "")]))
        yield from (_segment((text.replace(NO_BREAK, " "), style), console) for text, style in line)
        yield Segment.line()


def _segment(piece: tuple[str, str], console: Console) -> Segment:
    text, style = piece
    return Segment(text, console.get_style(style) if style else None)


def _wrapped(pieces: Pieces, room: int, *, whole: bool = False) -> list[Pieces]:
    """Return the lines that a text takes: names lose their middle first, then lines end behind words."""
    if not any("\n" in text for text, _ in pieces):
        pieces = _with_cut_names(pieces, room)
    text = "".join([part for part, _ in pieces])
    if NO_BREAK in text:
        pieces = [(with_broken_commands(part, room), style) for part, style in pieces]
        text = "".join([part for part, _ in pieces])
    if "\n" not in text and cell_len(text) <= room:
        return [pieces]
    lines = []
    begin = 0
    for line in text.split("\n"):
        spans = line_spans(line, room, whole=whole)
        lines += [_cut_out(pieces, begin + first, begin + last) for first, last in spans]
        begin += len(line) + 1
    return lines


def _cut_out(pieces: Pieces, begin: int, end: int) -> Pieces:
    """Return what stands from one place of a text to another."""
    parts: Pieces = []
    for text, style in pieces:
        if part := text[max(begin, 0) : max(end, 0)]:
            parts.append((part, style))
        begin, end = begin - len(text), end - len(text)
    return parts


def _with_cut_names(pieces: Pieces, room: int) -> Pieces:
    """Shorten the longest names until the text fits, if that leaves enough of them to be recognised.

    Of names of 30 and 50 columns with 60 there are 30 and 30; with 30 they stay, and the text gets two lines.
    """
    names = [index for index, (text, _) in enumerate(pieces) if isinstance(text, Name)]
    over = sum(cell_len(text) for text, _ in pieces) - room
    if room >= PIPE or not names or over <= 0:
        return pieces
    lengths = {index: len(pieces[index][0]) for index in names}
    if over > sum(max(length - _NAME, 0) for length in lengths.values()):
        lengths = {index: min(length, room) for index, length in lengths.items()}
        over = 0
    while over > 0:
        first, *others = sorted(names, key=lambda index: -lengths[index])
        level = max(lengths[others[0]] if others else 0, _NAME)
        step = min(max(lengths[first] - level, 1), over)
        lengths[first] -= step
        over -= step
    return [
        (shorten(text, lengths[index]), style) if index in lengths else (text, style)
        for index, (text, style) in enumerate(pieces)
    ]


_Cell: TypeAlias = tuple[str, str, int, Pieces | None]
"""A cell of a table, measured: its text and style, its columns, and its pieces if it is in several styles.

Only one with pieces can have lines; its columns are those of the widest. (A named tuple takes five times as
long to make, and the garbage collector goes through all of them again and again.)
"""
_EMPTY: _Cell = ("", "", 0, None)


def _cell(cell: Cell) -> _Cell:
    """Measure a cell. Only one made of pieces has lines: a name with a line end in it stays in its row."""
    if isinstance(cell, (str, tuple)):
        text, style = (cell, "") if isinstance(cell, str) else cell
        if text.isascii() and text.isprintable():  # nearly all are
            return text, style, len(text), None
        text = type(text)(visible(text).replace("\n", " ").expandtabs(1))
        return text, style, cell_len(text), None
    if isinstance(cell, Picture):
        return _EMPTY
    return _styled(_pieces(cell))


def _column(cells: Sequence[Cell], width: int) -> list[_Cell]:
    """Measure the cells of a column, with names as short as on any screen; a pipe has them whole."""
    measured = [_cell(cell) for cell in cells]
    if width >= PIPE or all(size <= LONGEST for _, _, size, _ in measured):
        return measured
    forms = short_forms(text for text, _, _, pieces in measured if pieces is None and isinstance(text, Name))
    return [
        _styled(_short(pieces, width))
        if pieces is not None
        else _measured(Name(forms[text]) if isinstance(text, Name) else with_short_names(text), style)
        for text, style, _, pieces in measured
    ]


def _measured(text: str, style: str) -> _Cell:
    return text, style, cell_len(text), None


def _styled(pieces: Pieces) -> _Cell:
    """Measure a cell in several styles."""
    text = "".join([text for text, _ in pieces])
    return text, "", max(map(cell_len, text.split("\n"))), pieces


def _table(table: Table, console: Console, width: int) -> Iterator[Segment]:
    pipe = width >= PIPE
    rows = table.rows if pipe or table.most is None else table.rows[: table.most]
    if not rows:
        return
    numbers = [
        index
        for index, cell in enumerate(rows[0])
        if not isinstance(cell, Picture) and (pipe or not table.columns[index].pipe)
    ]
    columns = [table.columns[index] for index in numbers]
    if pipe:
        columns = [Column(column.title, column.right, None, "never") for column in columns]
    measured = [_column([row[index] for row in rows], width) for index in numbers]
    widest = [max(size for _, _, size, _ in cells) for cells in measured]
    widths, gap = _widths(columns, widest, measured, width - table.indent)
    below = [index for index, column in enumerate(columns) if column.below and index not in widths]
    shown = [
        [_cut(cell, columns[index], size) for cell in measured[index]]
        if widest[index] > size
        else measured[index]
        for index, size in widths.items()
    ]
    titles = [_cell((columns[index].title, "dim")) for index in widths]
    head = [titles] if any(column.title for column in columns) else []
    layout = [  # a name that was cut ends at a separator: what it leaves is not needed
        (columns[index], min(size, max(width for _, _, width, _ in (title, *cells))))
        for (index, size), title, cells in zip(widths.items(), titles, shown, strict=True)
    ]
    for number, cells in enumerate(chain(head, zip(*shown, strict=True)), start=-len(head)):
        for line in _row(cells, layout):
            yield from _line(line, layout, " " * table.indent, gap, console)
        for index in below if number >= 0 else ():
            yield from _below(columns[index].title, measured[index][number], console, width, table.indent)
    if len(rows) < len(table.rows):
        more = f"and {len(table.rows) - len(rows)} more{f': {table.more}' if table.more else ''}"
        yield from _hanging([(more, "dim")], console, width, [(" " * (table.indent or _GAP), "")])
    if left_out := [
        column.title for index, column in enumerate(columns) if index not in widths and not column.below
    ]:
        titles_left = ", ".join(dict.fromkeys(left_out))  # `+-` stands behind each time
        text = f"left out at {width} columns: {titles_left} (a pipe has them)"
        yield from _hanging([(text, "dim")], console, width)


def _below(title: str, cell: _Cell, console: Console, width: int, indent: int) -> Iterator[Segment]:
    """Write what a row has in a column for which there is no room."""
    text, style, _, pieces = cell
    if text not in {"", "-"}:
        head = [(" " * (indent + _BELOW), ""), (f"{title}{' ' * _GAP}", "dim")]
        yield from _hanging(pieces or [(text, style)], console, width, head)


def _cut(cell: _Cell, column: Column, size: int) -> _Cell:
    """Return a cell that is wider than its column, cut to it if it is of those that are not broken."""
    text, style, width, pieces = cell
    if width <= size or pieces is not None:
        return cell
    if column.fold == "end":
        return _measured(start_of(text, size), style)
    return _measured(shorten(text, size), style) if isinstance(text, Name) else cell


def _line(
    line: Sequence[_Cell], layout: Sequence[tuple[Column, int]], indent: str, gap: str, console: Console
) -> Iterator[Segment]:
    """Write the cells of a line and the spaces around them; there are none at its end.

    What has no style is one segment up to the next text that has one: rich takes its time for each segment.
    In a pipe nothing has.
    """
    colours = console.color_system is not None
    plain = indent
    for (text, style, width, pieces), (column, size) in zip(line, layout, strict=True):
        pad = " " * (size - width)
        if column.right:
            plain += pad
        if not colours or not (style or pieces):
            plain += text
        else:
            for piece in pieces or ((text, style),):
                yield Segment(plain)
                yield _segment(piece, console)
                plain = ""
        plain += gap if column.right else pad + gap
    yield Segment(f"{plain.rstrip(' ')}\n")


def _widths(
    columns: Sequence[Column], widest: Sequence[int], cells: Sequence[Sequence[_Cell]], room: int
) -> tuple[dict[int, int], str]:
    """Return the width of each column that is shown, by its number, and the gap between them.

    What does not fit is left out by rank, then names lose their middle, then the widest texts are broken. A
    table of `kernel` (30 columns of names), `nodes` (5) and `from` (20, rank 1) gets 30 + 2 + 5 + 2 + 20 = 59
    columns; at 50 `from` goes, at 30 the names are cut to 30 - 2 - 5 = 23.
    """
    names = [all(isinstance(text, Name) for text, *_ in texts) for texts in cells]  # they are cut
    folds = [
        "middle" if column.fold == "words" and is_name else column.fold
        for column, is_name in zip(columns, names, strict=True)
    ]
    widths = {
        index: max(len(column.title), size if column.most is None else min(size, column.most))
        for index, (column, size) in enumerate(zip(columns, widest, strict=True))
    }

    def over(gap: int, least: bool) -> int:
        needed = [min(size, columns[index].least) if least else size for index, size in widths.items()]
        return sum(needed) + gap * (len(widths) - 1) - room

    while over(_GAP, least=True) > 0 and (rank := max((columns[index].rank for index in widths), default=0)):
        widths = {index: size for index, size in widths.items() if columns[index].rank < rank}
    # Names of runs are there to be copied: columns stand closer before one of them is cut.
    tight = columns[0].fold in ("path", "end") and not any(column.fold == "middle" for column in columns)
    gap = 1 if tight and over(_GAP, least=False) > 0 else _GAP

    def narrow(kinds: Collection[str], least: Callable[[int], int]) -> None:
        """Narrow the widest columns of these kinds until all fit, none below its least."""
        if over(gap, least=False) <= 0:
            return
        floor = {index: least(index) for index in widths if folds[index] in kinds}
        while (missing := over(gap, least=False)) > 0:
            first, *others = sorted(
                (index for index in floor if widths[index] > floor[index]), key=lambda index: -widths[index]
            ) or [-1]
            if first < 0:
                return
            level = max(widths[others[0]] if others else 0, floor[first])
            widths[first] -= min(max(widths[first] - level, 1), missing)

    def unbroken(index: int, *, words: bool) -> int:
        texts = (columns[index].title, *(text for text, _, _, _ in cells[index]))
        return longest_part(texts, words=words)

    narrow({"end"}, lambda index: columns[index].least)
    narrow({"middle"}, lambda index: _LEAST_NAME if columns[index].fold == "middle" else _LEAST_IN_TEXT)
    narrow({"words"}, lambda index: min(unbroken(index, words=True), _LEAST_WORD))
    narrow({"path"}, lambda index: 1 + max(cell_len(_file_name(text)) for text, _, _, _ in cells[index]))
    narrow({"middle"}, lambda _: _LEAST_NAME)
    narrow({"path"}, lambda _: _LEAST)
    narrow({"words"}, lambda index: unbroken(index, words=False))
    narrow({"never"}, lambda index: unbroken(index, words=False))
    narrow({"middle"}, lambda _: _LEAST)
    narrow({"words", "never"}, lambda _: _LEAST)  # so little room that words are broken
    return widths, " " * gap


def _file_name(place: str) -> str:
    return place.partition(" ")[0].rpartition("/")[2]


def _row(cells: Sequence[_Cell], layout: Sequence[tuple[Column, int]]) -> Iterator[Sequence[_Cell]]:
    """Lay out a row: one line, or several where a text is wider than its column."""
    for (text, _, width, _), (_, size) in zip(cells, layout, strict=True):
        if width > size or "\n" in text:
            break
    else:
        yield cells
        return
    parts = [
        [cell] if cell[2] <= size and "\n" not in cell[0] else _cell_lines(cell, column, size)
        for cell, (column, size) in zip(cells, layout, strict=True)
    ]
    for number in range(max(map(len, parts))):
        yield [part[number] if number < len(part) else _EMPTY for part in parts]


def _cell_lines(cell: _Cell, column: Column, width: int) -> list[_Cell]:
    """Return the lines that a cell takes in a column that is narrower than it."""
    text, style, _, pieces = cell
    if pieces is not None:
        return [_styled(line) for line in _wrapped(pieces, width)]
    if column.fold == "path":
        path, space, rest = text.partition(" ")
        text = f"{shorten_path(path, width)}{space}{rest}"
    return [_measured(part, style) for part in broken(text, width)]


def _code(code: Code, console: Console, width: int) -> Iterator[Segment]:
    """Write the lines of a text: on a terminal with colours, and broken where they are too long for it.

    What goes on in a further line is indented more than its first. In a pipe the text is what it was.
    """
    text = visible(code.text.strip("\n"))
    if width < PIPE:
        text = text.expandtabs(8)
    lines = text.split("\n")
    styled: Iterable[Pieces] = [
        [(line, _DIFF.get(line[:1], "") if code.language == "diff" else "")] for line in lines
    ]
    if code.language not in {"", "diff"} and console.is_terminal:
        from rich.syntax import Syntax  # noqa: PLC0415 - loads hundreds of lexers, and only this needs one

        highlighted = Syntax(text, code.language, theme="ansi_dark", background_color="default").highlight(
            text
        )
        highlighted.rstrip()  # a lexer ends the last line
        styled = [
            [(part.text, str(part.style or "")) for part in line.render(console)]
            for line in highlighted.split("\n")
        ]
    digits = 0 if code.first is None else len(str(code.first + len(lines) - 1))
    for number, pieces in enumerate(styled, start=code.first or 0):
        head = [(" " * code.indent, ""), *([] if code.first is None else [(f"{number:>{digits}}  ", "dim")])]
        yield from _source_line(pieces, console, width, head)


def _formula_line(line: str) -> Pieces:
    """Loops are bold, comments dim: `for p0 < 8`, `  buf0[p0] = x  # only where p0 < 4`."""
    code, mark, comment = line.partition("# ")
    return [(code, "" if line.startswith((" ", "#")) else "bold"), (f"{mark}{comment}", "dim")]


def _source_line(pieces: Pieces, console: Console, width: int, head: Pieces) -> Iterator[Segment]:
    """Write a line of code behind `head`; where it is broken it goes on further to the right."""
    text = "".join([text for text, _ in pieces])
    room = max(width - sum(cell_len(part) for part, _ in head), 1)
    hang = min(len(text) - len(text.lstrip(" ")) + _HANG, room // 2)
    for number, span in enumerate(line_spans(text, room, room - hang)):
        before = head if number == 0 else [(" " * (width - room + hang), "")]
        yield from (_segment(piece, console) for piece in (*before, *_cut_out(pieces, *span)) if piece[0])
        yield Segment.line()
