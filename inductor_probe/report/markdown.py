"""Documents as markdown, to paste into an issue. GitHub's dialect: pipe tables, fenced code, `<details>`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inductor_probe.report.document import (
    Block,
    Cell,
    Code,
    Document,
    Facts,
    Fold,
    FormulaBlock,
    Heading,
    Inline,
    Line,
    Picture,
    RemarkLine,
    Table,
)
from inductor_probe.report.formula import formula_lines
from inductor_probe.report.visible import visible

_WIDTH = 100
_SPECIAL = re.compile(r"[\\`*<|~]|(?<!\w)_+|(?<!_)_+(?!\w)|(?<=\])[(\[]")
"""What markdown would take for more than a character. Underscores inside of a word are none: `a__b_0`."""
_LINKED = re.compile(r"@(?=\w)|#(?=\d)|\bgh-(?=\d)", re.IGNORECASE)
"""What GitHub links with what follows: `@name`, who would be notified, `#1`, `owner/repo#1`, `GH-1`."""
_COMMIT = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[\da-f]{7,40}\b")
"""The name of a commit, of which GitHub links seven digits or more."""
_APART = "<!-- -->"
"""It shows nothing: what stands on both sides of it is no link."""
_START = re.compile(r"^(\s*)([-+#>=]|\d+[.)](?=\s))")


def to_markdown(document: Document) -> str:
    """Return a document as markdown, its blocks set off from each other by empty lines."""
    blocks = list(markdown_blocks(document))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def markdown_blocks(document: Document) -> Iterator[str]:
    """Yield each block of a document as markdown: a table, a fence of code, a line."""
    for block in document:
        if text := _block(block):
            yield text


def _block(block: Block) -> str:
    match block:
        case Heading(text=text, level=level):
            return f"{'#' * (level + 2)} {_plain(text)}"
        case Line(text=text):
            return _START.sub(r"\1\\\2", _inline(text)) if text else ""
        case RemarkLine(kind=kind, text=text):
            return f"**{kind}**: {_escaped(text)}"
        case Facts(rows=rows):
            return "\n".join(
                f"- **{_escaped(name)}**: {_inline(text)}" if name else f"  {_inline(text)}"
                for name, text in rows
                if text
            )
        case Table():
            return _table(block)
        case Code(text=text, language=language, first=first):
            lines = visible(text.strip("\n")).split("\n")
            if first is not None:
                digits = len(str(first + len(lines) - 1))
                lines = [f"{number:>{digits}}  {line}" for number, line in enumerate(lines, start=first)]
            return _fenced("\n".join(lines), language)
        case FormulaBlock(formula=formula):
            return _fenced(visible("\n".join(formula_lines(formula, _WIDTH))), "python")
        case Fold(title=title, inside=inside):
            return f"<details><summary>{_escaped(title)}</summary>\n\n{to_markdown(inside())}\n</details>"
        case Picture():
            return ""


def _table(table: Table) -> str:
    """Return a pipe table; GitHub wants a head, and dashes with a colon where texts end at the right edge."""
    rows = table.rows[: table.most]
    shown = [
        index
        for index, column in enumerate(table.columns)
        if not column.pipe and not (rows and isinstance(rows[0][index], Picture))
    ]
    lines = [
        " | ".join(_escaped(table.columns[index].title) or " " for index in shown),
        " | ".join("--:" if table.columns[index].right else ":--" for index in shown),
        *(" | ".join(_cell(row[index]) for index in shown) for row in rows),
    ]
    more = f"\n\nand {len(table.rows) - len(rows)} more" if len(rows) < len(table.rows) else ""
    return (
        "\n".join(f"| {line} |" for line in lines) + more + (f": {table.more}" if more and table.more else "")
    )


def _cell(cell: Cell) -> str:
    return " " if isinstance(cell, Picture) else _inline(cell) or " "


def _inline(inline: Inline) -> str:
    pieces = inline if isinstance(inline, list) else [inline]
    styled = [(piece, "") if isinstance(piece, str) else piece for piece in pieces]
    return "".join(_styled(text, style) for text, style in styled).replace("\n", "<br>")


def _styled(text: str, style: str) -> str:
    """`**buf0** ` for bold `buf0 `: stars stand at the word, or they are stars."""
    inside = text.strip()
    if "bold" not in style.split() or not inside:
        return _escaped(text)
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{before}**{_escaped(inside)}**{after}"


def _plain(inline: Inline) -> str:
    pieces = inline if isinstance(inline, list) else [inline]
    return _escaped("".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)).replace(
        "\n", " "
    )


def _escaped(text: str) -> str:
    special = _SPECIAL.sub(lambda match: "".join(f"\\{char}" for char in match[0]), visible(text))
    commits = _COMMIT.sub(lambda match: re.sub(r".{6}(?=.)", rf"\g<0>{_APART}", match[0]), special)
    return _LINKED.sub(rf"\g<0>{_APART}", commits)


def _fenced(text: str, language: str) -> str:
    """Return a fence longer than any run of backticks in the text, so that nothing in it ends the block."""
    ticks = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}{language}\n{text}\n{fence}"
