"""Timing: blocks of calls, in quads of A and B, until the interval is narrow or the time is up."""

from __future__ import annotations

import math
import random
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from inductor_probe.rewrite.harness.inputs import changed, clone
from inductor_probe.rewrite.harness.stats import MARGIN, decide, interval, seconds_missing

BLOCK_S = 0.0015
GUARD_EVERY = 4
ENOUGH = 6  # quads: the interval of fewer is narrower than it should be
NARROW_ENOUGH = MARGIN / 4


@dataclass
class Side:
    """Something to time. `samples` are seconds a call, one a block; `restore` undoes what calls change."""

    name: str
    run: Callable[[], object]
    on_cuda: bool = False
    restore: Callable[[], None] | None = None
    calls: int = 1
    samples: list[float] = field(default_factory=list)

    def block(self) -> float:
        """Time one block of calls; return seconds a call. Restoring happens outside the clock."""
        if self.restore:
            self.restore()
        run, calls = self.run, range(self.calls)
        if self.on_cuda:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            for _ in calls:
                run()
            end.record()
            end.synchronize()
            seconds = start.elapsed_time(end) / 1e3
        else:
            begin = time.perf_counter()
            for _ in calls:
                run()
            seconds = time.perf_counter() - begin
        self.samples.append(seconds / self.calls)
        return self.samples[-1]

    def calibrate(self, first: int = 0) -> None:
        """Choose the calls of a block by what the samples from `first` on say, and forget those."""
        self.calls = max(1, round(BLOCK_S / statistics.median(self.samples[first:])))
        if self.restore:
            self.calls = min(self.calls, 16)  # values must not overflow or become denormal on the way
        del self.samples[first:]


@dataclass
class Quad:
    """ABBA or BAAB: `score` is the log-ratio of the times, B over A. In a `guard`, B is A once more."""

    score: float
    guard: bool
    disturbed: bool


@dataclass
class Comparison:
    """What quads of a baseline and a candidate say: ratio of their times, interval, verdict.

    `medians` are the seconds a call of baseline and candidate in this comparison.
    """

    baseline: str
    candidate: str
    quads: list[Quad]
    excluded: int
    ratio: float
    low: float
    high: float
    verdict: str
    note: str | None = None
    medians: tuple[float, float] = (math.nan, math.nan)


def make_side(name: str, run: Callable[[], object], tensors: list[Any]) -> Side:
    """Make a `Side` of `run`, which works on `tensors`: they are restored if they drift from call to call."""
    original = clone(tensors)
    run()
    once = clone(tensors)
    run()
    drifting = changed(once, tensors)

    def restore() -> None:
        for at in drifting:
            tensors[at].copy_(original[at])

    on_cuda = any(isinstance(tensor, torch.Tensor) and tensor.is_cuda for tensor in tensors)
    side = Side(name, run, on_cuda, restore if drifting else None)
    for _ in range(3):
        side.block()
    side.calibrate()
    return side


def warm_up(sides: list[Side], limit_s: float) -> None:
    """Alternate blocks until the median of the last five of each side moves by less than the margin."""
    end = time.perf_counter() + limit_s
    first = [len(side.samples) for side in sides]
    before = [math.inf] * len(sides)
    while True:
        recent = [[side.block() for side in sides] for _ in range(5)]
        now = [statistics.median(blocks) for blocks in zip(*recent, strict=True)]
        if time.perf_counter() > end or all(
            abs(new / old - 1) < MARGIN for new, old in zip(now, before, strict=True)
        ):
            break
        before = now
    for side, start in zip(sides, first, strict=True):
        side.calibrate(start)


def time_alone(side: Side, seconds: float) -> None:
    """Take blocks of one side for `seconds`."""
    warm_up([side], seconds)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(side.samples) < 3:
        side.block()


def time_quad(a: Side, b: Side, guard: bool, rng: random.Random) -> Quad:
    """Time one quad, and watch whether something else ran on our cores meanwhile."""
    order = rng.choice(((a, b, b, a), (b, a, a, b)))
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    wall, cpu = time.perf_counter(), time.thread_time()
    times = [side.block() for side in order]
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    disturbed = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw > switches or cpu < 0.8 * wall
    score = (math.log(times[1] / times[0]) + math.log(times[2] / times[3])) / 2
    return Quad(score if order[0] is a else -score, guard, disturbed and not a.on_cuda)


def compare_times(a: Side, b: Side, seconds: float, seed: int) -> Comparison:
    """Compare two sides for about `seconds`; stop early by the width of the interval, never by its place."""
    warm_up([a, b], seconds / 2)
    first_a, first_b = len(a.samples), len(b.samples)
    again, rng = replace(a, samples=[]), random.Random(seed)  # noqa: S311 - an order of blocks, no secret
    quads: list[Quad] = []
    begin, spent = time.perf_counter(), 0.0
    while len(quads) < 4 or ((spent < seconds or len(quads) < 12) and spent < 4 * seconds):
        guard = len(quads) % GUARD_EVERY == GUARD_EVERY - 1
        quads.append(time_quad(a, again if guard else b, guard, rng))
        spent = time.perf_counter() - begin
        if len(quads) % 40 == 0:
            _, low, high = interval([quad.score for quad in quads if not quad.guard])
            if high - low < NARROW_ENOUGH:
                break
    medians = statistics.median(a.samples[first_a:]), statistics.median(b.samples[first_b:])
    return replace(conclude(a.name, b.name, quads, spent), medians=medians)


def conclude(baseline: str, candidate: str, quads: list[Quad], spent: float) -> Comparison:
    """Turn quads into a verdict; `spent` seconds were needed for them."""
    clean = [quad for quad in quads if not quad.disturbed]
    busy = 2 * len(clean) < len(quads) or not any(quad.guard for quad in clean)
    kept = quads if busy else clean
    scores = [quad.score for quad in kept if not quad.guard]
    guards = [quad.score for quad in kept if quad.guard]
    middle, low, high = interval(scores)
    _, guard_low, guard_high = interval(guards)
    verdict, note = decide(low, high), None
    if len(guards) >= ENOUGH and decide(guard_low, guard_high) in ("FASTER", "SLOWER"):
        verdict = "INVALID"
        note = f"{baseline} differs from itself: {math.exp(guard_low):.3f} to {math.exp(guard_high):.3f}"
    elif busy:  # waiting for a core takes the same time on both sides, and hides what differs
        verdict = "UNDECIDED"
        note = f"the machine is busy: {len(quads) - len(clean)} of {len(quads)} quads were disturbed"
    elif len(scores) < ENOUGH:
        verdict = "UNDECIDED"
        note = f"too few quads: needs about {spent * ENOUGH / len(scores):.0f} s"
    elif verdict == "UNDECIDED":
        more = seconds_missing(middle, low, high, spent)
        note = f"needs about {more:.0f} s more" if more < 600 else "too near the margin to tell"
    ratio, low, high = math.exp(middle), math.exp(low), math.exp(high)
    excluded = len(quads) - len(kept)
    return Comparison(baseline, candidate, quads, excluded, ratio, low, high, verdict, note)
