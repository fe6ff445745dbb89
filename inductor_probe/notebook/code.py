"""Code with colours: kernels, loop bodies as dumped, formulas, differences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from inductor_probe.model.formula import Definition, Formula
from inductor_probe.notebook.page import escaped
from inductor_probe.report.formula import formula_lines

_LANGUAGES = {"cpp": "cpp", "triton": "python", "cutedsl": "python", "pallas": "python"}
_WIDTH = 110
_MOST = 200_000
"""Characters of a text that gets colours: beyond, a lexer takes seconds."""
_WORDS = frozenset(("for", "over", "of", "once", "reduced", "not", "and", "or"))
_PARTS = re.compile(
    r"(?P<comment># .*)|(?P<number>\b\d[\w.]*)|(?P<name>[A-Za-z_][\w.]*)|(?P<rest>[^A-Za-z_\d#]+|.)"
)


def kernel_code(source: str, backend: str) -> str:
    """Return the text of a kernel with the colours of its language."""
    return code(source, _LANGUAGES.get(backend, "text"))


def code(text: str, language: str) -> str:
    """Return a text with colours; `language` is a name that pygments knows, `diff` among them."""
    text = text.strip("\n")
    if len(text) > _MOST:
        return _block(escaped(text))
    tokens = list(_lexer(language).get_tokens(text))
    kind, last = tokens.pop()  # a lexer ends the last line
    tokens.append((kind, last.rstrip("\n")))
    return _block("".join(_span(_class_of(kind), part) for kind, part in tokens))


def formula(found: Formula) -> str:
    """Return a formula; buffers, loop variables and definitions each have a colour of their own."""
    colours = {view.buffer: "v" for view in found.views}
    colours |= {loop.variable: "f" for loop in found.loops}
    for statement in found.statements:
        if isinstance(statement, Definition):
            colours[statement.name] = "s"
    lines = formula_lines(found, _WIDTH)
    return _block("\n".join("".join(_coloured(line, colours)) for line in lines))


def difference(lines: Iterable[str]) -> str:
    """Return the lines of a unified diff."""
    return code("\n".join(lines), "diff")


def _coloured(line: str, colours: dict[str, str]) -> Iterator[str]:
    for match in _PARTS.finditer(line):
        kind, text = match.lastgroup, match[0]
        if kind == "name":
            yield _span(colours.get(text) or ("k" if text in _WORDS else ""), text)
        else:
            yield _span({"comment": "c", "number": "n"}.get(kind or "", ""), text)


def _span(name: str, text: str) -> str:
    return f'<span class="ip-{name}">{escaped(text)}</span>' if name else escaped(text)


def _block(html: str) -> str:
    return f'<pre class="ip-code">{html}</pre>'


@cache
def _lexer(language: str) -> Any:  # Any: pygments has no types
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 - hundreds of lexers, only for code

    return get_lexer_by_name(language, stripnl=False)


@cache
def _class_of(kind: Any) -> str:
    """Return the class of a kind of token; kinds are nested, `Token.Literal.String.Affix` is a string."""
    from pygments.token import Token  # noqa: PLC0415 - as above

    for parent, name in (
        (Token.Comment, "c"),
        (Token.Literal.String, "s"),
        (Token.Literal.Number, "n"),
        (Token.Name.Function, "v"),
        (Token.Name.Builtin, "v"),
        (Token.Name.Decorator, "f"),
        (Token.Keyword, "k"),
        (Token.Generic.Inserted, "s"),
        (Token.Generic.Deleted, "x"),
        (Token.Generic.Subheading, "n"),
        (Token.Generic.Heading, "bold"),
    ):
        if kind in parent:
            return name
    return ""
