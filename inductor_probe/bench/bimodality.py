"""Bimodality: is there a valley in the histogram of samples that chance does not explain?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_CHANCE = 1e-3
_SMALLEST = 0.1
_FINEST = 0.005
_COARSEST = 4
_DISTINCT = 4
"""Distinct samples a bin: a clock with coarse ticks has gaps of its own."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Two modes: their medians, and the share of samples in the lower one."""

    low: float
    high: float
    share: float


def modes(samples: np.ndarray) -> Modes | None:
    """Return the two modes of `samples`, or None if one explains them.

    A density with one peak is nowhere lower than both of two densities left and right of that place. So of
    the samples in a bin and in the smaller of two bins around it, at least half should be in the middle one,
    up to chance, which is binomial. Skewness, heavy tails and flat tops do not matter. Bins of several
    widths are tried, none narrower than half a percent of the median.
    """
    ranked = np.sort(samples)
    low, high = ranked[len(ranked) // 100], ranked[-1 - len(ranked) // 100]
    most = min((high - low) / (_FINEST * float(np.median(ranked))), len(np.unique(ranked)) / _DISTINCT)
    best, edge, bins, tried = 0.0, 0.0, _COARSEST, 0
    while bins <= most:
        counts, edges = np.histogram(ranked, bins=bins, range=(low, high))
        left, right = np.maximum.accumulate(counts), np.maximum.accumulate(counts[::-1])[::-1]
        for index in range(1, bins - 1):
            wall = int(min(left[index - 1], right[index + 1]))
            if (depth := _surprise(int(counts[index]), wall)) > best:
                best, edge = depth, float(edges[index] + edges[index + 1]) / 2
        tried += bins**2
        bins = bins * 3 // 2
    if best < math.log(max(tried, 1) / _CHANCE):
        return None
    share = float(np.mean(ranked < edge))
    if not _SMALLEST <= share <= 1 - _SMALLEST:
        return None
    return Modes(float(np.median(ranked[ranked < edge])), float(np.median(ranked[ranked >= edge])), share)


def _surprise(valley: int, wall: int) -> float:
    """Return minus the logarithm of a bound on the chance of `valley` or fewer where `wall` is as likely.

    Hoeffding's bound of a binomial tail: n times the divergence of its share from a half.
    """
    total = valley + wall
    if valley >= wall:
        return 0.0
    share = valley / total
    entropy = -sum(part * math.log(part) for part in (share, 1 - share) if part)
    return total * (math.log(2) - entropy)
