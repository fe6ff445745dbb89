"""Intervals: what the quads of a few processes say about a ratio, and how sure that is.

Times of one program differ by 0.1 to 7 % between its processes, since code and data lie elsewhere in each.
So processes are what was sampled, and three of them are few: a bootstrap that draws processes and then quads
can hardly leave the range of their medians. Simulated with medians of processes that scatter normally by
0.4, 3 and 7 % (3 processes, 5 where they differ), its 95 % interval held the truth in 84, 89 and 91 %, and
two equal programs were called different in 0, 3.5 and 4.5 %. Student's t over the medians held it in 93, 95
and 94 %, and called them different in 0, 1.5 and 3.2 %; where processes scatter by up to 0.4 %, it
calls 2 % more work slower in 94 % and more. Three medians can lie close together by chance; the interval is
therefore never narrower than what a bootstrap of the quads within their processes gives.
`benchmarks/coverage.py` repeats this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

_RESAMPLES = 1000
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A log-ratio with its interval.

    Attributes:
        middle: mean of the medians of the processes.
        medians: of each process.
        between: variance of those medians, as observed.
        within: what of it the scatter of quads explains; both in squared log-ratios.
        quantile: of Student's t, that the interval was made with; infinite for one process.
    """

    middle: float
    low: float
    high: float
    medians: tuple[float, ...]
    between: float
    within: float
    quantile: float


def estimate(processes: Sequence[Sequence[float]], comparisons: int = 1, seed: int = 0) -> Estimate:
    """Return the log-ratio that the scores of quads, for each process, say.

    Args:
        processes: scores of each process, at least one process and one score each.
        comparisons: how many are made at once. The intervals of all of them together hold the truth with
            95 % (Bonferroni: each is made for a 20th divided by their number).
        seed: of the bootstrap.
    """
    rng = np.random.default_rng(seed)
    count, tail = len(processes), (1 - _LEVEL) / 2 / comparisons
    medians = np.array([np.median(scores) for scores in processes])
    resampled = np.stack([_medians(np.asarray(scores), rng) for scores in processes])
    means = resampled.mean(axis=0)
    middle = float(medians.mean())
    # Tails beyond the resamples there are: widen the quantiles that they do hold as a normal tail would be.
    low, high = np.quantile(means, [0.025, 0.975])
    widen = NormalDist().inv_cdf(1 - tail) / NormalDist().inv_cdf(0.975)
    low, high = middle + (low - middle) * widen, middle + (high - middle) * widen
    between = float(medians.var(ddof=1)) if count > 1 else math.nan
    quantile = t_quantile(1 - tail, count - 1) if count > 1 else math.inf
    half = quantile * math.sqrt(between / count) if count > 1 else 0.0
    return Estimate(
        middle=middle,
        low=float(min(low, middle - half)),
        high=float(max(high, middle + half)),
        medians=tuple(map(float, medians)),
        between=between,
        within=float(resampled.var(axis=1).mean()),
        quantile=quantile,
    )


def _medians(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the medians of resamples of `scores`."""
    picks = rng.integers(0, len(scores), (_RESAMPLES, len(scores)))
    return np.asarray(np.median(scores[picks], axis=1))


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
