from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inductor_probe.harness import laps
from inductor_probe.harness.laps import Lap, disturbance, fastest, kept_lap
from inductor_probe.harness.quads import Side, Subject, make_ring, make_side
from inductor_probe.harness.timing import cpu_clock


class Scheduler:
    """A core that is taken from this process in the laps that `taken` says; a lap is 1 ms of CPU time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, taken: list[int], slice_s: float = 0.016) -> None:
        self.taken, self.slice_s = iter(taken), slice_s
        self.switches = self.waits = 0
        self.wall = self.cpu = 0.0
        self.waited_for = 0
        usage = lambda who: SimpleNamespace(ru_nivcsw=self.switches, ru_nvcsw=self.waits)  # noqa: E731
        monkeypatch.setattr(laps.resource, "getrusage", usage)
        clocks = SimpleNamespace(perf_counter=lambda: self.wall, process_time=lambda: self.cpu)
        monkeypatch.setattr(laps, "time", clocks)
        monkeypatch.setattr(laps, "await_slice", self.await_slice)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 1)

    def await_slice(self) -> None:
        self.waited_for += 1

    def lap(self, number: int) -> float:
        lost = next(self.taken)
        self.switches += lost
        self.cpu += 0.001
        seconds = 0.001 + lost * self.slice_s
        self.wall += seconds
        return seconds


def side_of(scheduler: Scheduler) -> Side:
    ring = make_ring((torch.ones(4),), False, random.Random(0), lambda remark: None)  # noqa: S311
    side = make_side(Subject("s", lambda values: partial(lambda x: None, *values), ring.slots[0]), ring)
    side.calls, side.beyond = 1, 0
    side.lap = scheduler.lap  # type: ignore[method-assign] # the core is simulated, not what is decided
    assert side.clock is cpu_clock
    return side


def test_a_lap_that_lost_its_core_is_taken_again_at_the_beginning_of_a_slice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side = side_of(scheduler := Scheduler(monkeypatch, [1, 0]))
    assert kept_lap(side, 0) == Lap(0.001, 0, False, 2)
    assert scheduler.waited_for == 1


def test_what_no_slice_holds_counts_with_its_cpu_time_and_is_not_tried_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side = side_of(scheduler := Scheduler(monkeypatch, [1] * 20))
    taken: list[Any] = [kept_lap(side, number) for number in range(6)]
    assert [lap.taken for lap in taken] == [2, 2, 2, 1, 1, 1]
    assert all(lap.on_cpu and lap.seconds == pytest.approx(0.001) for lap in taken)
    assert scheduler.waited_for == 3
    remark = disturbance([Lap(1.0), taken[0]])
    assert remark is not None
    assert remark["code"] == "cpu-time"


def test_a_call_that_waits_for_something_has_no_time_but_that_of_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = Scheduler(monkeypatch, [1] * 4)
    side = side_of(scheduler)

    def waiting(number: int) -> float:
        scheduler.waits += 1
        return Scheduler.lap(scheduler, number)

    side.lap = waiting  # type: ignore[method-assign]
    lap = kept_lap(side, 0)
    assert (lap.on_cpu, lap.seconds) == (False, pytest.approx(0.017))
    remark = disturbance([lap])
    assert remark is not None
    assert remark["code"] == "core-lost"


def test_laps_that_kept_their_core_come_before_faster_ones_that_did_not() -> None:
    assert fastest([Lap(1.0, 1, True), Lap(2.0), Lap(3.0)]) == Lap(2.0)
    assert fastest([Lap(2.0, 1), Lap(1.0, 2)]) == Lap(1.0, 2)
    assert disturbance([Lap(2.0), Lap(1.0, taken=3)]) is None


def test_parts_of_a_call_are_timed_by_cpu_time_where_it_is_long_and_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Convolutions were 64.7 % of a call at load 11, and 31.8 % at load 5."""
    scheduler = Scheduler(monkeypatch, [])
    clocks = {"thread_time_ns": int, "perf_counter_ns": int, "CLOCK_THREAD_CPUTIME_ID": 3}
    monkeypatch.setattr(laps, "time", SimpleNamespace(thread_time=lambda: scheduler.cpu, **clocks))
    laps.time.thread_time_ns, laps.time.perf_counter_ns = on_cpu, by_clock = (lambda: 0), (lambda: 1)

    def call(seconds: float, waits: int) -> Callable[[], None]:
        def run() -> None:
            scheduler.cpu += seconds
            scheduler.waits += waits

        return run

    assert laps.clock_of(call(0.03, 0)) is on_cpu
    assert laps.clock_of(call(0.0001, 0)) is by_clock, "reading CPU time takes longer than its parts"
    assert laps.clock_of(call(0.03, 1)) is by_clock, "it waits for another thread, or a disk"
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert laps.clock_of(call(0.03, 0)) is by_clock, "the CPU time of one thread is not that of the other"


def test_a_lap_on_several_threads_that_waited_for_no_core_is_not_disturbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Threads that have all cores are preempted for microseconds: no verdict was ever given on two of two."""
    side = side_of(scheduler := Scheduler(monkeypatch, [1, 1, 1, 1, 1], slice_s=0.0))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    queued = iter([0.0, 5e-6])
    monkeypatch.setattr(laps, "seconds_queued", lambda: next(queued))
    assert kept_lap(side, 0) == Lap(0.001, 0, False, 1)
    queued = iter([0.0, 0.0005] * 4)  # half of the lap
    assert kept_lap(side, 0, tries=1).lost == 1
    monkeypatch.setattr(laps, "seconds_queued", lambda: float("inf"))  # where the system does not say
    assert kept_lap(side, 0, tries=1).lost == 1
    assert next(scheduler.taken) == 1


def test_the_time_in_the_queue_of_a_core_grows_while_others_have_it() -> None:
    before = laps.seconds_queued()
    if before == float("inf"):
        pytest.skip("this system does not count it: /proc/self/task/*/schedstat")
    assert 0 <= before <= laps.seconds_queued() < 1e6
