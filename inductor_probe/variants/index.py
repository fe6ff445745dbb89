"""Index expressions of kernels as sums, a flat index as coordinates of a buffer's dimensions, and back.

Both languages are brought to Python's own syntax first: C++ without casts and suffixes, with
`div_floor_integer(a, b)` as `a // b`; Triton's is Python already.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Struct

Language: TypeAlias = Literal["cpp", "triton"]
Range: TypeAlias = tuple[int, int]

_CAST = re.compile(r"\b(?:static_cast|c10::convert)<[\w:]+>")
_SUFFIX = re.compile(r"\b(\d+)U?L{1,2}\b")
_WRAPPED = re.compile(r"\((?P<inner>.*)\) % (?P<wraps>\d+)")
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip


class UnprovedError(ValueError):
    """The coordinates of an index are not proved; says why."""


class Sum(Struct, frozen=True):
    """`constant` + coefficient * factor + ...; a factor is Python text without a sum at its top."""

    terms: tuple[tuple[str, int], ...]
    constant: int


def python_text(text: str, language: Language) -> str:
    """Return an index expression in Python's syntax."""
    text = " ".join(text.split())
    return text if language == "triton" else _SUFFIX.sub(r"\1", _CAST.sub("", text)).replace("c10::", "")


def sum_of(text: str) -> Sum:
    """Read an expression in Python's syntax.

    Raises ValueError: not a sum of integers and of products of an integer and something else.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text[:80]} is not an index expression") from error
    terms, constant = _sum(tree)
    return Sum(tuple((factor, value) for factor, value in terms.items() if value), constant)


def _sum(node: ast.expr) -> tuple[dict[str, int], int]:
    match node:
        case ast.Constant(value=int() as value):
            return {}, value
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _scaled(_sum(inner), -1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            terms, constant = _sum(left)
            others, other = _scaled(_sum(right), 1 if isinstance(op, ast.Add) else -1)
            for factor, value in others.items():
                terms[factor] = terms.get(factor, 0) + value
            return terms, constant + other
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            first, second = _sum(left), _sum(right)
            if first[0] and second[0]:
                raise ValueError(f"{ast.unparse(node)} is a product of variables")
            return _scaled(first, second[1]) if first[0] else _scaled(second, first[1])
        case ast.Call(func=ast.Name("div_floor_integer"), args=[left, right]):
            return {ast.unparse(ast.BinOp(left, ast.FloorDiv(), right)): 1}, 0
    return {ast.unparse(node): 1}, 0


def _scaled(sum_: tuple[dict[str, int], int], by: int) -> tuple[dict[str, int], int]:
    terms, constant = sum_
    return {factor: value * by for factor, value in terms.items()}, constant * by


def written(total: Sum, language: Language) -> str:
    """Write a sum in a language: `x1 + 3L*tmp32[x2_inner] + 1368L*x0`."""
    parts = []
    for factor, value in total.terms:
        text = _expression(ast.parse(factor, mode="eval").body, language)
        parts.append(text if value == 1 else f"{_expression(ast.Constant(value), language)}*{text}")
    if total.constant or not parts:
        parts.append(_expression(ast.Constant(total.constant), language))
    return " + ".join(parts)


def _expression(node: ast.expr, language: Language) -> str:
    """Write what stands in a factor; brackets around all but names, numbers and calls."""
    match node:
        case ast.Constant(value=int() as value):
            text = f"{value}L" if language == "cpp" else str(value)
            return f"({text})" if value < 0 else text
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return f"(-{_expression(inner, language)})"
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right) if language == "cpp":
            both = ", ".join(f"static_cast<int64_t>({_expression(side, language)})" for side in (left, right))
            return f"c10::div_floor_integer({both})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            sign = _SIGNS[type(op)]
            return f"({_expression(left, language)} {sign} {_expression(right, language)})"
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return f"{name}[{ast.unparse(inner)}]"
    raise ValueError(f"{ast.unparse(node)} cannot be written again")


class Layout(Struct, frozen=True):
    """Sizes and strides of a buffer, in elements."""

    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def extent(self) -> int:
        """Elements from the first to the last, both included."""
        return sum((n - 1) * step for n, step in zip(self.size, self.stride, strict=True)) + 1

    def by_stride(self) -> list[int]:
        """Return the dimensions that have steps, the largest stride first."""
        return sorted((dim for dim, n in enumerate(self.size) if n > 1), key=lambda dim: -self.stride[dim])

    def overlaps(self) -> bool:
        """Tell whether the dimensions do not nest: then two elements may share a place."""
        inner = 1
        for dim in reversed(self.by_stride()):
            if self.stride[dim] < inner:
                return True
            inner = self.stride[dim] * self.size[dim]
        return False


@dataclass(slots=True)
class _Coordinate:
    """A coordinate as far as it is known: terms, and the least and largest value of their sum."""

    terms: list[tuple[str, int]] = field(default_factory=list)
    low: int = 0
    high: int = 0
    constant: int = 0


def coordinates(index: Sum, layout: Layout, range_of: Callable[[str], Range]) -> tuple[Sum, ...]:
    """Return the coordinate of each dimension for a flat index into a layout whose dimensions nest.

    Where each stride is at least the extent of all smaller ones, a flat index has one set of coordinates with
    0 <= c_d < size_d. So if each term of the index is given to a dimension, and the sum of what a dimension
    got stays within its size for all values of the variables, those are the coordinates. In size (4, 3, 256)
    and strides (768, 256, 1):

        255 - x2 + 256*x1 + 768*x0, x0 < 4, x1 < 3, x2 < 256   ->   (x0, x1, 255 - x2)
        x0, x0 < 3072   ->   (x0 // 256 // 3, (x0 // 256) % 3, x0 % 256)

    `range_of` returns the least and largest value of a factor, or raises UnprovedError.

    Raises UnprovedError: no proof was found; says why.
    """
    size, stride, order = layout.size, layout.stride, layout.by_stride()
    parts = [_Coordinate() for _ in size]

    def assign(factor: str, value: int, low: int, high: int) -> None:
        """Give a term to the dimension of the largest stride that divides it, or to all that it runs over."""
        dim = next((dim for dim in order if value % stride[dim] == 0 and abs(value) >= stride[dim]), None)
        if dim is None:
            raise UnprovedError(f"{value}*{factor} is not a multiple of a stride")
        step = value // stride[dim]
        if abs(step) * (high - low) < size[dim] or step < 0 or low < 0:
            parts[dim].terms.append((factor, step))
            parts[dim].low += min(low * step, high * step)
            parts[dim].high += max(low * step, high * step)
            return
        # It runs over the end of this dimension: into the next one, if that goes on where this one ends.
        position = order.index(dim)
        outer = order[position - 1] if position else None
        if outer is None or stride[outer] != stride[dim] * size[dim] or size[dim] % step:
            raise UnprovedError(f"{value}*{factor} runs over the end of dimension {dim}")
        wraps = size[dim] // step
        parts[dim].terms.append((f"({factor}) % {wraps}", step))
        parts[dim].high += (wraps - 1) * step
        assign(f"({factor}) // {wraps}", stride[outer], low // wraps, high // wraps)

    constant = index.constant
    for factor, value in index.terms:
        low, high = range_of(factor)
        if low == high:
            constant += value * low
        else:
            assign(factor, value, low, high)
    # The constant, so that no coordinate is negative: first what each needs, then the rest.
    for dim in order:
        parts[dim].constant = max(-parts[dim].low, 0)
        constant -= parts[dim].constant * stride[dim]
    for dim in order:
        room = size[dim] - 1 - parts[dim].high - parts[dim].constant
        more = min(max(constant // stride[dim], 0), max(room, 0))
        parts[dim].constant += more
        constant -= more * stride[dim]
    if constant:
        raise UnprovedError(f"its constant does not fit: {constant} is left over")
    for dim, part in enumerate(parts):
        low, high = part.low + part.constant, part.high + part.constant
        if low < 0 or high >= size[dim]:
            raise UnprovedError(f"dimension {dim} would be {low} to {high}, outside of its size {size[dim]}")
    return tuple(Sum(tuple(part.terms), part.constant) for part in parts)


def flat_index(parts: tuple[Sum, ...], layout: Layout) -> Sum:
    """Return the flat index of coordinates in another layout."""
    terms: dict[str, int] = {}
    constant = 0
    for part, stride in zip(parts, layout.stride, strict=True):
        constant += part.constant * stride
        for factor, value in part.terms:
            terms[factor] = terms.get(factor, 0) + value * stride
    for factor in list(terms):
        _rejoin(factor, terms)
    return Sum(tuple((factor, value) for factor, value in terms.items() if value), constant)


def _rejoin(factor: str, terms: dict[str, int]) -> None:
    """`768*((x0) % 345) + 264960*((x0) // 345)` is `768*x0`: one dimension goes on behind the other again."""
    match = _WRAPPED.fullmatch(factor)
    if match is None or factor not in terms:
        return
    inner, wraps = match["inner"], int(match["wraps"])
    above = f"({inner}) // {wraps}"
    for split in [other for other in terms if other.startswith(f"({above})")]:
        _rejoin(split, terms)
    if terms.get(above) == terms[factor] * wraps:
        terms[inner] = terms.get(inner, 0) + terms.pop(factor)
        del terms[above]
