"""Remarks on the samples of a comparison: drift, bimodality, autocorrelation, processes that differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from msgspec import Struct

from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.timing import Quad, Series, Side

_FEWEST = 30
_SURE = 4.0
"""Standard errors: much is tested in each of several processes, and few remarks shall be chance."""
_CORRELATED = 0.3
_WORTH = 0.2
"""Of the margin: what an interval is widened by less is not worth a remark."""
_MAD_TO_SIGMA = 1.4826
_CHANCE = 1e-3
_SMALLEST_SHARE = 0.1
_NARROWEST_BIN = 0.005
_FEWEST_BINS = 4
_DISTINCT_PER_BIN = 4
"""Distinct samples a bin: a clock with coarse ticks has gaps of its own."""


def sample_remarks(
    series: Sequence[Series], quads: Sequence[Sequence[Quad]], medians: Sequence[float], margin: float
) -> tuple[Remark, ...]:
    """Remark on drift, quads that are not independent, bimodality, and processes that differ.

    Args:
        series: of each process.
        quads: those of each that count.
        medians: of the log-ratios of each process.
        margin: what differs by less is not worth a remark.
    """
    drifts: list[tuple[float, Remark]] = []
    correlations: list[tuple[float, Remark]] = []
    remarks: list[Remark] = []
    for process, (pair, counted) in enumerate(zip(series, quads, strict=True), start=1):
        used = [quad for quad in counted if not quad.guard]
        if len(used) < _FEWEST:
            continue
        candidate = Subject("variant", pair.candidate or "")
        sides: tuple[tuple[Subject, Side], ...] = ((Subject("variant", pair.baseline), "A"), (candidate, "B"))
        for subject, side in sides:
            samples = np.array([quad.samples(side) for quad in used]).ravel()
            change = drift(samples)
            drifts.append((abs(change), measured("drift", "hazard", subject, {"change": change})))
            peaks = modes(samples) if abs(change) <= margin else None
            if peaks and peaks.high > peaks.low * (1 + 2 * margin):
                numbers = {"process": process, "share": peaks.share, "low_s": peaks.low, "high_s": peaks.high}
                remarks.append(measured("bimodal-samples", "hazard", subject, numbers))
        score = autocorrelation(np.array([quad.score for quad in used]))
        numbers = {"autocorrelation": score, "process": process}
        correlations.append((score, measured("autocorrelation", "hazard", candidate, numbers)))
    for sizes, least in ((drifts, margin), (correlations, _CORRELATED)):
        if sizes and (largest := max(sizes, key=itemgetter(0)))[0] > least:
            remarks.append(largest[1])
    if len(medians) > 1 and max(medians) - min(medians) > 2 * math.log1p(margin):
        ratios = {f"process_{number}": math.exp(median) for number, median in enumerate(medians, start=1)}
        subject = Subject("variant", series[0].candidate or "")
        remarks.append(measured("processes-differ", "hazard", subject, ratios))
    return tuple(remarks)


def widening_remarks(
    series: Series, offset: float, hidden: float, disturbed: tuple[int, int], margin: float
) -> tuple[Remark, ...]:
    """Remark on what made an interval wider by more than a fifth of the margin.

    Args:
        series: of any process.
        offset, hidden: log-ratios that it was widened by on each side: see `verdict`.
        disturbed: how many of how many quads were.
        margin: a ratio from 1 / (1 + margin) to 1 + margin is the same time.
    """
    remarks, least = list[Remark](), _WORTH * math.log1p(margin)
    if offset > least:
        numbers = {"offset": math.expm1(offset)}
        remarks.append(measured("baseline-offset", "hazard", Subject("variant", series.baseline), numbers))
    if hidden > least:
        counts = {"disturbed": disturbed[0], "quads": disturbed[1], "shift": math.expm1(hidden)}
        subject = Subject("variant", series.candidate or "")
        remarks.append(measured("disturbance-shift", "hazard", subject, counts))
    return tuple(remarks)


def drift(samples: np.ndarray) -> float:
    """Return by which part the samples moved from their first third to their last; 0 if that may be chance.

    Medians of thirds, and their standard error from the median distance, so that no spike counts.
    """
    third = len(samples) // 3
    first, last = np.log(samples[:third]), np.log(samples[-third:])
    moved = float(np.median(last) - np.median(first))
    spread = max(float(np.median(np.abs(part - np.median(part)))) for part in (first, last))
    error = math.sqrt(math.pi / 2) * _MAD_TO_SIGMA * spread * math.sqrt(2 / third)
    return math.expm1(moved) if abs(moved) > _SURE * error else 0.0


def autocorrelation(scores: np.ndarray) -> float:
    """Return the correlation of each score with the next, of clipped scores; 0 if that may be chance.

    Of n independent scores it has a standard error of 1 / sqrt(n). A spike alone shall not make it.
    """
    centred = scores - np.median(scores)
    limit = 3 * _MAD_TO_SIGMA * float(np.median(np.abs(centred)))
    clipped = np.clip(centred, -limit, limit)
    total = float(clipped @ clipped)
    correlation = float(clipped[1:] @ clipped[:-1]) / total if total else 0.0
    return correlation if correlation > _SURE / math.sqrt(len(scores)) else 0.0


class Modes(Struct, frozen=True):
    """Two modes: their medians, and the share of samples in the lower one."""

    low: float
    high: float
    share: float


def modes(samples: np.ndarray) -> Modes | None:
    """Return the two modes of `samples`, or None if one explains them.

    A density with one peak is nowhere lower than both of two densities left and right of that place. So of
    the samples in a bin and in the smaller of two bins around it, at least half should be in the middle one,
    up to chance, which is binomial: 5 samples between bins of 40 and 38 are a valley (5 against 38), 30 are
    not. Skewness, heavy tails and flat tops do not matter. Bins of several
    widths are tried, none narrower than half a percent of the median.
    """
    ranked = np.sort(samples)
    low, high = ranked[len(ranked) // 100], ranked[-1 - len(ranked) // 100]
    most = min(
        (high - low) / (_NARROWEST_BIN * float(np.median(ranked))), len(np.unique(ranked)) / _DISTINCT_PER_BIN
    )
    best, edge, bins, tried = 0.0, 0.0, _FEWEST_BINS, 0
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
    if not _SMALLEST_SHARE <= share <= 1 - _SMALLEST_SHARE:
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
