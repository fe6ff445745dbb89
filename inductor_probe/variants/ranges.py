"""Which values the variables of a kernel take, as far as its text proves it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from inductor_probe.backends.brackets import inside, split_arguments
from inductor_probe.model.code import Loop
from inductor_probe.variants.coordinates import Range, UnprovedError
from inductor_probe.variants.index import Language, python_text

_ASSIGNED = re.compile(
    r"^[ \t]*(?:(?:const )?auto |)(?P<name>\w+)(?:[ \t]*:[^=\n]*)? =(?!=)\s*", re.MULTILINE
)
_CLAMP = re.compile(
    r"(?:[\w:.]*?)(?P<how>minimum|maximum|min_propagate_nan|max_propagate_nan|std::min|std::max)\("
)
_CONSTANT = re.compile(r"static_cast<\w+>\((-?\d+)L?\)|tl\.full\(\[[^\]]*\], (-?\d+), tl\.u?int\d+\)")
_SAME = re.compile(
    r"at::vec::Vectorized(?:N)?<[\w, :]+>\((tmp\d+)\)"
    r"|(tmp\d+)(?:\.to\(tl\.u?int\d+\))?|tl\.broadcast_to\((tmp\d+), .*\)"
)
_INTEGER = re.compile(r"\bu?int\d+_t\(")
_STORED = re.compile(r"\b(tmp\d+)\.store\(tmpbuf\.data\(\)")
_OPEN: tuple[None, None] = (None, None)


@dataclass(frozen=True)
class Ranges:
    """Values of variables at one line of a kernel.

    Attributes:
        source: the kernel's text. line: 1-based, of the access that is asked about.
        loops: those that stand around the line; none for Triton.
    """

    source: str
    line: int
    language: Language
    loops: tuple[Loop, ...] = ()

    def of(self, factor: str) -> Range:
        """Return the least and largest value of a factor of an index.

        Raises:
            UnprovedError: the text does not prove them.
        """
        low, high = self._value(ast.parse(factor, mode="eval").body, 0)
        if low is None or high is None:
            raise UnprovedError(f"nothing in the kernel says between which values {factor} is")
        return low, high

    @cached_property
    def _above(self) -> str:
        return "\n".join(self.source.split("\n")[: self.line])

    def _value(self, node: ast.expr, depth: int) -> tuple[int | None, int | None]:
        if depth > _DEEPEST:
            return _OPEN
        match node:
            case ast.Constant(value=int() as value):
                return value, value
            case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
                return self._variable(name, depth)
            case ast.BinOp(left=left, op=ast.Mod(), right=ast.Constant(value=int() as by)) if by > 0:
                low, high = self._value(left, depth + 1)
                if low is None or low < 0:
                    return _OPEN
                return (low, high) if high is not None and high < by else (0, by - 1)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=ast.Constant(value=int() as by)) if by > 0:
                low, high = self._value(left, depth + 1)
                return (None if low is None else low // by), (None if high is None else high // by)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self._value(left, depth + 1), self._value(right, depth + 1)
                return _both(first[0], second[0]), _both(first[1], second[1])
            case ast.BinOp(left=ast.Constant(value=int() as by), op=ast.Mult(), right=right) if by > 0:
                low, high = self._value(right, depth + 1)
                return (None if low is None else low * by), (None if high is None else high * by)
        return _OPEN

    def _variable(self, name: str, depth: int) -> tuple[int | None, int | None]:
        for loop in reversed(self.loops):
            if loop.variable == name:
                start = loop.start if isinstance(loop.start, int) else None
                return start, loop.stop - 1 if isinstance(loop.stop, int) else None
        if self.language == "triton":
            axis = _AXIS.fullmatch(name)
            if axis:
                numel = re.search(rf"^    {axis[1]}numel = (\d+)$", self.source, re.MULTILINE)
                return 0, int(numel[1]) - 1 if numel else None
        asserted = re.search(rf'"index out of bounds: 0 <= {re.escape(name)} < (\d+)L?"', self._since(name))
        if asserted:
            return 0, int(asserted[1]) - 1
        return self._assigned(self._definition(name), depth)

    def _since(self, name: str) -> str:
        """Return the text from the last definition of `name` above the line, to the line."""
        places = [found for found in _ASSIGNED.finditer(self._above) if found["name"] == name]
        return self._above[places[-1].start() :] if places else ""

    def _definition(self, name: str) -> str:
        text = self._since(name)
        found = _ASSIGNED.match(text)
        if not found:
            return ""
        if self.language == "triton":
            return text[found.end() :].partition("\n")[0].strip()
        if text[found.end() :].startswith("[&]"):
            return text[found.end() : text.find("\n;", found.end())]
        return text[found.end() :].partition(";")[0].strip()

    def _assigned(self, text: str, depth: int) -> tuple[int | None, int | None]:
        """Read what a variable is set to: a constant, a copy, a minimum or maximum, index arithmetic."""
        if constant := _CONSTANT.fullmatch(text):
            number = int(constant[1] or constant[2])
            return number, number
        if text.startswith("[&]"):
            stored = _STORED.search(text)
            return self._variable(stored[1], depth + 1) if stored and depth < _DEEPEST else _OPEN
        if same := _SAME.fullmatch(text):
            inner = next(name for name in same.groups() if name)
            return self._variable(inner, depth + 1) if depth < _DEEPEST else _OPEN
        clamp = _CLAMP.match(text)
        if clamp and (inner := inside(text, clamp.end() - 1)) is not None and text.endswith(")"):
            sides = [self._of_text(side, depth) for side in split_arguments(inner)]
            return _clamped("min" in clamp["how"], sides) if len(sides) == 2 else _OPEN
        return self._of_text(text, depth)

    def _of_text(self, text: str, depth: int) -> tuple[int | None, int | None]:
        try:
            node = ast.parse(_INTEGER.sub("(", python_text(text, self.language)), mode="eval").body
        except (SyntaxError, ValueError):
            return _OPEN
        return self._value(node, depth + 1)


_AXIS = re.compile(r"([xyz]|r\d_?|r)index")
_DEEPEST = 40


def _both(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _clamped(to_smaller: bool, sides: list[tuple[int | None, int | None]]) -> tuple[int | None, int | None]:
    """A minimum is at most the smaller of the upper bounds that are known, and at least both lower bounds."""
    choose: Callable[..., int] = min if to_smaller else max
    lows, highs = [low for low, _ in sides], [high for _, high in sides]
    loose, tight = (lows, highs) if to_smaller else (highs, lows)
    known = [each for each in tight if each is not None]
    bound = choose(known) if known else None
    other = None if None in loose else choose(each for each in loose if each is not None)
    return (other, bound) if to_smaller else (bound, other)
