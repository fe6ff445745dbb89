"""Which values the variables of a kernel take, as far as its text proves it: interval arithmetic."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from math import inf, isinf
from typing import TypeAlias

from msgspec import Struct

from inductor_probe.backends.brackets import inside, split_arguments
from inductor_probe.model.code import Loop
from inductor_probe.variants.index import Language, Range, UnprovedError, python_text

Interval: TypeAlias = tuple[float, float]
"""Integers, or infinite where nothing is known."""

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
_AXIS = re.compile(r"([xyz]|r\d_?|r)index")
_OPEN: Interval = (-inf, inf)
_DEEPEST = 40


class Ranges(Struct, frozen=True, dict=True):
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

        Raises UnprovedError: the text does not prove them.
        """
        low, high = self._value(ast.parse(factor, mode="eval").body, 0)
        if isinf(low) or isinf(high):
            raise UnprovedError(f"the text of the kernel does not bound {factor}")
        return int(low), int(high)

    @cached_property
    def _above(self) -> str:
        return "\n".join(self.source.split("\n")[: self.line])

    def _value(self, node: ast.expr, depth: int) -> Interval:
        if depth > _DEEPEST:
            return _OPEN
        match node:
            case ast.Constant(value=int() as value):
                return value, value
            case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
                return self._variable(name, depth)
            case ast.BinOp(left=left, op=ast.Mod(), right=ast.Constant(value=int() as by)) if by > 0:
                low, high = self._value(left, depth + 1)
                return _OPEN if low < 0 else (low, high) if high < by else (0, by - 1)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=ast.Constant(value=int() as by)) if by > 0:
                low, high = self._value(left, depth + 1)
                return (low if isinf(low) else low // by), (high if isinf(high) else high // by)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self._value(left, depth + 1), self._value(right, depth + 1)
                return first[0] + second[0], first[1] + second[1]
            case ast.BinOp(left=ast.Constant(value=int() as by), op=ast.Mult(), right=right) if by > 0:
                low, high = self._value(right, depth + 1)
                return low * by, high * by
        return _OPEN

    def _variable(self, name: str, depth: int) -> Interval:
        for loop in reversed(self.loops):
            if loop.variable == name:
                start = loop.start if isinstance(loop.start, int) else -inf
                return start, loop.stop - 1 if isinstance(loop.stop, int) else inf
        if self.language == "triton" and (axis := _AXIS.fullmatch(name)):
            numel = re.search(rf"^    {axis[1]}numel = (\d+)$", self.source, re.MULTILINE)
            return 0, int(numel[1]) - 1 if numel else inf
        # The text from the last definition of the variable above the line, to the line.
        assigned = [match for match in _ASSIGNED.finditer(self._above) if match["name"] == name]
        if not assigned:
            return _OPEN
        since = self._above[assigned[-1].start() :]
        if checked := re.search(rf'"index out of bounds: 0 <= {re.escape(name)} < (\d+)L?"', since):
            return 0, int(checked[1]) - 1
        value = self._above[assigned[-1].end() :]
        if self.language == "triton":
            return self._assigned(value.partition("\n")[0].strip(), depth)
        if value.startswith("[&]"):
            return self._assigned(value[: value.find("\n;")], depth)
        return self._assigned(value.partition(";")[0].strip(), depth)

    def _assigned(self, text: str, depth: int) -> Interval:
        """Read what a variable is set to: a constant, a copy, a minimum or maximum, index arithmetic."""
        if depth >= _DEEPEST:
            return _OPEN
        if constant := _CONSTANT.fullmatch(text):
            number = int(constant[1] or constant[2])
            return number, number
        if text.startswith("[&]"):
            stored = _STORED.search(text)
            return self._variable(stored[1], depth + 1) if stored else _OPEN
        if same := _SAME.fullmatch(text):
            return self._variable(next(name for name in same.groups() if name), depth + 1)
        clamp = _CLAMP.match(text)
        if clamp and (inner := inside(text, clamp.end() - 1)) is not None and text.endswith(")"):
            sides = [self._of_text(side, depth) for side in split_arguments(inner)]
            if len(sides) != 2:
                return _OPEN
            choose = min if "min" in clamp["how"] else max
            return choose(low for low, _ in sides), choose(high for _, high in sides)
        return self._of_text(text, depth)

    def _of_text(self, text: str, depth: int) -> Interval:
        try:
            node = ast.parse(_INTEGER.sub("(", python_text(text, self.language)), mode="eval").body
        except (SyntaxError, ValueError):
            return _OPEN
        return self._value(node, depth + 1)
