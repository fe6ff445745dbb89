"""Which of several things stand in another order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def moved(places: Sequence[int]) -> set[int]:
    """Return the fewest indices of `places` without which the rest ascends: what moved, not what gave way."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for at, place in enumerate(places):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [at]
    kept: set[int] = set()
    at = last[-1] if last else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return set(range(len(places))) - kept
