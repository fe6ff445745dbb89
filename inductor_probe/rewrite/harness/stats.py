"""Verdicts: the median log-ratio of the quads, its bootstrap interval, and a margin."""

from __future__ import annotations

import math

import torch

MARGIN = 0.01
RESAMPLES = 1000


def interval(scores: list[float], seed: int = 0) -> tuple[float, float, float]:
    """Return the median of `scores` and its 95 % bootstrap interval."""
    data = torch.tensor(scores, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    picks = torch.randint(len(scores), (RESAMPLES, len(scores)), generator=generator)
    medians = data[picks].quantile(0.5, dim=1)
    low, high = medians.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return data.quantile(0.5).item(), low, high


def decide(low: float, high: float) -> str:
    """Place the interval of a log-ratio against the margin: wholly outside, wholly inside, or neither."""
    margin = math.log1p(MARGIN)
    if low > margin:
        return "SLOWER"
    if high < -margin:
        return "FASTER"
    return "SAME" if -margin <= low and high <= margin else "UNDECIDED"


def seconds_missing(middle: float, low: float, high: float, spent: float) -> float:
    """Estimate how much longer to measure until the interval clears the nearest edge of the margin.

    The width of an interval falls with the square root of the time spent.
    """
    gap = abs(abs(middle) - math.log1p(MARGIN))
    half = (high - low) / 2
    return spent * max((half / gap) ** 2 - 1, 1.0) if gap else math.inf
