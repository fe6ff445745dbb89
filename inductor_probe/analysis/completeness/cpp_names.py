"""C++ kernels as text: brackets close, statements end, and every name is declared where it is used.

No compiler runs, and this is not one: types, overloads and templates are not resolved. In C++ a name is
declared before its use, within the braces where it is used; so a dropped `auto tmp3 = ...;` leaves a `tmp3`
that nothing declares, and letters that are not C++ leave words side by side.

Names behind `.`, `->` and `::`, names of functions (`f(`) and templates (`f<`) and macros in capitals come
from headers, and are taken as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.values import shorten

_TOKEN = re.compile(
    r"""(?P<directive>\#[^\n]*)
    |(?P<space>\s+|//[^\n]*|/\*.*?\*/|\\\n)
    |(?P<unclosed>/\*)
    |(?P<string>(?:u8|[LuU])?"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
    |(?P<number>(?:0[xX][0-9a-fA-F.]+(?:p[+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      [a-zA-Z]{0,3}(?![\w.]))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<punctuator>\.\.\.|<<=|->\*?|::|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|<<|[-+*/%&|^~!=<>?:;,.()\[\]{}])""",
    re.DOTALL | re.VERBOSE,
)
_PARTNER = {")": "(", "]": "[", "}": "{"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HEADS = _words("class struct union enum namespace")
_INTRODUCE = _HEADS | {"using", "typename"}
_TYPES = _INTRODUCE | _words(
    "auto void bool char short int long float double unsigned signed const constexpr static inline volatile "
    "extern mutable thread_local register typedef template operator"
)
_STATEMENTS = _words("for if while do else return switch case break continue goto throw try")
_CONTROL = _STATEMENTS | _words(
    "default new delete sizeof catch alignas alignof decltype noexcept static_assert and or not asm __asm__"
)
_VALUES = _words("true false nullptr this NULL")
# Variables of inductor's own headers.
_HEADER_NAME = re.compile(r"inductor_\w+")
_TYPE_NAME = re.compile(r"\w+_t|__\w+|[A-Z]\w*|bfloat16|half|uint\d*|int\d+")
_MACRO = re.compile(r"[A-Z][A-Z0-9_]*")
_BINARY = _words("/ % ^ | || == != <= >= += -= *= /= %= &= |= ^= << <<= ? = + - < .")
_ENDS = _words(") ] } ; ,")
_BEFORE_BLOCK = _words(") ] ; { } else do try")
_DECLARED_BEFORE = _words("= ; , ) [ ( { :")
_DIRECTIVE = re.compile(
    r"""\#[ \t]*(?:include[ \t]+[<"][^<>"]+[>"]|(?:if|ifdef|ifndef|elif|define|undef)[ \t]+.*
    |(?:else|endif)\b.*)""",
    re.VERBOSE,
)
_PRAGMA = re.compile(r"#[ \t]*pragma[ \t]+(?:omp|GCC|once|clang|unroll|STDC|message)\b.*")
_NOT_IN_DIRECTIVES = re.compile(r"[@`$]")
_DEEPEST = 200
"""Brackets in each other; inductor's are a dozen deep."""
_MOST = 5
"""Problems of a kernel that are told: one that is there makes others."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class _Bracket:
    """An open bracket, or the `<` of a template.

    Attributes:
        block: statements are in it.
        loop: it is that of a `for`, in which `;` may stand.
        outside: the names declared in the brackets around it, which a lambda among the arguments of a call
            must not take away.
    """

    text: str
    line: int
    block: bool = False
    loop: bool = False
    outside: frozenset[str] = frozenset()


def cpp_problems(source: str, path: Path, first: int) -> Iterator[Problem]:
    """Yield what is not C++ in the text of a kernel, or not declared; `first` is the line it begins at."""
    reader = _Reader()
    tokens = list(_tokens(source, reader))
    if not reader.problems:
        reader.read(tokens)
    for message, line in reader.problems:
        index = first + line - 1
        yield Problem(message, Span(path, index, index))


def _tokens(source: str, reader: _Reader) -> Iterator[_Token]:
    line, index = 1, 0
    while index < len(source):
        match = _TOKEN.match(source, index)
        if match is None or match.lastgroup == "unclosed":
            text = source[index:].partition("\n")[0]
            reader.problems.append((f"not C++: {shorten(text.strip())}", line))
            return
        kind, text = str(match.lastgroup), match[0]
        index = match.end()
        if kind == "directive":
            known = _PRAGMA if "pragma" in text else _DIRECTIVE
            if not known.fullmatch(text) or _NOT_IN_DIRECTIVES.search(text):
                reader.problems.append((f"not understood: {shorten(text.strip())}", line))
        elif kind != "space":
            yield _Token(kind, text, line)
        line += text.count("\n")


@dataclass(slots=True)
class _Reader:
    """Follows tokens, the names declared so far and the brackets that are open.

    Names declared within round brackets (parameters, the variable of a `for`) are `pending` until the block
    behind them begins, whose they are, or a `;` ends the statement.
    """

    problems: list[tuple[str, int]] = field(default_factory=list)
    brackets: list[_Bracket] = field(default_factory=list)
    scopes: list[set[str]] = field(default_factory=lambda: [set()])
    pending: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)  # `using Vectorized = at::vec::Vectorized<float>;`
    heads: bool = False  # the `{` to come begins the body of a class, or of a lambda with `-> type`
    broken: bool = False  # brackets do not match: nothing more can be said

    def read(self, tokens: list[_Token]) -> None:
        """Follow the tokens.

        `before` says what the last one was, `last` is its text: `type` (a name that is no variable, or the
        end of a template's arguments), `pointer` (a `*` or `&` behind a type), `value` (a variable or
        number), `member`, `function`, `open` (a bracket), else the token itself.
        """
        before, last = ";", ";"
        for index, token in enumerate(tokens):
            follows = tokens[index + 1].text if index + 1 < len(tokens) else ""
            if token.kind == "name":
                before = self.name(token, before, last, follows)
            elif token.kind == "string":
                before = "type" if last == "extern" else "value"  # `extern "C" void kernel(`
            elif token.kind == "number":
                if before in ("value", "member"):
                    self.problem(f"an operator is missing before {token.text}", token)
                before = "value"
            else:
                before = self.punctuator(token, before, last)
            last = token.text
            if len(self.brackets) > _DEEPEST:
                self.problem("brackets are nested too deeply to be inductor's", token)
            if self.broken or len(self.brackets) > _DEEPEST or len(self.problems) >= _MOST:
                return
        if self.brackets:
            bracket = self.brackets[-1]
            self.problems.append((f"{bracket.text} is not closed", bracket.line))
        elif last not in ("}", ";"):
            self.problems.append(("the last statement does not end", tokens[-1].line if tokens else 1))

    def problem(self, message: str, token: _Token) -> None:
        self.problems.append((message, token.line))

    def knows(self, name: str) -> bool:
        return name in self.pending or any(name in scope for scope in self.scopes)

    def name(self, token: _Token, before: str, last: str, follows: str) -> str:
        """Take a name; return what it is."""
        name = token.text
        if last == "::":
            return "type"
        if last in (".", "->") or (last == "template" and before == "member"):
            return "member"
        if name in _TYPES or name in _CONTROL:
            return self.keyword(token, before, last)
        if last in _INTRODUCE:
            self.types.add(name)
            return "type"
        if before in ("type", "pointer") and follows in _DECLARED_BEFORE:
            inside = bool(self.brackets) and not self.brackets[-1].block
            (self.pending if inside else self.scopes[-1]).add(name)
            return "value"
        if before in ("value", "member"):
            self.problem(f"an operator is missing before {name}", token)
            return "value"
        if name in self.types and not self.knows(name):
            return "type"
        if follows == "(" and not self.knows(name):
            return "function"
        if follows == "::" or (follows == "<" and not self.knows(name)):
            return "type"
        if self.knows(name) or name in _VALUES or _MACRO.fullmatch(name) or _HEADER_NAME.fullmatch(name):
            return "value"
        if _TYPE_NAME.fullmatch(name):
            return "type"
        self.problem(f"{name} is used, but not declared there", token)
        self.scopes[0].add(name)  # told once
        return "value"

    def keyword(self, token: _Token, before: str, last: str) -> str:
        """Take a word of the language; return what it is."""
        name = token.text
        if name in _TYPES:
            if before in ("value", "member"):
                self.problem(f"an operator is missing before {name}", token)
            self.heads = self.heads or name in _HEADS
            return "type"
        if before == "type" and last not in _TYPES and name in _STATEMENTS:
            self.problem(f"{last} stands before {name}", token)
        return name

    def punctuator(self, token: _Token, before: str, last: str) -> str:
        """Take an operator or a bracket; return what it is."""
        text = token.text
        if last in _BINARY and text in _ENDS and not (last == "=" and text in "])"):
            self.problem(f"{last} stands before {text}", token)
        if text == "<" and before in ("type", "member", "function"):
            self.brackets.append(_Bracket("<", token.line))
            return "open"
        if text in (">", ">>") and self.brackets and self.brackets[-1].text == "<":
            for _ in text:
                if self.brackets[-1:] and self.brackets[-1].text == "<":
                    self.brackets.pop()
            return "type"
        if text in ("*", "&", "&&") and before in ("type", "pointer"):
            return "pointer"
        if text in "([{":
            return self.opening(token, before, last)
        if text in ")]}":
            return self.closing(token, before)
        if text == "->" and before == ")":
            self.heads = True
        if text == ";":
            self.semicolon(token)
        return text

    def semicolon(self, token: _Token) -> None:
        bracket = self.brackets[-1] if self.brackets else None
        if bracket is not None and not bracket.block and not bracket.loop:
            self.problem(f"{bracket.text} is not closed before ;", token)
            self.broken = True
        if bracket is None or bracket.block:
            self.pending.clear()
            self.heads = False

    def opening(self, token: _Token, before: str, last: str) -> str:
        text = token.text
        if text != "{":
            self.brackets.append(_Bracket(text, token.line, loop=last == "for"))
            return "open"
        block = self.heads or before in _BEFORE_BLOCK or last in ("const", "mutable", "noexcept", '"C"')
        outside = frozenset(self.pending)
        self.brackets.append(_Bracket("{", token.line, block=block, outside=outside))
        if not block:
            return "open"
        self.scopes.append(set(self.pending))
        self.pending = set()
        self.heads = False
        return "{"

    def closing(self, token: _Token, before: str) -> str:
        text = token.text
        while self.brackets and self.brackets[-1].text == "<":  # `a < b)`: it was no template
            self.brackets.pop()
        bracket = self.brackets.pop() if self.brackets else None
        if bracket is None or bracket.text != _PARTNER[text]:
            self.problem(f"{text} closes {bracket.text if bracket else 'nothing'}", token)
            self.broken = True
            return text
        if not bracket.block:
            return "value" if text == "}" else text
        if before not in (";", "{", "}", ":"):
            self.problem(f"; is missing before {text}", token)
        self.scopes.pop()
        inside = bool(self.brackets) and not self.brackets[-1].block
        self.pending = set(bracket.outside) if inside else set()
        return "}"
