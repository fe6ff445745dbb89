"""Intervals: what the quads of a few processes say about a ratio, and how sure that is.

Times of one program differ by 0.1 to 7 % between its processes, since code and data lie elsewhere in each.
So processes are what was sampled, and three of them are few: a bootstrap that draws processes and then quads
can hardly leave the range of their medians: `benchmarks/timing/coverage.py` shows how often either is right.
Student's t over the medians of processes is used instead. Three medians can lie close together by chance; the
interval is therefore never narrower than what a bootstrap of the quads within their processes gives.

On a busy machine one process in ten is far off: a core keeps a kernel in a slow state (a branch predictor
that learned something else, a neighbour on the other half of the core) for 0.1 s at a time, which is all the
time that a process has. One such median among five makes Student's interval wide, and hides what the other
four agree on. From `ROBUST` processes on, the mean is therefore trimmed, with the interval of Yuen (1974),
"The two-sample trimmed t for unequal population variances": the outermost quarter of the medians on each side
counts as the nearest of the others does (winsorised) for the spread, and not at all for the mean.

    medians of 9 processes, in %:  -11.9  0.9  1.0  1.0  1.0  1.1  1.1  1.2  12.3
    Student:     mean 0.9, 8 degrees of freedom:   0.9 +- 4.7
    a quarter of 9 is 2 on each side: the mean of  1.0  1.0  1.0  1.1  1.1  is 1.04, the spread that of
                 1.0  1.0  1.0  1.0  1.0  1.1  1.1  1.1  1.1,  4 degrees of freedom:  1.04 +- 0.09
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from statistics import NormalDist, median
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

ROBUST = 7
"""From so many processes on, those that are far off are trimmed. Fewer have none to spare."""
_RESAMPLES = 1000
_LEVEL = 0.95


class Estimate(Struct, frozen=True):
    """A log-ratio with its interval.

    Attributes:
        middle: mean of the medians of the processes, trimmed where there are `ROBUST` of them.
        medians: of each process. counted: those that were not trimmed, in ascending order.
        between: variance of those medians, as observed; of what was not trimmed.
        within: what of it the scatter of quads explains; both in squared log-ratios.
        quantile: of Student's t, that the interval was made with; infinite for one process.
    """

    middle: float
    low: float
    high: float
    medians: tuple[float, ...]
    counted: tuple[float, ...]
    between: float
    within: float
    quantile: float

    def widened(self, reach: float) -> Estimate:
        """Return it with both ends of its interval further out by `reach`."""
        return replace(self, low=self.low - reach, high=self.high + reach)


def estimate(processes: Sequence[Sequence[float]], comparisons: int = 1, seed: int = 0) -> Estimate:
    """Return the log-ratio that the scores of quads, for each process, say.

    Args:
        processes: scores of each process, at least one process and one score each.
        comparisons: how many are made at once. The intervals of all of them together hold the truth with
            95 % (Bonferroni: each is made for a 20th divided by their number).
        seed: of the bootstrap.
    """
    count, tail = len(processes), (1 - _LEVEL) / 2 / comparisons
    medians = np.array([median(scores) for scores in processes])  # numpy's takes 50 times as long
    counts = tuple(map(len, processes))
    picks = (_picks(counts[: place + 1], seed) for place in range(count))
    resampled = np.stack(
        [_medians(np.asarray(scores), chosen) for scores, (chosen, _) in zip(processes, picks, strict=True)]
    )
    trimmed, counted = _trimmed(count), _counted(medians)
    middle = middle_of(medians)
    means = np.sort(resampled, axis=0)[trimmed : count - trimmed].mean(axis=0)
    # Tails beyond the resamples there are: widen the quantiles that they do hold as a normal tail would be.
    low, high = np.quantile(means, [0.025, 0.975])
    widen = NormalDist().inv_cdf(1 - tail) / NormalDist().inv_cdf(0.975)
    low, high = middle + (low - middle) * widen, middle + (high - middle) * widen
    freedom = len(counted) - 1
    quantile = t_quantile(1 - tail, freedom) if freedom else math.inf
    error = _standard_error(medians, trimmed) if freedom else math.nan
    half = quantile * error if freedom else 0.0
    return Estimate(
        middle=middle,
        low=float(min(low, middle - half)),
        high=float(max(high, middle + half)),
        medians=tuple(map(float, medians)),
        counted=tuple(map(float, medians[counted])),
        between=error**2 * len(counted),
        within=float(resampled[counted].var(axis=1).mean()),
        quantile=quantile,
    )


def middle_of(medians: Sequence[float] | np.ndarray) -> float:
    """Return the mean of the medians of processes, as `estimate` has it in its middle."""
    values = np.asarray(medians)
    return float(values[_counted(values)].mean())


def _trimmed(count: int) -> int:
    """Return how many of so many processes are left out at each end."""
    return count // 4 if count >= ROBUST else 0


def _counted(medians: np.ndarray) -> np.ndarray:
    """Return the places of the medians that count, in ascending order of medians."""
    trimmed = _trimmed(len(medians))
    return np.argsort(medians, kind="stable")[trimmed : len(medians) - trimmed]


def _standard_error(values: np.ndarray, trimmed: int) -> float:
    """Return the standard error of the mean of `values` without the `trimmed` largest and smallest (Yuen).

    The sum of squares of the winsorised values, in which the trimmed ones are replaced by the nearest that
    count. Nothing trimmed, it is that of a mean: deviation over the root of their number.
    """
    ranked = np.sort(values)
    winsorised = np.clip(ranked, ranked[trimmed], ranked[len(ranked) - 1 - trimmed])
    counted = len(ranked) - 2 * trimmed
    return math.sqrt(float(((winsorised - winsorised.mean()) ** 2).sum()) / (counted * (counted - 1)))


@lru_cache(maxsize=16)
def _picks(counts: tuple[int, ...], seed: int) -> tuple[np.ndarray, Mapping[str, Any]]:
    """Return which scores of the last process each resample has, and the state of the generator after it.

    They depend on the numbers of scores alone: a look at more processes, or at another variant, has the same.
    """
    rng = np.random.default_rng(seed)
    if len(counts) > 1:
        rng.bit_generator.state = _picks(counts[:-1], seed)[1]
    picks = rng.integers(0, counts[-1], (_RESAMPLES, counts[-1]))
    return picks.astype(_rank_type(counts[-1])), rng.bit_generator.state


def _rank_type(count: int) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if count < 1 << 16 else np.uint32


def _medians(scores: np.ndarray, picks: np.ndarray) -> np.ndarray:
    """Return the medians of resamples of `scores`, each of which is a row of `picks`.

    Ranks are sorted in place of scores: integers of two bytes, which numpy sorts ten times as
    fast as it finds medians of floats.
    """
    count, half = len(scores), len(scores) // 2
    order = np.argsort(scores)
    rank = np.empty(count, _rank_type(count))
    rank[order] = np.arange(count)
    ranks, ranked = np.sort(rank.take(picks), axis=1), scores[order]
    return np.asarray(ranked[ranks[:, half]] + ranked[ranks[:, (count - 1) // 2]]) / 2


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t for `probability` over a half, by bisection of its distribution."""
    low, high = 0.0, 1.0
    while t_distribution(high, freedom) < probability:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_distribution(middle, freedom) < probability else (low, middle)
    return high


def t_distribution(value: float, freedom: int) -> float:
    """Return the probability that Student's t is below `value`, which is not negative.

    For whole degrees of freedom it is a finite sum: Abramowitz and Stegun, Handbook of Mathematical
    Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan(value / math.sqrt(freedom))
    first = 2 + freedom % 2
    term, total = (math.cos(angle) if freedom % 2 else 1.0), 0.0
    for power in range(first, freedom + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (power - 1) / power
    central = 2 / math.pi * (angle + math.sin(angle) * total) if freedom % 2 else math.sin(angle) * total
    return 0.5 + central / 2
