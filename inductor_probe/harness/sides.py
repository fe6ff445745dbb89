"""Sides of a comparison as `probe` times them: on several copies of their arguments, in blocks of laps."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inductor_probe.harness.bench import Call
from inductor_probe.harness.budget import LONG_S
from inductor_probe.harness.inputs import changed, clone, tensors_of
from inductor_probe.harness.timing import Subject, calls_of, drifting_of

LAPS = 2  # of a block
LONGEST_S = 0.04  # a block of long calls has fewer laps: many quads are worth more
STEADY = 0.01  # a side is warm when the median of its blocks moves by less
SLOTS = 8


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

    `drifting` are tensors that change from call to call; `beyond` laps in a row were too long for a core.
    A call of `long` ones is so long that each counts: none is made to warm up, or to have a faster one.
    """

    name: str
    runs: list[Call]
    ring: Ring
    clock: Any
    drifting: list[int]
    calls: int = 1
    laps: int = 1
    beyond: int = 0
    long: bool = False

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
        self.calls = calls_of(self.clock, samples, bool(self.drifting))
        block_s = self.calls * max(statistics.median(samples), 1e-9)
        self.long = block_s > LONG_S
        self.laps = max(1, min(int(LONGEST_S / block_s), getattr(self.clock, "laps", LAPS)))


def make_side(
    subject: Subject, ring: Ring, clock: Any, side: type[Side] = Side, like: Side | None = None
) -> Side:
    """Bind a subject to a ring, and see which of its tensors drift from call to call.

    `like`: one that computes the same in about the same time, of which this is known already. Of a long call
    one is enough to find out: what it changes counts as drifting.
    """
    runs = [subject.bind(values) for values in ring.slots]
    if like is not None:
        return side(subject.name, runs, ring, clock, like.drifting, like.calls, like.laps, long=like.long)
    tensors, begin = tensors_of(ring.slots[0]), time.perf_counter()
    runs[0]()
    first = time.perf_counter() - begin
    long = first > LONG_S
    drifting = changed(ring.original, tensors) if long else drifting_of(runs[0], tensors)
    made = side(subject.name, runs, ring, clock, drifting)
    ring.restore(0, drifting)
    made.calibrate([first] if long else [made.block(0) for _ in range(3)])
    return made


def warm_up(sides: list[Side], limit_s: float) -> None:
    """Alternate blocks until the median of the last five of each side moves by less than a hundredth."""
    end, before = time.perf_counter() + limit_s, [math.inf] * len(sides)
    while True:
        recent = [[side.block(0) for side in sides]]
        while len(recent) < 5 and time.perf_counter() < end:
            recent.append([side.block(len(recent)) for side in sides])
        now = [statistics.median(blocks) for blocks in zip(*recent, strict=True)]
        moved = max(abs(new / old - 1) for new, old in zip(now, before, strict=True))
        if moved < STEADY or time.perf_counter() > end:
            break
        before = now
    for side, blocks in zip(sides, zip(*recent, strict=True), strict=True):
        side.calibrate(list(blocks))
