"""A flat index into a buffer as coordinates of its dimensions, proved, so that it can be laid out anew.

In a layout whose dimensions nest (each stride is at least the extent of all smaller ones), a flat index
has one set of coordinates with 0 <= c_d < size_d. So if each term of the index is given to a dimension, and
the sum of what a dimension got stays within its size for all values of the variables, those are the
coordinates.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from inductor_probe.variants.index import Sum

Range = tuple[int, int]


class UnprovedError(ValueError):
    """The coordinates of an index are not proved; says why."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes and strides of a buffer, in elements."""

    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def extent(self) -> int:
        """Elements from the first to the last, both included."""
        return sum((n - 1) * step for n, step in zip(self.size, self.stride, strict=True)) + 1

    def by_stride(self) -> list[int]:
        """Return the dimensions that have steps, the largest stride first."""
        return sorted((at for at, n in enumerate(self.size) if n > 1), key=lambda at: -self.stride[at])

    def overlaps(self) -> bool:
        """Tell whether the dimensions do not nest: then two elements may share a place."""
        inner = 1
        for at in reversed(self.by_stride()):
            if self.stride[at] < inner:
                return True
            inner = self.stride[at] * self.size[at]
        return False


@dataclass(slots=True)
class _Coordinate:
    """What a dimension has got so far: terms, and the least and largest value of their sum."""

    terms: list[tuple[str, int]] = field(default_factory=list)
    low: int = 0
    high: int = 0
    constant: int = 0

    def add(self, factor: str, value: int, low: int, high: int) -> None:
        self.terms.append((factor, value))
        self.low += min(low * value, high * value)
        self.high += max(low * value, high * value)


def coordinates(index: Sum, layout: Layout, range_of: Callable[[str], Range]) -> tuple[Sum, ...]:
    """Return the coordinate of each dimension for a flat index.

    Args:
        index: the flat index.
        layout: of the buffer; its dimensions nest.
        range_of: least and largest value of a factor; raises UnprovedError where that is not known.

    Raises:
        UnprovedError: no proof was found; says why.
    """
    dealer = _Dealer(layout)
    constant = index.constant
    for factor, value in index.terms:
        low, high = range_of(factor)
        if low == high:
            constant += value * low
        else:
            dealer.give(factor, value, low, high)
    dealer.give_constant(constant)
    return dealer.checked()


class _Dealer:
    """Gives terms of an index to the dimensions of a layout."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.order = layout.by_stride()
        self.found = [_Coordinate() for _ in layout.size]

    def give(self, factor: str, value: int, low: int, high: int) -> None:
        """Give a term to the dimension of the largest stride that divides it, or to all that it runs over."""
        size, stride = self.layout.size, self.layout.stride
        fitting = [at for at in self.order if value % stride[at] == 0 and abs(value) >= stride[at]]
        if not fitting:
            raise UnprovedError(f"{value}*{factor} is no multiple of a stride")
        at = fitting[0]
        step = value // stride[at]
        if abs(step) * (high - low) < size[at] or step < 0 or low < 0:
            self.found[at].add(factor, step, low, high)
            return
        # It runs over the end of this dimension: into the next one, if that goes on where this one ends.
        place = self.order.index(at)
        outer = self.order[place - 1] if place else None
        if outer is None or stride[outer] != stride[at] * size[at] or size[at] % step:
            raise UnprovedError(f"{value}*{factor} runs over the end of dimension {at}")
        wraps = size[at] // step
        self.found[at].add(f"({factor}) % {wraps}", step, 0, wraps - 1)
        self.give(f"({factor}) // {wraps}", stride[outer], low // wraps, high // wraps)

    def give_constant(self, constant: int) -> None:
        """Give the constant away so that no coordinate is negative: first what each needs, then the rest."""
        size, stride = self.layout.size, self.layout.stride
        for at in self.order:
            self.found[at].constant = max(-self.found[at].low, 0)
            constant -= self.found[at].constant * stride[at]
        for at in self.order:
            room = size[at] - 1 - self.found[at].high - self.found[at].constant
            more = min(max(constant // stride[at], 0), max(room, 0))
            self.found[at].constant += more
            constant -= more * stride[at]
        if constant:
            raise UnprovedError(f"its constant does not fit: {constant} is left over")

    def checked(self) -> tuple[Sum, ...]:
        """Return the coordinates, each within the size of its dimension."""
        for at, each in enumerate(self.found):
            low, high = each.low + each.constant, each.high + each.constant
            if low < 0 or high >= self.layout.size[at]:
                outside = f"outside of its size {self.layout.size[at]}"
                raise UnprovedError(f"dimension {at} would be {low} to {high}, {outside}")
        return tuple(Sum(tuple(each.terms), each.constant) for each in self.found)


def laid_out(where: tuple[Sum, ...], layout: Layout) -> Sum:
    """Return the flat index of coordinates in another layout."""
    terms: dict[str, int] = {}
    constant = 0
    for coordinate, stride in zip(where, layout.stride, strict=True):
        constant += coordinate.constant * stride
        for factor, value in coordinate.terms:
            terms[factor] = terms.get(factor, 0) + value * stride
    for factor in list(terms):
        _rejoin(factor, terms)
    return Sum(tuple((factor, value) for factor, value in terms.items() if value), constant)


def _rejoin(factor: str, terms: dict[str, int]) -> None:
    """`768*(x0 % 345) + 264960*(x0 // 345)` is `768*x0`: one dimension goes on behind the other again."""
    found = _WRAPPED.fullmatch(factor)
    if found is None or factor not in terms:
        return
    above, wraps = f"({found['inner']}) // {found['wraps']}", int(found["wraps"])
    for split in [each for each in terms if each.startswith(f"({above})")]:
        _rejoin(split, terms)
    if terms.get(above) == terms[factor] * wraps:
        terms[found["inner"]] = terms.get(found["inner"], 0) + terms.pop(factor)
        del terms[above]


_WRAPPED = re.compile(r"\((?P<inner>.*)\) % (?P<wraps>\d+)")
