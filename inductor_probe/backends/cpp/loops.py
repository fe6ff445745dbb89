"""The loop nests of a C++ kernel, from one pass over its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from inductor_probe.model.code import Loop, LoopNest, NestFeature
from inductor_probe.model.ir import Dim, as_dim

_TOKEN = re.compile(
    r"""
    //.* | /\*.*?(?:\*/|\Z)                            # what stands in comments, strings and characters
    | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])'             # opens and closes nothing
    | (?P<loop>\bfor\s*\() | (?P<open>\{) | (?P<close>\})
    """,
    re.VERBOSE,
)
# Repetitions have an end, so that no line, however long, costs more than its length.
_HEADER = re.compile(
    r"for\s{0,9}\(\s{0,9}[\w:\s]{1,99}?\b(?P<variable>\w{1,99})\s{0,9}=\s{0,9}(?P<start>[^;\n]{0,999});"
    r"\s{0,9}(?P=variable)\s{0,9}<\s{0,9}(?P<stop>[^;\n]{0,999});"
    r"\s{0,9}(?:(?P=variable)\s{0,9}(?:\+=\s{0,9}(?P<step>[^;\n]{0,999})|\+\+)|\+\+(?P=variable))\s*\)"
)
_CAST = re.compile(r"\bstatic_cast<[\w:]+>")
_SUFFIX = re.compile(r"\b(\d+)U?L{0,2}\b")
_WITHIN = ("_inner", "_tail")
_TRANSPOSE = re.compile(
    r"transpose_mxn<[\w:]+,\s*(?:static_cast<\w+>\()?(\d+)L?\)?,\s*(?:static_cast<\w+>\()?(\d+)"
)

# Each pattern starts with plain text: that is what makes searching a long kernel quick.
_FEATURES: tuple[tuple[NestFeature, re.Pattern[str]], ...] = (
    ("indirect-load", re.compile(r"_ptr\d+\[[^\]\n]{0,400}?\btmp\d")),
    ("atomic-add", re.compile(r"atomic_add\w*\s*[(<]")),
    ("random-number", re.compile(r"rand\w{0,40}?_cpu\(")),
    ("division-in-index", re.compile(r"_ptr\d+\[[^\]\n]{0,400}?(?:%|/|div_floor|mod_)")),
    ("float64", re.compile(r"double[ *>(&]")),
    ("reversed-access", re.compile(r"\(-\d+L?\)\*[xi]\d")),
)
_THREADS = ("tid", "i")
"""Variables of the loops that fill and combine what each thread reduced: they run over no data."""


@dataclass(slots=True)
class _Draft:
    """A loop while its end is not known."""

    header: re.Match[str]
    line: int
    depth: int
    pragmas: tuple[str, ...]
    last: int = 0


@dataclass(slots=True)
class _Nest:
    """An outermost loop while it is read."""

    loops: list[_Draft] = field(default_factory=list)
    vectorised: bool = False


def loop_nests(lines: list[str], first: int, last: int) -> tuple[LoopNest, ...]:
    """Return the loop nests in the lines from `first` to `last` (1-based, both included), in order.

    A nest that is not closed ends with the lines.
    """
    reader = _Reader()
    for number in range(first, last + 1):
        reader.see(number, lines[number - 1])
    reader.end(last)
    nests: list[LoopNest] = []
    for draft in reader.nests:
        nests.append(_nest(lines, draft, nests[-1] if nests else None))
    return tuple(nests)


class _Reader:
    """Follows braces and loops through the lines of a text.

    Nearly every line is a plain statement, so each is asked with substrings first.
    """

    def __init__(self) -> None:
        self.nests: list[_Nest] = []
        self._open: list[list[_Draft]] = []  # for each open brace, the loops whose body it is
        self._looping = 0  # loops whose body is open
        self._waiting: list[_Draft] = []  # loops whose body has not started
        self._pragmas: list[str] = []
        self._in_comment = False

    def see(self, number: int, line: str) -> None:
        """Take the next line."""
        if self._in_comment or "/*" in line:
            line = self._without_comment(line)
        if "#pragma" in line:
            self._pragmas.append(line.partition("#pragma")[2].strip())
            return
        if "{" in line or "}" in line or "for" in line:
            for token in _TOKEN.finditer(line):
                self._token(number, line, token)
        elif self._waiting and line.strip():  # the body is one statement
            self._end(self._waiting, number)
            self._waiting = []
        if "at::vec::" in line and self.nests and (self._looping or self._waiting):
            self.nests[-1].vectorised = True

    def _without_comment(self, line: str) -> str:
        if self._in_comment:
            _, closed, line = line.partition("*/")
            self._in_comment = not closed
        opening = line.rfind("/*")
        if opening >= 0 and "*/" not in line[opening:]:
            self._in_comment = True
            line = line[:opening]
        return line

    def _token(self, number: int, line: str, token: re.Match[str]) -> None:
        if token["loop"]:
            header = _HEADER.match(line, token.start())
            if header:
                self._loop(number, header)
        elif token["open"]:
            self._open.append(self._waiting)
            self._looping += len(self._waiting)
            self._waiting, self._pragmas = [], []
        elif token["close"]:
            self._pragmas = []
            if self._open:
                ended = self._open.pop()
                self._end(ended, number)
                self._looping -= len(ended)

    def _loop(self, number: int, header: re.Match[str]) -> None:
        draft = _Draft(header, number, self._looping + len(self._waiting), tuple(self._pragmas))
        self._pragmas = []
        if not draft.depth:
            self.nests.append(_Nest())
        self.nests[-1].loops.append(draft)
        self._waiting.append(draft)

    def _end(self, loops: list[_Draft], number: int) -> None:
        for draft in loops:
            draft.last = number

    def end(self, last: int) -> None:
        """End what is still open."""
        for loops in (self._waiting, *self._open):
            self._end(loops, last)


def _nest(lines: list[str], draft: _Nest, before: LoopNest | None) -> LoopNest:
    loops = tuple(_loop(loop) for loop in draft.loops)
    outer = loops[0]
    kind: Literal["vectorised", "scalar", "tail", "threads"] = "vectorised" if draft.vectorised else "scalar"
    if outer.variable in _THREADS:
        kind = "threads"
    elif kind == "scalar" and before and before.kind == "vectorised" and _continues(outer, before.loops[0]):
        kind = "tail"
    text = "\n".join(lines[outer.line - 1 : outer.last])
    tile = match.groups() if "transpose_mxn" in text and (match := _TRANSPOSE.search(text)) else ()
    features = tuple(_features(text, loops)) if kind == "scalar" else ()
    return LoopNest(kind, loops, outer.line, outer.last, tuple(map(int, tile)), features)


def _features(text: str, loops: tuple[Loop, ...]) -> Iterator[NestFeature]:
    yield from (name for name, pattern in _FEATURES if pattern.search(text))
    innermost = next((loop.variable for loop in reversed(loops) if not loop.within), "")
    if re.search(rf"_ptr\d+\[[^\]\n]{{0,400}}?\b\d+L?\*{re.escape(innermost)}\b", text):
        yield "strided-access"


def _continues(loop: Loop, before: Loop) -> bool:
    return loop.variable == before.variable and loop.start == before.stop and loop.start != 0


def _loop(draft: _Draft) -> Loop:
    header = draft.header
    step = header["step"]
    variable = header["variable"]
    return Loop(
        variable=variable,
        start=plain(header["start"]),
        stop=plain(header["stop"]),
        step=plain(step) if step else 1,
        depth=draft.depth,
        line=draft.line,
        last=draft.last or draft.line,
        pragmas=draft.pragmas,
        within=variable.endswith(_WITHIN),
    )


@lru_cache(maxsize=4096)  # a kernel has the same few sizes in all of its loops
def plain(text: str) -> Dim:
    """`static_cast<int64_t>(1000L)` is 1000; what is no number stays text, without casts and suffixes."""
    text = _SUFFIX.sub(r"\1", _CAST.sub("", text)).strip()
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1].strip()
    return as_dim(text)


def _closing(text: str) -> int:
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at
    return -1
