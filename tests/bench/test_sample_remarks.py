from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from inductor_probe.bench.sample_remarks import autocorrelation, drift, modes
from inductor_probe.bench.verdict import conclude
from inductor_probe.model.timing import Series
from inductor_probe.report.words.remarks import sentence
from tests.bench.simulated import quad, series

ONE_MODE: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "normal": lambda rng, n: 100 + rng.normal(size=n),
    "skewed": lambda rng, n: np.exp(0.5 * rng.normal(size=n)),
    "one-sided": lambda rng, n: 1 + rng.exponential(size=n),
    "heavy tails": lambda rng, n: 100 + rng.standard_t(2, n),
    "flat": lambda rng, n: 1 + rng.random(n),
    "spikes": lambda rng, n: 100 + rng.normal(size=n) + (rng.random(n) < 0.1) * rng.exponential(100, n),
    "coarse ticks": lambda rng, n: np.round(100 + rng.normal(size=n), 1),
    "very coarse ticks": lambda rng, n: np.round(100 + rng.normal(size=n)),
}


@pytest.mark.parametrize("make", ONE_MODE.values(), ids=ONE_MODE)
def test_one_mode_is_not_called_two(make: Callable[[np.random.Generator, int], Any]) -> None:
    rng = np.random.default_rng(0)
    assert not any(modes(make(rng, n)) for n in (30, 100, 400, 1500) for _ in range(60))


@pytest.mark.parametrize(
    ("apart", "share", "count"), [(20, 0.5, 60), (20, 0.2, 200), (8, 0.5, 200), (6, 0.5, 300), (8, 0.2, 400)]
)
def test_two_modes_are_found_with_their_places(apart: float, share: float, count: int) -> None:
    rng = np.random.default_rng(1)
    found = [modes(100 + rng.normal(size=count) + apart * (rng.random(count) < share)) for _ in range(50)]
    assert sum(each is not None for each in found) >= 45
    for each in filter(None, found):
        assert each.low == pytest.approx(100, abs=1)
        assert each.high == pytest.approx(100 + apart, abs=1.5)
        assert each.share == pytest.approx(1 - share, abs=0.2)


def test_equal_samples_are_not_bimodal() -> None:
    assert modes(np.ones(100)) is None


def test_drift_is_told_from_scatter_and_spikes() -> None:
    rng = np.random.default_rng(2)
    steady = [drift(1e-4 * np.exp(0.02 * rng.standard_t(3, 90))) for _ in range(200)]
    assert sum(found != 0 for found in steady) <= 2
    slower = 1e-4 * np.exp(np.linspace(0, 0.2, 90) + 0.02 * rng.normal(size=90))
    assert drift(slower) == pytest.approx(0.14, abs=0.03)
    assert drift(slower[::-1]) < -0.1


def test_linked_scores_are_told_from_independent_ones() -> None:
    rng = np.random.default_rng(3)
    assert sum(autocorrelation(rng.standard_t(3, 60)) > 0 for _ in range(200)) <= 2
    linked = np.zeros(200)
    for at in range(1, 200):
        linked[at] = 0.8 * linked[at - 1] + rng.normal()
    assert autocorrelation(linked) == pytest.approx(0.8, abs=0.15)
    assert autocorrelation(np.zeros(50)) == 0


def test_quiet_samples_have_no_remarks() -> None:
    assert [remark for seed in range(20) for remark in conclude(series(1.0, seed=seed)).remarks] == []


def test_remarks_on_samples_in_words() -> None:
    (drifts,) = conclude(series(1.0, drift=0.3)).remarks
    said = r"drift of \d\d% within a process \(k\w* became slower\): affects both variants"
    assert re.fullmatch(said, sentence(drifts))
    (differ,) = conclude(series(1.0, between=0.05)).remarks
    assert sentence(differ).startswith("the ratio differs between processes (1.0")
    assert [name for name, _ in differ.numbers] == ["process_1", "process_2", "process_3"]
    rng = np.random.default_rng(4)
    times = 36e-6 * (1 + 0.3 * (rng.random(60) < 0.4)) * rng.normal(1, 0.01, 60)
    jumping = tuple(quad([time] * 4) for time in times)
    found = conclude([Series("k", "k_v2", jumping, 1.0)] * 3).remarks
    assert len(found) == 6
    said = r"k runs at two speeds in process 1: \d\d% of its samples take 1\.\d\dx as long as the others"
    assert re.fullmatch(said, sentence(found[0]))
