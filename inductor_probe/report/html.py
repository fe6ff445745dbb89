"""Documents as HTML: for notebooks, and for a page to share. One style for light and dark, text escaped.

Nothing in it runs: folds are `<details>`, pictures are SVG. Text of a dump comes from strangers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from html import escape
from typing import Any

from inductor_probe.model.formula import Definition, Formula
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

_LIGHT = (
    "--ip-red:#c4262e;--ip-green:#1a7f37;--ip-yellow:#9a6700;--ip-cyan:#0b7285;--ip-blue:#0550ae;"
    "--ip-violet:#8250df;--ip-dim:#6a737d;--ip-paper:#fff;"
)
_DARK = (
    "--ip-red:#ff7b72;--ip-green:#56d364;--ip-yellow:#e3b341;--ip-cyan:#56d4dd;--ip-blue:#79c0ff;"
    "--ip-violet:#d2a8ff;--ip-dim:#9aa4af;--ip-paper:#161b22;"
)
_DARK_PLACES = ('[data-jp-theme-light="false"] .ip', ".vscode-dark .ip", 'html[theme="dark"] .ip')
"""How JupyterLab, VS Code and Colab say that they are dark; a rendered copy is `by-system`."""

_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px;"
_RULES = (
    """
.ip{font-size:13px;line-height:1.45;overflow-x:auto;padding:2px 0 6px}
.ip-line{white-space:pre-wrap;overflow-wrap:anywhere}
.ip-gap{height:.7em}
.ip-bold{font-weight:600}.ip-dim{color:var(--ip-dim)}.ip-red{color:var(--ip-red)}
.ip-green{color:var(--ip-green)}.ip-yellow{color:var(--ip-yellow)}.ip-cyan{color:var(--ip-cyan)}
.ip.ip table.ip-table{border-collapse:collapse;border:0;margin:2px 0 4px;width:auto;table-layout:auto;MONO}
.ip.ip table.ip-table tr,.ip.ip table.ip-table tbody tr{background:none;border:0}
.ip.ip table.ip-table td,.ip.ip table.ip-table th{text-align:left;vertical-align:top;padding:2px 16px 2px 0;
 border:0;white-space:pre-wrap;overflow-wrap:break-word;max-width:112ch;font-weight:inherit}
.ip.ip table.ip-rows :is(td,th){white-space:pre}
.ip.ip table.ip-rows td.ip-long{white-space:pre-wrap;min-width:40ch;max-width:72ch}
.ip.ip table.ip-table th{color:var(--ip-dim);font-weight:400;border-bottom:1px solid #8885}
.ip.ip table.ip-rows tbody tr:hover{background:#8882}
.ip.ip table.ip-table td.ip-right,.ip.ip table.ip-table th.ip-right{text-align:right}
.ip.ip table.ip-table .ip-bold{font-weight:600}
.ip.ip pre.ip-code{margin:4px 0;padding:7px 10px;border-left:3px solid #8886;background:#8881;overflow-x:auto;
 white-space:pre;line-height:1.45;max-height:34em;overflow-y:auto;color:inherit;MONO}
.ip details{margin:3px 0}.ip summary{cursor:pointer;width:fit-content}
.ip summary:hover{color:var(--ip-blue)}
.ip-chip{border:1px solid currentColor;border-radius:8px;padding:0 6px;font-size:11px;white-space:nowrap}
.ip-k{color:var(--ip-violet)}.ip-v{color:var(--ip-blue)}.ip-n{color:var(--ip-cyan)}.ip-s{color:var(--ip-green)}
.ip-c{color:var(--ip-dim);font-style:italic}.ip-f{color:var(--ip-yellow)}.ip-x{color:var(--ip-red)}
.ip.ip svg{display:block;max-width:none;color:inherit;overflow:visible}.ip svg text{fill:currentColor}
.ip.ip .ip-figure svg{max-width:100%;height:auto}
.ip td svg{margin-top:2px}
.ip-scroll{overflow-x:auto}.ip.ip .ip-map{margin:6px 0 4px;MONO}.ip-map foreignObject{overflow:visible}
.ip-map label{display:block;width:100%;height:100%;border-radius:5px;cursor:pointer;margin:0}
.ip-map text{white-space:pre}.ip.ip .ip-map .ip-bold{font-weight:600}
.ip-box{fill:var(--ip-paper);stroke:#8888}.ip-of{fill:var(--ip-of,#888)}.ip-buffer .ip-box{stroke:#8886}
.ip-ends .ip-box{stroke-width:2}.ip-marked .ip-box{stroke:var(--ip-red)}.ip-fold .ip-box{stroke-dasharray:5 3}
.ip-node.ip-path .ip-box,.ip-buffer.ip-path .ip-box{stroke:var(--ip-yellow);stroke-width:2.5}
.ip-map text.ip-share,.ip-map text.ip-beside,.ip.ip .ip-map .ip-dim{fill:var(--ip-dim)}
.ip.ip .ip-map .ip-kernel{fill:var(--ip-dim);font-size:11px}.ip-map text.ip-beside{font-size:11px}
.ip-map .ip-red{fill:var(--ip-red)}.ip-map .ip-green{fill:var(--ip-green)}
.ip-map .ip-yellow{fill:var(--ip-yellow)}
.ip-map .ip-cyan{fill:var(--ip-cyan)}.ip-cost{fill:var(--ip-yellow)}.ip-tie{stroke:#8888}
.ip-node:hover .ip-box,.ip-buffer:hover .ip-box{stroke:var(--ip-blue)}
.ip-wire{fill:none;stroke:#8889}.ip-wire.ip-path{stroke:var(--ip-yellow)}.ip-wire.ip-slow{stroke:var(--ip-red)}
.ip-tip{fill:#888}.ip-tip.ip-path{fill:var(--ip-yellow)}.ip-tip.ip-slow{fill:var(--ip-red)}
.ip-k0{--ip-of:#3b82f6}.ip-k1{--ip-of:#e08c1a}.ip-k2{--ip-of:#3fa35b}.ip-k3{--ip-of:#a371f7}
.ip-k4{--ip-of:#e5534b}.ip-k5{--ip-of:#1aa3a8}.ip-k6{--ip-of:#d4679f}.ip-k7{--ip-of:#8a8f29}
INDENTS
.ip-pick{position:absolute;opacity:0;pointer-events:none}
.ip-panel{display:none;border-top:1px solid #8885;padding-top:6px}.ip-pick:checked+.ip-panel{display:block}
.ip-legend{display:flex;flex-wrap:wrap;gap:2px 18px;margin:4px 0;font-size:12px}
.ip-legend label{cursor:pointer}.ip-legend i{display:inline-block;width:5px;height:12px;margin-right:6px;
 background:var(--ip-of);vertical-align:-1px}
""".replace("MONO", _MONO)
    .replace("INDENTS", "".join(f".ip-i{width}{{margin-left:{width}ch}}" for width in range(1, 25)))
    .replace("\n ", "")
    .replace("\n", "")
)
RULES = (
    f".ip{{{_LIGHT}}}{','.join(_DARK_PLACES)}{{{_DARK}}}"
    f"@media(prefers-color-scheme:dark){{.by-system .ip{{{_DARK}}}}}{_RULES}"
)
STYLE = f"<style>{RULES}</style>"
"""For all that stands in an element of class `ip`; it touches nothing else of the page around."""


_LONG = 60
"""A cell with more characters may be broken into lines; one with less is read at one glance."""
_MOST_COLOURED = 200_000
"""Characters of a text that gets colours: beyond, a lexer takes seconds."""
_FORMULA_WIDTH = 110
_FORMULA_WORDS = frozenset(("for", "over", "of", "once", "reduced", "not", "and", "or"))
_FORMULA_PARTS = re.compile(
    r"(?P<comment># .*)|(?P<number>\b\d[\w.]*)|(?P<name>[A-Za-z_][\w.]*)|(?P<rest>[^A-Za-z_\d#]+|.)"
)


def page(document: Document, style: str = "") -> str:
    """Return a document as one output; `style` are CSS rules of this one alone.

    The style comes with each output, since each may be cut out, copied or folded away alone.
    """
    own = f"<style>{style}</style>" if style else ""
    return f'{STYLE}{own}<div class="ip">{html(document)}</div>'


def html(document: Document) -> str:
    """Return a document without the frame and the style around it."""
    return "".join(map(_block, document))


def escaped(text: str) -> str:
    """Return text of a dump fit for HTML and its attributes; what acts on a reader is shown as an escape."""
    return escape(visible(text))


def _block(block: Block) -> str:
    match block:
        case Heading(text=text):
            return f'<div class="ip-line">{_inline(text)}</div>'
        case Line(text=text, indent=indent):
            return _line(_inline(text), indent)
        case RemarkLine(kind=kind, text=text, indent=indent):
            sign, colour = _SIGNS[kind]
            return _line(f'<span class="ip-bold ip-{colour}">{sign}</span> {escaped(text)}', indent)
        case Facts(rows=rows, indent=indent):
            facts = [f'<td class="ip-dim">{escaped(name)}</td>{_cell(text)}' for name, text in rows if text]
            return _indented(_table_html("", facts), indent) if facts else ""
        case Table():
            return _table(block)
        case Code():
            return _indented(_code(block), block.indent)
        case FormulaBlock(formula=formula, indent=indent):
            return _indented(_formula(formula), indent)
        case Picture(html=make):
            return make()
        case Fold(title=title, inside=inside):
            return _folded(title, html(inside()))


_SIGNS = {
    "passed": ("+", "green"),
    "missed": ("!", "yellow"),
    "analysis": ("-", "cyan"),
    "hazard": ("!", "red"),
}


def _line(inside: str, indent: int = 0) -> str:
    return _indented(
        f'<div class="ip-line">{inside}</div>' if inside else '<div class="ip-gap"></div>', indent
    )


def _indented(inside: str, indent: int) -> str:
    return f'<div class="ip-i{min(indent, 24)}">{inside}</div>' if indent else inside


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{escaped(title)}</summary>{inside}</details>"


def _inline(inline: Inline) -> str:
    pieces = inline if isinstance(inline, list) else [inline]
    styled = [(piece, "") if isinstance(piece, str) else piece for piece in pieces]
    return "".join(_span(" ".join(f"ip-{word}" for word in style.split()), text) for text, style in styled)


def _span(classes: str, text: str) -> str:
    return f'<span class="{classes}">{escaped(text)}</span>' if classes else escaped(text)


def _table(table: Table) -> str:
    head = "".join(
        f'<th class="ip-right">{escaped(column.title)}</th>'
        if column.right
        else f"<th>{escaped(column.title)}</th>"
        for column in table.columns
        if not column.pipe
    )
    head = head if any(column.title for column in table.columns) else ""
    rows = [
        "".join(
            _cell(cell, column.right, column.fold != "never")
            for cell, column in zip(row, table.columns, strict=True)
            if not column.pipe
        )
        for row in table.rows
    ]
    shown = _table_html(head, rows[: table.most])
    if table.most is not None and len(rows) > table.most:
        shown += _folded(f"and {len(rows) - table.most} more", _table_html(head, rows[table.most :]))
    return _indented(shown, table.indent)


def _cell(cell: Cell, right: bool = False, wraps: bool = True) -> str:
    if isinstance(cell, Picture):
        return f"<td>{cell.html()}</td>"
    pieces = cell if isinstance(cell, list) else [cell]
    length = sum(len(piece if isinstance(piece, str) else piece[0]) for piece in pieces)
    classes = " ".join(
        filter(None, ("ip-long" if wraps and length > _LONG else "", "ip-right" if right else ""))
    )
    return f'<td class="{classes}">{_inline(cell)}</td>' if classes else f"<td>{_inline(cell)}</td>"


def _table_html(head: str, rows: Sequence[str]) -> str:
    titles = f"<thead><tr>{head}</tr></thead>" if head else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table class="ip-table{" ip-rows" if head else ""}">{titles}<tbody>{body}</tbody></table>'


def _code(code: Code) -> str:
    """Return code with the colours of its language."""
    text = code.text.strip("\n")
    coloured = code.language and len(text) <= _MOST_COLOURED
    return f'<pre class="ip-code">{_tokens(code.language, text) if coloured else escaped(text)}</pre>'


@lru_cache(maxsize=64)
def _tokens(language: str, text: str) -> str:
    """Return the text with a span for each token; pages of a graph's nodes have the same kernels."""
    tokens = list(_lexer(language).get_tokens(text))
    kind, last = tokens.pop()  # a lexer ends the last line
    tokens.append((kind, last.rstrip("\n")))
    return "".join(_span(_class_of(kind), part) for kind, part in tokens)


def _formula(formula: Formula) -> str:
    """Return a formula; buffers, loop variables and definitions each have a colour of their own."""
    colours = {view.buffer: "ip-v" for view in formula.views}
    colours |= {loop.variable: "ip-f" for loop in formula.loops}
    colours |= {line.name: "ip-s" for line in formula.statements if isinstance(line, Definition)}
    lines = ("".join(_coloured(line, colours)) for line in formula_lines(formula, _FORMULA_WIDTH))
    return f'<pre class="ip-code">{chr(10).join(lines)}</pre>'


def _coloured(line: str, colours: dict[str, str]) -> Iterator[str]:
    for match in _FORMULA_PARTS.finditer(line):
        kind, text = match.lastgroup, match[0]
        if kind == "name":
            yield _span(colours.get(text) or ("ip-k" if text in _FORMULA_WORDS else ""), text)
        else:
            yield _span({"comment": "ip-c", "number": "ip-n"}.get(kind or "", ""), text)


@cache
def _lexer(language: str) -> Any:  # Any: pygments has no types
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 - hundreds of lexers, only for code

    return get_lexer_by_name(language, stripnl=False)


@cache
def _class_of(kind: Any) -> str:
    """Return the class of a kind of token; kinds are nested, `Token.Literal.String.Affix` is a string."""
    from pygments.token import Token  # noqa: PLC0415 - as above

    classes = {
        "ip-c": [Token.Comment],
        "ip-s": [Token.Literal.String, Token.Generic.Inserted],
        "ip-n": [Token.Literal.Number, Token.Generic.Subheading],
        "ip-v": [Token.Name.Function, Token.Name.Builtin],
        "ip-f": [Token.Name.Decorator],
        "ip-k": [Token.Keyword],
        "ip-x": [Token.Generic.Deleted],
        "ip-bold": [Token.Generic.Heading],
    }
    return next((name for name, kinds in classes.items() if any(kind in each for each in kinds)), "")
