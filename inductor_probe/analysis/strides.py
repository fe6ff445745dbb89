"""How the loops of an access walk memory: strides, innermost loop, and the pattern."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from inductor_probe.analysis.index import INDIRECT, PIECEWISE, Index, steady_run
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import Pattern

CACHE_LINE_BYTES = 64
"""A run shorter than this does not fill one cache line, nor one AVX-512 register."""


class Walk(NamedTuple):
    """How loops walk memory: see `Access`."""

    strides: tuple[tuple[str, Dim], ...]
    innermost: str | None
    pattern: Pattern
    contiguous: bool | None


@lru_cache(maxsize=8192)  # the layers of a network walk alike
def walk(index: Index, ranges: tuple[tuple[str, Dim], ...], reached: frozenset[str], item: int) -> Walk:
    """Follow the loops in `ranges`, outermost first, through `index`.

    Args:
        index: of an access.
        ranges: loop variables with their steps.
        reached: the variables that indirect indices depend on.
        item: bytes of an element: decides how long a run must be to fill a cache line.
    """
    strides = {
        name: INDIRECT if index.stride(name) == 0 and name in reached else index.stride(name)
        for name, _ in ranges
    }
    looping = [name for name, steps in ranges if steps != 1]
    pattern, contiguous = _pattern(
        index, ranges=dict(ranges), strides=strides, looping=looping, reached=reached, item=item
    )
    return Walk(tuple(strides.items()), looping[-1] if looping else None, pattern, contiguous)


def _pattern(
    index: Index,
    *,
    ranges: dict[str, Dim],
    strides: dict[str, Dim],
    looping: list[str],
    reached: frozenset[str],
    item: int,
) -> tuple[Pattern, bool | None]:
    """Return the pattern, and whether the innermost loop walks memory without jumps."""
    if not looping:
        return Pattern("scalar"), True
    innermost = looping[-1]
    if innermost in reached:
        return Pattern("indirect"), False
    outer = looping[:-1]
    backwards = tuple(name for name in outer if _is_negative(strides[name]))
    stride, steps = strides[innermost], ranges[innermost]
    run: Dim = steps
    if stride == PIECEWISE:
        steady = steady_run(index, innermost, steps) if isinstance(steps, int) else None
        if steady is None:
            return Pattern("piecewise"), None
        stride, run = steady
    if stride == 0:
        return Pattern("broadcast", reversed_loops=backwards), True
    if stride == 1:
        run = _whole_run(run, steps, outer, ranges, strides)
        total = prod(steps for name in looping if isinstance(steps := ranges[name], int))
        if isinstance(run, int) and run * item < CACHE_LINE_BYTES and run < total:
            return Pattern("contiguous", 1, run, backwards), False
        return Pattern("contiguous", 1, None, backwards), True
    return Pattern("reversed" if _is_negative(stride) else "strided", stride, None, backwards), False


def _whole_run(
    run: Dim, steps: Dim, outer: list[str], ranges: dict[str, Dim], strides: dict[str, Dim]
) -> Dim:
    """Extend a contiguous run over the outer loops whose stride goes on where the inner ones end."""
    if run != steps:
        return run
    for name in reversed(outer):
        if not isinstance(run, int) or strides[name] != run or not isinstance(ranges[name], int):
            break
        run *= int(ranges[name])
    return run


def _is_negative(stride: Dim) -> bool:
    return stride < 0 if isinstance(stride, int) else stride.startswith("-")
