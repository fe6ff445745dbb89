from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.bench.intervals import estimate, middle_of, t_distribution, t_quantile


@pytest.mark.parametrize(
    ("freedom", "probability", "value"),
    [(1, 0.975, 12.706), (2, 0.975, 4.303), (3, 0.975, 3.182), (4, 0.995, 4.604), (9, 0.975, 2.262)],
)
def test_quantiles_of_students_t_are_those_of_the_tables(
    freedom: int, probability: float, value: float
) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(value, abs=5e-4)


@given(st.floats(0, 50), st.integers(1, 12))
def test_students_t_grows_from_a_half_to_one(value: float, freedom: int) -> None:
    assert 0.5 <= t_distribution(value, freedom) <= t_distribution(value + 1, freedom) <= 1


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=12))
def test_the_middle_of_medians_is_that_of_their_estimate(medians: list[float]) -> None:
    assert middle_of(medians) == estimate([[median] for median in medians]).middle


@pytest.mark.parametrize(("between", "processes"), [(0.0, 3), (0.001, 3), (0.01, 3), (0.01, 5), (0.07, 3)])
def test_the_interval_holds_the_truth_as_often_as_it_says(between: float, processes: int) -> None:
    rng, held, trials = np.random.default_rng(0), 0, 300
    for seed in range(trials):
        places = rng.normal(0.02, between, processes)
        found = estimate([rng.normal(place, 0.005, 20).tolist() for place in places], seed=seed)
        held += found.low <= 0.02 <= found.high
    assert held / trials >= 0.92


def test_intervals_of_many_comparisons_hold_together() -> None:
    rng, held, trials = np.random.default_rng(1), 0, 60
    for _ in range(trials):
        found = [
            estimate([rng.normal(rng.normal(0, 0.01), 0.005, 15).tolist() for _ in range(3)], comparisons=10)
            for _ in range(10)
        ]
        held += all(each.low <= 0 <= each.high for each in found)
    assert held / trials >= 0.9


def test_medians_that_agree_by_chance_do_not_make_it_narrower_than_their_quads_are() -> None:
    scattered = [float(at) for at in range(-20, 21)]
    found = estimate([scattered, scattered, scattered])
    assert found.between == 0
    assert found.high - found.low > 5


def test_one_process_has_the_interval_of_its_quads_alone() -> None:
    found = estimate([[0.1, 0.2, 0.3, 0.2, 0.1]])
    assert found.middle == 0.2
    assert 0.1 <= found.low <= found.high <= 0.3
    assert math.isinf(found.quantile)


def test_each_process_counts_alike_however_many_quads_it_has() -> None:
    assert estimate([[0.0] * 100, [0.3], [0.3]]).middle == pytest.approx(0.2)
