"""What a view consists of, before anything says how it looks.

`report/pages` makes a document of a record, once; `terminal`, `html` and `markdown` write it. A document has
no widths: it says what may be cut or left out where there is no room (`Name`, `Column`), and what only some
back ends show (`Picture`, `Fold`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.formula import Formula
from inductor_probe.model.remark import Remark, RemarkKind
from inductor_probe.model.span import SourceLine, Span, own_lines
from inductor_probe.report.words.remarks import folded


class Name(str):
    """The name of a kernel or fused node. A terminal cuts its middle where it has no room: `cpp_fu…lip_0`."""

    __slots__ = ()


Piece: TypeAlias = "str | tuple[str, str]"
"""A text, or a text with its style: words of `bold`, `dim`, `red`, `green`, `yellow`, `cyan`."""
Inline: TypeAlias = "Piece | list[Piece]"
"""A text in one style or in several; line ends in it are kept."""


class Picture(Struct, frozen=True):
    """Something that only HTML shows; `html` makes it."""

    html: Callable[[], str]


Cell: TypeAlias = "Inline | Picture"


class Heading(Struct, frozen=True):
    """The title of what follows: of a whole view (1) or of a part of it (2)."""

    text: Inline
    level: Literal[1, 2] = 1


class Line(Struct, frozen=True):
    """A sentence; what goes on in a further line is indented as the first. An empty one sets parts off.

    Words of one that is `whole` are not broken even if they are wider than a terminal: paths that are copied.
    """

    text: Inline = ""
    indent: int = 0
    whole: bool = False


class RemarkLine(Struct, frozen=True):
    """A sentence about a subject, behind the sign of its kind.

    In a pipe `at`, the user's line, comes first, and the kind in words, as compilers write it and editors and
    `grep` read it: `/home/u/model.py:12: missed: op0 reads ...`.
    """

    kind: RemarkKind
    text: str
    indent: int = 0
    at: str = ""


class Facts(Struct, frozen=True):
    """Names, and what there is to say of each. Rows with an empty text are left out."""

    rows: Iterable[tuple[str, Inline]]
    indent: int = 2


class Column(Struct, frozen=True):
    """A column of a table.

    Attributes:
        title: its head. right: texts end at its right edge.
        most: width on a terminal from which texts go on in the next line; None for no such width.
        fold: where a terminal has no room, texts go on in the next line behind a word (`words`), lose their
            middle (`middle`: names), the start of their first word (`path`: `…/model.py:12 +3`), or all but
            `least` columns (`end`: names whose start is enough); `never` keeps the column as wide as it is.
        rank: columns with a rank are left out where a terminal has no room, the highest first.
        below: what is left out of this column stands below its row instead, behind the title.
        pipe: only a pipe has the column.
        least: of a column with names, the width below which others are left out rather.
    """

    title: str
    right: bool = False
    most: int | None = None
    fold: Literal["words", "middle", "path", "end", "never"] = "words"
    rank: int = 0
    least: int = 1000
    below: bool = False
    pipe: bool = False


class Table(Struct, frozen=True):
    """Rows of cells under titles; of long ones the first `most` are shown, and `more` says where all are."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    indent: int = 0
    most: int | None = None
    more: str = ""


class Code(Struct, frozen=True):
    """Text that stays as it is where there is room for it. `first` numbers the lines.

    `language` is what pygments calls it; `sh` is one command, which stays one that can be copied.
    """

    text: str
    language: str = ""
    indent: int = 0
    first: int | None = None


class FormulaBlock(Struct, frozen=True):
    """What a node computes, laid out for the width there is."""

    formula: Formula
    indent: int = 2


class Fold(Struct, frozen=True):
    """What is shown when its title is clicked; a terminal leaves it out. Made only where it is shown."""

    title: str
    inside: Callable[[], Document]


Block: TypeAlias = Heading | Line | RemarkLine | Facts | Table | Code | FormulaBlock | Picture | Fold
Document: TypeAlias = Iterable[Block]


def remark_lines(
    remarks: Iterable[Remark],
    indent: int = 0,
    about: str | None = None,
    places: Mapping[str, str] = {},
) -> list[RemarkLine]:
    """Return a line for each remark, repeated ones as one.

    `about` is a name that needs no saying again; `places` are the user's lines of subjects, by their names.
    """
    return [
        RemarkLine(remark.kind, text, indent, places.get(remark.subject.name, ""))
        for remark, text in folded(remarks, about)
    ]


def first_place(sources: Sequence[SourceLine]) -> str:
    """Return the first line of the user's, `/home/u/model.py:12`; empty where none is known."""
    return str(own_lines(sources)[0]) if sources else ""


def name_style(remarks: Iterable[Remark]) -> str:
    """Return the style of a name in a table: red for one with a remark that is more than a fact."""
    return "bold red" if any(remark.kind in ("missed", "hazard") for remark in remarks) else "bold"


def place(span: Span | None) -> str:
    """`output_code.py:12`: the folder is the graph's, which the page names."""
    return str(span).rpartition(os.sep)[2] if span else "?"


def source_text(source: SourceLine) -> str:
    """`/home/u/a.py:12 in f: x = y + 1`."""
    inside = f" in {source.function}" if source.function else ""
    return f"{source}{inside}: {source.code}"


def by_graph(pages: Iterable[tuple[str, Document]]) -> Document:
    """Yield pages below each other, each with the name of its graph; of several graphs below that name."""
    pages = tuple(pages)
    several = len({graph for graph, _ in pages}) > 1
    latest = None
    for number, (graph, document) in enumerate(pages):
        if number:
            yield Line()
        if several and graph != latest:
            yield Heading((graph, "bold"))
        latest = graph
        yield from document


def apart(documents: Iterable[Document]) -> Document:
    """Yield documents below each other, set off by an empty line."""
    for number, document in enumerate(documents):
        if number:
            yield Line()
        yield from document
