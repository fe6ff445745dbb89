"""Findings: what is odd about the samples of a comparison, each said in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from inductor_probe.bench.humps import humps
from inductor_probe.model.timing import Quad, Series

_FEWEST = 30
_SURE = 4.0
"""Standard errors: much is looked at in each of several processes, and little shall be said by chance."""
_LINKED = 0.3
_MAD_TO_SIGMA = 1.4826


def findings(
    series: Sequence[Series], kept: Sequence[Sequence[Quad]], medians: Sequence[float], margin: float
) -> tuple[str, ...]:
    """Say what is odd: drift, quads that are not independent, two humps, processes that differ.

    Args:
        series: of each process.
        kept: the quads of each that count.
        medians: of the log-ratios of each process.
        margin: what differs by less is not worth a word.
    """
    drifts: list[tuple[float, str]] = []
    linked: list[tuple[float, str]] = []
    found: list[str] = []
    for number, (each, quads) in enumerate(zip(series, kept, strict=True), start=1):
        used = [quad for quad in quads if not quad.guard]
        if len(used) < _FEWEST:
            continue
        for name, side in ((each.baseline, "A"), (each.candidate, "B")):
            samples = np.array([quad.samples("A" if side == "A" else "B") for quad in used]).ravel()
            moved = drift(samples)
            drifts.append((abs(moved), f"{name} got {abs(moved):.1%} {'slower' if moved > 0 else 'faster'}"))
            if abs(moved) <= margin and (two := humps(samples)) and two.high > two.low * (1 + 2 * margin):
                found.append(
                    f"{name} is two-humped in process {number}: {two.share:.0%} of its blocks are near "
                    f"{two.low * 1e6:.4g} us, {1 - two.share:.0%} near {two.high * 1e6:.4g} us"
                )
        score = autocorrelation(np.array([quad.score for quad in used]))
        linked.append((score, f"quads follow each other: autocorrelation {score:.2f} in process {number}"))
    if drifts and max(drifts)[0] > margin:
        found.append(f"times drift: {max(drifts)[1]} within a process; both sides share it")
    if linked and max(linked)[0] > _LINKED:
        found.append(max(linked)[1])
    if len(medians) > 1 and max(medians) - min(medians) > 2 * math.log1p(margin):
        ratios = ", ".join(f"{math.exp(middle):.3f}" for middle in medians)
        found.append(f"processes differ: {ratios}")
    return tuple(found)


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
    found = float(clipped[1:] @ clipped[:-1]) / total if total else 0.0
    return found if found > _SURE / math.sqrt(len(scores)) else 0.0
