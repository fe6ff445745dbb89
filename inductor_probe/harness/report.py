"""The table of times, with ratios."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from inductor_probe.harness.timing import Quad


@dataclass
class Timed:
    """The quads of a baseline and a candidate, and the seconds spent on them; it may be timed alone."""

    baseline: str
    candidate: str | None
    quads: list[Quad]
    spent: float = 0.0


def table(timed: list[Timed], wrong: list[str]) -> str:
    """Lay out medians with their MAD, each baseline above its candidate; what is wrong has no time."""
    lines = [f"{'median us':>57} {'MAD us':>10} {'ratio':>10}"]
    for pair in timed:
        lines.append(row(pair.baseline, [time for quad in pair.quads for time in quad.samples("A")]))
        if pair.candidate:
            quads = [quad for quad in pair.quads if not quad.guard]
            ratio = math.exp(statistics.median(quad.score() for quad in quads))
            times = [time for quad in quads for time in quad.samples("B")]
            lines.append(f"{row(pair.candidate, times)} {ratio:>9.3f}x")
    return "\n".join(lines + [f"{name}: WRONG, not timed" for name in wrong])


def row(name: str, times: list[float]) -> str:
    """Say the median of a side's times, and the median distance from it."""
    median = statistics.median(times)
    mad = statistics.median(abs(time - median) for time in times)
    name = name if len(name) <= 46 else f"..{name[-44:]}"  # its end tells kernels and copies apart
    return f"{name:<46} {median * 1e6:>10.2f} {mad * 1e6:>10.2f}"
