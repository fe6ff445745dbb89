"""Verdicts: the interval of a ratio against a margin.

FASTER or SLOWER if the interval lies wholly outside the margin and all processes agree in sign, SAME if
wholly inside, else UNDECIDED. INVALID if a second run of the baseline, in some quads, leaves the margin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from inductor_probe.bench.findings import findings
from inductor_probe.bench.intervals import Estimate, estimate, t_quantile
from inductor_probe.model.bench import Comparison, Measurement, Verdict
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
    kept = [[quad for quad in each.quads if quad.disturbed is None] for each in series]
    if not any(_scores(quads, guard=False) for quads in kept):
        kept, busy = [list(each.quads) for each in series], True
    scores = [found for quads in kept if (found := _scores(quads, guard=False))]
    guards = [found for quads in kept if (found := _scores(quads, guard=True))]
    between = estimate(scores, comparisons)
    guard = estimate(guards, comparisons) if guards else None
    verdict, note = _decide(between, math.log1p(margin))
    baseline, candidate = series[0].baseline, series[0].candidate or ""
    if len(scores) == 1:
        verdict, note = "UNDECIDED", f"one process cannot speak for the next: needs {PROCESSES}"
    elif guard and _decide(guard, math.log1p(margin))[0] in ("FASTER", "SLOWER"):
        verdict, low, high = "INVALID", _ratio(guard.low), _ratio(guard.high)
        note = f"{baseline} took {low:.3f} to {high:.3f}x its own time"
    elif busy:  # waiting for a core takes the same time on both sides, and hides what differs
        disturbed = len(everything) - len(clean)
        verdict = "UNDECIDED"
        note = f"the machine is busy: {disturbed} of {len(everything)} quads were disturbed"
    elif verdict == "UNDECIDED" and note is None:
        note = _missing(between, math.log1p(margin), sum(each.spent for each in series))
    used = [quad for quads in kept for quad in quads]
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
        note=note,
        findings=findings(series, kept, between.medians, margin),
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


def wants_more(found: Comparison, margin: float) -> bool:
    """Tell whether more processes should be asked: they differ so much that the interval is wide.

    Wide is half of the margin to each side, or a quarter of a ratio that is far from it: where the interval
    lies does not count otherwise, or a chance would be followed until it looks like a difference.
    """
    if found.verdict == "INVALID":
        return False
    half = (math.log(found.high) - math.log(found.low)) / 2
    return half > max(math.log1p(margin) / 2, abs(math.log(found.ratio)) / 4)


def _decide(found: Estimate, edge: float) -> tuple[Verdict, str | None]:
    """Place an interval of a log-ratio against the margin; return the verdict, and what is against it."""
    verdict: Verdict = "UNDECIDED"
    if found.low > edge:
        verdict = "SLOWER"
    elif found.high < -edge:
        verdict = "FASTER"
    elif -edge <= found.low and found.high <= edge:
        verdict = "SAME"
    signs = {median > 0 for median in found.medians}
    if verdict in ("FASTER", "SLOWER") and len(signs) > 1:
        return "UNDECIDED", "processes disagree on which is faster"
    return verdict, None


def _missing(found: Estimate, edge: float, spent: float) -> str:
    """Say about how much more it takes until the interval clears the nearest edge of the margin.

    The variance between the medians of processes has two parts. The scatter of quads falls with time; what
    processes differ by beyond that falls only with their number.
    """
    gap, count = abs(abs(found.middle) - edge), len(found.medians)
    alone = max(found.between - found.within, 0.0)
    room = count * (gap / found.quantile) ** 2 - alone
    if room > 0:
        seconds = spent * max(found.within / room - 1, 0.5)
        if seconds < _LONGEST:
            return f"needs about {math.ceil(seconds)} s more, or more processes"
    for processes in range(count + 1, _MOST_PROCESSES + 1):
        if t_quantile(0.975, processes - 1) * math.sqrt(found.between / processes) < gap:
            return f"processes differ too much: needs about {processes} of them"
    return "too near the margin to tell"
