"""Verdicts on simulated samples of busy machines: few are false, and large effects get theirs."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from inductor_probe.bench.verdict import _ENOUGH, conclude
from inductor_probe.harness.budget import MORE_PROCESSES, PROCESSES, share_of
from inductor_probe.model.timing import Quad, Series
from tests.bench.simulated import LOST_ITS_CORE, quad, series, verdict_as_the_session_makes_it

MARGIN = 0.01
DISTURBANCES: dict[str, dict[str, Any]] = {
    "a few quads wait": {"waits": 0.05},
    "half of the quads wait": {"waits": 0.15, "wait": 0.5},
    "all quads wait": {"waits": 0.9, "wait": 0.3, "noise": 0.02},
    "waits for a time slice": {"waits": 0.3, "wait": 20.0},
    "one side waits more often": {"waits": 0.15, "wait": 0.5, "prone": 2.0},
    "drift while quads wait": {"waits": 0.2, "wait": 0.5, "drift": 0.8},
    "states that last": {"slow": 0.15},
    "states that last, and waits": {"slow": 0.15, "waits": 0.15, "wait": 0.5},
    "processes that are linked": {"between": 0.005, "linked_processes": 0.5},
    "the baseline has an offset of 4 %": {"guard": 1.04},
    "bursts in successive blocks": {"linked": 0.9, "noise": 0.05, "heavy": True},
}


@pytest.fixture(autouse=True)
def _no_sample_remarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes most of the time, and decides nothing."""
    monkeypatch.setattr("inductor_probe.bench.verdict.sample_remarks", lambda *_: ())


@pytest.mark.parametrize("noise", DISTURBANCES.values(), ids=DISTURBANCES)
def test_equal_programs_are_called_different_in_one_of_a_hundred_at_most(noise: dict[str, Any]) -> None:
    verdicts = [verdict_as_the_session_makes_it(1.0, seed, **noise) for seed in range(100)]
    assert sum(verdict in ("FASTER", "SLOWER") for verdict in verdicts) <= 1


@pytest.mark.parametrize("noise", DISTURBANCES.values(), ids=DISTURBANCES)
@pytest.mark.parametrize(("ratio", "verdict"), [(1.3, "SLOWER"), (1 / 1.5, "FASTER")])
def test_large_effects_get_their_verdict_in_19_of_20(
    ratio: float, verdict: str, noise: dict[str, Any]
) -> None:
    verdicts = [verdict_as_the_session_makes_it(ratio, 500 + seed, **noise) for seed in range(20)]
    assert verdicts.count(verdict) >= 19
    assert set(verdicts) <= {verdict, "UNDECIDED", "INVALID"}


@pytest.mark.parametrize("noise", DISTURBANCES.values(), ids=DISTURBANCES)
def test_two_percent_more_work_is_never_called_faster_or_the_same(noise: dict[str, Any]) -> None:
    verdicts = [verdict_as_the_session_makes_it(1.02, 900 + seed, **noise) for seed in range(25)]
    assert not {"FASTER", "SAME"} & set(verdicts)


def waiting(processes: list[Series], seconds: float) -> list[Series]:
    """Return the same quads, each block longer by `seconds`, and all disturbed."""
    return [
        replace(
            process,
            quads=tuple(
                quad([time + seconds for time in old.seconds], old.order, old.guard, LOST_ITS_CORE)
                for old in process.quads
            ),
        )
        for process in processes
    ]


@given(st.floats(0.5, 2.0), st.floats(0.0, 1e-3), st.integers(0, 30))
@settings(deadline=None, max_examples=40)
def test_the_same_waiting_on_both_sides_turns_no_verdict_around(ratio: float, wait: float, seed: int) -> None:
    processes = series(ratio, quads=8, seed=seed)
    calm, busy = conclude(processes, MARGIN), conclude(waiting(processes, wait), MARGIN)
    assert busy.verdict in (calm.verdict, "UNDECIDED", "INVALID")
    assert busy.verdict != "SAME"
    assert abs(math.log(busy.ratio)) <= abs(math.log(calm.ratio)) + 0.005


@given(st.floats(0.8, 1.25), st.floats(1.0, 1.1), st.floats(1.0, 1.1), st.integers(0, 30))
@settings(deadline=None, max_examples=40)
def test_a_larger_offset_of_the_baseline_gives_no_verdict_that_a_smaller_did_not(
    ratio: float, one: float, other: float, seed: int
) -> None:
    small, large = sorted((one, other))
    less, more = (
        conclude(series(ratio, quads=12, guard=guard, seed=seed), MARGIN) for guard in (small, large)
    )
    assert more.verdict in (less.verdict, "UNDECIDED", "INVALID")


@given(st.floats(0.5, 2.0), st.integers(0, 40), st.integers(0, 30))
@settings(deadline=None, max_examples=40)
@example(1.0, 21, 0)
def test_the_interval_is_widened_alike_on_both_sides_of_the_ratio(
    ratio: float, disturbed: int, seed: int
) -> None:
    made = series(ratio, disturbed=disturbed, seed=seed)
    comparison = conclude(made, MARGIN)
    assert comparison.low <= comparison.ratio <= comparison.high
    calm = sum(quad.disturbed is None and not quad.guard for quad in made[0].quads)
    if calm < _ENOUGH and 2 * disturbed > 40:  # nothing is said of the rest alone
        assert comparison.verdict != "SAME"


@pytest.mark.parametrize("count", [1, 2])
def test_a_long_call_of_one_or_two_quads_a_process_is_judged_by_its_processes(count: int) -> None:
    times = [(1.0, 1.5, 1.5, 1.0), (1.0, 1.52, 1.5, 1.0), (1.0, 1.49, 1.5, 1.01)]
    processes = [Series("k", "k_v2", (quad(each),) * count, 1.0) for each in times]
    assert conclude(processes, MARGIN).verdict == "SLOWER"
    assert conclude(processes[:1], MARGIN).verdict == "UNDECIDED"


@pytest.mark.parametrize("scatter", [0.01, 0.1, 0.3])
def test_one_long_call_of_each_side_in_three_processes_is_called_different_in_one_of_a_hundred_at_most(
    scatter: float,
) -> None:
    rng = random.Random(0)  # noqa: S311 - no secret
    verdicts = Counter(verdict_of_single_calls(1.0, scatter, rng) for _ in range(1000))
    assert verdicts["FASTER"] + verdicts["SLOWER"] <= 15, "10 are expected"


def test_one_long_call_of_each_side_in_three_processes_is_enough_for_twice_the_time() -> None:
    rng = random.Random(0)  # noqa: S311 - no secret
    assert {verdict_of_single_calls(2.0, 0.03, rng) for _ in range(100)} == {"SLOWER"}
    assert {verdict_of_single_calls(1.2, 0.01, rng) for _ in range(100)} == {"SLOWER"}


def verdict_of_single_calls(ratio: float, scatter: float, rng: random.Random) -> str:
    def call_s() -> float:
        return 0.9 * math.exp(rng.gauss(0, scatter / math.sqrt(2)))

    quads = [Quad("AB", (call_s(), ratio * call_s()), guard=False, disturbed=None) for _ in range(3)]
    return conclude([Series("k", "k_v2", (one,), 2.0) for one in quads], MARGIN).verdict


@given(st.floats(0.01, 1000))
def test_the_budget_is_kept_within_a_factor_of_one_and_a_half(budget: float) -> None:
    for count in range(PROCESSES, MORE_PROCESSES + 1):
        spent = sum(share_of(budget, number) for number in range(count))
        assert 0.75 * budget <= spent * 1.001 <= budget * 1.21
        assert sum(share_of(budget, number, count) for number in range(count)) == pytest.approx(budget)
