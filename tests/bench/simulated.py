"""Quads with a known truth, without a clock."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.timing import Quad, Series

GUARD_EVERY = 6
LOST_ITS_CORE = measured("core-lost", "hazard", Subject("machine", "cpu"), {"times": 2})


def series(
    ratio: float,
    *,
    processes: int = 3,
    quads: int = 40,
    between: float = 0.001,
    noise: float = 0.005,
    heavy: bool = False,
    linked: float = 0.0,
    drift: float = 0.0,
    guard: float = 1.0,
    disturbed: int = 0,
    seed: int = 0,
) -> list[Series]:
    """Return the quads of one comparison.

    Args:
        ratio: the truth, of B over A.
        between, noise: standard deviation of the log-ratio from process to process, and of a block.
        heavy: blocks scatter as Student's t with 3 degrees of freedom instead of normally.
        linked: autocorrelation of successive blocks.
        drift: how much slower everything gets during a process.
        guard: how much slower the second copy of A is.
        disturbed: how many quads of each process are, with times that are far off.
    """
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(processes):
        place = rng.normal(math.log(ratio), between)
        scatter = rng.standard_t(3, quads * 4) if heavy else rng.normal(size=quads * 4)
        for at in range(1, len(scatter)):
            scatter[at] = linked * scatter[at - 1] + math.sqrt(1 - linked**2) * scatter[at]
        trend = np.linspace(0, math.log1p(drift), quads * 4)
        found = []
        for number in range(quads):
            is_guard = number % GUARD_EVERY == GUARD_EVERY - 1
            order = rng.choice(["ABBA", "BAAB"])
            wild = number < disturbed
            times = [
                1e-4
                * math.exp(
                    trend[4 * number + at]
                    + noise * scatter[4 * number + at]
                    + (side == "B") * (math.log(guard) if is_guard else place)
                    + wild * rng.exponential(1.0)
                )
                for at, side in enumerate(order)
            ]
            found.append(quad(times, str(order), is_guard, LOST_ITS_CORE if wild else None))
        made.append(Series("k", "k_v2", tuple(found), 0.3))
    return made


def quad(
    times: Sequence[float], order: str = "ABBA", guard: bool = False, disturbed: Remark | None = None
) -> Quad:
    """Return a quad of those four times."""
    first, second, third, fourth = times
    return Quad("ABBA" if order == "ABBA" else "BAAB", (first, second, third, fourth), guard, disturbed)
