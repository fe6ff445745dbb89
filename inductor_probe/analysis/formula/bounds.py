"""Which values loop variables take, and so index expressions; inside a mask, only where it holds."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from inductor_probe.analysis.formula.indexing import index_of
from inductor_probe.analysis.index import parse_expression
from inductor_probe.model.ir import Dim, LoopBody, Op, Ref, Value

Range = tuple[int, int]

_HIGH = {"lt": -1, "le": 0}
_LOW = {"gt": 1, "ge": 0}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of the loop variables of a block.

    Attributes:
        sizes: how far each loop runs.
        ranges: smallest and largest value, of those whose size is a number.
    """

    sizes: Mapping[str, Dim]
    ranges: Mapping[str, Range]


def block_bounds(body: LoopBody) -> dict[str, Bounds]:
    """Return the bounds that hold in each block; those of a masked block follow from its mask."""
    sizes = dict(body.var_ranges)
    ranges = {name: (0, size - 1) for name, size in sizes.items() if isinstance(size, int)}
    everywhere = Bounds(sizes, ranges)
    found = {block.name: everywhere for block in body.blocks}
    called: dict[str, int] = {}
    expressions = dict(body.indexes)
    for block in body.blocks:
        ops = {op.result: op for op in block.ops}
        for op in block.ops:
            name = op.target.removeprefix("self.")
            if name in found and op.args:
                called[name] = called.get(name, 0) + 1
                narrowed = _narrowed(dict(found[block.name].ranges), op.args[0], ops, expressions)
                found[name] = everywhere if called[name] > 1 else replace(everywhere, ranges=narrowed)
    return found


def _narrowed(
    ranges: dict[str, Range], mask: Value, ops: Mapping[str, Op], expressions: Mapping[str, str]
) -> dict[str, Range]:
    """Narrow the ranges by the comparisons that `mask` is a conjunction of."""
    waiting = [mask]
    while waiting:
        op = ops.get(value.name) if isinstance(value := waiting.pop(), Ref) else None
        if op is None or len(op.args) != 2:
            continue
        name = op.target.removeprefix("ops.")
        if name in {"and_", "logical_and"}:
            waiting += op.args
        elif name in _HIGH or name in _LOW:
            text, limit = _index_text(op.args[0], ops, expressions), _number(op.args[1], ops)
            if text is not None and limit is not None:
                _narrow(ranges, text, name, limit)
    return ranges


def _narrow(ranges: dict[str, Range], text: str, comparison: str, limit: int) -> None:
    """`2*p0 - 1 >= 0` says that p0 is at least 1. Only of one variable with a positive factor."""
    index = index_of(text)
    if index is None:
        return
    terms = dict(index.terms)
    shift = terms.pop((), 0)
    if len(terms) != 1:
        return
    ((factors, factor),) = terms.items()
    if len(factors) != 1 or factors[0] not in ranges or factor <= 0:
        return
    low, high = ranges[factors[0]]
    if comparison in _HIGH:
        high = min(high, (limit + _HIGH[comparison] - shift) // factor)
    else:
        low = max(low, -((shift - limit - _LOW[comparison]) // factor))
    if low <= high:
        ranges[factors[0]] = (low, high)


def _index_text(value: Value, ops: Mapping[str, Op], expressions: Mapping[str, str]) -> str | None:
    op = ops.get(value.name) if isinstance(value, Ref) else None
    if op is None or op.target not in {"ops.index_expr", "ops.value_expr"} or not op.args:
        return None
    index = ops.get(op.args[0].name) if isinstance(op.args[0], Ref) else None
    if index is None or index.target != "self.get_index" or len(index.args) != 1:
        return None
    name = index.args[0]
    return expressions.get(name) if isinstance(name, str) else None


def _number(value: Value, ops: Mapping[str, Op]) -> int | None:
    op = ops.get(value.name) if isinstance(value, Ref) else None
    if op is None or op.target != "ops.constant" or not op.args:
        return None
    return op.args[0] if isinstance(op.args[0], int) else None


def bounds_of(terms: Sequence[tuple[tuple[str, ...], int]], bounds: Bounds) -> Range | None:
    """Return the smallest and the largest value of a sum, or None when that is not known."""
    low = high = 0
    for factors, coefficient in terms:
        ranges = [_range(parse_expression(factor), bounds) for factor in factors]
        known = [found for found in ranges if found is not None]
        if len(known) != len(ranges) or any(found[0] < 0 for found in known):
            return None
        least, most = prod(found[0] for found in known), prod(found[1] for found in known)
        low += coefficient * (least if coefficient > 0 else most)
        high += coefficient * (most if coefficient > 0 else least)
    return low, high


def _range(node: ast.expr, bounds: Bounds) -> Range | None:
    match node:
        case ast.Name(id=name):
            return bounds.ranges.get(name)
        case ast.Constant(value=int() as number):
            return number, number
        case ast.BinOp(left=base, op=ast.FloorDiv(), right=ast.Constant(value=int() as divisor)):
            return _quotient(_sum(base, bounds), divisor)
        case ast.Call(func=ast.Name(id="FloorDiv"), args=[base, ast.Constant(value=int() as divisor)]):
            return _quotient(_sum(base, bounds), divisor)
        case ast.Call(
            func=ast.Name(id="ModularIndexing"),
            args=[base, ast.Constant(value=int() as divisor), ast.Constant(value=int() as modulus)],
        ) if modulus > 0:
            inner = _quotient(_sum(base, bounds), divisor)
            return inner if inner and inner[0] >= 0 and inner[1] < modulus else (0, modulus - 1)
    return None


def _sum(node: ast.expr, bounds: Bounds) -> Range | None:
    index = index_of(ast.unparse(node))
    return None if index is None else bounds_of(index.terms, bounds)


def _quotient(inner: Range | None, divisor: int) -> Range | None:
    return None if inner is None or divisor <= 0 else (inner[0] // divisor, inner[1] // divisor)
