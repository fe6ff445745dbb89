"""Verdicts on quads with a known truth."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from inductor_probe.bench.stop_rule import wants_more
from inductor_probe.bench.verdict import conclude
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import Quad, Series
from inductor_probe.report.words.remarks import sentence
from tests.bench.simulated import quad, series, verdict_as_the_session_makes_it

MARGIN = 0.01
REALISTIC: dict[str, dict[str, Any]] = {
    "quiet": {},
    "heavy tails": {"heavy": True, "noise": 0.01},
    "drift": {"drift": 0.3},
    "autocorrelation": {"linked": 0.7, "noise": 0.01},
    "processes differ": {"between": 0.003},
    "a busy core": {"disturbed": 8, "heavy": True},
}


@pytest.fixture
def no_sample_remarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes most of the time, and decides nothing."""
    monkeypatch.setattr("inductor_probe.bench.verdict.sample_remarks", lambda *_: ())


def reason(found: Comparison) -> str:
    assert found.reason is not None
    return sentence(found.reason)


@pytest.mark.usefixtures("no_sample_remarks")
@pytest.mark.parametrize("noise", REALISTIC.values(), ids=REALISTIC)
def test_equal_programs_are_called_different_in_one_of_a_hundred_at_most(noise: dict[str, Any]) -> None:
    trials = 100
    said = [verdict_as_the_session_makes_it(1.0, seed, **noise) for seed in range(trials)]
    assert sum(verdict in ("FASTER", "SLOWER", "INVALID") for verdict in said) <= trials // 100
    assert said.count("SAME") >= 0.9 * trials


@pytest.mark.usefixtures("no_sample_remarks")
@pytest.mark.parametrize("noise", REALISTIC.values(), ids=REALISTIC)
def test_two_percent_more_work_is_called_slower_in_95_of_100(noise: dict[str, Any]) -> None:
    trials = 100
    said = [verdict_as_the_session_makes_it(1.02, 1000 + seed, **noise) for seed in range(trials)]
    assert said.count("SLOWER") >= 0.95 * trials
    assert "FASTER" not in said
    assert "SAME" not in said


@pytest.mark.usefixtures("no_sample_remarks")
def test_processes_that_differ_widely_are_not_believed() -> None:
    said = [verdict_as_the_session_makes_it(1.0, seed, between=0.03) for seed in range(100)]
    assert sum(verdict in ("FASTER", "SLOWER") for verdict in said) <= 5  # 5 %: the level of the interval
    assert said.count("UNDECIDED") >= 90


@pytest.mark.usefixtures("no_sample_remarks")
def test_many_comparisons_of_equal_programs_do_not_add_up_to_a_difference() -> None:
    runs = 20
    told = 0
    for run in range(runs):
        many = [series(1.0, between=0.02, quads=12, seed=20 * run + at) for at in range(10)]
        told += any(conclude(each, MARGIN, len(many)).verdict in ("FASTER", "SLOWER") for each in many)
    assert told <= runs * 0.05
    one, together = conclude(many[0], MARGIN, 1), conclude(many[0], MARGIN, 10)
    assert together.low < one.low < one.ratio < one.high < together.high


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.05, "SLOWER"), (1 / 1.05, "FASTER"), (1.001, "SAME"), (1.01, "UNDECIDED")]
)
def test_the_place_of_the_interval_decides(ratio: float, verdict: str) -> None:
    found = conclude(series(ratio), MARGIN)
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert found.ratio == pytest.approx(ratio, abs=0.003)
    assert (found.quads, found.excluded, len(found.process_ratios)) == (102, 0, 3)


def test_a_wider_margin_makes_the_same() -> None:
    assert conclude(series(1.02), MARGIN).verdict == "SLOWER"
    assert conclude(series(1.02), 0.05).verdict == "SAME"


def swapped(found: list[Series]) -> list[Series]:
    """Return the same blocks with the names of A and B exchanged."""
    other = {"ABBA": "BAAB", "BAAB": "ABBA"}
    return [
        replace(each, quads=tuple(quad(q.seconds, other[q.order], q.guard) for q in each.quads))
        for each in found
    ]


@given(st.sampled_from([0.9, 0.985, 0.995, 1.0, 1.012, 1.05]), st.integers(0, 50))
def test_swapping_baseline_and_candidate_swaps_the_verdict(ratio: float, seed: int) -> None:
    made = series(ratio, quads=8, seed=seed)
    there, back = conclude(made, MARGIN), conclude(swapped(made), MARGIN)
    assert back.verdict == {"FASTER": "SLOWER", "SLOWER": "FASTER"}.get(there.verdict, there.verdict)
    assert back.ratio == pytest.approx(1 / there.ratio)


def test_an_offset_of_the_baseline_widens_the_interval_and_vetoes_no_large_effect() -> None:
    plain, found = conclude(series(1.65), MARGIN), conclude(series(1.65, guard=1.04), MARGIN)
    assert (plain.verdict, found.verdict) == ("SLOWER", "SLOWER")
    assert found.ratio == plain.ratio
    assert found.low == pytest.approx(plain.low / 1.04, rel=0.005)
    assert found.high == pytest.approx(plain.high * 1.04, rel=0.005)
    (remark,) = found.remarks
    assert re.fullmatch(r"timed against itself, k differs by [34]\.\d%: .*includes that", sentence(remark))


@pytest.mark.parametrize("ratio", [1.0, 1.02, 1.04, 1 / 1.04])
def test_a_baseline_that_differs_from_itself_by_more_makes_it_invalid(ratio: float) -> None:
    found = conclude(series(ratio, guard=1.05), MARGIN)
    assert found.verdict == "INVALID"
    assert reason(found).startswith("compared with itself, k takes 1.0")


def test_disturbed_quads_are_left_out_whole_and_counted() -> None:
    found = conclude(series(1.0, disturbed=10), MARGIN)
    assert (found.verdict, found.excluded) == ("SAME", 30)
    assert found.quads + found.excluded < 120  # the rest are guards


def test_a_busy_machine_tells_large_effects_and_calls_nothing_the_same() -> None:
    busy = {"waits": 0.5, "wait": 0.3}
    large, equal = conclude(series(1.5, **busy), MARGIN), conclude(series(1.0, **busy), MARGIN)
    assert (large.verdict, large.excluded, large.quads) == ("SLOWER", 0, 102)
    assert "which may hide" in sentence(large.remarks[0])
    assert equal.verdict == "UNDECIDED"
    assert reason(equal).startswith("the machine is busy: other programs ran during ")


def test_one_process_decides_nothing() -> None:
    found = conclude(series(1.5, processes=1), MARGIN)
    assert (found.verdict, reason(found)) == (
        "UNDECIDED",
        "only one process was run: at least 3 are needed",
    )


def test_processes_that_disagree_on_the_sign_decide_nothing() -> None:
    times = [(1.0, 1.3, 1.3, 1.0)] * 5 + [(1.0, 1 / 1.001, 1 / 1.001, 1.0)]
    found = conclude([Series("k", "k_v2", (quad(each),) * 10, 1.0) for each in times], MARGIN)
    assert found.low > 1.01
    assert (found.verdict, reason(found)) == ("UNDECIDED", "processes disagree on which is faster")


def test_more_processes_are_asked_by_the_width_and_not_by_the_place_of_the_interval() -> None:
    tight, wide = conclude(series(1.0), MARGIN), conclude(series(1.0, between=0.01), MARGIN)
    assert not wants_more(tight, MARGIN)
    assert wants_more(wide, MARGIN)
    assert not wants_more(wide, 0.5)
    far = conclude(series(3.0, between=0.01), MARGIN)
    assert not wants_more(far, MARGIN)


def open_cases(**noise: Any) -> list[Comparison]:
    found = [conclude(series(1.006, seed=seed, **noise), MARGIN) for seed in range(40)]
    return [each for each in found if each.verdict == "UNDECIDED"]


def test_what_is_missing_is_time_if_quads_scatter_and_processes_if_those_differ() -> None:
    short = [reason(each) for each in open_cases(between=0.0, noise=0.05)]
    assert sum("s more, or more processes" in note for note in short) > len(short) / 3 > 5
    apart = [reason(each) for each in open_cases(between=0.005, noise=0.0001)]
    either = ("processes differ too much: about ", "the ratio is too close to the margin to decide")
    assert len(apart) > 5
    assert all(note.startswith(either) for note in apart)
    exactly = [Series("k", "k_v2", (quad((1, 1.01, 1.01, 1)),) * 5, 1.0)] * 2
    spread = Series("k", "k_v2", (quad((1, 1.03, 1.03, 1)),) * 5, 1.0)
    other = Series("k", "k_v2", (quad((1, 1.01**2 / 1.03, 1.01**2 / 1.03, 1)),) * 5, 1.0)
    assert (
        reason(conclude([*exactly, spread, other], MARGIN))
        == "the ratio is too close to the margin to decide"
    )


def test_the_same_samples_give_the_same_verdict_to_the_last_digit() -> None:
    made = series(1.013)
    assert conclude(made, MARGIN) == conclude(made, MARGIN)


def preempted(code: str, processes: int = 3) -> list[Series]:
    """Return quads of 3.0 and 1.2 ms, of which none kept its core: by the clock, or in CPU time."""
    disturbed = measured(code, "hazard", Subject("machine", ""), {"times": 1})  # type: ignore[arg-type]
    times = (0.019, 0.0012, 0.0012, 0.0191) if code == "core-lost" else (0.003, 0.0012, 0.0012, 0.003)
    quads = (Quad("ABBA", times, guard=False, disturbed=disturbed),) * 20
    return [Series("k", "k_v2", quads, 1.0, core=0.2)] * processes


def test_what_is_longer_than_a_slice_of_the_scheduler_does_not_have_a_narrow_false_ratio() -> None:
    by_clock, on_cpu = (conclude(preempted(code), MARGIN) for code in ("core-lost", "cpu-time"))
    assert (by_clock.verdict, on_cpu.verdict) == ("FASTER", "FASTER")
    assert by_clock.low < 0.4 < by_clock.high
    assert by_clock.high == pytest.approx(1 / 1.01)
    assert on_cpu.low < 0.4 < on_cpu.high < 1.25 * on_cpu.low
    assert [each.busy for each in (by_clock, on_cpu, conclude(series(1.5), MARGIN))] == [True, True, False]


def test_threads_that_wait_for_one_that_lost_its_core_decide_nothing() -> None:
    """A call of two threads that is 1.27x as fast as eager was "2.38x as long" beside other programs."""
    lost = measured("core-lost", "hazard", Subject("machine", ""), {"times": 3, "threads": 2})
    one = preempted("core-lost")
    two = [replace(each, quads=tuple(replace(quad, disturbed=lost) for quad in each.quads)) for each in one]
    assert [conclude(several, MARGIN).verdict for several in (one, two)] == ["FASTER", "UNDECIDED"]


def test_a_few_calm_quads_are_enough_and_the_others_are_left_out() -> None:
    calm = tuple(quad((0.003, 0.0012, 0.0012, 0.003)) for _ in range(12))
    mixed = [replace(process, quads=process.quads + calm) for process in preempted("core-lost")]
    found = conclude(mixed, MARGIN)
    assert (found.verdict, found.excluded, found.busy) == ("FASTER", 60, True)
    assert (found.low, found.high) == pytest.approx((0.4, 0.4))
