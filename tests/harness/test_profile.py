"""What is made of the marks of a wrapper and of the rows that C++ kernels write."""

from __future__ import annotations

import mmap
import random
import statistics
import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.line_clock import MARK
from inductor_probe.harness.overheads import two_slots
from inductor_probe.harness.profile import (
    ROWS,
    Events,
    Traced,
    TracedCall,
    clocked_round,
    differing_copies,
    measure,
    rows_of_call,
    seconds_of_lines,
    tick_rate,
)
from inductor_probe.harness.quads import Subject, make_side

# Two launches of kernel 0, a tick is half a nanosecond: begin, end of its own work, end of each row.
FIRST = [
    [0xFFFE, 100, 120, 120],
    [0xFFFF, 130, 190, 190],
    [1, 200, 1200, 1400],
    [0, 90, 1_000, 1450],
]
SECOND = [
    [0xFFFE, 10_100, 10_120, 10_120],
    [0xFFFF, 10_130, 10_190, 10_190],
    [1, 10_200, 10_300, 10_300],
    [0, 10_090, 6_000, 10_350],
]
OTHER_THREAD = [[1, 210, 1390, 1400]]


def test_ticks_become_seconds_on_the_clock_of_python() -> None:
    marks = [(MARK, 900), (MARK, 910), (0, 920), (1, 990), (0, 5_990), (2, 6_200)]
    call = Traced(880, 6_300, marks, [FIRST + SECOND, OTHER_THREAD])
    assert tick_rate([call]) == 0.5
    made = clocked_round(call, 0.5)
    assert made["call"] == pytest.approx(5420e-9)
    assert made["entry"] == pytest.approx(20e-9)
    assert made["mark"] == pytest.approx(10e-9)
    assert [[number, count] for number, _, count in made["lines"]] == [[0, 2], [1, 1], [2, 1]]
    first, second = made["launches"]
    assert (first["line"], second["line"]) == (1, 0)
    assert first["seconds"] == pytest.approx(680e-9)
    assert first["inside"] == pytest.approx(10e-9)
    assert first["steady"] == pytest.approx(20e-9)
    assert first["note"] == pytest.approx(15e-9)
    ((number, wall, most, mean, threads),) = first["nests"]
    assert (number, threads) == (1, 2)
    assert (wall, most, mean) == pytest.approx((600e-9, 590e-9, 545e-9))
    assert second["nests"] == [[1, pytest.approx(50e-9), pytest.approx(50e-9), pytest.approx(50e-9), 1]]


def test_of_several_calls_one_is_cut_out_by_its_launches() -> None:
    rows = [FIRST + SECOND, OTHER_THREAD]
    assert rows_of_call(rows, 0, 2) == [FIRST, OTHER_THREAD]
    assert rows_of_call(rows, 1, 2) == [SECOND, []]
    assert rows_of_call([[], []], 0, 2) == []


def test_rows_beyond_the_memory_are_counted_and_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTOR_PROBE_EVENTS", "")
    events = Events(2)
    events._threads[0][0] = 2
    events._threads[0][8:12] = torch.tensor(FIRST[0])
    assert [len(rows) for rows in events.read()] == [2, 0]
    assert events.read()[0][0] == FIRST[0]
    assert not events.full
    events._threads[0][0] = 1 << 20
    assert events.full
    events.clear()
    assert events.read() == [[], []]


def test_a_call_that_is_looked_into_takes_turns_with_the_one_as_it_is() -> None:
    ran: list[str] = []
    marks: list[tuple[int, int]] = []

    def bind(name: str) -> Subject:
        def call() -> None:
            ran.append(name)
            if name == "traced":
                now = time.perf_counter_ns()
                marks.extend([(MARK, now), (MARK, now), (0, now)])

        return Subject(name, lambda values: call, [torch.zeros(4)])

    ring = two_slots([torch.zeros(4)], random.Random(0))  # noqa: S311 - no secret
    clock = time.perf_counter_ns
    traced = TracedCall(make_side(bind("traced"), ring), make_side(bind("call"), ring), marks, None, clock)
    ran.clear()
    traced.on_cpu(0)
    assert ran[0] == "traced", "once, so that its data are warm"
    assert ran[1::2] == ["call"] * (len(ran) // 2)
    assert ran[2::2] == ["traced"] * (len(ran) // 2)
    (one,) = traced.rounds
    assert one.pristine > 0
    assert seconds_of_lines(one)["pristine"] == one.pristine / 1e9
    assert [number for number, _ in one.marks] == [MARK, MARK, 0], "those of one call"


def test_a_call_that_gets_its_memory_from_the_system_each_time_says_so() -> None:
    """Of one program a call took 1.7 ms in one process and 3.2 in another, and nothing said why."""

    def fresh() -> None:
        with mmap.mmap(-1, 1 << 20) as memory:
            for place in range(0, len(memory), mmap.PAGESIZE):
                memory[place] = 1

    ring = two_slots([torch.zeros(4)], random.Random(0))  # noqa: S311 - no secret
    marks: list[tuple[int, int]] = []

    def marked() -> None:
        now = time.perf_counter_ns()
        marks.extend([(MARK, now), (MARK, now), (0, now)])

    for call, least, most in ((fresh, 200, 400), (marked, 0, 10)):
        sides = [
            make_side(Subject(name, lambda values, run=run: run, [torch.zeros(4)]), ring)
            for name, run in (("traced", marked), ("call", call))
        ]
        traced = TracedCall(sides[0], sides[1], marks, None, time.perf_counter_ns)
        traced.on_cpu(0)
        assert least <= statistics.median(traced.new_pages) <= most


def a_bench(call: Any, **kernels: Any) -> Bench:
    names = {"GRAPH": "g", "KERNELS": ["k"], "NO_REFERENCE": "", **kernels}
    exec(call, names)  # noqa: S102 - the texts below
    return Bench(names)


def test_a_copy_that_computes_other_bits_is_named() -> None:
    call = "def call(args):\n    (x,) = args\n    args.clear()\n    return (k(x),)\n"
    bench = a_bench(call, k=lambda x: x * 3, k_v2=lambda x: x + x + x, k_v3=lambda x: x * 3)
    x = torch.tensor([0.1, float("nan"), 1e30])
    assert differing_copies(bench, {"k": "k_v3"}, [x]) == []
    assert differing_copies(bench, {"k": "k_v2"}, [torch.tensor([1.0, 2.0])]) == []
    wrong = a_bench(call, k=lambda x: x * 3, k_v2=lambda x: (x * 3).nextafter(torch.tensor(9.0)))
    assert differing_copies(wrong, {"k": "k_v2"}, [x]) == ["k"]


def test_a_call_that_differs_from_itself_shows_nothing() -> None:
    call = "def call(args):\n    (x,) = args\n    args.clear()\n    return (k(x),)\n"
    bench = a_bench(call, k=torch.rand_like, k_v2=torch.rand_like)
    assert differing_copies(bench, {"k": "k_v2"}, [torch.zeros(8)]) == []


def test_where_too_many_loop_nests_run_the_lines_have_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """No round of such a call is kept: what made a profile of it ended with an error."""
    monkeypatch.setenv("INDUCTOR_PROBE_EVENTS", "")
    events = Events(1)

    def noted_too_often(x: torch.Tensor) -> torch.Tensor:
        events._threads[0][0] = ROWS + 1
        return x * 3

    call = "def call(args):\n    (x,) = args\n    args.clear()\n    return (k(x),)\n"
    bench = a_bench(call, k=lambda x: x * 3, k_v2=noted_too_often)
    options = SimpleNamespace(seed=0, budget=0.1, threads=1)
    copies = {"k": noted_too_often}
    made = measure(bench, [torch.zeros(64)], copies, ["call"], call, events, options)
    assert made["clocked"]
    assert [one["launches"] for one in made["clocked"]] == [[]] * len(made["clocked"])
    assert [one["lines"] for one in made["clocked"]] == [one["lines"] for one in made["plain"]]
    assert "too-many-nests" in [one["code"] for one in made["measured"]]


@pytest.mark.parametrize("budget", [0.0, 0.2])
def test_a_long_call_is_made_few_times_where_the_budget_is_short(
    budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`profile --budget 2s` of a call of 0.4 s made 64 of them."""
    monkeypatch.setenv("INDUCTOR_PROBE_EVENTS", "")
    monkeypatch.setattr("inductor_probe.harness.sides.LONG_S", -1.0)
    monkeypatch.setattr("inductor_probe.harness.profile.clock_of", lambda run: time.perf_counter_ns)
    calls: list[int] = []

    def kernel(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x * 3

    call = "def call(args):\n    (x,) = args\n    args.clear()\n    return (k(x),)\n"
    options = SimpleNamespace(seed=0, budget=budget, threads=1)
    bench = a_bench(call, k=kernel)
    made = measure(bench, [torch.zeros(64)], {"k": kernel}, ["call"], call, Events(1), options)
    rounds = len(made["clocked"])
    assert rounds == 3 if not budget else rounds > 3
    assert len(made["plain"]) == (rounds if budget else 0), "as the lines are, where there is time for both"
    assert len(calls) == 2 + rounds * (4 if budget else 2)


def test_what_a_thread_has_no_core_for_is_in_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of 6 ms in a call of 12 ms was 18 % of it on a busy machine, and 13 % on a quiet one."""
    monkeypatch.setenv("INDUCTOR_PROBE_EVENTS", "")
    monkeypatch.setattr("inductor_probe.harness.profile.clock_of", lambda run: time.thread_time_ns)

    def without_core(x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.02)
        return x * 3

    call = "def call(args):\n    (x,) = args\n    args.clear()\n    return (k(x),)\n"
    events, options = Events(1), SimpleNamespace(seed=0, budget=0.1, threads=1)
    made = measure(a_bench(call, k=without_core), [torch.zeros(64)], {}, ["call"], call, events, options)
    assert made["on_cpu_time"]
    assert int(events._memory[2]) == 1, "C++ kernels read the same clock"
    assert all(one["call"] < 0.02 and one["pristine"] < 0.02 for one in made["plain"])
