"""Growing looks: nothing that a longer one would call FASTER is dropped, and no gain is invented.

Few trials of each; `benchmarks/timing/looks.py` makes hundreds.
"""

from __future__ import annotations

from collections import Counter

import pytest

from inductor_probe.bench.looks import GROWTH, Judged, judge, seconds_of
from tests.bench.simulated import series

MARGIN = 0.01
LOOKS = 2
QUIET = {"between": 0.001, "noise": 0.005}
BUSY = {"between": 0.004, "noise": 0.02, "heavy": True}


def last_look(ratio: float, seed: int, *, candidates: int = 1, **noise: float) -> Judged:
    """Look until it is decided, at most `LOOKS` times."""
    for look in range(1, LOOKS + 1):
        quads = 8 * GROWTH ** (look - 1)
        processes = 3 if look == 1 else 9
        looked = series(ratio, processes=processes, quads=quads, seed=31 * seed + look, **noise)
        judged = judge(looked, look, MARGIN, candidates)
        if judged.standing != "open":
            break
    return judged


@pytest.mark.parametrize("noise", [QUIET, BUSY], ids=["quiet", "busy"])
def test_a_gain_that_a_long_look_finds_is_never_dropped(noise: dict[str, float]) -> None:
    for ratio in (0.98, 0.95, 0.8):
        standings = Counter(last_look(ratio, seed, **noise).standing for seed in range(8))
        assert set(standings) <= {"gain", "open"}, (ratio, standings)


@pytest.mark.parametrize("noise", [QUIET, BUSY], ids=["quiet", "busy"])
@pytest.mark.parametrize("ratio", [1.0, 0.995])
def test_what_changes_nothing_is_no_gain_among_two_hundred(ratio: float, noise: dict[str, float]) -> None:
    standings = Counter(last_look(ratio, seed, candidates=200, **noise).standing for seed in range(12))
    assert standings["gain"] == 0, standings


def test_most_of_what_changes_nothing_is_dropped_in_the_end() -> None:
    standings = Counter(last_look(1.0, seed, candidates=200, **QUIET).standing for seed in range(10))
    assert standings["same"] + standings["not-faster"] >= 9


def test_what_is_slower_is_dropped_as_a_loss() -> None:
    standings = Counter(last_look(1.1, seed, **QUIET).standing for seed in range(8))
    assert set(standings) <= {"loss", "not-faster"}, standings


def test_one_process_drops_nothing() -> None:
    assert judge(series(1.2, processes=1), 1, MARGIN).standing == "open"


def test_each_look_is_longer() -> None:
    assert [seconds_of(look) for look in (1, 2, 3)] == [1.0, 4.0, 16.0]
