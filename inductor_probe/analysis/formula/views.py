"""Flat indices as subscripts, where the layout and the ranges of the loops prove them.

A flat index is a sum of terms. Each term belongs to the largest stride that divides it; the subscript so
found is kept if it stays within its dimension over all iterations. Where one loop runs over two dimensions
that lie one behind the other in memory, they are seen as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inductor_probe.analysis.formula.bounds import Bounds, bounds_of
from inductor_probe.analysis.formula.indexing import Terms, index_of
from inductor_probe.model.formula import View
from inductor_probe.model.ir import BufferLayout, Dim


@dataclass(frozen=True, slots=True)
class Reach:
    """An access of a body: the index, and the values that its variables take there."""

    index: str
    block: str
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Subscripts:
    """How to write the places that a body reaches in one buffer."""

    view: View
    at: Mapping[tuple[str, str], tuple[Terms, ...]]


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring dimensions seen as one."""

    size: int
    stride: int


def subscripts(buffer: str, layout: BufferLayout | None, reaches: Sequence[Reach]) -> Subscripts:
    """Find subscripts that hold for all of `reaches`; flat ones when there are none."""
    if layout is None or layout.size is None or layout.stride is None:
        return Subscripts(View(buffer, None, layout.dtype if layout else None, None), {})
    try:
        found = _proved(layout, reaches)
    except RecursionError:  # an index nested deeper than any compiler writes it
        found = None
    shape, order, at = found or (None, None, {})
    return Subscripts(View(buffer, layout.size, layout.dtype, shape, order), at)


_At = dict[tuple[str, str], tuple[Terms, ...]]
_Found = tuple[tuple[Dim, ...], _At]


def _proved(
    layout: BufferLayout, reaches: Sequence[Reach]
) -> tuple[tuple[Dim, ...], tuple[int, ...] | None, _At] | None:
    """Return the shape that subscripts run over, the order of its dimensions if it is another, and they."""
    sizes, strides = layout.size or (), layout.stride or ()
    if len(sizes) != len(strides):
        return None
    size, stride = _numbers(sizes), _numbers(strides)
    if size is None or stride is None or not isinstance(layout.offset, int):
        found = _symbolic(layout, reaches)
        return found and (found[0], None, found[1])
    own = tuple(range(len(size)))
    in_memory = tuple(sorted(own, key=lambda dim: -stride[dim]))
    for order in dict.fromkeys((own, in_memory)):
        found = _numeric([size[dim] for dim in order], [stride[dim] for dim in order], layout.offset, reaches)
        if found is not None:
            return found[0], None if order == own else order, found[1]
    return None


def _numbers(dims: Sequence[Dim]) -> list[int] | None:
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return numbers if len(numbers) == len(dims) else None


def _numeric(
    size: Sequence[int], stride: Sequence[int], offset: int, reaches: Sequence[Reach]
) -> _Found | None:
    groups = [_Group(length, step) for length, step in zip(size, stride, strict=True) if length != 1]
    if any(group.stride <= 0 or group.size < 1 for group in groups) or _overlap(groups):
        return None
    whole = len(groups)
    while True:
        at: _At = {}
        for reach in reaches:
            placed = _place(reach, groups, offset)
            if isinstance(placed, int):
                merged = _merged(groups, placed)
                if merged is None:
                    return None
                groups = merged
                break
            at[reach.index, reach.block] = placed
        else:
            break
    if len(groups) != whole:
        return tuple(group.size for group in groups), at
    ones = [dim for dim, length in enumerate(size) if length == 1]
    for key, terms in at.items():
        full = list(terms)
        for dim in ones:
            full.insert(dim, ())
        at[key] = tuple(full)
    return tuple(size), at


def _overlap(groups: list[_Group]) -> bool:
    """Whether two places of the buffer may be one in memory (expanded or hand-made strides)."""
    ordered = sorted(groups, key=lambda group: group.stride)
    return any(small.stride * small.size > large.stride for small, large in pairwise(ordered))


def _merged(groups: list[_Group], at: int) -> list[_Group] | None:
    """See group `at` and the one before it as one, or return None when they do not lie so."""
    if at == 0 or groups[at - 1].stride != groups[at].stride * groups[at].size:
        return None
    one = _Group(groups[at - 1].size * groups[at].size, groups[at].stride)
    return [*groups[: at - 1], one, *groups[at + 1 :]]


def _place(reach: Reach, groups: list[_Group], offset: int) -> tuple[Terms, ...] | int:
    """Return a subscript for each group, or the group that a subscript would leave.

    An indirect index is taken to be within the dimension it stands for: the program is wrong otherwise.
    """
    index = index_of(reach.index)
    if index is None:
        return 0
    order = sorted(range(len(groups)), key=lambda at: -groups[at].stride)
    terms: list[list[tuple[tuple[str, ...], int]]] = [[] for _ in groups]
    constant = -offset
    for factors, coefficient in index.terms:
        if not factors:
            constant += coefficient
            continue
        home = next((at for at in order if coefficient % groups[at].stride == 0), None)
        if home is None:
            return 0
        terms[home].append((factors, coefficient // groups[home].stride))
    ranges: list[tuple[int, int]] = []
    for at, group in enumerate(groups):
        bounds = bounds_of(terms[at], reach.bounds)
        if bounds is None:
            if len(terms[at]) != 1 or terms[at][0][1] != 1:
                return at
            bounds = (0, group.size - 1)
        if bounds[1] - bounds[0] >= group.size:
            return at
        ranges.append(bounds)
    return _with_constants(constant, groups, order, terms, ranges)


def _with_constants(
    constant: int,
    groups: list[_Group],
    order: list[int],
    terms: list[list[tuple[tuple[str, ...], int]]],
    ranges: list[tuple[int, int]],
) -> tuple[Terms, ...] | int:
    """Share the constant of the index among the subscripts so that each stays within its group."""
    shifts = [(-low, groups[at].size - 1 - high) for at, (low, high) in enumerate(ranges)]
    for place, at in enumerate(order):
        stride = groups[at].stride
        smallest = sum(groups[small].stride * shifts[small][0] for small in order[place + 1 :])
        largest = sum(groups[small].stride * shifts[small][1] for small in order[place + 1 :])
        low = max(shifts[at][0], -((largest - constant) // stride))
        high = min(shifts[at][1], (constant - smallest) // stride)
        if low > high:
            return at
        shift = min(max(0, low), high)
        constant -= shift * stride
        if shift:
            terms[at].append(((), shift))
    return 0 if constant else tuple(tuple(part) for part in terms)


def _symbolic(layout: BufferLayout, reaches: Sequence[Reach]) -> _Found | None:
    """With symbolic sizes: each dimension must be one loop variable that runs over just its size."""
    strides = [index_of(str(step)) for step in layout.stride or ()]
    sizes = layout.size or ()
    at: _At = {}
    for reach in reaches:
        index = index_of(reach.index)
        if index is None or layout.offset != 0:
            return None
        left = dict(index.terms)
        placed: list[Terms] = []
        for length, stride in zip(sizes, strides, strict=True):
            if length == 1:
                placed.append(())
                continue
            if stride is None or len(stride.terms) != 1:
                return None
            factors, coefficient = stride.terms[0]
            found = None
            for variable, steps in reach.bounds.sizes.items():
                key = tuple(sorted((variable, *factors)))
                if left.get(key) == coefficient and _same(steps, length):
                    found = (key, variable)
            if found is None:
                return None
            del left[found[0]]
            placed.append((((found[1],), 1),))
        if left:
            return None
        at[reach.index, reach.block] = tuple(placed)
    return sizes, at


def _same(one: Dim, other: Dim) -> bool:
    left, right = index_of(str(one)), index_of(str(other))
    return left is not None and right is not None and left.terms == right.terms
