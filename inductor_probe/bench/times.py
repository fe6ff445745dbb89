"""The time of each thing in a report: one value, from one set of samples, whichever table shows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from inductor_probe.model.bench import Measurement
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.timing import Process, Series


def times_of(
    series: Sequence[Series], comparisons: Iterable[Comparison], measured: Mapping[str, Measurement]
) -> tuple[Measurement, ...]:
    """Return a time for each name in `series`, in their order.

    What was timed in the rounds of kernels and call has that time. Of what was only compared, the ratio is
    known better than the time, since both sides are timed in turns: so its time is the other side's times the
    ratio. `Compiled call` of 30 us that takes 1.5 times as long as another makes 20 us for that. Where
    neither side has a time, the baseline's is the median over all quads of its fastest block. On a busy
    machine none is below the shortest block that was seen of it: rounds are hit otherwise than quads.

    Args:
        series: of all comparisons and processes.
        comparisons: what was concluded from them.
        measured: by name; of the same data (warm or cold) as `series`.
    """
    names = dict.fromkeys(name for pair in series for name in (pair.baseline, pair.candidate) if name)
    times = {name: measured[name] for name in names if name in measured}
    pairs = {(pair.baseline, pair.candidate): pair for pair in comparisons}
    known = True
    while len(times) < len(names):
        if not known:  # the next baseline that nothing leads to
            baselines = [pair.baseline for pair in series if pair.baseline not in times]
            name = baselines[0] if baselines else next(name for name in names if name not in times)
            times[name] = _from_quads(name, series)
        known = False
        for (baseline, candidate), pair in pairs.items():
            if baseline in times and candidate not in times:
                times[candidate] = _scaled(candidate, times[baseline], pair.ratio, series, busy=pair.busy)
                known = True
            elif candidate in times and baseline not in times:
                times[baseline] = _scaled(baseline, times[candidate], 1 / pair.ratio, series, busy=pair.busy)
                known = True
    return tuple(times[name] for name in names)


def once_timed(process: Process, call_s: float | None) -> tuple[tuple[Measurement, ...], tuple[Remark, ...]]:
    """Return the times of kernels that were timed in one call only, the longest first.

    Nothing in a call takes longer than it: where they do so together, that one call was disturbed, and none
    of its times is to be believed. A remark says so in their place. `call_s` is None where it is not known.
    """
    ranked = sorted(process.timed_once, key=lambda item: -item[1])
    total = sum(seconds for _, seconds in ranked)
    if call_s is not None and total > call_s:
        names = tuple(name for name, _ in ranked)
        numbers = {"kernels": names, "once_s": total, "call_s": call_s}
        return (), (measured("once-exceeds-call", "hazard", Subject("graph", process.graph), numbers),)
    times = (Measurement(f"{name} in one call", seconds, 0.0, 1, "once") for name, seconds in ranked)
    return tuple(times), ()


def blocks_of(name: str, series: Sequence[Series]) -> list[float]:
    """Return the fastest block of a side in each quad that counts."""
    blocks: list[float] = []
    for pair in series:
        quads = [quad for quad in pair.quads if quad.disturbed is None] or list(pair.quads)
        if pair.baseline == name:
            blocks += [min(quad.samples("A")) for quad in quads]
        elif pair.candidate == name:
            blocks += [min(quad.samples("B")) for quad in quads if not quad.guard]
    return blocks


def _from_quads(name: str, series: Sequence[Series]) -> Measurement:
    blocks = blocks_of(name, series)
    middle = median(blocks) if blocks else math.nan
    mad = median(abs(block - middle) for block in blocks) if blocks else math.nan
    return Measurement(name, middle, mad, len(blocks), "quads")


def _scaled(
    name: str, other: Measurement, ratio: float, series: Sequence[Series], *, busy: bool
) -> Measurement:
    """Return the time of `name`, which takes `ratio` times as long as `other`; scatter is that of its own."""
    scatter, seconds = _from_quads(name, series), other.seconds * ratio
    if busy:
        seconds = max(seconds, min(blocks_of(name, series), default=0.0))
    mad = scatter.mad / scatter.seconds * seconds if scatter.samples else math.nan
    return Measurement(name, seconds, mad, scatter.samples, "ratio")
