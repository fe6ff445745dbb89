"""Remarks on the samples of a comparison: drift, bimodality, autocorrelation, processes that differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from inductor_probe.bench.bimodality import modes
from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.timing import Quad, Series, Side

_FEWEST = 30
_SURE = 4.0
"""Standard errors: much is looked at in each of several processes, and little shall be said by chance."""
_CORRELATED = 0.3
_MAD_TO_SIGMA = 1.4826


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
    for process, (own, counting) in enumerate(zip(series, quads, strict=True), start=1):
        used = [quad for quad in counting if not quad.guard]
        if len(used) < _FEWEST:
            continue
        candidate = Subject("variant", own.candidate or "")
        sides: tuple[tuple[Subject, Side], ...] = ((Subject("variant", own.baseline), "A"), (candidate, "B"))
        for subject, side in sides:
            samples = np.array([quad.samples(side) for quad in used]).ravel()
            change = drift(samples)
            drifts.append((abs(change), measured("drift", "hazard", subject, {"change": change})))
            two = modes(samples) if abs(change) <= margin else None
            if two and two.high > two.low * (1 + 2 * margin):
                numbers = {"process": process, "share": two.share, "low_s": two.low, "high_s": two.high}
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
