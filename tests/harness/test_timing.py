from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from inductor_probe.harness.quads import (
    ColdRing,
    Quad,
    Ring,
    Side,
    Subject,
    make_ring,
    make_side,
    placed,
    time_quad,
    time_quads,
    width,
)
from inductor_probe.harness.remarks import Remark, sentences
from inductor_probe.harness.timing import cpu_clock


def ring_of(values: Any, slots: int, cold: bool = False) -> Ring:
    kind = ColdRing if cold else Ring
    return kind(values, slots, partial(placed, rng=random.Random(0)))  # noqa: S311


def side(name: str, run: Callable[..., object], *tensors: Any, cold: bool = False, slots: int = 3) -> Side:
    ring = ring_of(tensors, slots, cold)
    return make_side(Subject(name, lambda values: partial(run, *values), tensors), ring)


def test_a_side_that_drifts_starts_each_block_with_the_first_values() -> None:
    seen: list[float] = []

    def double_in_place(x: Any) -> None:
        seen.append(x[0].item())
        x.mul_(2)

    doubling = side("s", double_in_place, torch.ones(4))
    assert doubling.drifting == [0]
    assert 1 <= doubling.calls <= 16
    seen.clear()
    for number in range(4):
        doubling.block(number)
    assert seen.count(1.0) == 4 * doubling.laps
    assert all(values[0][0] == 1 for values in doubling.ring.slots)


def test_a_side_that_writes_the_same_again_needs_no_restoring() -> None:
    out = torch.empty(4)
    assert side("s", lambda x, out: out.copy_(x * 2), torch.ones(4), out).drifting == []


def test_a_block_asks_its_clock_for_so_many_laps_of_so_many_calls() -> None:
    asked: list[int] = []

    def clock(run: Callable[[], object], calls: int) -> float:
        asked.append(calls)
        for _ in range(calls):
            run()
        return 0.5

    counted = side("s", lambda x: None, torch.ones(4))
    counted.clock, counted.calls, counted.laps = clock, 6, 2
    assert counted.block(0) == 0.5
    assert asked == [6, 6]


def test_all_blocks_of_a_quad_take_the_same_slot_and_quads_take_turns() -> None:
    taken: list[tuple[str, int]] = []
    x = torch.ones(4)
    ring = ring_of((x,), 3)

    def noting(name: str) -> Subject:
        return Subject(name, lambda values: lambda: taken.append((name, values[0].data_ptr())), (x,))

    a, b = make_side(noting("a"), ring), make_side(noting("b"), ring)
    a.calls = b.calls = a.laps = b.laps = 1
    a.clock = b.clock = partial(cpu_clock)  # for it, which is not that clock, no lap is taken again
    places = [values[0].data_ptr() for values in ring.slots]
    taken.clear()
    order = time_quad(a, b, 1, False, random.Random(0)).order  # noqa: S311
    assert [name.upper() for name, _ in taken] == list(order)
    assert [place for _, place in taken] == [places[1]] * 4
    taken.clear()
    time_quad(a, b, 5, False, random.Random(0))  # noqa: S311
    assert [place for _, place in taken] == [places[2]] * 4


def test_cold_calls_take_one_slot_after_the_other_on_both_sides() -> None:
    taken: list[int] = []
    x = torch.ones(4)
    ring = ring_of((x,), 5, cold=True)
    subject = Subject("s", lambda values: lambda: taken.append(values[0].data_ptr()), (x,))
    a, b = make_side(subject, ring), make_side(subject, ring)
    a.calls, a.laps = b.calls, b.laps = 2, 1
    ring.next = 0
    taken.clear()
    for each in (a, b, a):
        each.block(0)
    places = [values[0].data_ptr() for values in ring.slots]
    assert taken == [places[at] for at in (0, 1, 2, 3, 4, 0)]


def test_slots_are_equal_and_lie_differently_within_their_pages() -> None:
    base = torch.arange(40.0)
    values = ([base[3:9], base.as_strided((2, 3), (5, 2), 1)], {"n": 7, "flag": torch.tensor([True])})
    ring = ring_of(values, 6)
    for (first, second), rest in ring.slots:
        assert torch.equal(first, values[0][0])
        assert torch.equal(second, values[0][1])
        assert (first.storage_offset(), second.stride(), rest["n"]) == (3, (5, 2), 7)
        assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
        assert first.untyped_storage().data_ptr() % 64 == 0
    assert len({first.data_ptr() % 4096 for (first, _), _ in ring.slots}) > 3


def test_a_ring_is_as_large_as_it_should_be_and_says_when_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Remark] = []
    rng = random.Random(0)  # noqa: S311
    x = torch.zeros(1024)
    assert len(make_ring([x], False, rng, said.append).slots) == 8
    monkeypatch.setattr("inductor_probe.harness.quads.last_level_cache", lambda: 64 * 1024)
    assert len(make_ring([x], True, rng, said.append).slots) == 24  # one and a half caches
    assert said == []
    monkeypatch.setattr("inductor_probe.harness.quads.last_level_cache", lambda: 64 << 20)
    assert len(make_ring([x], True, rng, said.append).slots) == 4096
    assert sentences(said) == "data are only partly cold: the ring holds 16 MiB, the cache 64"


def test_quads_are_guarded_every_sixth_time_and_score_b_over_a() -> None:
    x = torch.ones(20000)
    a, b = (side(name, torch.sum, x) for name in "ab")
    quads = time_quads(a, b, 0.2, 0.0, random.Random(0))  # noqa: S311
    assert len(quads) >= 12
    assert [quad.guard for quad in quads[:12]] == ([False] * 5 + [True]) * 2
    assert {quad.order for quad in quads} == {"ABBA", "BAAB"}
    assert Quad("ABBA", [1.0, 2.0, 2.0, 1.0], False, None).score() == pytest.approx(math.log(2))
    assert Quad("BAAB", [2.0, 1.0, 1.0, 2.0], False, None).score() == pytest.approx(math.log(2))


def test_what_disturbs_one_lap_of_a_side_does_not_move_the_score() -> None:
    calm = Quad("ABBA", [1.0, 1.5, 1.5, 1.0], False, None).score()
    for at, factor in ((0, 3.0), (1, 1.2), (2, 9.0), (3, 1.7)):
        seconds = [1.0, 1.5, 1.5, 1.0]
        seconds[at] *= factor
        assert Quad("ABBA", seconds, False, None).score() == calm


def test_the_sides_of_a_pair_take_turns_and_count_as_their_fastest_lap() -> None:
    taken: list[str] = []
    times = {"a": iter([5.0, 4.0, 3.0, 6.0]), "b": iter([7.0, 8.0, 10.0, 9.0])}

    def clocked(name: str) -> Side:
        def clock(run: Callable[[], object], calls: int) -> float:
            taken.append(name)
            return next(times[name])

        made = side(name, lambda x: None, torch.ones(4))
        made.clock, made.calls, made.laps = clock, 1, 2
        return made

    rng = random.Random(1)  # noqa: S311
    quad = time_quad(clocked("a"), clocked("b"), 0, False, rng)
    first, second = ("a", "b") if quad.order == "ABBA" else ("b", "a")
    assert taken == [first, second] * 2 + [second, first] * 2
    assert quad.samples("A") == [4.0, 3.0]
    assert quad.samples("B") == [7.0, 9.0]
    assert quad.score() == pytest.approx(math.log(7 / 3))


def test_short_calls_fill_a_lap_and_long_ones_have_one() -> None:
    timed = side("s", lambda x: None, torch.ones(4))
    timed.calibrate([1e-6] * 3)
    assert (timed.calls, timed.laps) == (120, 2)
    timed.calibrate([1e-3] * 3)
    assert (timed.calls, timed.laps) == (1, 2)
    timed.calibrate([0.03] * 3)
    assert (timed.calls, timed.laps) == (1, 1)


def test_a_side_alone_is_timed_against_itself() -> None:
    alone = time_quads(side("a", torch.sum, torch.ones(2000)), None, 0.02, 1.0, random.Random(0))  # noqa: S311
    assert len(alone) >= 6
    assert all(quad.guard for quad in alone)


def test_timing_ends_early_by_the_width_of_what_is_known() -> None:
    fixed = side("a", lambda x: None, torch.ones(4))
    fixed.clock, fixed.calls = lambda run, calls: 1.0, 1
    quads = time_quads(fixed, fixed, 60.0, 0.001, random.Random(0))  # noqa: S311
    assert 8 <= len(quads) <= 20
    assert width([0.0] * 5) == math.inf


def test_the_width_is_that_of_an_interval_that_holds_the_median() -> None:
    rng = random.Random(0)  # noqa: S311
    held = 0
    for _ in range(300):
        ranked = sorted(rng.gauss(0, 1) for _ in range(60))
        assert width(ranked) == pytest.approx(ranked[38] - ranked[22])
        held += ranked[22] <= 0 <= ranked[38]
    assert 0.91 <= held / 300 <= 0.99
