"""Verdicts: the interval of a ratio against a margin.

FASTER or SLOWER if the interval lies wholly outside the margin and all processes agree in sign, SAME if
wholly inside, else UNDECIDED. The interval is that of `intervals.estimate`, widened by two things:

1. **The A/A offset.** In some quads the baseline is timed against itself (guards). Where their interval does
   not hold a ratio of 1, something favours one side, by as much as they are off; the same may be in the
   comparison.
2. **What other programs hide.** A lap counts if it was not preempted (`harness/laps.py`), a quad if each of
   its blocks has such a lap: the others are left out where half of the quads, or `_ENOUGH` of them, are calm.
   Where that moves the ratio, or where the machine is busy and the fastest tenth of the blocks has another
   one, the interval is widened by as much.

Where too few quads are calm, as laps are longer than a slice of the scheduler, all of them count:

- With CPU time in the place of the clock's (`cpu-time`; one thread that waits for nothing), the interval is
  widened by `_CPU_TIME`: where a call is interrupted, it takes about so much more CPU time at most.
- Else blocks hold the slices of other programs, more of them the longer a block is. That may hide a
  difference, and makes one larger, but makes none of equal programs: which side comes first in a quad is
  drawn at random, and the sides take turns lap by lap, so that of equal programs each is hit as often. So the
  interval says which side is faster, and is then stretched to the margin: by how much is not known.
- With several threads the verdict is UNDECIDED then: all wait for the one that lost its core, and a call
  that is 1.27x as fast as eager was seen to take 1.0 to 5.4 times as long.

    10 ms and 30 us, beside four busy loops on a core, whose slices are 4 ms
    by the clock, mean of ten means of ten   54 ms and 33 us: 0.0006
    in CPU time, and laps without preemption 10 ms and 30 us: 0.0030, and an interval of 0.0027 to 0.0033

What hits one kind of kernel more than another (a neighbour that takes memory bandwidth; a variant with more
threads than free cores) hits some of its blocks and spares others: the fastest tenth of the blocks then has
another ratio. A variant that is hit in all of its blocks is as slow as that on this machine. What hits one
process only makes processes differ, which Student's t over their medians has in its width.

Of calls so long that each process has time for one or a few of them, single calls are compared, in three
processes if they fit into the budget. Their scatter is not small beside the margin, so that an interval with
95 % would call equal kernels different in up to one case in twenty: theirs is made for 99 %. Of three
processes with one call each that is 5.7 standard deviations to each side. Twice the time is a verdict with
scatter of up to 8 %, 20 % more time with up to 2 %; a difference of a few percent takes more seconds.
One process has no verdict, whatever its ratio: how far processes differ cannot be seen in it.

`benchmarks/timing/verdicts.py` tries it on busy machines, `tests/bench/test_verdict_properties.py` on
simulated samples. INVALID is what is left: the guards lie outside the margin, and the widened interval
decides nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from inductor_probe.bench.intervals import Estimate, estimate, middle_of, t_quantile
from inductor_probe.bench.sample_remarks import sample_remarks, widening_remarks
from inductor_probe.harness.budget import PROCESSES
from inductor_probe.model.comparison import Comparison, Verdict
from inductor_probe.model.remark import Number, Remark, RemarkCode, Subject, measured
from inductor_probe.model.timing import Quad, Series, Side

MARGIN = 0.01
_MOST_PROCESSES = 30
_LONGEST = 600.0
_LARGEST_SCORE = 700.0
_FEWEST = 6
"""Quads: fewer in each process were taken of long calls, neither warmed up nor beside guards."""
_ENOUGH = 12
"""Calm quads of a process, at which the others are left out however many they are."""
_BUSY = 0.8
"""Of its time a process has a core: where it has less, others take too much of it."""
_CPU_TIME = math.log(1.06)
"""How far a log-ratio with CPU time may be off, beside what `_hidden` sees: `benchmarks/results/load.md`."""
_FEW_COMPARISONS = 5
"""Their scatter is larger than the margin, and seen in a few numbers: the interval holds with 99 %."""
_ROUNDED_UP = 1.5
"""What a process measures besides the calls of a comparison."""


def conclude(series: Sequence[Series], margin: float = MARGIN, comparisons: int = 1) -> Comparison:
    """Return what the quads of one comparison say.

    Args:
        series: of the same baseline and candidate, one for each process.
        margin: a ratio from 1 / (1 + margin) to 1 + margin is the same time.
        comparisons: how many are made at once; see `estimate`.
    """
    processes = [process.quads for process in series if _scores(process.quads, guard=False)]
    total, disturbed = sum(map(len, processes)), sum(map(_disturbed, processes))
    used = [_used(quads) for quads in processes]
    few = max(map(len, processes)) < _FEWEST
    comparisons *= _FEW_COMPARISONS if few else 1
    doubtful = {quad.disturbed.code for quads in used for quad in quads if quad.disturbed is not None}
    by_clock = bool(doubtful - {"cpu-time"})
    threads_waited = by_clock and any(_threads(quad) > 1 for quads in used for quad in quads)
    busy = bool(doubtful) or any(process.core is not None and process.core < _BUSY for process in series)
    scores = [_scores(quads, guard=False) for quads in used]
    guards = [values for quads in used if (values := _scores(quads, guard=True))]
    plain = estimate(scores, comparisons)
    guard = estimate(guards, comparisons) if guards else None
    offset = abs(guard.middle) if guard and (guard.low > 0 or guard.high < 0) else 0.0
    hidden = _hidden(processes, used, plain, busy=busy) if disturbed or busy else 0.0
    hidden += _CPU_TIME if "cpu-time" in doubtful else 0.0
    between, edge = plain.widened(offset + hidden), math.log1p(margin)
    verdict, agree = _decide(between, edge)
    baseline, candidate = series[0].baseline, series[0].candidate or ""

    def reason_for(code: RemarkCode, numbers: Mapping[str, Number] | None = None) -> Remark:
        return measured(code, "analysis", Subject("variant", candidate), numbers)

    reason = None
    spent = sum(process.spent for process in series)
    if len(scores) == 1:
        more = {"seconds": math.ceil(_ROUNDED_UP * PROCESSES * spent)} if few else {}
        verdict, reason = "UNDECIDED", reason_for("one-process", {"fewest": PROCESSES, **more})
    elif not agree:
        reason = reason_for("processes-disagree")
    elif verdict == "UNDECIDED" and guard and _decide(guard, edge)[0] in ("FASTER", "SLOWER"):
        verdict, low, high = "INVALID", _ratio(guard.low), _ratio(guard.high)
        reason = reason_for("guard-outside-margin", {"baseline": baseline, "low": low, "high": high})
    elif threads_waited or (doubtful and verdict in ("SAME", "UNDECIDED")):  # what others took hides it
        verdict = "UNDECIDED"
        reason = reason_for("disturbed-quads", {"disturbed": disturbed, "quads": total})
    elif verdict == "UNDECIDED":
        reason = reason_for(*_missing(plain, edge, offset + hidden, spent, few=few))
    if by_clock:
        between = replace(between, low=min(between.low, edge), high=max(between.high, -edge))
    counted = sum(map(len, used))
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        ratio=_ratio(between.middle),
        low=_ratio(between.low),
        high=_ratio(between.high),
        verdict=verdict,
        process_ratios=tuple(map(_ratio, between.medians)),
        quads=sum(map(len, scores)),
        excluded=total - counted,
        busy=busy,
        reason=reason,
        remarks=(
            *widening_remarks(series[0], offset, hidden, (disturbed, total), margin),
            *sample_remarks(series, used, between.medians, margin),
        ),
    )


def _threads(quad: Quad) -> float:
    """Return how many threads a disturbed call has; 1 where that is not known."""
    threads = dict(quad.disturbed.numbers).get("threads", 1) if quad.disturbed else 1
    return threads if isinstance(threads, (int, float)) else 1


def _ratio(score: float) -> float:
    """Return the ratio of a log-ratio. Two processes that differ by far have an interval beyond any float."""
    return math.exp(max(-_LARGEST_SCORE, min(score, _LARGEST_SCORE)))


def _scores(quads: Sequence[Quad], *, guard: bool) -> list[float]:
    return [quad.score for quad in quads if quad.guard == guard]


def _disturbed(quads: Sequence[Quad]) -> int:
    return sum(quad.disturbed is not None for quad in quads)


def _used(quads: Sequence[Quad]) -> Sequence[Quad]:
    """Return the calm quads of a process, or all of them where those are too few."""
    calm = [quad for quad in quads if quad.disturbed is None]
    compared = len(_scores(calm, guard=False))
    return calm if compared >= _ENOUGH or (compared and 2 * len(calm) >= len(quads)) else quads


def _hidden(
    processes: Sequence[Sequence[Quad]], used: Sequence[Sequence[Quad]], plain: Estimate, *, busy: bool
) -> float:
    """Return how far the log-ratio is off in other readings of the same samples.

    With all quads, unless most were left out, which shows that they are worse. Where the machine is busy,
    also that of the fastest tenth of the blocks of each side, which nothing may have hit. Both are combined
    over processes as the estimate itself.
    """
    readings = []
    if all(2 * len(calm) >= len(quads) for quads, calm in zip(processes, used, strict=True)):
        readings.append([statistics.median(_scores(quads, guard=False)) for quads in processes])
    if busy:
        readings.append([_fastest_score(quads) for quads in used])
    return max((abs(middle_of(reading) - plain.middle) for reading in readings), default=0.0)


def _fastest_score(quads: Sequence[Quad]) -> float:
    """Return the log-ratio, B over A, of the time that a tenth of the blocks of each side stays below."""
    both = [quad for quad in quads if not quad.guard]

    def fast(side: Side) -> float:
        samples = sorted(sample for quad in both for sample in quad.samples(side))
        return samples[len(samples) // 10]

    return math.log(fast("B") / fast("A"))


def _decide(ratio: Estimate, edge: float) -> tuple[Verdict, bool]:
    """Compare an interval of a log-ratio with the margin; return the verdict, and whether processes agree."""
    verdict: Verdict = "UNDECIDED"
    if ratio.low > edge:
        verdict = "SLOWER"
    elif ratio.high < -edge:
        verdict = "FASTER"
    elif -edge <= ratio.low and ratio.high <= edge:
        verdict = "SAME"
    signs = {median > 0 for median in ratio.counted}
    if verdict in ("FASTER", "SLOWER") and len(signs) > 1:
        return "UNDECIDED", False
    return verdict, True


def _missing(
    ratio: Estimate, edge: float, reach: float, spent: float, *, few: bool
) -> tuple[RemarkCode, Mapping[str, Number]]:
    """Return about how much more it takes until the interval clears the nearest edge of the margin.

    The variance between the medians of processes has two parts. The scatter of quads falls with time; what
    processes differ by beyond that falls only with their number. What the interval is widened by (`reach`)
    falls with neither. Where a process had time for a few long calls only (`few`), more processes are more
    seconds.
    """
    apart, count = abs(abs(ratio.middle) - edge), len(ratio.counted)
    gap = apart - reach
    if gap <= 0:
        return ("near-margin", {}) if apart < edge else ("readings-differ", {"shift": math.expm1(reach)})
    alone = max(ratio.between - ratio.within, 0.0)
    room = count * (gap / ratio.quantile) ** 2 - alone
    if room > 0:
        seconds = spent * max(ratio.within / room - 1, 0.5)
        if seconds < _LONGEST:
            return "too-few-quads", {"seconds": math.ceil(seconds)}
    for processes in range(count + 1, _MOST_PROCESSES + 1):
        if t_quantile(0.975, processes - 1) * math.sqrt(ratio.between / processes) < gap:
            if few:
                return "too-few-quads", {"seconds": math.ceil(spent * (processes - count) / count)}
            return "too-few-processes", {"processes": processes}
    return ("near-margin", {}) if apart < edge else ("too-many-processes", {"processes": _MOST_PROCESSES})
