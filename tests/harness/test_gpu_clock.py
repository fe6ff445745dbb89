"""The GPU's clock against a model of one: host and GPU run beside each other, events and gaps cost time.

What is enqueued takes host time; a kernel starts when it was enqueued and the one before it has ended.
Whether the model is right is tested on a real GPU (`tests/gpu/test_clock.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from inductor_probe.harness import gpu_clock
from inductor_probe.harness.gpu_clock import GpuClock, host_seconds, profiled
from inductor_probe.harness.remarks import Remark, sentences
from tests.gpu.agreement import agreement, agreement_table

GAP = 0.7e-6  # between two kernels
EVENT = 0.6e-6  # of GPU time for a time stamp
GRAPH = 4e-6  # to start a graph
FLUSH = 40e-6
SM_HZ = 1.8e9


@dataclass
class Model:
    """Stands in for `GpuStream`."""

    host_cost: float = 8e-6
    captures: bool = True
    profiles: bool = True
    sleeps: bool = True
    remarks: list[Remark] = field(default_factory=list)
    device: str = "cpu"
    host: float = 0.0
    busy_until: float = 0.0
    log: list[float] | None = None
    captured: list[float] | None = None

    def kernel(self, seconds: float, host_cost: float | None = None) -> None:
        if self.captured is not None:
            self.captured.append(seconds)
            return
        self.host += self.host_cost if host_cost is None else host_cost
        self.busy_until = max(self.busy_until, self.host) + GAP + seconds
        if self.log is not None:
            self.log.append(seconds)

    def wait(self) -> None:
        self.host = max(self.host, self.busy_until)

    def stamp(self) -> float:
        self.host += 0.5e-6
        self.busy_until = max(self.busy_until, self.host) + EVENT
        return self.busy_until

    def passed(self, mark: float) -> bool:
        return self.host >= mark

    def seconds(self, first: float, last: float) -> float:
        return last - first

    def sleep(self, cycles: int) -> bool:
        if self.sleeps:
            self.kernel(cycles / SM_HZ, 1e-6)
        return self.sleeps

    def flusher(self) -> Callable[[], object]:
        return lambda: self.kernel(FLUSH, 2e-6)

    def capture(self, enqueue: Callable[[], object]) -> Callable[[], object]:
        if not self.captures:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.captured = []
        enqueue()
        kernels, self.captured = self.captured, None

        def replay() -> None:
            self.host += 5e-6
            self.busy_until = max(self.busy_until, self.host) + GRAPH
            self.busy_until += sum(GAP + seconds for seconds in kernels)

        return replay

    def durations(self, enqueue: Callable[[], object]) -> list[float]:
        if not self.profiles:
            return []
        self.log = []
        enqueue()
        self.wait()
        log, self.log = self.log, None
        return log

    def add(self, remark: Remark) -> None:
        self.remarks.append(remark)


def clock_of(model: Model, monkeypatch: pytest.MonkeyPatch, *, cold: bool = True) -> GpuClock:
    monkeypatch.setattr(time, "perf_counter", lambda: model.host)
    durations = {1 << 16: 2e-6, 1 << 20: 5e-6, 1 << 22: 10e-6}

    class Zeros:
        def __init__(self, elements: int, **_: object) -> None:
            self.elements = elements

        def neg_(self) -> None:
            model.kernel(durations[self.elements])

    monkeypatch.setattr(gpu_clock.torch, "zeros", Zeros)
    return GpuClock(model, cold=cold)  # type: ignore[arg-type]


@pytest.mark.parametrize("cold", [True, False])
@pytest.mark.parametrize("seconds", [1.5e-6, 4e-6, 10e-6, 38e-6, 42e-6, 1e-3])
def test_it_finds_the_time_of_the_kernel_alone(
    monkeypatch: pytest.MonkeyPatch, seconds: float, cold: bool
) -> None:
    model = Model()
    clock = clock_of(model, monkeypatch, cold=cold)

    def run() -> None:
        model.kernel(seconds)

    assert clock(run, 20) == pytest.approx(seconds, rel=0.01)
    assert clock.mode(run) == ("graph" if seconds < 40e-6 else "events")
    assert not clock.remarks


@pytest.mark.parametrize("cold", [True, False])
@pytest.mark.parametrize("seconds", [5e-6, 50e-6])
def test_what_comes_before_each_call_is_not_part_of_its_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, cold: bool
) -> None:
    model = Model()
    clock = clock_of(model, monkeypatch, cold=cold)
    found = clock(lambda: model.kernel(seconds), 20, lambda: model.kernel(70e-6))
    assert found == pytest.approx(seconds, rel=0.01)


def test_a_plain_loop_would_time_the_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(host_cost=8e-6)
    clock = clock_of(model, monkeypatch, cold=False)
    begin = model.stamp()
    for _ in range(100):
        model.kernel(2e-6)
    assert model.seconds(begin, model.stamp()) / 100 == pytest.approx(8e-6, rel=0.1)
    assert clock(lambda: model.kernel(2e-6), 100) == pytest.approx(2e-6, rel=0.01)


def test_refused_capture_falls_back_to_events_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    clock = clock_of(model, monkeypatch)
    model.captures = False

    def run() -> None:
        model.kernel(5e-6)

    assert clock(run, 20) == pytest.approx(5e-6, rel=0.01)
    assert clock.mode(run) == "events"
    assert sentences(clock.remarks) == (
        "timed by events, not replayed: RuntimeError: operation not permitted when stream is capturing"
    )


def test_a_graph_that_holds_nothing_of_it_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is launched on a fixed stream runs beside the capture, and leaves no trace in it."""
    model = Model()
    clock = clock_of(model, monkeypatch)

    def run() -> None:
        kept, model.captured = model.captured, None
        model.kernel(5e-6)
        model.captured = kept

    assert clock(run, 20) == pytest.approx(5e-6, rel=0.01)
    assert clock.mode(run) == "events"
    assert "another stream" in sentences(clock.remarks)


@pytest.mark.parametrize("cold", [True, False])
def test_what_is_compared_is_timed_in_one_way(monkeypatch: pytest.MonkeyPatch, cold: bool) -> None:
    """Just below and just above the bound: two ways differ by more than the two kernels."""
    model = Model()
    clock = clock_of(model, monkeypatch, cold=cold)

    def kernel(seconds: float) -> Callable[[], None]:
        return lambda: model.kernel(seconds)

    below, above, far = kernel(39e-6), kernel(41e-6), kernel(400e-6)
    assert [clock.mode(run) for run in (below, above, far)] == ["graph", "events", "events"]
    clock.agree([below, far])
    assert [clock.mode(run) for run in (below, far)] == ["graph", "events"]
    clock.agree([below, above])
    assert [clock.mode(run) for run in (below, above)] == ["graph", "graph"]
    assert clock(above, 20) / clock(below, 20) == pytest.approx(41 / 39, rel=1e-3)
    assert not clock.remarks


def test_what_is_compared_with_something_that_cannot_be_replayed_is_not_replayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model()
    clock = clock_of(model, monkeypatch)
    runs = [lambda: model.kernel(5e-6), lambda: model.kernel(6e-6)]
    assert clock.mode(runs[0]) == "graph"
    model.captures = False
    clock.agree(runs)
    assert [clock.mode(run) for run in runs] == ["events", "events"]
    assert [clock(run, 20) for run in runs] == pytest.approx([5e-6, 6e-6], rel=0.01)


def test_a_slow_host_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first estimate of the host's time may be far too short: nothing is timed until it was not."""
    model = Model()
    clock = clock_of(model, monkeypatch)
    calls = 0

    def run() -> None:
        nonlocal calls
        calls += 1
        model.kernel(65e-6, host_cost=10e-6 if calls < 4 else 70e-6)

    assert clock(run, 50) == pytest.approx(65e-6, rel=0.01)
    assert not clock.remarks


def test_a_function_that_waits_for_the_gpu_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    clock = clock_of(model, monkeypatch)

    def run() -> None:
        model.kernel(30e-6)
        model.wait()
        model.kernel(30e-6)

    assert clock(run, 5) > 60e-6
    assert "waits for the GPU" in sentences(clock.remarks)


def test_the_sm_clock_is_learnt_from_cycles_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    clock = clock_of(model, monkeypatch)
    clock(lambda: model.kernel(30e-6), 5)
    assert clock.sm_hz == pytest.approx(SM_HZ, rel=0.01)


def test_without_the_profiler_nothing_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(profiles=False)
    clock = clock_of(model, monkeypatch)
    assert clock.added == {"events": 0.0, "graph": 0.0}
    assert clock(lambda: model.kernel(100e-6), 5) == pytest.approx(100e-6 + GAP + EVENT, rel=0.001)
    assert clock.remarks


def test_without_a_waiting_kernel_it_still_times(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(sleeps=False)
    clock = clock_of(model, monkeypatch)
    assert clock(lambda: model.kernel(5e-6), 50) == pytest.approx(5e-6, rel=0.05)


def test_the_profiler_leaves_out_what_comes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()

    def run() -> None:
        model.kernel(3e-6)
        model.kernel(4e-6)

    assert profiled(model, run, 10, lambda: model.kernel(9e-6)) == pytest.approx(7e-6)  # type: ignore[arg-type]
    launches = iter(range(1000))

    def uneven() -> None:
        if next(launches) % 2:
            model.kernel(1e-6)

    assert profiled(model, uneven, 9, lambda: None) is None  # type: ignore[arg-type]


def test_host_time_is_that_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(host_cost=6e-6)
    monkeypatch.setattr(time, "perf_counter", lambda: model.host)
    assert host_seconds(lambda: model.kernel(1e-3), model.wait) == pytest.approx(6e-6)


def test_the_table_says_how_far_a_plain_loop_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(host_cost=8e-6)
    clock = clock_of(model, monkeypatch, cold=False)
    row = agreement(clock, "add", lambda: model.kernel(2e-6))
    assert row.profiler == pytest.approx(2e-6)
    assert row.clock == pytest.approx(2e-6, rel=0.01)
    assert row.loop == pytest.approx(8e-6, rel=0.1)
    shown = agreement_table([row]).splitlines()[1].split()
    assert shown[:2] == ["add", "2.00"]
    assert shown[-1] == "graph"
    assert float(shown[-2].rstrip("%")) > 250


def test_what_events_add_is_measured_once_in_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Model()
    measured = clock_of(first, monkeypatch).added
    assert measured["events"] > 0
    second = Model()
    second.profiles = False  # a profiler that sees nothing: the clock would have to measure without it
    clock = GpuClock(second, added=measured)  # type: ignore[arg-type]
    assert clock.added == measured
    assert not clock.remarks

    def run() -> None:
        second.kernel(4e-6)

    monkeypatch.setattr(time, "perf_counter", lambda: second.host)
    assert clock(run, 20) == pytest.approx(4e-6, rel=0.01)


def test_of_a_call_of_many_launches_a_few_are_timed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    clock = clock_of(model, monkeypatch)
    count = 0

    def many() -> None:
        nonlocal count
        count += 1
        model.host += 0.006  # of enqueuing: more than the driver queues
        model.kernel(0.001)

    clock.mode(many)
    count = 0
    assert clock(many, 32) == pytest.approx(0.001, rel=0.01)
    assert count == 3
