"""A ratio of times with its interval, and the verdict on it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.remark import Remark

Verdict: TypeAlias = Literal["FASTER", "SLOWER", "SAME", "UNDECIDED", "INVALID"]


class Comparison(Struct, frozen=True):
    """How long `candidate` takes relative to `baseline`; `BenchResult.times` has both by their names.

    Attributes:
        ratio: of times, candidate over baseline; `low` to `high` is its interval.
        verdict: see `bench.verdict`. process_ratios: the ratio in each process.
        quads: how many the ratio rests on. excluded: how many were disturbed, and left out.
        busy: other programs had the cores for more than a fifth of the time, or in every lap.
        reason: why there is no other verdict; None where there is one.
        remarks: what makes the samples less than plain: drift, bimodality, processes that differ.
    """

    baseline: str
    candidate: str
    ratio: float
    low: float
    high: float
    verdict: Verdict
    process_ratios: tuple[float, ...]
    quads: int
    excluded: int
    busy: bool = False
    reason: Remark | None = None
    remarks: tuple[Remark, ...] = ()
