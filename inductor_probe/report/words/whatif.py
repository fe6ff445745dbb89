"""What came of another way to compile: why graphs were not timed, and the sentence that can be quoted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from inductor_probe.catalogue.templates import joined, listed
from inductor_probe.harness.budget import PROCESSES
from inductor_probe.model.bench import BenchResult
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.decision import Outcome
from inductor_probe.model.timing import Variant, all_not_compiled, wrong_groups
from inductor_probe.model.whatif import (
    Candidate,
    GraphWhatIf,
    NotTimed,
    Rank,
    Trial,
    TrialCode,
    TrialReason,
    Turned,
)
from inductor_probe.report.units import counted
from inductor_probe.report.words.bench import first_wrong, wrong_sentence, wrong_words
from inductor_probe.report.words.flips import flip_texts
from inductor_probe.report.words.remarks import sentence

_RATIO_FROM = 1.5
_SAYS_NOTHING = 2.0
"""Of ratios: a wider interval is not shown. Two processes give one of many powers of ten."""
_NOT_FOR_PROCESSES = ("disturbed-quads", "readings-differ", "too-many-processes")
"""Reasons of an undecided verdict that a few more processes would not change."""
_MOST_NAMES = 2


def same_result(result: BenchResult) -> str | None:
    """Return how it is known that both sides compute the same; None where B computes something else."""
    if not all(variant.correct for variant in result.variants):
        return None
    pristine = next((variant for variant in result.variants if variant.name == "call"), None)
    for remark in (remark for variant in result.variants for remark in variant.remarks):
        if remark.code == "call-varies":
            return "A gives other values each time it runs: B is as far from float64 as runs of A may be."
    codes = {remark.code for variant in result.variants for remark in variant.remarks}
    if "rounded-otherwise" in codes:
        return "Elements of B are further off than those of A; consistent with adding in another order."
    if "integers-tied" in codes:
        return "Integers of B are others than those of A where rounding decides them; the rest is the same."
    if "rounded-as-eager" in codes:
        return "Elements of B are further off than those of A, and no further than those of eager may be."
    if pristine is None or pristine.remarks:
        return "B computes what A does, on two sets of inputs."
    return "A and B compute what the graph does in float64, on two sets of inputs."


_SAME_CODE = "the same code"
SAME_TEXT = "the text of A and B is the same; their C++ is compiled with other settings"
_NOT_TIMED: Mapping[NotTimed, str] = {
    "same-code": "names and spelling aside, A and B are the same code",
    "same-as": "B is the same code as with {subjects}",
    "no-code": "a side has no output_code.py; its compile did not come to an end",
    "inputs-differ": "B cannot take the inputs of A: {subjects} differ",
    "constants-differ": "the graphs hold other constants: {subjects}",
    "not-run": "{message}",
    "other-code": "its code is not that of A",
    "no-gpu": "it was compiled for a simulated {subjects}, and this machine has no GPU to run it on",
}
_REASONS: Mapping[TrialCode, str] = {
    "refused": "{message}",
    "script-failed": "{message}",
    "nothing-compiled": "nothing was compiled",
    "no-partner": "no graph of it computes what one of A does",
    "same-code": _SAME_CODE,
    "not-run": "{message}",
    "call-not-timed": "the whole call could not be timed",
    "around-code": "it changes how code is called: probe whatif with it alone times the program's own call",
}
"""Of codes that need no more than their operands; those of `NotTimed` are above."""
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


def quotable(graph: GraphWhatIf, candidate: Candidate | None) -> str:
    """Return what came of it: `vectorising cpp_fused_x_0: 2.9x faster (2.8 to 3.0), same result`."""
    name = graph.diff.a.name
    if candidate and not candidate.in_graph(name).words and graph.not_timed == "same-code":
        return f"{_SAME_CODE}, and no decision of it was to be turned"
    subject = _subject(graph.turned, candidate, name)
    if graph.overridden:
        pairs = graph.overridden
        present = ", ".join(f"{setting if len(pairs) > 1 else 'it'} to {value}" for setting, value in pairs)
        subject += f": not in force, since the script or an option of torch.compile set {present}"
    if graph.result is None:
        if graph.not_timed != "same-code":
            return f"{subject}: not timed: {_why_not(graph)}"
        turns_alone = candidate and candidate.flips and candidate == Candidate(flips=candidate.flips)
        nothing = "nothing was turned, " if turns_alone and not graph.asked else ""
        return f"{subject}: {nothing}{_SAME_CODE}"
    wrong = [variant.name for variant in graph.result.variants if not variant.correct]
    if "call" in wrong:
        return wrong_sides(graph.wrong_calls, candidate.in_graph(name) if candidate else None)
    if all_not_compiled(graph.result.variants):
        return f"{subject}: not timed: the code of B does not compile"
    if wrong:
        return f"{subject}: WRONG, B computes something else: never a gain"
    if graph.call is None:
        return f"{subject}: same result; the whole call was not timed"
    return f"{subject}: {_timed_words(graph, graph.result.margin, graph.result.threads)}"


def wrong_sides(wrong: Sequence[Variant], candidate: Candidate | None = None) -> str:
    """Return which of the calls are wrong, where A is: `A is wrong (output 0 is 0, eager 40); B is right`.

    `wrong` are those that are, and `candidate` is what is different in B.
    """
    calls = {variant.name: variant for variant in wrong}
    places = {name: first_wrong(call) or wrong_words(call, sentence) for name, call in calls.items()}
    if "A" not in calls:  # a file may come from anybody
        return "A does not compute what the graph does"
    a = f"A is wrong ({places['A']})"
    if "B" not in calls:
        cause = f": `{candidate}` causes the difference" if candidate and candidate.words else ""
        return f"{a}; B is right{cause}"
    if len(wrong_groups(wrong)) == 1:
        return f"A and B are wrong alike ({places['A']})"
    if calls["B"].first_bad is None:  # it was not run to its end, or gives something of another form
        return f"{a}; B: {places['B']}"
    return f"{a}, and so is B, otherwise ({places['B']})"


def gain_sentence(trial: Trial, margin: float, threads: int) -> str:
    """Return what `quotable` says, of a candidate that was found to be right and faster."""
    subject = _subject(trial.turned, trial.candidate, trial.graph)
    return f"{subject}: {_timed_words(trial, margin, threads)}"


def _timed_words(timed: GraphWhatIf | Trial, margin: float, threads: int) -> str:
    """Return how long B takes against A: the whole call, and the kernel where that is another number."""
    assert timed.call is not None  # noqa: S101 - else there is nothing to say
    kernel = ""
    if timed.kernel and timed.kernel.verdict in ("FASTER", "SLOWER"):
        kernel = f"; the kernel alone {gain_words(timed.kernel, margin)}"
    # a decision about threads is one about a machine that has several
    alone = threads == 1 and timed.turned is not None and "threads" in timed.turned.kinds
    of_threads = ", both timed with one thread" if alone else ""
    own = timed.own if isinstance(timed, Trial) else None
    of_program = f"; the program's own call {gain_words(own, margin)}" if own else ""
    return f"{gain_words(timed.call, margin)}{kernel}{of_program}, same result{of_threads}"


def _subject(turned: Turned | None, candidate: Candidate | None, graph: str | None) -> str:
    """Return what B does otherwise in a graph: the decision that was asked for, or what was set."""
    if turned and turned.names and turned.outcome and (doing := _DOING.get(turned.outcome)):
        return f"{doing} {listed(turned.names, _MOST_NAMES)}"
    if candidate is None or not candidate.words:
        return "B"
    here = candidate.in_graph(graph) if graph else candidate
    compiled = " (for the compile alone)" if candidate.not_timed_with else ""
    return f"{here if here.words else candidate}{compiled}"


def not_timed_sentence(graph: GraphWhatIf) -> str:
    """Return why a graph was not timed."""
    return f"Not timed: {_why_not(graph)}."


def _why_not(graph: GraphWhatIf) -> str:
    assert graph.not_timed is not None  # noqa: S101 - else there is a result
    return _not_timed(graph.not_timed, graph)


def _not_timed(code: NotTimed, why: GraphWhatIf | TrialReason) -> str:
    return _NOT_TIMED[code].format(subjects=", ".join(why.subjects), message=why.message)


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


def gain_words(comparison: Comparison, margin: float) -> str:
    """Return a verdict with its interval: `2.9x faster (2.8 to 3.0)`, `3.5 % faster (2.9 to 4.0)`."""
    ratio, low, high = comparison.ratio, comparison.low, comparison.high
    percent = [f"{(1 - value) * 100:.1f}" for value in (ratio, high, low)]
    slower = [f"{(value - 1) * 100:.1f}" for value in (ratio, low, high)]
    match comparison.verdict:
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
            if comparison.reason and comparison.reason.code in _NOT_FOR_PROCESSES:
                return f"undecided: {sentence(comparison.reason)}"
            return "undecided: too few processes, or too different ones"
        case "UNDECIDED":
            return f"undecided {_more_time(comparison)}"
        case _:
            return "the measurement is invalid"


def _more_time(comparison: Comparison) -> str:
    return f"({(comparison.low - 1) * 100:+.1f} to {(comparison.high - 1) * 100:+.1f} % time)"


def _times(ratio: float) -> str:
    """Two digits, and whole numbers from ten on where a third would not be sure."""
    return f"{ratio:.1f}" if ratio < 10 or not math.isfinite(ratio) else f"{ratio:.0f}"


def trial_words(trial: Trial, margin: float) -> str:
    """Return what came of a candidate: its time against A with the interval, or why there is none."""
    words = [
        _of_call(trial, margin),
        reason_words(trial.reason) if trial.reason else "",
        f"{_SAME_CODE} as {trial.same_as}" if trial.same_as else "",
    ]
    return ": ".join(filter(None, words))


def _of_call(trial: Trial, margin: float) -> str:
    """Return what the times of the whole call say, or why there are none yet; empty where a reason does."""
    if trial.rank == "dropped":
        return f"at most {(trial.at_most or 0.0) * 100:.2g} % of the call"
    if trial.rank == "not-tried":
        return "compiled, and not timed yet" if trial.run else "not compiled yet"
    if trial.call is None:
        too_short = trial.rank == "undecided" and trial.reason is None
        return "it was looked at for too short a time for the whole call" if too_short else ""
    if trial.rank == "no-change" and trial.call.verdict != "SAME":  # it may be slower, or the same
        return f"not faster {_more_time(trial.call)}"
    processes = len(trial.call.process_ratios)
    few = ""
    if trial.rank == "undecided" and 0 < processes < PROCESSES:
        few = f": {counted(processes, 'process', 'processes')} timed, of {PROCESSES} that a verdict needs"
    own = f"; the program's own call {gain_words(trial.own, margin)}" if trial.own else ""
    return f"{gain_words(trial.call, margin)}{few}{own}"


def reason_words(reason: TrialReason) -> str:
    """Return why a candidate has its rank."""
    match reason:
        case TrialReason(code="script-failed", message=""):
            return "its script failed, and printed nothing"
        case TrialReason(code="not-turned"):
            flips = dict.fromkeys(result.flip for result in reason.flips)
            return "; ".join(text for _, text in flip_texts([*flips], reason.flips))
        case TrialReason(code="wrong-values" | "not-compiled"):
            return wrong_sentence(reason.wrong, sentence)
        case TrialReason(code="among-others", ratio=ratio, others=others):
            what = f"what it is about takes {ratio or 1.0:.2f}x as long"
            return f"{what}, turned together with {counted(others, 'other')}"
        case TrialReason(code="baseline-wrong"):
            return wrong_sides(reason.wrong)
        case TrialReason(code="same-as" | "inputs-differ" | "constants-differ" | "no-code" as code):
            return f"not timed: {_not_timed(code, reason)}"
        case TrialReason(code="no-gpu" | "other-code" as code):
            return _not_timed(code, reason)
    return _REASONS[reason.code].format(message=reason.message)


RANK_WORDS: Mapping[Rank, str] = {
    "right": "right",
    "gain": "gain",
    "no-change": "no change",
    "loss": "loss",
    "undecided": "undecided",
    "wrong": "WRONG",
    "impossible": "impossible",
    "dropped": "dropped",
    "not-tried": "not tried",
}


def trials_sentence(trials: Sequence[Trial], margin: float, threads: int) -> str:
    """Return what came of all candidates in one line, the best first."""
    gains = [trial for trial in trials if trial.rank == "gain"]
    right = [trial for trial in trials if trial.rank == "right"]
    counts = [
        f"{sum(trial.rank == rank for trial in trials)} {words}"
        for rank, words in RANK_WORDS.items()
        if rank not in ("gain", "right") and any(trial.rank == rank for trial in trials)
    ]
    rest = f" ({joined(counts)})" if counts else ""
    number = counted(len({trial.candidate for trial in trials}), "candidate")  # each may have several graphs
    if right and not gains:
        names = listed([*dict.fromkeys(f"`{trial.candidate}`" for trial in right)], _MOST_NAMES)
        return f"A is wrong, and right with {names}{rest}."
    unknown = [trial for trial in trials if trial.rank in ("undecided", "not-tried")]
    if not gains and unknown:
        without_gpu = all(trial.reason and trial.reason.code == "no-gpu" for trial in unknown)
        more = "what is not tried needs a GPU" if without_gpu else "a longer --budget decides more"
        return f"No gain shown yet in {number}{rest}: {more}."
    if not gains:
        return f"No gain in {number}{rest}."
    best = min(gains, key=lambda trial: trial.ratio or 1.0)
    return f"Best of {number}: {gain_sentence(best, margin, threads)}{rest}."
