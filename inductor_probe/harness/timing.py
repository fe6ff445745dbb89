"""Timing: blocks of calls, in quads of A and B, until the time is up.

What else runs on a core, or on the other half of it, makes calls longer and none shorter, for milliseconds at
a time. A mean carries all of it. So a side counts as fast as the fastest of its laps in a quad, and the sides
take turns lap by lap.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from inductor_probe.harness.bench import Call
from inductor_probe.harness.inputs import changed, clone, tensors_of

LAP_S, LAPS = 0.00012, 2  # a timer's cost is less than a thousandth of a lap
LONGEST_S = 0.04  # a block of long calls has fewer laps: many quads are worth more
MOST_CALLS = 120_000  # of a lap
MOST_DRIFTING = 16  # of a lap that changes its inputs: they must not overflow or become denormal
GUARD_EVERY = FEWEST = 6
SLOTS = 8


def cpu_clock(run: Call, calls: int) -> float:
    """Call `run` so many times; return the seconds a call."""
    repeats = range(calls)
    begin = time.perf_counter()
    for _ in repeats:
        run()
    return (time.perf_counter() - begin) / calls


class Subject(NamedTuple):
    """Something to time: `bind` makes a function without arguments that works on `values`."""

    name: str
    bind: Callable[[Any], Call]
    values: Any


class Ring:
    """Copies of `values`, a slot for each quad in turn.

    Where buffers lie can change the time of a kernel twofold: so it is averaged, and the same for both sides.
    """

    def __init__(self, values: Any, slots: int = SLOTS, copy: Callable[[Any], Any] = clone) -> None:
        self.slots = [copy(values) for _ in range(slots)]
        self.original = clone(tensors_of(values))

    def restore(self, slot: int, changed: list[int]) -> None:
        """Give the tensors at `changed` in a slot their first values again."""
        tensors = tensors_of(self.slots[slot]) if changed else []
        for index in changed:
            tensors[index].copy_(self.original[index])


@dataclass
class Side:
    """A subject bound to each slot of a ring; a block of it is so many laps of so many calls.

    `drifting` are tensors that change from call to call.
    """

    name: str
    runs: list[Call]
    ring: Ring
    clock: Any
    drifting: list[int]
    calls: int = 1
    laps: int = 1

    def block(self, number: int) -> float:
        """Time one block; return seconds a call of its fastest lap."""
        return min(self.lap(number) for _ in range(self.laps))

    def lap(self, number: int) -> float:
        """Time some calls; return seconds a call. Restoring happens outside the clock."""
        slot = number % len(self.runs)
        seconds = self.clock(self.runs[slot], self.calls)
        self.ring.restore(slot, self.drifting)
        return float(seconds)

    def calibrate(self, samples: list[float]) -> None:
        """Choose calls and laps of a block by what samples, in seconds a call, say."""
        call, limits = max(statistics.median(samples), 1e-9), (LAP_S, MOST_CALLS, LAPS)
        lap_s, most, laps = getattr(self.clock, "limits", limits)
        self.calls = max(1, min(round(lap_s / call), most, MOST_DRIFTING if self.drifting else most))
        self.laps = max(1, min(int(LONGEST_S / (self.calls * call)), laps))


@dataclass
class Quad:
    """Four blocks on one slot of a ring: `order` is ABBA or BAAB, `seconds` a call of each.

    In a `guard`, B is A once more. `disturbed` says what else ran on our cores meanwhile, if it is known.
    """

    order: str
    seconds: list[float]
    guard: bool
    disturbed: Any = None

    def score(self) -> float:
        """Return the log-ratio, B over A, of the fastest each side was."""
        return math.log(min(self.samples("B")) / min(self.samples("A")))

    def samples(self, side: str) -> list[float]:
        """Return the times of A or B."""
        return [time for name, time in zip(self.order, self.seconds, strict=True) if name == side]


def make_side(subject: Subject, ring: Ring, clock: Any, side: type[Side] = Side) -> Side:
    """Bind a subject to a ring, and see which of its tensors drift from call to call."""
    runs, tensors = [subject.bind(values) for values in ring.slots], tensors_of(ring.slots[0])
    runs[0]()
    once = clone(tensors)
    runs[0]()
    made = side(subject.name, runs, ring, clock, changed(once, tensors))
    ring.restore(0, made.drifting)
    made.calibrate([made.block(0) for _ in range(3)])
    return made


def time_quads(  # noqa: PLR0917 - the last two are for those who extend it
    a: Side, b: Side | None, seconds: float, rng: random.Random, quad: Any = None, enough: Any = None
) -> list[Quad]:
    """Time quads of two sides, or of A alone, for `seconds`, or until there are `enough`."""
    end, quads = time.perf_counter() + seconds, list[Quad]()
    warm_up([a, b] if b else [a], seconds / 12)
    again = replace(a)
    while (len(quads) < FEWEST or time.perf_counter() < end) and not (enough and enough(quads)):
        guard = b is None or len(quads) % GUARD_EVERY == GUARD_EVERY - 1
        quads.append((quad or time_quad)(a, again if b is None or guard else b, len(quads), guard, rng))
    return quads


def warm_up(sides: list[Side], seconds: float) -> None:
    """Alternate blocks for so long; the last five of each side say how many calls a block is to have."""
    blocks, end = list[list[float]](), time.perf_counter() + seconds
    while not blocks or time.perf_counter() < end:
        blocks.append([side.block(len(blocks)) for side in sides])
    for side, samples in zip(sides, zip(*blocks[-5:], strict=True), strict=True):
        side.calibrate(list(samples))


def time_quad(a: Side, b: Side, number: int, guard: bool, rng: random.Random) -> Quad:
    """Time quad `number`: the sides take turns lap by lap, and a block counts as its fastest lap."""
    order, seconds = rng.choice(("ABBA", "BAAB")), list[float]()
    for names in (order[:2], order[2:]):
        first, second = (a if name == "A" else b for name in names)
        turns = [(first.lap(number), second.lap(number)) for _ in range(a.laps)]
        seconds += map(min, zip(*turns, strict=True))
    return Quad(order, seconds, guard)
