"""The sentence that can be quoted."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from inductor_probe.model.bench import CALL, OTHER_CALL
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.comparison import Comparison, Verdict
from inductor_probe.model.decision import DecisionKind
from inductor_probe.model.diff import DecisionChange, DiffSide, GraphDiff, KernelMatch
from inductor_probe.model.flip import Flip, FlipResult
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import Variant
from inductor_probe.model.whatif import (
    Candidate,
    GraphWhatIf,
    Rank,
    Trial,
    TrialCode,
    TrialReason,
    Turned,
)
from inductor_probe.report.pages.whatif import trials_page
from inductor_probe.report.terminal import to_text
from inductor_probe.report.words.whatif import (
    gain_sentence,
    gain_words,
    quotable,
    reason_words,
    trial_words,
    trials_sentence,
)
from tests.builders import bench_result, comparison, decision


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


def trial(rank: Rank, ratio: float | None = None, verdict: Verdict = "FASTER") -> Trial:
    """Return a trial of that rank."""
    call = ratio and comparison(ratio - 0.01, ratio + 0.01, verdict, names=(CALL, OTHER_CALL))
    return Trial(Candidate(settings=(("x", str(ratio or rank)),)), rank, call=call or None)


def test_a_wide_interval_of_a_busy_machine_is_not_said_to_want_processes() -> None:
    busy = measured(
        "disturbed-quads", "analysis", Subject("variant", "call_v3"), {"disturbed": 9, "quads": 10}
    )
    wide = Comparison(
        "Compiled call", "call_v3", 0.5, 0.001, 900.0, "UNDECIDED", (0.5,) * 3, 10, 0, reason=busy
    )
    assert gain_words(wide, 0.01) == (
        "undecided: the machine is busy: other programs ran during 9 of 10 measurements"
    )


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"call_v3": 1}, "scalar op0: WRONG, B computes something else: never a gain"),
        (
            {"call": 0},
            "A is wrong (output 0 is 0, eager 40); B is right: `scalar op0` causes the difference",
        ),
        ({"call": 0, "call_v3": 0}, "A and B are wrong alike (output 0 is 0, eager 40)"),
        (
            {"call": 0, "call_v3": 1},
            "A is wrong (output 0 is 0, eager 40), and so is B, otherwise (output 0 is 1, eager 40)",
        ),
    ],
)
def test_a_is_judged_by_the_graph_and_b_is_not_judged_by_a_wrong_a(values: dict[str, int], says: str) -> None:
    """F1: B was "WRONG ... 40, expected 0" where A was, and B right."""
    wrong = Variant("", False, 40.0, 1, 1, first_bad=(), first_bad_output=0, expected=40, eager=40)
    variants = tuple(
        replace(wrong, name=name, value=values[name]) if name in values else Variant(name, True, None, 0, 1)
        for name in ("call", "call_v3")
    )
    candidate = Candidate(flips=(Flip("scalar", ("op0",)),))
    side = DiffSide("g", Path("g"), None, None, (), ())
    graph = GraphWhatIf(GraphDiff(side, side), bench_result(variants=variants))
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


def test_a_setting_that_the_script_sets_back_is_said_not_to_be_in_force() -> None:
    """`--set inductor.x=True` was "the same code", of a script that sets it to False."""
    side = DiffSide("g", Path("g"), None, None, (), ())
    graph = GraphWhatIf(GraphDiff(side, side), not_timed="same-code", overridden=(("inductor.x", "False"),))
    assert quotable(graph, Candidate(settings=(("inductor.x", "True"),))) == (
        "inductor.x=True: not in force, since the script or an option of torch.compile set it to False: "
        "the same code"
    )


def test_a_graph_that_no_flip_is_about_is_not_said_to_have_been_missed() -> None:
    side = DiffSide("model__1.1", Path("g"), None, None, (), ())
    graph = GraphWhatIf(GraphDiff(side, side), not_timed="same-code")
    elsewhere = Flip("scalar", ("op0",), None, "model__0.0")
    assert quotable(graph, Candidate(flips=(elsewhere,))) == (
        "the same code, and no decision of it was to be turned"
    )
    here = replace(elsewhere, graph="model__1.1")
    assert (
        quotable(graph, Candidate(flips=(elsewhere, here))) == "scalar op0: nothing was turned, the same code"
    )


def test_what_is_realised_is_a_value_and_no_kernel() -> None:
    before = decision(
        "realization", "div", "inlined", "cheap", subject_type="fx", operands={"node": "div"}, number=3
    )
    after = decision(
        "realization", "buf0", "realised", "turned", subject_type="buffer", operands={"node": "div"}, number=2
    )
    side = DiffSide("g", Path("g"), None, None, (), ())
    kernel = KernelMatch("changed", ("cpp_fused_x_0",), ("cpp_fused_x_0",))
    graph = GraphWhatIf(GraphDiff(side, side, kernels=(kernel,)), asked=(DecisionChange(before, after),))
    assert graph.turned == Turned(("realization",), "realised", ("div",))


@pytest.mark.parametrize(
    ("kind", "says"), [("threads", ", both timed with one thread"), ("vectorisation", "")]
)
def test_a_decision_about_threads_says_that_one_thread_was_timed(kind: DecisionKind, says: str) -> None:
    compared = bench_result(comparison(0.940, 0.946, "FASTER", names=("Compiled call", "call_v3")))
    one = decision(kind, "op0", "one-thread", "turned")
    side = DiffSide("g", Path("g"), None, None, (), ())
    graph = GraphWhatIf(GraphDiff(side, side), compared, asked=(DecisionChange(None, one),))
    line = "one thread for op0: 5.7 % faster (5.4 to 6.0 % less time), same result"
    assert quotable(graph, Candidate(flips=(Flip("threads", ("op0",), "1"),))) == line + says


def test_all_candidates_in_one_line() -> None:
    assert trials_sentence([trial("no-change"), trial("wrong")], 0.01, 1) == (
        "No gain in 2 candidates (1 no change and 1 WRONG)."
    )
    assert trials_sentence([trial("not-tried"), trial("undecided", 0.99, "UNDECIDED")], 0.01, 1) == (
        "No gain shown yet in 2 candidates (1 undecided and 1 not tried): a longer --budget decides more."
    )
    without_gpu = replace(trial("not-tried"), reason=TrialReason("no-gpu", subjects=("NVIDIA H200",)))
    assert trials_sentence([without_gpu], 0.01, 1) == (
        "No gain shown yet in 1 candidate (1 not tried): what is not tried needs a GPU."
    )
    assert trials_sentence(
        [trial("gain", 0.9), trial("gain", 0.5), trial("loss", 2.0, "SLOWER")], 0.01, 1
    ) == ("Best of 3 candidates: x=0.5: 2.0x faster (2.0 to 2.0), same result (1 loss).")


def test_a_gain_is_quoted_by_what_its_record_holds() -> None:
    gain = replace(
        trial("gain", 0.5),
        kernel=comparison(0.24, 0.26, "FASTER"),
        turned=Turned(("threads",), "one-thread", ("op0", "op1", "op2")),
    )
    kernel = "the kernel alone 4.0x faster (3.8 to 4.2)"
    says = f"one thread for op0, op1 and 1 more: 2.0x faster (2.0 to 2.0); {kernel}"
    assert gain_sentence(gain, 0.01, 1) == f"{says}, same result, both timed with one thread"
    assert gain_sentence(gain, 0.01, 2) == f"{says}, same result"
    assert from_json(Trial, to_json(gain)) == gain
    scopes = tuple(Flip("split", ("buf2",), "4", f"model__{number}.0") for number in (0, 1))
    in_one = replace(gain, candidate=Candidate(flips=scopes), graph="model__1.0", turned=None, kernel=None)
    assert gain_sentence(in_one, 0.01, 1) == "split buf2=4: 2.0x faster (2.0 to 2.0), same result"


REFUSED = FlipResult(Flip("scalar", ("op9",)), None, "not-met", "no-subject", operands=(("subject", "op9"),))
OTHER_VALUES = Variant("k of B", correct=False, max_error=1.0, mismatches=3, elements=9)


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        (TrialReason("refused", "torch has no setting x"), "torch has no setting x"),
        (TrialReason("script-failed", "ValueError: a {b}"), "ValueError: a {b}"),
        (TrialReason("script-failed"), "its script failed, and printed nothing"),
        (
            TrialReason("inputs-differ", subjects=("a", "b")),
            "not timed: B cannot take the inputs of A: a, b differ",
        ),
        (TrialReason("not-turned", flips=(REFUSED,)), "--scalar op9: not met: there is no op9"),
        (
            TrialReason("wrong-values", wrong=(OTHER_VALUES,)),
            "k of B is WRONG in 3 of 9 elements: largest error 1",
        ),
    ],
)
def test_why_a_candidate_has_its_rank(reason: TrialReason, says: str) -> None:
    assert trial_words(Trial(Candidate(), "impossible", reason=reason), 0.01) == says


@pytest.mark.parametrize("code", get_args(TrialCode))
def test_each_reason_has_words_and_is_the_same_after_it_was_kept(code: TrialCode) -> None:
    reason = TrialReason(code, "why", ("arg0_1",), (REFUSED,), (OTHER_VALUES,))
    assert reason_words(reason)
    assert from_json(TrialReason, to_json(reason)) == reason


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (trial("not-tried"), "not compiled yet"),
        (replace(trial("not-tried"), run=Path("b")), "compiled, and not timed yet"),
        (trial("undecided"), "it was looked at for too short a time for the whole call"),
        (trial("no-change", 1.05, "UNDECIDED"), "not faster (+4.0 to +6.0 % time)"),
        (trial("no-change", 1.0, "SAME"), "no change within 1 %"),
        (
            replace(trial("gain", 0.5), same_as=Candidate(settings=(("y", "1"),))),
            "2.0x faster (2.0 to 2.0): the same code as y=1",
        ),
    ],
)
def test_what_a_rank_leaves_open_is_said(one: Trial, says: str) -> None:
    assert trial_words(one, 0.01) == says


@pytest.mark.parametrize(
    ("processes", "says"), [(1, ": 1 process timed, of 3 that a verdict needs"), (3, "")]
)
def test_a_look_that_was_cut_says_so_beside_its_interval(processes: int, says: str) -> None:
    """Of one process it is narrow: 39.5 to 39.1 % less time read as if nothing were left to decide."""
    ratios = (0.6075,) * processes
    looked = Comparison(CALL, OTHER_CALL, 0.6075, 0.6048, 0.6089, "UNDECIDED", ratios, 90, 0)
    shown = trial_words(Trial(Candidate(), "undecided", call=looked), 0.01)
    assert shown == f"undecided (-39.5 to -39.1 % time){says}"


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


def test_a_candidate_that_is_right_where_a_is_wrong_comes_first() -> None:
    a = Variant("A", False, 40.0, 1, 1, first_bad=(), first_bad_output=0, value=0, expected=40, eager=40)
    scalar = Candidate(flips=(Flip("scalar", ("op0",)),))
    right = Trial(scalar, "right", reason=TrialReason("baseline-wrong", wrong=(a,)))
    both = TrialReason("baseline-wrong", wrong=(a, replace(a, name="B")))
    trials = [Trial(Candidate(settings=(("x", "1"),)), "wrong", reason=both), right]
    rows = to_text(trials_page(trials), 120).splitlines()
    assert rows[1].split("  ")[0] == "right"
    assert rows[1].endswith("A is wrong (output 0 is 0, eager 40); B is right")
    assert trials_sentence(trials, 0.01, 1) == "A is wrong, and right with `scalar op0` (1 WRONG)."
