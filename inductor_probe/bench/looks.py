"""Growing looks: measure many candidates against one baseline, and drop early only what is proven no gain.

This is a group sequential test, and a look one of its interim analyses: a whole measurement, in fresh
processes, `GROWTH` times as long as the one before. Looks are not pooled, and each is judged by the rules of
every other comparison (`verdict.conclude`), with a wider interval: look k of a comparison may be wrong with
probability 0.05 / 2**k, which all looks together, however many there are, add up to at most 0.05 (half of it
on each side). That is alpha spending (Lan and DeMets, Discrete Sequential Boundaries for Clinical Trials,
1983), with a geometric series; over candidates the correction is Bonferroni's, as `conclude` makes it.

    dropped     the whole interval of the ratio is above 1 / (1 + margin): no gain of the margin is left
    gain        FASTER in an interval that holds for all candidates at once: 200 are tried, one is believed
    open        anything else: it is looked at again, for longer, while there is budget

So a candidate whose gain is the margin is dropped in any look with probability 0.025 at most, and one whose
gain is larger less often by far: the interval would have to miss the truth by the difference, too. One that a
longer look calls FASTER has its whole interval beyond the margin. `tests/bench/test_looks.py` counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.bench.verdict import conclude
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.timing import Samples, Series

FIRST_LOOK_S = 1.0
"""Seconds of measuring in the first look: quads of the whole call, in three processes."""
GROWTH = 4
Standing: TypeAlias = Literal["gain", "same", "loss", "not-faster", "open"]
"""What is known after a look: faster; the same; slower; the same or slower; or none of these yet."""


class Judged(Struct, frozen=True):
    """A comparison as a look leaves it. `comparison` has the interval that `standing` rests on."""

    standing: Standing
    comparison: Comparison


def seconds_of(look: int, first: float = FIRST_LOOK_S) -> float:
    """Return how long a look measures, where look 1 takes `first` seconds."""
    return first * float(GROWTH) ** (look - 1)


def judge(series: Sequence[Series], look: int, margin: float, candidates: int = 1) -> Judged:
    """Return what the quads of one look say of a candidate.

    Args:
        series: of the call of the baseline and that of the candidate, one for each process.
        look: its number, from 1.
        margin: a smaller gain is none.
        candidates: how many are tried at once; a gain has to hold for all of them.
    """
    alone = conclude(series, margin, 2**look)
    among_all = conclude(series, margin, 2**look * candidates)
    if among_all.verdict == "FASTER":
        return Judged("gain", among_all)
    if alone.verdict == "SAME":
        return Judged("same", alone)
    if alone.verdict == "SLOWER":
        return Judged("loss", alone)
    trusted = alone.verdict != "INVALID" and len(alone.process_ratios) > 1
    if trusted and alone.low > 1 / (1 + margin):
        return Judged("not-faster", alone)
    return Judged("open", among_all)


def series_of(samples: Samples, baseline: str, candidate: str) -> list[Series]:
    """Return the quads of a comparison, one series for each process that made it."""
    return [
        series
        for process in samples.processes
        for series in process.comparisons
        if (series.baseline, series.candidate) == (baseline, candidate)
    ]
