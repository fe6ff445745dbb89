"""The sentence that can be quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.model.bench import Comparison, Verdict
from inductor_probe.model.decision import Decision, DecisionKind, TorchFrame
from inductor_probe.model.diff import DecisionChange, DiffSide, GraphDiff
from inductor_probe.model.flip import Flip
from inductor_probe.model.timing import Variant
from inductor_probe.model.whatif import Candidate, GraphWhatIf, Rank, Trial
from inductor_probe.report.pages.whatif import trials_page
from inductor_probe.report.terminal import to_text
from inductor_probe.report.words.whatif import gain_words, quotable, trials_sentence
from tests.report.test_bench import comparison, result


@pytest.mark.parametrize(
    ("verdict", "ratio", "low", "high", "says"),
    [
        ("FASTER", 0.345, 0.333, 0.357, "2.9x faster (2.8 to 3.0)"),
        ("FASTER", 0.965, 0.960, 0.971, "3.5 % faster (2.9 to 4.0 % less time)"),
        ("FASTER", 0.0676, 0.067, 0.071, "15x faster (14 to 15)"),
        ("SLOWER", 2.0, 1.9, 2.1, "2.0x slower (1.9 to 2.1)"),
        ("SLOWER", 1.034, 1.03, 1.04, "3.4 % slower (3.0 to 4.0 % more time)"),
        ("SAME", 1.001, 0.999, 1.003, "no change within 1 %"),
        ("UNDECIDED", 0.99, 0.97, 1.01, "undecided (-3.0 to +1.0 % time)"),
        ("UNDECIDED", 0.55, 6.9e-06, 44203.0, "undecided: too few processes, or too different ones"),
        ("UNDECIDED", 0.55, 0.0, float("inf"), "undecided: too few processes, or too different ones"),
    ],
)
def test_a_verdict_in_words(verdict: Verdict, ratio: float, low: float, high: float, says: str) -> None:
    comparison = Comparison("Compiled call", "call_v3", ratio, low, high, verdict, (ratio,) * 3, 90, 0)
    assert gain_words(comparison, 0.01) == says


def trial(rank: Rank, ratio: float | None = None) -> Trial:
    """Return a trial of that rank."""
    return Trial(Candidate(), rank, ratio=ratio, line=f"at {ratio}")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("call_v3", "scalar op0: WRONG, B computes something else: never a gain"),
        ("call", "scalar op0: not known, A itself does not compute what the graph does"),
    ],
)
def test_a_call_that_is_wrong_is_never_a_gain(wrong: str, says: str) -> None:
    variants = tuple(Variant(name, name != wrong, None, 0, 1) for name in ("call", "call_v3"))
    candidate = Candidate(flips=(Flip("scalar", ("op0",)),))
    side = DiffSide("g", Path("g"), None, None, (), ())
    graph = GraphWhatIf(GraphDiff(side, side), result(variants=variants))
    assert quotable(graph, candidate) == says


@pytest.mark.parametrize(
    ("candidate", "says"),
    [
        (Candidate(flips=(Flip("split", (), "4"),)), "split 4: nothing was turned, the same code"),
        (Candidate(settings=(("inductor.x", "1"),)), "inductor.x=1: the same code"),
    ],
)
def test_a_flip_that_turned_nothing_is_not_quoted_as_if_it_had(candidate: Candidate, says: str) -> None:
    side = DiffSide("g", Path("g"), None, None, (), ())
    assert quotable(GraphWhatIf(GraphDiff(side, side), not_timed="same-code"), candidate) == says


@pytest.mark.parametrize(
    ("kind", "says"), [("threads", ", both timed with one thread"), ("vectorisation", "")]
)
def test_a_decision_about_threads_says_that_one_thread_was_timed(kind: DecisionKind, says: str) -> None:
    compared = result(comparison(0.940, 0.946, "FASTER", names=("Compiled call", "call_v3")))
    place = TorchFrame("torch/_inductor/codegen/cpp.py", "CppKernel.decide_parallel_depth", 1)
    one = Decision(1, kind, "node", (("op0",),), "one-thread", "turned", (), place)
    side = DiffSide("g", Path("g"), None, None, (), ())
    graph = GraphWhatIf(GraphDiff(side, side), compared, asked=(DecisionChange(None, one),))
    line = "one thread for op0: 5.7 % faster (5.4 to 6.0 % less time), same result"
    assert quotable(graph, Candidate(flips=(Flip("threads", ("op0",), "1"),))) == line + says


def test_all_candidates_in_one_line() -> None:
    assert trials_sentence([trial("no-change"), trial("wrong")]) == (
        "No gain in 2 candidates (1 no change and 1 WRONG)."
    )
    assert trials_sentence([trial("not-tried"), trial("undecided", 0.99)]) == (
        "No gain shown yet in 2 candidates (1 undecided and 1 not tried): a longer --budget decides more."
    )
    assert trials_sentence([trial("gain", 0.9), trial("gain", 0.5), trial("loss", 2.0)]) == (
        "Best of 3 candidates: at 0.5 (1 loss)."
    )


def test_a_variable_that_acts_at_run_time_is_said_not_to_be_in_the_times() -> None:
    threads = Candidate(variables=(("OMP_NUM_THREADS", "4"), ("TORCHINDUCTOR_CPP_WRAPPER", "1")))
    allocator = Candidate(variables=(("LD_PRELOAD", "libjemalloc.so"),))
    assert threads.not_timed_with == ("OMP_NUM_THREADS",)
    alone = to_text(trials_page([Trial(threads, "no-change")]), 200)
    assert (
        "OMP_NUM_THREADS also acts while code runs, which is not in these times: A and B are timed in one "
        "process, as probe whatif was started (--timed-threads sets the threads of both)"
    ) in " ".join(alone.split())
    both = to_text(trials_page([Trial(threads, "no-change"), Trial(allocator, "no-change")]), 200)
    assert "OMP_NUM_THREADS and LD_PRELOAD also act while code runs" in both
    assert "start probe whatif with them to time both so" in " ".join(both.split())
    settings = Candidate(settings=(("inductor.cpp.simdlen", "256"),), variables=(("CXX", "g++"),))
    assert "while code runs" not in to_text(trials_page([Trial(settings, "no-change")]), 200)
