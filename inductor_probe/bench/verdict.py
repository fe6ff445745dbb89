"""Verdicts: the interval of a ratio against a margin.

FASTER or SLOWER if the interval lies wholly outside the margin and all processes agree in sign, SAME if
wholly inside, else UNDECIDED. INVALID if a second run of the baseline, in some quads, leaves the margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from inductor_probe.bench.intervals import Estimate, estimate, t_quantile
from inductor_probe.bench.sample_remarks import sample_remarks
from inductor_probe.model.bench import Comparison, Measurement, Verdict
from inductor_probe.model.remark import Number, Remark, RemarkCode, Subject, measured
from inductor_probe.model.timing import Quad, Series

MARGIN = 0.01
PROCESSES = 3
MORE_PROCESSES = 5
_MOST_PROCESSES = 30
_LONGEST = 600.0
_LARGEST_SCORE = 700.0


def conclude(series: Sequence[Series], margin: float = MARGIN, comparisons: int = 1) -> Comparison:
    """Return what the quads of one comparison say.

    Args:
        series: of the same baseline and candidate, one for each process.
        margin: a ratio from 1 / (1 + margin) to 1 + margin is the same time.
        comparisons: how many are made at once; see `estimate`.
    """
    everything = [quad for each in series for quad in each.quads]
    clean = [quad for quad in everything if quad.disturbed is None]
    busy = 2 * len(clean) < len(everything)
    counting = [[quad for quad in each.quads if quad.disturbed is None] for each in series]
    if not any(_scores(quads, guard=False) for quads in counting):
        counting, busy = [list(each.quads) for each in series], True
    scores = [own for quads in counting if (own := _scores(quads, guard=False))]
    guards = [own for quads in counting if (own := _scores(quads, guard=True))]
    between = estimate(scores, comparisons)
    guard = estimate(guards, comparisons) if guards else None
    edge = math.log1p(margin)
    verdict, agree = _decide(between, edge)
    baseline, candidate = series[0].baseline, series[0].candidate or ""

    def because(code: RemarkCode, numbers: Mapping[str, Number] | None = None) -> Remark:
        return measured(code, "analysis", Subject("variant", candidate), numbers)

    reason = None
    if len(scores) == 1:
        verdict, reason = "UNDECIDED", because("one-process", {"fewest": PROCESSES})
    elif guard and _decide(guard, edge)[0] in ("FASTER", "SLOWER"):
        verdict, low, high = "INVALID", _ratio(guard.low), _ratio(guard.high)
        reason = because("guard-outside-margin", {"baseline": baseline, "low": low, "high": high})
    elif busy:  # waiting for a core takes the same time on both sides, and hides what differs
        verdict, disturbed = "UNDECIDED", len(everything) - len(clean)
        reason = because("disturbed-quads", {"disturbed": disturbed, "quads": len(everything)})
    elif not agree:
        reason = because("processes-disagree")
    elif verdict == "UNDECIDED":
        reason = because(*_missing(between, edge, sum(each.spent for each in series)))
    used = [quad for quads in counting for quad in quads]
    return Comparison(
        baseline=measure(baseline, used, candidate=False),
        candidate=measure(candidate, used, candidate=True),
        ratio=_ratio(between.middle),
        low=_ratio(between.low),
        high=_ratio(between.high),
        verdict=verdict,
        process_ratios=tuple(map(_ratio, between.medians)),
        quads=sum(map(len, scores)),
        excluded=len(everything) - len(used),
        reason=reason,
        remarks=sample_remarks(series, counting, between.medians, margin),
    )


def _ratio(score: float) -> float:
    """Return the ratio of a log-ratio. Two processes that differ by far have an interval beyond any float."""
    return math.exp(max(-_LARGEST_SCORE, min(score, _LARGEST_SCORE)))


def _scores(quads: Sequence[Quad], *, guard: bool) -> list[float]:
    return [quad.score for quad in quads if quad.guard == guard]


def measure(name: str, quads: Sequence[Quad], *, candidate: bool) -> Measurement:
    """Return the median of the samples of the baseline, or of the candidate."""
    used = [quad for quad in quads if not (candidate and quad.guard)]
    samples = [sample for quad in used for sample in quad.samples("B" if candidate else "A")]
    middle = median(samples) if samples else math.nan
    mad = median(abs(sample - middle) for sample in samples) if samples else math.nan
    return Measurement(name, len(samples), middle, mad)


def wants_more(comparison: Comparison, margin: float) -> bool:
    """Tell whether more processes should be asked: they differ so much that the interval is wide.

    Wide is half of the margin to each side, or a quarter of a ratio that is far from it: where the interval
    lies does not count otherwise, or a chance would be followed until it looks like a difference.
    """
    if comparison.verdict == "INVALID":
        return False
    half = (math.log(comparison.high) - math.log(comparison.low)) / 2
    return half > max(math.log1p(margin) / 2, abs(math.log(comparison.ratio)) / 4)


def _decide(ratio: Estimate, edge: float) -> tuple[Verdict, bool]:
    """Compare an interval of a log-ratio with the margin; return the verdict, and whether processes agree."""
    verdict: Verdict = "UNDECIDED"
    if ratio.low > edge:
        verdict = "SLOWER"
    elif ratio.high < -edge:
        verdict = "FASTER"
    elif -edge <= ratio.low and ratio.high <= edge:
        verdict = "SAME"
    signs = {median > 0 for median in ratio.medians}
    if verdict in ("FASTER", "SLOWER") and len(signs) > 1:
        return "UNDECIDED", False
    return verdict, True


def _missing(ratio: Estimate, edge: float, spent: float) -> tuple[RemarkCode, Mapping[str, Number]]:
    """Return about how much more it takes until the interval clears the nearest edge of the margin.

    The variance between the medians of processes has two parts. The scatter of quads falls with time; what
    processes differ by beyond that falls only with their number.
    """
    gap, count = abs(abs(ratio.middle) - edge), len(ratio.medians)
    alone = max(ratio.between - ratio.within, 0.0)
    room = count * (gap / ratio.quantile) ** 2 - alone
    if room > 0:
        seconds = spent * max(ratio.within / room - 1, 0.5)
        if seconds < _LONGEST:
            return "too-few-quads", {"seconds": math.ceil(seconds)}
    for processes in range(count + 1, _MOST_PROCESSES + 1):
        if t_quantile(0.975, processes - 1) * math.sqrt(ratio.between / processes) < gap:
            return "too-few-processes", {"processes": processes}
    return "near-margin", {}
