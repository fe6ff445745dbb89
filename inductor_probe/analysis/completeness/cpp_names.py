"""C++ kernels as text: brackets close, statements end, and every name is declared where it is used.

No compiler runs, and this is not one: types, overloads and templates are not resolved. In C++ a name is
declared before its use, within the braces where it is used; so a dropped `auto tmp3 = ...;` leaves a `tmp3`
that nothing declares, and letters that are not C++ leave words side by side.

Names behind `.`, `->` and `::`, names of functions (`f(`) and templates (`f<`) and macros in capitals come
from headers, and are not looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from inductor_probe.analysis.completeness import Defect, once_per_text
from inductor_probe.model.record import words
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
_DIRECTIVE = re.compile(
    r"""\#[ \t]*(?:include[ \t]+[<"][^<>"@`$]+[>"]|(?:if|ifdef|ifndef|elif|define|undef)[ \t]+[^@`$]*
    |(?:else|endif)\b[^@`$]*|pragma[ \t]+(?:omp|GCC|once|clang|unroll|STDC|message)\b[^@`$]*)""",
    re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"\[\[[\w:]+\]\]")
_RAW_STRING = re.compile(r'R"\(.*?\)"')
_PARTNER = {")": "(", "]": "[", "}": "{"}
_OPENING = frozenset(_PARTNER.values())
_HEADS = words("class struct union enum namespace")
_INTRODUCE = _HEADS | {"using", "typename"}
_TYPES = _INTRODUCE | words(
    "auto void bool char short int long float double unsigned signed const constexpr static inline volatile "
    "extern mutable thread_local register typedef template operator"
)
_STATEMENTS = words("for if while do else return switch case break continue goto throw try")
_CONTROL = _STATEMENTS | words(
    "default new delete sizeof catch alignas alignof decltype noexcept static_assert and or not asm __asm__"
)
# Values that nothing declares: words, macros, and variables of inductor's own headers.
_VALUE = re.compile(r"true|false|nullptr|this|[A-Z][A-Z0-9_]*|inductor_\w+")
_TYPE_NAME = re.compile(r"\w+_t|__\w+|[A-Z]\w*|bfloat16|half|uint\d*|int\d+")
_BINARY = words("/ % ^ | || == != <= >= += -= *= /= %= &= |= ^= << <<= ? = + - < .")
_ENDS = words(") ] } ; ,")
_BEFORE_BLOCK = words(") ] ; { } else do try")
_DECLARED_BEFORE = words("= ; , ) [ ( { :")
_DEEPEST = 200
"""Brackets in each other; inductor's are a dozen deep."""
_MOST = 5
"""Defects of a kernel that are reported: one causes others."""


class _Token(NamedTuple):
    kind: str
    text: str


_Placed: TypeAlias = "tuple[int, _Token]"
"""A token and its line."""


class _Bracket(NamedTuple):
    """An open bracket, or the `<` of a template.

    `block`: statements are in it; `loop`: it is that of a `for`, in which `;` may be; `names_type`: it is
    that of a `decltype`; `outside`: the names declared in the brackets around it, which a lambda among the
    arguments of a call must not remove.
    """

    text: str
    line: int
    block: bool = False
    loop: bool = False
    names_type: bool = False
    outside: frozenset[str] = frozenset()


def cpp_defects(source: str, first: int) -> list[Defect]:
    """Return what is not C++ in the text of a kernel, or not declared; `first` is the line it begins at."""
    reader = _Reader()
    tokens = reader.tokens(source)
    if not reader.defects:
        reader.read(tokens)
    return [(first + line - 1, message) for line, message in reader.defects]


def bracket_defects(source: str, first: int) -> Iterator[Defect]:
    """Yield what is not C++ in a whole file, and brackets that do not match: its names are not looked up."""
    reader = _Reader()
    stack: list[_Placed] = []
    tokens = reader.tokens(_RAW_STRING.sub('""', source))
    yield from ((first + line - 1, message) for line, message in reader.defects)
    for line, token in tokens if not reader.defects else ():
        if token.text in _OPENING:
            stack.append((line, token))
        elif token.text in _PARTNER and (not stack or stack.pop()[1].text != _PARTNER[token.text]):
            yield first + line - 1, f"{token.text} closes no bracket"
            return
    if stack:
        line, token = stack[-1]
        yield first + line - 1, f"{token.text} is not closed"


@once_per_text
def _tokens_of(line: str) -> tuple[_Token, ...] | None:
    """Return the tokens of a line that has no part of a comment over several; None if it is not C++."""
    tokens: list[_Token] = []
    end = 0
    for match in _TOKEN.finditer(line):
        kind, text = str(match.lastgroup), match[0]
        if match.start() != end or kind == "unclosed":
            return None
        if kind == "directive" and not _DIRECTIVE.fullmatch(text):
            return None
        if kind not in ("directive", "space"):
            tokens.append(_Token(kind, text))
        end = match.end()
    return tuple(tokens) if end == len(line) else None


class _Reader:
    """Follows tokens, the names declared so far and the brackets that are open.

    Each of `scopes` is a block that is open, and has the names of those around it, too.
    Names declared within round brackets (parameters, the variable of a `for`) are `pending` until the block
    behind them begins, whose they are, or a `;` ends the statement.
    """

    def __init__(self) -> None:
        self.defects: list[tuple[int, str]] = []
        self.line = 1
        self.brackets: list[_Bracket] = []
        self.scopes: list[set[str]] = [set()]
        self.pending: set[str] = set()
        self.types: set[str] = set()  # `using Vectorized = at::vec::Vectorized<float>;`
        self.declaring: int | None = None  # brackets around a declaration: `int64_t i = 0, j = 0;`
        self.head = False  # the next `{` begins the body of a class, or of a lambda with `-> type`
        self.broken = False  # brackets do not match: nothing more can be concluded

    def tokens(self, source: str) -> list[_Placed]:
        source = _ATTRIBUTE.sub(lambda match: " " * len(match[0]), source)
        if "/*" not in source and "\\\n" not in source:
            tokens: list[_Placed] = []
            for number, text in enumerate(source.split("\n"), 1):
                of_line = _tokens_of(text.strip())
                if of_line is None:
                    break
                tokens += [(number, token) for token in of_line]
            else:
                return tokens
        return self._all_tokens(source)

    def _all_tokens(self, source: str) -> list[_Placed]:
        """Return the tokens up to the first that is not C++, which is reported."""
        tokens: list[_Placed] = []
        line, index = 1, 0
        while index < len(source):
            match = _TOKEN.match(source, index)
            if match is None or match.lastgroup == "unclosed":
                text = source[index:].partition("\n")[0]
                self.defects.append((line, f"not C++: {shorten(text.strip())}"))
                break
            kind, text = str(match.lastgroup), match[0]
            index = match.end()
            if kind == "directive":
                if not _DIRECTIVE.fullmatch(text):
                    self.defects.append((line, f"not understood: {shorten(text.strip())}"))
            elif kind != "space":
                tokens.append((line, _Token(kind, text)))
            line += text.count("\n")
        return tokens

    def read(self, tokens: list[_Placed]) -> None:
        """Follow the tokens.

        `before` says what the last one was, `last` is its text: `type` (a name that is no variable, or the
        end of a template's arguments), `pointer` (a `*` or `&` behind a type), `value` (a variable or
        number), `member`, `function`, `open` (a bracket), else the token itself. In `const float* p = f(x)`
        the tokens before `p` are `type type pointer`, so that `p` is declared there.
        """
        before, last = ";", ";"
        following = iter(tokens)
        next(following, None)
        for self.line, token in tokens:
            after = next(following, None)
            if token.kind == "name":
                before = self.name(token, before, last, after[1].text if after else "")
            elif token.kind == "string":
                before = "type" if last == "extern" else "value"  # `extern "C" void kernel(`
            elif token.kind == "number":
                self.operand(token, before)
                before = "value"
            else:
                before = self.punctuator(token, before, last)
            last = token.text
            if len(self.brackets) > _DEEPEST:
                self.defect("brackets are nested too deeply to be inductor's")
                return
            if self.broken or len(self.defects) >= _MOST:
                return
        if self.brackets:
            bracket = self.brackets[-1]
            self.defects.append((bracket.line, f"{bracket.text} is not closed"))
        elif last not in ("}", ";"):
            self.defects.append((self.line, "the last statement is not terminated"))

    def defect(self, message: str) -> None:
        self.defects.append((self.line, message))

    def operand(self, token: _Token, before: str) -> bool:
        """Report an operand right behind another; return whether it is."""
        if before in ("value", "member"):
            self.defect(f"an operator is missing before {token.text}")
            return True
        return False

    def name(self, token: _Token, before: str, last: str, following: str) -> str:  # noqa: PLR0912 - one arm a kind
        """Take a name; return what it is."""
        name = token.text
        if last == "::":
            return "type"
        if last in (".", "->") or (last == "template" and before == "member"):
            return "member"
        if name in _CONTROL:
            if before == "type" and last not in _TYPES and name in _STATEMENTS:
                self.defect(f"unexpected {last} before {name}")
            return name
        if name in _TYPES:
            self.operand(token, before)
            self.head = self.head or name in _HEADS
            return "type"
        if last in _INTRODUCE:
            self.types.add(name)
            return "type"
        if before in ("type", "pointer") and following in _DECLARED_BEFORE:
            in_parentheses = bool(self.brackets) and not self.brackets[-1].block
            (self.pending if in_parentheses else self.scopes[-1]).add(name)
            self.declaring = len(self.brackets)
            return "value"
        if last == "," and self.declaring == len(self.brackets) and following in ("=", ",", ";"):
            self.scopes[-1].add(name)
            return "value"
        if self.operand(token, before):
            return "value"
        if name in self.scopes[-1] or name in self.pending:
            return "type" if following == "::" else "value"
        if name in self.types or following in ("::", "<"):
            return "type"
        if following == "(":
            return "function"
        if _TYPE_NAME.fullmatch(name) and not _VALUE.fullmatch(name):
            return "type"
        if not _VALUE.fullmatch(name):
            self.defect(f"{name} is used but not declared")
            for scope in self.scopes:  # reported once
                scope.add(name)
        return "value"

    def punctuator(self, token: _Token, before: str, last: str) -> str:
        """Take an operator or a bracket; return what it is."""
        text = token.text
        if last in _BINARY and text in _ENDS and not (last == "=" and text in "])"):
            self.defect(f"unexpected {last} before {text}")
        if text == "<" and before in ("type", "member", "function"):
            self.brackets.append(_Bracket("<", self.line))
            return "open"
        if text == ">" and self.brackets and self.brackets[-1].text == "<":
            self.brackets.pop()
            return "type"
        if text in ("*", "&", "&&") and before in ("type", "pointer"):
            return "pointer"
        if text in "([{":
            return self.opening(token, before, last)
        if text in ")]}":
            return self.closing(token, before)
        if text == "->" and before == ")":
            self.head = True
        if text == ";":
            self.declaring = None
            bracket = self.brackets[-1] if self.brackets else None
            if bracket is not None and not bracket.block and not bracket.loop:
                self.defect(f"{bracket.text} is not closed before ;")
                self.broken = True
            if bracket is None or bracket.block:
                self.pending.clear()
                self.head = False
        return text

    def opening(self, token: _Token, before: str, last: str) -> str:
        text = token.text
        if text != "{":
            bracket = _Bracket(text, self.line, loop=last == "for", names_type=last == "decltype")
            self.brackets.append(bracket)
            return "open"
        block = self.head or before in _BEFORE_BLOCK or last in ("const", "mutable", "noexcept", '"C"')
        self.brackets.append(_Bracket("{", self.line, block, outside=frozenset(self.pending)))
        if not block:
            return "open"
        self.scopes.append(self.scopes[-1] | self.pending)
        self.pending = set()
        self.head = False
        return "{"

    def closing(self, token: _Token, before: str) -> str:
        text = token.text
        while self.brackets and self.brackets[-1].text == "<":  # `a < b)`: it was no template
            self.brackets.pop()
        bracket = self.brackets.pop() if self.brackets else None
        if bracket is None or bracket.text != _PARTNER[text]:
            self.defect(f"{text} closes {bracket.text if bracket else 'nothing'}")
            self.broken = True
            return text
        if bracket.names_type:  # `constexpr decltype(tmp0) max_shift = 16;`
            return "type"
        if not bracket.block:
            return "value" if text == "}" else text
        if before not in (";", "{", "}", ":"):
            self.defect(f"; is missing before {text}")
        self.scopes.pop()
        in_parentheses = bool(self.brackets) and not self.brackets[-1].block
        self.pending = set(bracket.outside) if in_parentheses else set()
        return "}"
