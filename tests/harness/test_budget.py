from __future__ import annotations

import random
import time
from typing import Any

import pytest
import torch

from inductor_probe.harness import budget
from inductor_probe.harness.budget import Profile, few_quads, processes_within, profile_call
from inductor_probe.harness.measure import Listener, Options, bind_inputs, run_timing
from inductor_probe.harness.timing import Ring, Subject
from tests.bench_file.benches import kernels


def test_the_longest_kernels_and_the_edited_ones_are_compared() -> None:
    names = [f"k{number}" for number in range(14)]
    profile = Profile(1.0, {name: [number * 1e-3, 1e-6] for number, name in enumerate(names)})
    assert profile.longest(names, []) == names[4:]
    assert profile.longest(names, ["k1_v3", "call_v3"]) == ["k1", *names[4:]]
    assert profile.longest(names[:3], []) == names[:3]


def test_fewer_processes_where_a_quad_takes_longer_than_a_share() -> None:
    profile = Profile(0.75, {"k": [0.75]})
    assert profile.quad(["k"]) == 6
    assert [processes_within(seconds, profile, ["k"]) for seconds in (20, 13, 10, 2)] == [None, 2, 1, 1]
    assert processes_within(1.0, Profile(1e-5, {"k": [1e-6]}), ["k"]) is None


def test_each_launch_is_timed_in_a_call() -> None:
    subject = kernels()
    profile = profile_call(subject, subject.inputs(0))
    assert list(profile.launches) == ["k"]
    assert len(profile.launches["k"]) == 2
    assert sum(profile.launches["k"]) > 0
    assert subject.namespace["k"].__class__ is not budget.Stopwatch
    assert profile.expected("k alone #2") == max(profile.launches["k"])
    assert profile.expected("Compiled call") == profile.call


def test_a_long_call_is_timed_a_few_times() -> None:
    called: list[str] = []

    def sleeper(name: str) -> Subject:
        return Subject(name, lambda values: lambda: (called.append(name), time.sleep(0.02)), [torch.ones(4)])

    pair = (sleeper("a"), sleeper("b"))
    rng = random.Random(0)  # noqa: S311
    rings = [Ring(subject.values, 1) for subject in pair]
    (quad,) = few_quads(pair, rings, 0.001, rng)
    assert sorted(called) == ["a", "a", "b", "b"]
    assert not quad.guard
    assert len(few_quads(pair, rings, 60.0, rng)) == budget.MOST_QUADS
    (alone,) = few_quads((pair[0], None), rings[:1], 0.001, rng)
    assert alone.guard


def test_kernels_that_are_not_compared_have_the_time_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MOST_KERNELS", 0)
    subject, plans = kernels(), list[tuple[Any, ...]]()
    options = bind_inputs(subject, Options(budget=0.05, overheads=0))
    listener = Listener(planned=lambda *plan: plans.append(plan))
    times = run_timing(subject, options, subject.inputs(0), set(), listener)
    ((names, once, processes),) = plans
    assert (names, list(once), processes) == ([], ["k"], None)
    assert [pair.baseline for pair in times.comparisons] == ["Compiled call"]
    times = run_timing(subject, options, subject.inputs(0), {"k_v2"}, Listener())
    assert "k alone #1" in [pair.baseline for pair in times.comparisons], "it has a variant"
