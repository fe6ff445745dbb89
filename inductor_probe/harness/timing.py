"""Timing: laps of calls, in quads of A and B, until the time is up.

What else runs on a core, or on the other half of it, makes calls longer and none shorter, for milliseconds at
a time. A mean carries all of it. So a side counts as fast as the fastest of its laps in a quad.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from inductor_probe.harness.bench import Call
from inductor_probe.harness.inputs import changed, clone, tensors_of

LAP_S = 0.00012  # a timer's cost is less than a thousandth of it
MOST_CALLS = 120_000  # of a lap
MOST_DRIFTING = 16  # of a lap that changes its inputs: they must not overflow or become denormal
FEWEST = 6


class Subject(NamedTuple):
    """Something to time: `bind` makes a function without arguments that works on `values`."""

    name: str
    bind: Callable[[Any], Call]
    values: Any


@dataclass
class Quad:
    """Two laps of A and two of B: `order` is ABBA or BAAB, `seconds` a call of each."""

    order: str
    seconds: list[float]

    def score(self) -> float:
        """Return the log-ratio, B over A, of the fastest each side was."""
        return math.log(min(self.samples("B")) / min(self.samples("A")))

    def samples(self, side: str) -> list[float]:
        """Return the times of A or B."""
        return [time for name, time in zip(self.order, self.seconds, strict=True) if name == side]


def lap_of(subject: Subject, values: Any, clock: Any) -> Callable[[], float]:
    """Return what times a lap of a subject on `values`, in seconds a call.

    Behind each lap, outside the clock, tensors that change from call to call get their first values again.
    """
    run, tensors = subject.bind(values), tensors_of(values)
    original, drifting = clone(tensors), drifting_of(run, tensors)

    def lap(calls: int) -> float:
        seconds = float(clock(run, calls))
        for index in drifting:
            tensors[index].copy_(original[index])
        return seconds

    lap(1)
    return partial(lap, calls_of(clock, [lap(1) for _ in range(3)], bool(drifting)))


def drifting_of(run: Call, tensors: list[Any]) -> list[int]:
    """Return which tensors change from call to call."""
    run()
    once = clone(tensors)
    run()
    return changed(once, tensors)


def calls_of(clock: Any, samples: list[float], drifting: bool) -> int:
    """Choose the calls of a lap by what samples, in seconds a call, say."""
    lap_s, most = getattr(clock, "limits", (LAP_S, MOST_CALLS))
    calls = round(lap_s / max(statistics.median(samples), 1e-9))
    return max(1, min(calls, most, MOST_DRIFTING if drifting else most))


def time_quads(a: Any, b: Any, seconds: float, rng: random.Random) -> list[Quad]:
    """Time quads of laps of two sides for so long; the first eighth of them warms up, and is not returned."""
    end, quads = time.perf_counter() + seconds, list[Quad]()
    while len(quads) < FEWEST or time.perf_counter() < end:
        order = rng.choice(("ABBA", "BAAB"))
        quads.append(Quad(order, [(a if side == "A" else b)() for side in order]))
    return quads[len(quads) // 8 :]


def cpu_clock(run: Call, calls: int) -> float:
    """Call `run` so many times; return the seconds a call."""
    repeats = range(calls)
    begin = time.perf_counter()
    for _ in repeats:
        run()
    return (time.perf_counter() - begin) / calls
