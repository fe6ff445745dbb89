"""Comparisons of indices that come out the same in every iteration, by the sizes of the loops.

`x.tril(100)` of a matrix of 64 by 64 stays `p1 - p0 <= 100` in the loop body and in the kernel: torch folds
index arithmetic (torch/_inductor/index_propagation.py, IndexPropagation), but no comparison whose result is a
value. With p0 and p1 from 0 to 63, p1 - p0 is at most 63: the mask holds in every iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TypeAlias

from inductor_probe.analysis.formula.values import INDEX, INTEGERS, Value, Values
from inductor_probe.model.ir import Dim

Range: TypeAlias = tuple[int, int]
"""The smallest and the greatest that a value can be."""

_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
_BITS = {"int32": 31, "int64": 63}


def decided_comparisons(
    values: Values, roots: Iterable[int], loops: Mapping[str, Dim]
) -> Iterator[tuple[int, bool]]:
    """Yield each comparison that `roots` need and that the loops decide, and how it comes out.

    Only of values with an index in them: two constants that are compared say nothing about the loops.
    """
    needed = _needed(values, roots)
    ranges: list[Range | None] = []
    for number, value in enumerate(values.table):
        ranges.append(_range(value, ranges, loops, values.dtypes[number]))
        if number in needed and value.kind in _COMPARISONS and len(value.args) == 2:
            left, right = (ranges[arg] for arg in value.args)
            has_index = any(values.dtypes[arg] == INDEX for arg in value.args)
            if left is not None and right is not None and has_index:
                outcome = _outcome(value.kind, left, right)
                if outcome is not None:
                    yield number, outcome


def _needed(values: Values, roots: Iterable[int]) -> set[int]:
    needed: set[int] = set()
    waiting = list(roots)
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting += values.table[number].args
    return needed


def _range(
    value: Value, ranges: list[Range | None], loops: Mapping[str, Dim], dtype: str | None
) -> Range | None:
    """Return the range of a value by interval arithmetic, or None when it is not known.

    It may be wider than the values that occur (`p0 - p0 // 2`), never narrower.
    """
    match value.kind:
        case "variable":
            size = loops.get(str(value.detail[0]))
            return (0, size - 1) if isinstance(size, int) and size > 0 else None
        case "constant":
            text = str(value.detail[0])
            return (int(text), int(text)) if text.lstrip("-").isdecimal() else None
    known = [found for arg in value.args if (found := ranges[arg]) is not None]
    if len(known) != len(value.args) or not known:
        return None
    match value.kind:
        case "sum":
            factors = (1, *(int(str(factor)) for factor in value.detail))
            ends = [
                sorted((factor * low, factor * high))
                for factor, (low, high) in zip(factors, known, strict=True)
            ]
            return sum(low for low, _ in ends), sum(high for _, high in ends)
        case "product" if all(low >= 0 for low, _ in known):
            return prod(low for low, _ in known), prod(high for _, high in known)
        case "cast" if dtype in _BITS:
            low, high = known[0]
            return known[0] if -(1 << _BITS[dtype]) <= low and high < 1 << _BITS[dtype] else None
    if dtype in INTEGERS and len(known) == 2 and known[1][0] == known[1][1] > 0:
        (low, high), (by, _) = known
        if value.kind == "floordiv":
            return low // by, high // by
        if value.kind == "remainder":
            return (low, high) if low >= 0 and high < by else (0, by - 1)
    return None


def _outcome(comparison: str, left: Range, right: Range) -> bool | None:
    """Return how a comparison comes out, None where that depends on the iteration."""
    low, high = left[0] - right[1], left[1] - right[0]  # of the difference
    match comparison:
        case "lt":
            holds, fails = high < 0, low >= 0
        case "le":
            holds, fails = high <= 0, low > 0
        case "gt":
            holds, fails = low > 0, high <= 0
        case "ge":
            holds, fails = low >= 0, high < 0
        case _:
            equal, different = low == high == 0, low > 0 or high < 0
            holds, fails = (equal, different) if comparison == "eq" else (different, equal)
    return True if holds else False if fails else None
