"""Verdicts: the interval of a ratio against a margin.

FASTER or SLOWER if the interval lies wholly outside the margin and all processes agree in sign, SAME if
wholly inside, else UNDECIDED. INVALID if a second run of the baseline, in some quads, leaves the margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from inductor_probe.bench.intervals import Estimate, estimate, t_quantile
from inductor_probe.bench.sample_remarks import sample_remarks
from inductor_probe.model.bench import Comparison, Verdict
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
    processes = [process.quads for process in series]
    total = sum(map(len, processes))
    used = [[quad for quad in quads if quad.disturbed is None] for quads in processes]
    disturbed = total - sum(map(len, used))
    busy = 2 * disturbed > total
    if not any(_scores(quads, guard=False) for quads in used):
        used, busy = [list(quads) for quads in processes], True
    scores = [values for quads in used if (values := _scores(quads, guard=False))]
    guards = [values for quads in used if (values := _scores(quads, guard=True))]
    between = estimate(scores, comparisons)
    guard = estimate(guards, comparisons) if guards else None
    edge = math.log1p(margin)
    verdict, agree = _decide(between, edge)
    baseline, candidate = series[0].baseline, series[0].candidate or ""

    def reason_for(code: RemarkCode, numbers: Mapping[str, Number] | None = None) -> Remark:
        return measured(code, "analysis", Subject("variant", candidate), numbers)

    reason = None
    if len(scores) == 1:
        verdict, reason = "UNDECIDED", reason_for("one-process", {"fewest": PROCESSES})
    elif guard and _decide(guard, edge)[0] in ("FASTER", "SLOWER"):
        verdict, low, high = "INVALID", _ratio(guard.low), _ratio(guard.high)
        reason = reason_for("guard-outside-margin", {"baseline": baseline, "low": low, "high": high})
    elif busy:  # waiting for a core takes the same time on both sides, and hides what differs
        verdict = "UNDECIDED"
        reason = reason_for("disturbed-quads", {"disturbed": disturbed, "quads": total})
    elif not agree:
        reason = reason_for("processes-disagree")
    elif verdict == "UNDECIDED":
        reason = reason_for(*_missing(between, edge, sum(process.spent for process in series)))
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
        reason=reason,
        remarks=sample_remarks(series, used, between.medians, margin),
    )


def _ratio(score: float) -> float:
    """Return the ratio of a log-ratio. Two processes that differ by far have an interval beyond any float."""
    return math.exp(max(-_LARGEST_SCORE, min(score, _LARGEST_SCORE)))


def _scores(quads: Sequence[Quad], *, guard: bool) -> list[float]:
    return [quad.score for quad in quads if quad.guard == guard]


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
