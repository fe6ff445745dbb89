"""The budget is kept whatever a call takes. Time is simulated: a call moves the one clock of the harness."""

from __future__ import annotations

import linecache
import math
import random
import time
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from inductor_probe.harness import call_profile, measure, quads
from inductor_probe.harness.budget import (
    COMPARISONS,
    MORE_PROCESSES,
    PROCESSES,
    Budget,
    overheads_fit,
    processes_within,
    share_of,
)
from inductor_probe.harness.call_profile import Profile, profile_call
from inductor_probe.harness.measure import Listener, Options, Plan, bind_inputs, least_seconds, run_timing
from inductor_probe.harness.quads import time_long_calls
from inductor_probe.harness.sides import Ring
from inductor_probe.harness.timing import Subject
from tests.bench_file.benches import bench, kernels


class SimulatedTime:
    """Seconds that pass only where a kernel runs, and a microsecond whenever somebody looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1e-6
        return self.now

    def sleeper(self, seconds: float) -> Any:
        def run(x: Any, out: Any) -> None:
            self.now += seconds

        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimulatedTime:
    simulated = SimulatedTime()
    monkeypatch.setattr(time, "perf_counter", simulated)
    monkeypatch.setattr(time, "process_time", lambda: simulated.now)

    def overheads(bench: Any, inputs: Any, budget: Budget, rng: Any) -> dict[str, Any]:
        simulated.now += budget.left  # `test_overheads.py` has the real ones: they compile
        return {}

    monkeypatch.setattr(measure, "measure_overheads", overheads)
    return simulated


def graph(clock: SimulatedTime, seconds: Sequence[float], edited: bool = True) -> Any:
    """Return a bench whose kernels take so many seconds each, with a copy of the first, and no reference."""
    names = [f"k{number}" for number in range(len(seconds))]

    def wrapper(suffix: str) -> Any:
        def call(args: list[Any]) -> tuple[Any]:
            (x,) = args
            args.clear()
            out = torch.empty_strided((64,), (1,))
            for name in names:
                subject.namespace[name + (suffix if name == "k0" else "")](x, out)
            return (out,)

        return call

    namespace: dict[str, Any] = {name: clock.sleeper(each) for name, each in zip(names, seconds, strict=True)}
    if edited:
        namespace |= {"k0_v2": clock.sleeper(seconds[0]), "call_v2": wrapper("_v2")}
    subject = bench(namespace | {"call": wrapper(""), "__file__": "<wrappers>"}, names)
    text = "def call(args):\n    k0(*args)\n\ndef call_v2(args):\n    k0_v2(*args)\n"
    linecache.cache["<wrappers>"] = (len(text), None, text.splitlines(keepends=True), "<wrappers>")
    return subject


def run(
    clock: SimulatedTime, subject: Any, budget: float, variants: set[str]
) -> tuple[float, list[list[str]], list[str]]:
    """Measure as a session does; return seconds measured, what each process compared, codes of remarks."""
    total, processes, begin = COMPARISONS * budget, list[list[str]](), clock.now
    plans, codes, skipped = list[Plan](), list[str](), list[str]()
    kernels: list[str] | None = None
    most, number = PROCESSES, 0

    def untimed(names: list[str], timed: list[str]) -> None:
        skipped.extend(names)

    listener = Listener(
        planned=plans.append, untimed=untimed, warn=lambda remark: codes.append(remark["code"])
    )
    while number < most:
        plan = plans[0] if plans else None
        options = Options(
            precision=0.0,
            budget=share_of(plan.total if plan else total, number, plan.processes if plan else None),
            total=total,
            overheads=0.15 * budget,
            cold=False,
            skipped=tuple(skipped),
            kernels=None if plan is None else tuple(plan.kernels),
            profile=plan.profile if plan else None,
        )
        if plan:
            options = Options(**{**vars(options), "overheads": 0.0})
        times = run_timing(subject, options, subject.inputs(0), variants, listener)
        processes.append([timed.candidate or timed.baseline for timed in times.comparisons])
        most, number = plans[0].processes or PROCESSES, number + 1
        kernels = kernels or plans[0].kernels
    return clock.now - begin, processes, codes


@pytest.mark.parametrize(
    ("call_s", "budget"),
    [(1e-5, 1.0), *((call_s, budget) for call_s in (1e-3, 0.05, 0.3, 0.9, 3.0) for budget in (2.0, 10.0))],
)
def test_measuring_takes_what_the_budget_says_whatever_a_call_takes(
    clock: SimulatedTime, call_s: float, budget: float
) -> None:
    """A call of 0.9 s took 3.7 s of a budget of 2 s: profile, recording and copies did not count."""
    subject = graph(clock, [call_s])
    spent, processes, _ = run(clock, subject, budget, {"k0_v2", "call_v2"})
    least = 3 * call_s  # the profile, and one call of each side
    assert spent <= max(1.2 * budget, 1.1 * least)
    assert spent >= 0.5 * budget
    assert processes[0], "something is always compared"
    if 9 * call_s < budget:
        assert len(processes) >= PROCESSES, "three processes, where each has time for its three calls"


def test_a_budget_smaller_than_one_call_has_one_call_of_each_side(clock: SimulatedTime) -> None:
    spent, processes, codes = run(clock, graph(clock, [0.75]), 0.1, {"k0_v2", "call_v2"})
    assert processes == [["k0_v2 alone"]]
    assert spent == pytest.approx(3 * 0.75, rel=0.01)
    assert "no-budget-left" in codes


@pytest.mark.parametrize("kernel_s", [1e-5, 1e-3, 0.02])
def test_many_kernels_keep_a_small_budget(clock: SimulatedTime, kernel_s: float) -> None:
    spent, processes, _ = run(clock, graph(clock, [kernel_s] * 10), 0.5, {"k0_v2", "call_v2"})
    assert spent <= max(1.2 * 0.5, 1.1 * 12 * kernel_s)
    assert "k0_v2 alone" in processes[0], "what was edited comes first"


def test_where_there_is_no_time_for_eager_the_call_is_compared_with_its_variant_all_the_same(
    clock: SimulatedTime,
) -> None:
    """The processes behind the first left out all comparisons of the call, as eager is compared with it."""
    subject = graph(clock, [0.2])

    def eager() -> Any:
        return lambda *values: (clock.sleeper(5.0)(None, None), values)[1]

    subject.aten_graph = eager
    _, processes, codes = run(clock, subject, 5.0, {"k0_v2", "call_v2"})
    assert "no-budget-left" in codes
    assert processes == [["k0_v2 alone", "call_v2"]] * PROCESSES


def test_all_nine_processes_stay_within_the_budget() -> None:
    shares = sum(share_of(COMPARISONS * 10, number) for number in range(MORE_PROCESSES))
    assert shares + 0.25 * 10 <= 1.2 * 10


def test_fewer_processes_where_one_takes_longer_than_a_share() -> None:
    assert [processes_within(seconds, 2.7) for seconds in (20, 7, 4.8, 2, 0.1)] == [None, 3, 2, 1, 1]
    assert processes_within(1.0, 1e-5) is None
    assert processes_within(100, 2.7, processes=5) is None
    assert processes_within(12, 2.7, processes=5) == 5


def test_overheads_take_too_many_calls_of_a_long_one() -> None:
    assert overheads_fit(1e-4, 3, 0.3)
    assert not overheads_fit(0.3, 1, 0.3)
    assert not overheads_fit(1e-4, 48, 0.05)


def test_what_is_paused_does_not_count(clock: SimulatedTime) -> None:
    budget = Budget(1.0)
    clock.now += 0.25
    with budget.paused():
        clock.now += 5.0
    assert budget.spent == pytest.approx(0.25, abs=1e-4)
    assert budget.left == pytest.approx(0.75, abs=1e-4)


def test_the_longest_kernels_and_the_edited_ones_are_compared() -> None:
    names = [f"k{number}" for number in range(14)]
    profile = Profile(1.0, {name: [number * 1e-3, 1e-6] for number, name in enumerate(names)})
    assert profile.longest(names, []) == names[4:]
    assert profile.longest(names, ["k1_v3", "call_v3"]) == ["k1", *names[4:]]
    assert profile.longest(names[:3], []) == names[:3]


def test_each_launch_is_timed_in_a_call() -> None:
    subject = kernels()
    profile, launches = profile_call(subject, subject.inputs(0), ["k"])
    assert list(profile.launches) == ["k"]
    assert len(profile.launches["k"]) == len(launches["k"]) == 2
    assert sum(profile.launches["k"]) > 0
    assert subject.namespace["k"].__class__ is not call_profile.Stopwatch
    assert profile.expected("k alone #2") == max(profile.launches["k"])
    assert profile.expected("Compiled call") == profile.call


def test_a_long_call_is_run_once_for_its_profile(clock: SimulatedTime) -> None:
    subject = graph(clock, [0.5, 0.2])
    begin = clock.now
    profile, launches = profile_call(subject, subject.inputs(0), ["k0", "k1"])
    assert clock.now - begin == pytest.approx(0.7, rel=1e-3)
    assert profile.call == pytest.approx(0.7, rel=1e-3)
    assert {name: len(rows) for name, rows in launches.items()} == {"k0": 1, "k1": 1}


def test_a_long_call_is_timed_as_often_as_there_is_time_for(clock: SimulatedTime) -> None:
    """Where not even a quad fits, one call of each side is timed."""

    def sleeper(name: str) -> Subject:
        seconds = {"a": 0.3, "b": 0.3}[name]
        kernel = clock.sleeper(seconds)
        return Subject(name, lambda values: lambda: kernel(None, None), [torch.ones(4)])

    pair, rng = (sleeper("a"), sleeper("b")), random.Random(0)  # noqa: S311
    rings = [Ring(subject.values, 1) for subject in pair]
    for seconds, lengths in (
        (0.1, [2]),
        (0.7, [2]),
        (1.3, [4]),
        (2.0, [4, 2]),
        (60.0, [4] * quads.MOST_QUADS),
    ):
        timed = time_long_calls(pair, rings, seconds, 0.3, rng)
        assert [len(quad.order) for quad in timed] == lengths
        assert all(quad.score() == pytest.approx(0.0, abs=1e-3) and not quad.guard for quad in timed)
    (alone,) = time_long_calls((pair[0], None), rings[:1], 0.1, 0.3, rng)
    assert alone.guard


def test_copies_of_arguments_are_part_of_what_a_comparison_takes() -> None:
    small, large = (
        Subject("k", lambda values: lambda: None, [torch.empty(size, dtype=torch.uint8)])
        for size in (10, 200_000_000)
    )
    profile = Profile(1e-5, {"k": [1e-5]})
    assert least_seconds((large, None), profile) > least_seconds((small, None), profile) + 0.3


def test_a_ring_has_fewer_copies_where_they_take_too_long(clock: SimulatedTime) -> None:
    values, rng = [torch.ones(64)], random.Random(0)  # noqa: S311
    assert len(quads.make_ring(values, False, rng, print).slots) == 8
    assert len(quads.make_ring(values, False, rng, print, 0.0).slots) == 1
    assert len(quads.make_ring(values, False, rng, print, math.inf).slots) == 8


def test_kernels_that_are_not_compared_have_the_time_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_profile, "MOST_KERNELS", 0)
    subject, plans = kernels(), list[Plan]()
    options = bind_inputs(subject, Options(budget=0.5, overheads=0))
    listener = Listener(planned=plans.append)
    times = run_timing(subject, options, subject.inputs(0), set(), listener)
    (plan,) = plans
    assert (plan.kernels, list(plan.once), plan.processes) == ([], ["k"], None)
    assert [pair.baseline for pair in times.comparisons] == ["Compiled call"]
    times = run_timing(subject, options, subject.inputs(0), {"k_v2"}, Listener())
    assert "k alone #1" in [pair.baseline for pair in times.comparisons], "it has a variant"
