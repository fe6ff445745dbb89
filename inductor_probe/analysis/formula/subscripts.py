"""Flat indices as subscripts, where the layout and the ranges of the loops prove them.

A flat index is a sum of terms. Each term belongs to the largest stride that divides it, as the digits of a
number in a mixed radix; the subscripts are kept if they stay within their dimensions over all iterations.
With strides (6, 1), sizes (4, 6) and loops p0 < 4, p1 < 6:

    6*p0 - p1 + 5  ->  [p0, 5 - p1]
    6*p0 + p1 + 1  ->  [6*p0 + p1 + 1], for p1 + 1 reaches 6

Where one loop runs over two dimensions that are adjacent in memory, they are merged: p0 < 24 over the same
buffer is `[p0]`. Inside a mask, loop variables take only the values for which it holds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias

from inductor_probe.analysis.formula.values import Access, Terms, index_of
from inductor_probe.analysis.index import parse_expression
from inductor_probe.model.formula import View
from inductor_probe.model.ir import BufferLayout, Dim, LoopBody, Op, Ref, Value

Range: TypeAlias = tuple[int, int]
"""The smallest and the largest value."""

_ACCESSES = ("ops.load", "ops.store", "ops.store_reduction")
# What a comparison with a number adds to it to be the largest or the smallest value: p0 < 8 is p0 <= 7.
_HIGH = {"lt": -1, "le": 0}
_LOW = {"gt": 1, "ge": 0}


class _Reach(NamedTuple):
    """An access of a body, and the values of the loop variables whose size is a number."""

    text: str
    block: str
    ranges: Mapping[str, Range]


class _Group(NamedTuple):
    """A dimension, or neighbouring ones merged."""

    size: int
    stride: int


_Subscripts: TypeAlias = dict[tuple[str, str], tuple[Terms, ...]]
"""By index and block."""


def body_subscripts(
    body: LoopBody, layouts: Mapping[str, BufferLayout]
) -> tuple[tuple[View, ...], dict[Access, tuple[Terms, ...]]]:
    """Return how the buffers of a body are seen, and its accesses as subscripts, where they are proved."""
    ranges = _block_ranges(body)
    expressions = dict(body.indexes)
    reaches: dict[str, dict[tuple[str, str], _Reach]] = {}
    for block in body.blocks:
        names = {op.result: str(op.args[0]) for op in block.ops if op.target == "self.get_index" and op.args}
        for op in block.ops:
            if op.target in _ACCESSES and len(op.args) >= 2 and isinstance(op.args[0], str):
                name = names.get(op.args[1].name, "") if isinstance(op.args[1], Ref) else ""
                reach = _Reach(expressions.get(name, name), block.name, ranges[block.name])
                reaches.setdefault(op.args[0], {})[reach.text, reach.block] = reach
    views: list[View] = []
    subscripts: dict[Access, tuple[Terms, ...]] = {}
    for buffer, accesses in reaches.items():
        layout = layouts.get(buffer)
        if layout is None or layout.size is None or layout.stride is None:
            views.append(View(buffer, None, layout.dtype if layout else None, None))
            continue
        try:
            proved = _proved(layout, list(accesses.values()), dict(body.var_ranges))
        except RecursionError:  # no compiler nests an index so deep
            proved = None
        shape, order, proved_subscripts = proved or (None, None, {})
        views.append(View(buffer, layout.size, layout.dtype, shape, order))
        subscripts.update({(buffer, *access): terms for access, terms in proved_subscripts.items()})
    return tuple(views), subscripts


def _block_ranges(body: LoopBody) -> dict[str, dict[str, Range]]:
    """Return the values of loop variables in each block; those of a masked block follow from its mask."""
    everywhere = {name: (0, size - 1) for name, size in body.var_ranges if isinstance(size, int)}
    ranges = {block.name: everywhere for block in body.blocks}
    called: set[str] = set()
    expressions = dict(body.indexes)
    for block in body.blocks:
        ops = {op.result: op for op in block.ops}
        for op in block.ops:
            name = op.target.removeprefix("self.")
            if name in ranges and op.args:
                narrowed = _narrowed(dict(ranges[block.name]), op.args[0], ops, expressions)
                ranges[name] = everywhere if name in called else narrowed
                called.add(name)
    return ranges


def _narrowed(
    ranges: dict[str, Range], mask: Value, ops: Mapping[str, Op], expressions: Mapping[str, str]
) -> dict[str, Range]:
    """Narrow the ranges by the comparisons that `mask` is a conjunction of."""
    waiting = [mask]
    while waiting:
        op = _op(waiting.pop(), ops)
        if op is None or len(op.args) != 2:
            continue
        name = op.target.removeprefix("ops.")
        if name in {"and_", "logical_and"}:
            waiting += op.args
        elif name in _HIGH or name in _LOW:
            compared = _op(op.args[0], ops, "ops.index_expr", "ops.value_expr")
            index = _op(compared.args[0], ops, "self.get_index") if compared else None
            limit = _op(op.args[1], ops, "ops.constant")
            text = expressions.get(str(index.args[0])) if index else None
            if text is not None and limit is not None and isinstance(limit.args[0], int):
                _narrow(ranges, text, name, limit.args[0])
    return ranges


def _op(value: Value, ops: Mapping[str, Op], *targets: str) -> Op | None:
    """Return the operation that a value is the result of, if it is one of `targets` with arguments."""
    op = ops.get(value.name) if isinstance(value, Ref) else None
    return op if op is not None and (not targets or (op.target in targets and op.args)) else None


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


def _sum_range(terms: Iterable[tuple[tuple[str, ...], int]], ranges: Mapping[str, Range]) -> Range | None:
    """Return the range of a sum by interval arithmetic, or None when it is not known."""
    low = high = 0
    for names, coefficient in terms:
        factors = [_range(parse_expression(name), ranges) for name in names]
        known = [factor for factor in factors if factor is not None and factor[0] >= 0]
        if len(known) != len(factors):
            return None
        ends = [coefficient * prod(factor[end] for factor in known) for end in (0, 1)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _range(node: ast.expr, ranges: Mapping[str, Range]) -> Range | None:
    match node:
        case ast.Name(id=name):
            return ranges.get(name)
        case ast.Constant(value=int() as number):
            return number, number
        case (
            ast.BinOp(left=base, op=ast.FloorDiv(), right=ast.Constant(value=int() as divisor))
            | ast.Call(func=ast.Name(id="FloorDiv"), args=[base, ast.Constant(value=int() as divisor)])
        ):
            return _quotient(base, divisor, ranges)
        case ast.Call(
            func=ast.Name(id="ModularIndexing"),
            args=[base, ast.Constant(value=int() as divisor), ast.Constant(value=int() as modulus)],
        ) if modulus > 0:
            inner = _quotient(base, divisor, ranges)
            return inner if inner and inner[0] >= 0 and inner[1] < modulus else (0, modulus - 1)
    return None


def _quotient(base: ast.expr, divisor: int, ranges: Mapping[str, Range]) -> Range | None:
    index = index_of(ast.unparse(base))
    dividend = _sum_range(index.terms, ranges) if index is not None and divisor > 0 else None
    return dividend and (dividend[0] // divisor, dividend[1] // divisor)


def _proved(
    layout: BufferLayout, reaches: Sequence[_Reach], loops: Mapping[str, Dim]
) -> tuple[tuple[Dim, ...], tuple[int, ...] | None, _Subscripts] | None:
    """Return the shape that subscripts run over, the order of its dimensions if it is another, and them."""
    size = [dim for dim in layout.size or () if isinstance(dim, int)]
    stride = [dim for dim in layout.stride or () if isinstance(dim, int)]
    rank = len(layout.size or ())
    if rank != len(layout.stride or ()):
        return None
    if len(size) != rank or len(stride) != rank or not isinstance(layout.offset, int):
        symbolic = _symbolic(layout, reaches, loops)
        return None if symbolic is None else (layout.size or (), None, symbolic)
    as_printed = tuple(range(rank))
    in_memory = tuple(sorted(as_printed, key=lambda dim: -stride[dim]))
    for order in dict.fromkeys((as_printed, in_memory)):
        dims = [_Group(size[dim], stride[dim]) for dim in order]
        numeric = _numeric(dims, layout.offset, reaches)
        if numeric is not None:
            return numeric[0], None if order == as_printed else order, numeric[1]
    return None


def _numeric(
    dims: Sequence[_Group], offset: int, reaches: Sequence[_Reach]
) -> tuple[tuple[Dim, ...], _Subscripts] | None:
    groups = [dim for dim in dims if dim.size != 1]
    # Two elements of the buffer may be one in memory (expanded or hand-made strides).
    by_stride = sorted(groups, key=lambda group: group.stride)
    overlap = any(small.stride * small.size > large.stride for small, large in pairwise(by_stride))
    if overlap or any(group.stride <= 0 or group.size < 1 for group in groups):
        return None
    unmerged = len(groups)
    placed: _Subscripts = {}
    while len(placed) < len(reaches):
        for reach in reaches:
            terms = _subscripts(reach, groups, offset)
            if isinstance(terms, int):  # the group that a subscript would leave is merged with the one before
                if not terms or groups[terms - 1].stride != groups[terms].stride * groups[terms].size:
                    return None
                size = groups[terms - 1].size * groups[terms].size
                groups[terms - 1 : terms + 1] = [_Group(size, groups[terms].stride)]
                placed = {}
                break
            placed[reach.text, reach.block] = terms
    if len(groups) != unmerged:
        return tuple(group.size for group in groups), placed
    for access, terms in placed.items():
        subscripts = iter(terms)
        placed[access] = tuple(() if dim.size == 1 else next(subscripts) for dim in dims)
    return tuple(dim.size for dim in dims), placed


def _subscripts(reach: _Reach, groups: list[_Group], offset: int) -> tuple[Terms, ...] | int:
    """Return a subscript for each group, or the group that a subscript would leave.

    An indirect index is assumed to be within the dimension it is in: the program is wrong otherwise.
    """
    index = index_of(reach.text)
    if index is None:
        return 0
    order = sorted(range(len(groups)), key=lambda number: -groups[number].stride)
    terms: list[list[tuple[tuple[str, ...], int]]] = [[] for _ in groups]
    constant = -offset
    for factors, coefficient in index.terms:
        if not factors:
            constant += coefficient
            continue
        home = next((number for number in order if coefficient % groups[number].stride == 0), None)
        if home is None:
            return 0
        terms[home].append((factors, coefficient // groups[home].stride))
    shifts: list[Range] = []  # by how much each subscript may be moved within its group
    for number, group in enumerate(groups):
        values = _sum_range(terms[number], reach.ranges)
        if values is None:
            if len(terms[number]) != 1 or terms[number][0][1] != 1:
                return number
            values = (0, group.size - 1)
        if values[1] - values[0] >= group.size:
            return number
        shifts.append((-values[0], group.size - 1 - values[1]))
    # Share the constant of the index among the subscripts, so that each stays within its group.
    for position, number in enumerate(order):
        stride = groups[number].stride
        smallest, largest = (
            sum(groups[small].stride * shifts[small][end] for small in order[position + 1 :])
            for end in (0, 1)
        )
        low = max(shifts[number][0], -((largest - constant) // stride))
        high = min(shifts[number][1], (constant - smallest) // stride)
        if low > high:
            return number
        shift = min(max(0, low), high)
        constant -= shift * stride
        if shift:
            terms[number].append(((), shift))
    return 0 if constant else tuple(map(tuple, terms))


def _symbolic(
    layout: BufferLayout, reaches: Sequence[_Reach], loops: Mapping[str, Dim]
) -> _Subscripts | None:
    """With symbolic sizes: each dimension must be one loop variable that runs over just its size."""
    strides = [index_of(str(step)) for step in layout.stride or ()]
    sizes = layout.size or ()
    placed: _Subscripts = {}
    for reach in reaches:
        index = index_of(reach.text)
        if index is None or layout.offset != 0:
            return None
        rest = dict(index.terms)
        subscripts: list[Terms] = []
        for length, stride in zip(sizes, strides, strict=True):
            if length == 1:
                subscripts.append(())
                continue
            if stride is None or len(stride.terms) != 1:
                return None
            factors, coefficient = stride.terms[0]
            variables = {
                variable: monomial
                for variable, steps in loops.items()
                if rest.get(monomial := tuple(sorted((variable, *factors)))) == coefficient
                and _same(steps, length)
            }
            if not variables:
                return None
            variable, monomial = variables.popitem()
            del rest[monomial]
            subscripts.append((((variable,), 1),))
        if rest:
            return None
        placed[reach.text, reach.block] = tuple(subscripts)
    return placed


def _same(one: Dim, other: Dim) -> bool:
    left, right = index_of(str(one)), index_of(str(other))
    return left is not None and right is not None and left.terms == right.terms
