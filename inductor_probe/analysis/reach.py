"""Which elements of a buffer an access is sure to reach, and the bytes that move for them at least.

An index such as `672*c0 - 3*c1 + c2` over ranges of its variables reaches elements that can be counted; one
with what is loaded (`tmp3`), or with divisions of several variables, is counted as far as that is sure. An
upper count is in `analysis/work.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import prod
from typing import ClassVar

from msgspec import Struct

from inductor_probe.analysis.index import all_numbers, evaluate, parse_expression, parse_index
from inductor_probe.model.record import Compared

SECTOR_BYTES = 32
"""What the memory of a GPU gives at a time (CUDA C++ Best Practices Guide, Coalesced Access)."""


class Pattern(Compared, frozen=True):
    """Elements of a buffer that an access is sure to reach.

    Attributes:
        first: the smallest of them.
        digits: steps and counts, the smallest step first: the elements are `first + a*step0 + b*step1 + ...`,
            all different.
        floats: they lie anywhere in the buffer, as values say that are loaded; `first` means nothing then.
        furthest: the largest element of the whole access, of which these are a part.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("furthest",)

    first: int
    digits: tuple[tuple[int, int], ...] = ()
    floats: bool = False
    furthest: int = 0

    @property
    def count(self) -> int:
        """How many elements they are."""
        return prod(number for _, number in self.digits)

    @property
    def last(self) -> int:
        """The largest of them."""
        return self.first + sum(step * (number - 1) for step, number in self.digits)

    def sector_bytes(self, item: int) -> int:
        """Return the bytes of the sectors that the elements, of `item` bytes each, lie in at least.

        Where they lie closer than a sector is wide, the sectors between them are all reached.
        """
        run, sectors, span = item, 0, item
        for step, number in self.digits:
            gap = step * item - span
            if not sectors and gap < SECTOR_BYTES:
                run += step * item * (number - 1)
            else:
                sectors = sectors or -(-run // SECTOR_BYTES)
                # Neighbours that are nearer than a sector share one at most.
                sectors = number * sectors - (number - 1 if gap < SECTOR_BYTES else 0)
            span += step * item * (number - 1)
        return (sectors or -(-run // SECTOR_BYTES)) * SECTOR_BYTES


def pattern_of(index: str, ranges: Mapping[str, int], values: Mapping[str, int]) -> Pattern | None:
    """Return the elements that an index reaches over its ranges whatever is loaded; None if not known.

    `x // 8` and `ModularIndexing(x, 1, 8)` are digits of `x`; a variable that stands in the index in another
    way is left at its first value. So are terms with names that `ranges` and `values` lack (`tmp3`): any of
    their values moves the elements, and makes none of them equal.
    """
    try:
        parsed = parse_index(index)
    except ValueError:
        return None
    inside = dict(parsed.opaque)
    first, floats = 0, False
    digits: dict[str, list[_Digit]] = {}
    left: set[str] = set()
    for factors, coefficient in parsed.terms:
        names = {factor: inside.get(factor, frozenset((factor,))) & ranges.keys() for factor in factors}
        varying = [factor for factor in factors if names[factor]]
        constant = _product(coefficient, (factor for factor in factors if not names[factor]), values)
        digit = _digit(varying[0], values) if len(varying) == 1 else None
        if constant is not None and not varying:
            first += constant
        elif constant is not None and digit is not None:
            (variable,) = names[varying[0]]
            digits.setdefault(variable, []).append(_Digit(constant, *digit))
        else:
            floats = True
            left.update(*names.values())
    steps = [step for name in digits.keys() - left for step in _steps(ranges[name], digits[name])]
    first += sum(step * (number - 1) for step, number in steps if step < 0)
    steps = [(abs(step), number) for step, number in steps]
    furthest = first + sum(step * (number - 1) for step, number in steps)
    return Pattern(first, different_steps(steps), floats, furthest)


class _Digit(Struct, frozen=True):
    """`step * (variable // place % radix)`; without the remainder where `radix` is 0."""

    step: int
    place: int
    radix: int


def _product(coefficient: int, factors: Iterable[str], values: Mapping[str, int]) -> int | None:
    known = all_numbers(evaluate(parse_expression(factor), values) for factor in factors)
    return None if known is None else coefficient * prod(known)


def _digit(factor: str, values: Mapping[str, int]) -> tuple[int, int] | None:
    """Return the place and radix of a digit of one variable; None for anything else."""
    match parse_expression(factor):
        case ast.Name():
            return 1, 0
        case (
            ast.BinOp(left=ast.Name(), op=ast.FloorDiv(), right=place)
            | ast.Call(func=ast.Name(id="FloorDiv"), args=[ast.Name(), place])
        ):
            divisor = evaluate(place, values)
            return (divisor, 0) if divisor and divisor > 0 else None
        case ast.Call(func=ast.Name(id="ModularIndexing"), args=[ast.Name(), place, modulus]):
            divisor, radix = evaluate(place, values), evaluate(modulus, values)
            return (divisor, radix) if divisor and radix and min(divisor, radix) > 0 else None
    return None


def _steps(size: int, digits: list[_Digit]) -> list[tuple[int, int]]:
    """Return steps and counts of the digits of a variable, where each can be chosen by itself; else none."""
    digits = sorted(digits, key=lambda digit: digit.place)
    if len(digits) == 1 and not digits[0].radix:
        return [(digits[0].step, -(-size // digits[0].place))]
    steps = []
    for digit, above in zip(digits, [*digits[1:], None], strict=True):
        if above is not None and (not digit.radix or above.place % (digit.place * digit.radix)):
            return []
        whole = max(1, size // digit.place)
        steps.append((digit.step, min(digit.radix, whole) if digit.radix else whole))
    return steps


def different_steps(steps: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return digits of which each combination is another element: those that overlap are cut or left out."""
    kept: list[tuple[int, int]] = []
    for step, number in sorted((step, number) for step, number in steps if step and number > 1):
        span = sum(inner * (count - 1) for inner, count in kept)
        if step > span:
            kept.append((step, number))
            continue
        inner, count = kept[-1]
        fitting = max(0, (step - 1 - (span - inner * (count - 1))) // inner + 1)
        if fitting * number > count:
            kept[-1:] = [(inner, fitting), (step, number)] if fitting > 1 else [(step, number)]
    return tuple(kept)


def least_bytes(patterns: Sequence[Pattern], item: int, *, sectors: bool) -> int:
    """Return the bytes that accesses to one buffer move at least, each element or sector once.

    Of accesses with the same steps, as those to the parts of a tensor that was split are, all count that
    reach other elements; of others the one with most, and those that lie elsewhere.
    """

    def size(pattern: Pattern) -> int:
        return pattern.sector_bytes(item) if sectors else pattern.count * item

    fixed = sorted({pattern for pattern in patterns if not pattern.floats}, key=_digits_of)
    groups = (_joined(list(group)) for _, group in groupby(fixed, _digits_of))
    total = largest = 0
    end = -1
    # Parts that lie apart may share the sector at their border.
    margin = SECTOR_BYTES // item if sectors else 0
    for pattern in sorted((joint for group in groups for joint in group), key=lambda one: one.first):
        if largest and pattern.first > end + margin:
            total, largest = total + largest, 0
        largest, end = max(largest, size(pattern)), max(end, pattern.last)
    return max([total + largest, *(size(pattern) for pattern in patterns if pattern.floats)])


def _digits_of(pattern: Pattern) -> tuple[tuple[int, int], ...]:
    return pattern.digits


def _joined(patterns: list[Pattern]) -> list[Pattern]:
    """Join accesses with the same steps, if none overlap: those of a 2 x 2 window are two rows of two."""
    firsts = sorted(pattern.first for pattern in patterns)
    digits = patterns[0].digits
    while len(firsts) > 1:
        space = firsts[1] - firsts[0]
        number = next(
            (place for place, first in enumerate(firsts) if first != firsts[0] + place * space), len(firsts)
        )
        starts = [first for first in firsts if first - space not in firsts]
        runs = sorted(start + place * space for start in starts for place in range(number))
        together = different_steps((*digits, (space, number)))
        if runs != firsts or prod(count for _, count in together) != number * prod(
            count for _, count in digits
        ):
            break
        firsts, digits = starts, together
    return [Pattern(first, digits) for first in firsts]
