"""Index expressions of kernels as sums, and back to the language that they were written in.

Both languages are brought to Python's own syntax first: C++ without casts and suffixes, with
`div_floor_integer(a, b)` as `a // b`; Triton's is Python already.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["cpp", "triton"]

_CAST = re.compile(r"\b(?:static_cast|c10::convert)<[\w:]+>")
_SUFFIX = re.compile(r"\b(\d+)U?L{1,2}\b")


@dataclass(frozen=True, slots=True)
class Sum:
    """`constant` + coefficient * factor + ...; a factor is Python text without a sum at its top."""

    terms: tuple[tuple[str, int], ...]
    constant: int

    def names(self) -> frozenset[str]:
        """Return the variables in it."""
        return frozenset(
            each.id
            for factor, _ in self.terms
            for each in ast.walk(ast.parse(factor))
            if isinstance(each, ast.Name)
        )


def python_text(text: str, language: Language) -> str:
    """Return an index expression in Python's syntax."""
    if language == "triton":
        return " ".join(text.split())
    text = _SUFFIX.sub(r"\1", _CAST.sub("", " ".join(text.split())))
    return text.replace("c10::", "")


def sum_of(text: str) -> Sum:
    """Read an expression in Python's syntax.

    Raises:
        ValueError: not a sum of integers and of products of an integer and something else.
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
            if not first[0]:
                return _scaled(second, first[1])
            if not second[0]:
                return _scaled(first, second[1])
            raise ValueError(f"{ast.unparse(node)} is a product of variables")
        case ast.Call(func=ast.Name("div_floor_integer"), args=[left, right]):
            return {ast.unparse(ast.BinOp(left, ast.FloorDiv(), right)): 1}, 0
    return {ast.unparse(node): 1}, 0


def _scaled(sum_: tuple[dict[str, int], int], by: int) -> tuple[dict[str, int], int]:
    terms, constant = sum_
    return {factor: value * by for factor, value in terms.items()}, constant * by


def written(total: Sum, language: Language) -> str:
    """Write a sum in a language: `x1 + 3L*tmp32[x2_inner] + 1368L*x0`."""
    parts = [_product(factor, value, language) for factor, value in total.terms if value]
    if total.constant or not parts:
        parts.append(_expression(ast.Constant(total.constant), language))
    return " + ".join(parts)


def _product(factor: str, value: int, language: Language) -> str:
    text = _expression(ast.parse(factor, mode="eval").body, language)
    return text if value == 1 else f"{_expression(ast.Constant(value), language)}*{text}"


def _expression(node: ast.expr, language: Language) -> str:
    """Write what stands in a factor; brackets around all but names, numbers and calls."""
    match node:
        case ast.Constant(value=int() as value):
            text = f"{value}L" if language == "cpp" else str(value)
            return f"({text})" if value < 0 else text
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return f"(-{_expression(inner, language)})"
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right) if language == "cpp":
            both = ", ".join(f"static_cast<int64_t>({_expression(each, language)})" for each in (left, right))
            return f"c10::div_floor_integer({both})"
        case ast.BinOp(left=left, op=op, right=right):
            sign = _SIGNS.get(type(op))
            if sign is None:
                raise ValueError(f"{ast.unparse(node)} cannot be written again")
            return f"({_expression(left, language)} {sign} {_expression(right, language)})"
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return f"{name}[{ast.unparse(inner)}]"
    raise ValueError(f"{ast.unparse(node)} cannot be written again")


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
