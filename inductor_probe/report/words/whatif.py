"""What came of another way to compile: why graphs were not timed, and the sentence that can be quoted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from inductor_probe.model.bench import OTHER_CODE, BenchResult, Comparison, Verdict
from inductor_probe.model.decision import Decision, Outcome
from inductor_probe.model.diff import GraphDiff
from inductor_probe.model.whatif import Candidate, GraphWhatIf, NotTimed, Rank, Trial
from inductor_probe.report.units import counted
from inductor_probe.report.words.bench import wrong_groups, wrong_sentence
from inductor_probe.report.words.causes.sentences import names_of
from inductor_probe.report.words.remarks import sentence
from inductor_probe.report.words.templates import joined, listed

CALL_OF_A, CALL_OF_B = "Compiled call", f"call_v{OTHER_CODE}"
"""What the whole calls of A and B are called in what was measured."""
_RATIO_FROM = 1.5
_MOST_NAMES = 2


def same_result(result: BenchResult) -> str | None:
    """Return how it is known that both sides compute the same; None where B computes something else."""
    if not all(variant.correct for variant in result.variants):
        return None
    pristine = next((variant for variant in result.variants if variant.name == "call"), None)
    for remark in (remark for variant in result.variants for remark in variant.remarks):
        if remark.code == "call-varies":
            return "A gives other values each time it runs: B is as far from float64 as runs of A may be."
    if any(remark.code == "rounded-otherwise" for variant in result.variants for remark in variant.remarks):
        return "Elements of B are further off than those of A; consistent with adding in another order."
    if pristine is None or pristine.remarks:
        return "B computes what A does, on two sets of inputs."
    return "A and B compute what the graph does in float64, on two sets of inputs."


NOT_TIMED: Mapping[NotTimed, str] = {
    "same-code": "Not timed: names and spelling aside, A and B are the same code.",
    "no-code": "Not timed: a side has no output_code.py; its compile did not come to an end.",
    "inputs-differ": "Not timed: B cannot take the inputs of A: {subjects} differ.",
    "constants-differ": "Not timed: the graphs hold other constants: {subjects}.",
}
_SHORT: Mapping[NotTimed, str] = {
    "same-code": "the same code",
    "no-code": "not timed: its compile did not come to an end",
    "inputs-differ": "not timed: B cannot take the inputs of A ({subjects} differ)",
    "constants-differ": "not timed: the graphs hold other constants ({subjects})",
}
_DOING: Mapping[Outcome, str] = {
    "vectorised": "vectorising",
    "underfilled": "vectorising",
    "scalar": "not vectorising",
    "fused": "fusing",
    "refused": "not fusing",
    "realised": "realising",
    "inlined": "inlining",
    "one-thread": "one thread for",
    "parallel": "several threads for",
}
"""What B does that A does not, by the outcome of the decision that was asked for."""


def whole_call(result: BenchResult) -> Comparison | None:
    """Return the comparison of the whole call of B with that of A."""
    return next(
        (one for one in result.comparisons if (one.baseline, one.candidate) == (CALL_OF_A, CALL_OF_B)), None
    )


def quotable(graph: GraphWhatIf, candidate: Candidate | None) -> str:
    """Return what came of it: `vectorising cpp_fused_x_0: 2.9x faster (2.8 to 3.0), same result`."""
    subject = what(graph, candidate)
    if graph.result is None:
        alike = graph.not_timed == "same-code" and not graph.asked
        turns_alone = candidate and candidate.flips and candidate == Candidate(flips=candidate.flips)
        nothing = "nothing was turned, " if alike and turns_alone else ""
        return f"{subject}: {nothing}{why_not(graph)}"
    wrong = [variant.name for variant in graph.result.variants if not variant.correct]
    if wrong:
        if "call" in wrong:
            return f"{subject}: not known, A itself does not compute what the graph does"
        return f"{subject}: WRONG, B computes something else: never a gain"
    comparison = whole_call(graph.result)
    if comparison is None:
        return f"{subject}: same result; the whole call was not timed"
    gain = gain_words(comparison, graph.result.margin)
    return f"{subject}: {gain}{_of_kernel(graph.result)}, same result{_of_threads(graph)}"


def why_not(graph: GraphWhatIf) -> str:
    """Return why a graph was not timed, short."""
    return _SHORT[graph.not_timed or "no-code"].format(subjects=", ".join(graph.subjects))


def wrong_detail(result: BenchResult) -> str:
    """Return what is wrong in the values that B computes, of its kernel where that is known."""
    groups = wrong_groups(result.variants)
    return wrong_sentence(groups[0], sentence) if groups else ""


def what(graph: GraphWhatIf, candidate: Candidate | None) -> str:
    """Return what B does otherwise: the decision that was asked for, or what was set."""
    decisions = [change.b for change in graph.asked if change.b is not None]
    outcomes = {decision.outcome for decision in decisions}
    if len(outcomes) == 1 and (doing := _DOING.get(next(iter(outcomes)))):
        return f"{doing} {listed(_kernels(graph.diff, decisions), _MOST_NAMES)}"
    if candidate and candidate.not_timed_with:
        return f"{candidate} (for the compile alone)"
    return str(candidate) if candidate and str(candidate) else "B"


def not_timed_words(names: Sequence[str]) -> str:
    """Return what is not in the times: variables that differed in the compiles, and act at run time, too."""
    acts, them = ("acts", "it") if len(names) == 1 else ("act", "them")
    next_step = f"start probe whatif with {them} to time both so"
    if all("THREADS" in name for name in names):
        next_step = "--timed-threads sets the threads of both"
    return (
        f"{joined(names)} also {acts} while code runs, which is not in these times: A and B are timed in one "
        f"process, as probe whatif was started ({next_step})"
    )


def _kernels(diff: GraphDiff, decisions: Sequence[Decision]) -> list[str]:
    """Return the changed kernels, or the subjects where the decisions are about no kernel that changed."""
    changed = [match.b[0] for match in diff.kernels if match.relation == "changed" and match.b]
    names = ["_".join(names_of(decision)) for decision in decisions]
    return changed if changed and len(changed) <= len(set(names)) else list(dict.fromkeys(names))


def gain_words(comparison: Comparison, margin: float) -> str:
    """Return a verdict with its interval: `2.9x faster (2.8 to 3.0)`, `3.5 % faster (2.9 to 4.0)`."""
    return _verdict_words(comparison.verdict, (comparison.ratio, comparison.low, comparison.high), margin)


def trial_words(trial: Trial, margin: float) -> str:
    """Return what came of a candidate: its time against A with the interval, or why there is none."""
    verdict = _VERDICT_OF.get(trial.rank)
    if verdict is None or trial.ratio is None or trial.low is None or trial.high is None:
        return trial.detail
    if trial.detail == NOT_FASTER:
        return f"{NOT_FASTER} ({(trial.low - 1) * 100:+.1f} to {(trial.high - 1) * 100:+.1f} % time)"
    words = _verdict_words(verdict, (trial.ratio, trial.low, trial.high), margin)
    return f"{words}: {trial.detail}" if trial.detail else words


NOT_FASTER = "not faster"
"""What is known of a trial that may be slower, or the same."""
_SAYS_NOTHING = 2.0
"""Of ratios: a wider interval is not shown. Two processes give one of many powers of ten."""
_VERDICT_OF: Mapping[Rank, Verdict] = {
    "gain": "FASTER", "loss": "SLOWER", "no-change": "SAME", "undecided": "UNDECIDED",
}  # fmt: skip


def _verdict_words(verdict: Verdict, interval: tuple[float, float, float], margin: float) -> str:
    ratio, low, high = interval
    percent = [f"{(1 - value) * 100:.1f}" for value in (ratio, high, low)]
    slower = [f"{(value - 1) * 100:.1f}" for value in (ratio, low, high)]
    match verdict:
        case "FASTER" if ratio < 1 / _RATIO_FROM:
            return f"{_times(1 / ratio)}x faster ({_times(1 / high)} to {_times(1 / low)})"
        case "FASTER":
            return f"{percent[0]} % faster ({percent[1]} to {percent[2]} % less time)"
        case "SLOWER" if ratio > _RATIO_FROM:
            return f"{_times(ratio)}x slower ({_times(low)} to {_times(high)})"
        case "SLOWER":
            return f"{slower[0]} % slower ({slower[1]} to {slower[2]} % more time)"
        case "SAME":
            return f"no change within {margin * 100:.3g} %"
        case "UNDECIDED" if not high - low <= _SAYS_NOTHING:
            return "undecided: too few processes, or too different ones"
        case "UNDECIDED":
            return f"undecided ({float(slower[1]):+.1f} to {float(slower[2]):+.1f} % time)"
        case _:
            return "the measurement is invalid"


def _times(ratio: float) -> str:
    """Two digits, and whole numbers from ten on where a third would not be sure."""
    return f"{ratio:.1f}" if ratio < 10 or not math.isfinite(ratio) else f"{ratio:.0f}"


def _of_kernel(result: BenchResult) -> str:
    """Return what the only kernel that is compared gains by itself, where that is another number."""
    pairs = [one for one in result.comparisons if " alone" in one.baseline and " alone" in one.candidate]
    if len(pairs) == 1 and pairs[0].verdict in ("FASTER", "SLOWER"):
        return f"; the kernel alone {gain_words(pairs[0], result.margin)}"
    return ""


def _of_threads(graph: GraphWhatIf) -> str:
    """Return with how many threads both ran, where the decision is about threads and there was one."""
    turned = any(change.decision.kind == "threads" for change in graph.asked)
    return ", both timed with one thread" if turned and graph.result and graph.result.threads == 1 else ""


RANK_WORDS: Mapping[Rank, str] = {
    "gain": "gain",
    "no-change": "no change",
    "loss": "loss",
    "undecided": "undecided",
    "wrong": "WRONG",
    "impossible": "impossible",
    "not-tried": "not tried",
}


def trials_sentence(trials: Sequence[Trial]) -> str:
    """Return what came of all candidates in one line, the best first."""
    gains = [trial for trial in trials if trial.rank == "gain" and trial.ratio is not None]
    counts = [
        f"{sum(trial.rank == rank for trial in trials)} {words}"
        for rank, words in RANK_WORDS.items()
        if rank != "gain" and any(trial.rank == rank for trial in trials)
    ]
    rest = f" ({joined(counts)})" if counts else ""
    number = counted(len(trials), "candidate")
    if not gains and any(trial.rank in ("undecided", "not-tried") for trial in trials):
        return f"No gain shown yet in {number}{rest}: a longer --budget decides more."
    if not gains:
        return f"No gain in {number}{rest}."
    best = min(gains, key=lambda trial: trial.ratio or 1.0)
    return f"Best of {number}: {best.line}{rest}."
