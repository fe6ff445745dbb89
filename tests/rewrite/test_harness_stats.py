from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.rewrite.harness.stats import MARGIN, decide, interval, seconds_missing
from inductor_probe.rewrite.harness.timing import Quad, conclude


def quads(ratio: float, noise: float, count: int, guard_ratio: float = 1.0, seed: int = 0) -> list[Quad]:
    rng = random.Random(seed)  # noqa: S311 - synthetic data
    return [
        Quad(rng.gauss(math.log(guard_ratio if at % 4 == 3 else ratio), noise), at % 4 == 3, False)
        for at in range(count)
    ]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.02, 1.03, "SLOWER"),
        (0.95, 0.98, "FASTER"),
        (0.995, 1.005, "SAME"),
        (1.001, 1.004, "SAME"),
        (0.97, 1.03, "UNDECIDED"),
        (1.005, 1.02, "UNDECIDED"),
        (0.98, 0.995, "UNDECIDED"),
    ],
)
def test_the_interval_decides_by_its_place_against_the_margin(low: float, high: float, verdict: str) -> None:
    assert decide(math.log(low), math.log(high)) == verdict


@given(st.floats(-0.1, 0.1), st.floats(0, 0.1))
def test_swapping_baseline_and_candidate_swaps_the_verdict(low: float, width: float) -> None:
    opposite = {"FASTER": "SLOWER", "SLOWER": "FASTER"}
    there = decide(low, low + width)
    assert decide(-low - width, -low) == opposite.get(there, there)


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    rng = random.Random(1)  # noqa: S311
    trials = 200
    covered = 0
    for trial in range(trials):
        _, low, high = interval([rng.gauss(0.02, 0.05) for _ in range(40)], seed=trial)
        covered += low <= 0.02 <= high
    assert 0.90 <= covered / trials <= 0.99


def test_the_interval_is_the_same_for_the_same_scores_and_narrows_with_more() -> None:
    rng = random.Random(2)  # noqa: S311
    scores = [rng.gauss(0, 0.05) for _ in range(400)]
    assert interval(scores) == interval(scores)
    few, many = interval(scores[:25]), interval(scores)
    assert many[2] - many[1] < (few[2] - few[1]) / 2


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.05, "SLOWER"), (1 / 1.05, "FASTER"), (1.001, "SAME"), (1.0, "SAME")]
)
def test_quads_become_a_verdict(ratio: float, verdict: str) -> None:
    found = conclude("a", "b", quads(ratio, 0.005, 200), spent=1.0)
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert found.ratio == pytest.approx(ratio, abs=0.003)


def test_a_baseline_that_differs_from_itself_makes_it_invalid() -> None:
    found = conclude("a", "b", quads(1.2, 0.005, 200, guard_ratio=1.05), spent=1.0)
    assert found.verdict == "INVALID"
    assert "a differs from itself" in (found.note or "")


def test_noise_is_undecided_and_says_how_much_longer() -> None:
    found = conclude("a", "b", quads(1.0, 0.2, 60), spent=1.0)
    assert found.verdict == "UNDECIDED"
    assert "more" in (found.note or "") or "too near" in (found.note or "")


def test_disturbed_quads_are_left_out_whole_and_counted() -> None:
    clean, wild = quads(1.0, 0.002, 80), quads(3.0, 0.1, 40, guard_ratio=3.0)
    for quad in wild:
        quad.disturbed = True
    found = conclude("a", "b", clean + wild, spent=1.0)
    assert (found.verdict, found.excluded, len(found.quads)) == ("SAME", 40, 120)


def test_a_busy_machine_decides_nothing() -> None:
    most = quads(1.5, 0.002, 80)
    for quad in most[:60]:
        quad.disturbed = True
    found = conclude("a", "b", most, spent=1.0)
    assert (found.verdict, found.excluded) == ("UNDECIDED", 0)
    assert found.note == "the machine is busy: 60 of 80 quads were disturbed"


def test_few_quads_decide_nothing() -> None:
    few = [Quad(0.5, False, False)] * 5 + [Quad(0.5, True, False)]
    found = conclude("a", "b", few, spent=1.0)
    assert (found.verdict, found.note) == ("UNDECIDED", "too few quads: needs about 1 s")


def test_time_missing_grows_with_the_square_of_the_width() -> None:
    edge = math.log1p(MARGIN)
    narrow = seconds_missing(0.0, -2 * edge, 2 * edge, spent=1.0)
    wide = seconds_missing(0.0, -4 * edge, 4 * edge, spent=1.0)
    assert narrow == pytest.approx(3.0)
    assert wide == pytest.approx(15.0)
    assert seconds_missing(edge, 0.0, 2 * edge, spent=1.0) == math.inf
