"""Quads with a known truth, without a clock."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count as counted
from itertools import islice
from typing import Any

import numpy as np

from inductor_probe.bench.stop_rule import wants_more
from inductor_probe.bench.verdict import conclude
from inductor_probe.harness.budget import MORE_PROCESSES, PROCESSES
from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.timing import Quad, Series, Side

GUARD_EVERY = 6
LOST_ITS_CORE = measured("core-lost", "hazard", Subject("machine", "cpu"), {"times": 2})


def series(ratio: float, *, processes: int = 3, **noise: Any) -> list[Series]:
    """Return the quads of one comparison in so many processes: see `each_series`."""
    return list(islice(each_series(ratio, **noise), processes))


def each_series(
    ratio: float,
    *,
    quads: int = 40,
    between: float = 0.001,
    noise: float = 0.005,
    heavy: bool = False,
    linked: float = 0.0,
    drift: float = 0.0,
    guard: float = 1.0,
    disturbed: int = 0,
    waits: float = 0.0,
    wait: float = 1.0,
    prone: float = 1.0,
    slow: float = 0.0,
    linked_processes: float = 0.0,
    seed: int = 0,
) -> Iterator[Series]:
    """Yield the quads of one comparison, of one process after the other.

    Args:
        ratio: the truth, of B over A. between, noise: standard deviation of the log-ratio from process to
        process, and of a block. heavy: blocks scatter as Student's t with 3 degrees of freedom instead of
        normally. linked: autocorrelation of successive blocks. drift: how much slower everything gets during
        a process. guard: how much slower the second copy of A is. disturbed: how many quads of each process
        are, with times that are far off. waits: how often a block of A waits for a core, which marks its quad
        as disturbed; one that takes longer does more often. wait: how long on average, in blocks of A.
        prone: how many times as often B waits for another reason than its length.
        slow: share of the time that a side spends in a state 12 % slower, for 30 quads on average.
        linked_processes: autocorrelation of what differs `between` successive processes.
    """
    rng = np.random.default_rng(seed)
    offset = 0.0
    for process in counted():
        fresh = rng.normal(0.0, between)
        share = linked_processes if process else 0.0
        offset = share * offset + math.sqrt(1 - share**2) * fresh
        place, states = math.log(ratio) + offset, {side: _states(slow, quads, rng) for side in "AB"}
        scatter = rng.standard_t(3, quads * 4) if heavy else rng.normal(size=quads * 4)
        for at in range(1, len(scatter) if linked else 0):
            scatter[at] = linked * scatter[at - 1] + math.sqrt(1 - linked**2) * scatter[at]
        steady_part = (np.linspace(0, math.log1p(drift), quads * 4) + noise * scatter).tolist()
        found = []
        for number in range(quads):
            is_guard = number % GUARD_EVERY == GUARD_EVERY - 1
            order = ("ABBA", "BAAB")[rng.integers(0, 2)]
            wild = number < disturbed
            times, hit = [], False
            for at, side in enumerate(order):
                longer = (math.log(guard) if is_guard else place) if side == "B" else 0.0
                state = states["A" if is_guard else side][number]
                steady = steady_part[4 * number + at] + longer + state
                often = waits * math.exp(longer) * (prone if side == "B" and not is_guard else 1.0)
                waiting = rng.exponential(wait) if waits and rng.random() < often else 0.0
                hit = hit or waiting > 0
                times.append(1e-4 * (math.exp(steady + wild * rng.exponential(1.0)) + waiting))
            found.append(quad(times, order, is_guard, LOST_ITS_CORE if wild or hit else None))
        yield Series("k", "k_v2", tuple(found), 0.3)


def verdict_as_the_session_makes_it(ratio: float, seed: int, margin: float = 0.01, **noise: Any) -> str:
    """Judge three processes, and more as long as more are wanted."""
    following = each_series(ratio, quads=28, seed=seed, **noise)
    processes = list(islice(following, PROCESSES - 1))
    while len(processes) < MORE_PROCESSES:
        processes.append(next(following))
        comparison = conclude(processes, margin)
        if not wants_more(comparison, margin):
            break
    return comparison.verdict


def _states(share: float, count: int, rng: np.random.Generator) -> list[float]:
    """Return the logarithm of how much slower a side is in each quad: a Markov chain of two states."""
    leave = 1 / 30
    enter = leave * share / (1 - share)
    states, slow = [], rng.random() < share
    for _ in range(count):
        slow = rng.random() >= leave if slow else rng.random() < enter
        states.append(math.log(1.12) * slow)
    return states


class ScoredQuad(Quad, frozen=True, dict=True):
    """A quad that keeps its score: each look at samples asks for those of the looks before."""

    @cached_property
    def score(self) -> float:
        return super().score

    @cached_property
    def _samples(self) -> dict[Side, tuple[float, ...]]:
        return {"A": super().samples("A"), "B": super().samples("B")}

    def samples(self, side: Side) -> tuple[float, ...]:
        return self._samples[side]


def quad(
    times: Sequence[float], order: str = "ABBA", guard: bool = False, disturbed: Remark | None = None
) -> Quad:
    """Return a quad of those four times."""
    first, second, third, fourth = times
    return ScoredQuad("ABBA" if order == "ABBA" else "BAAB", (first, second, third, fourth), guard, disturbed)
