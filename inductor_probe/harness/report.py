"""The report of one process: a table of times with ratios."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from inductor_probe.harness.timing import Quad, scores_of


@dataclass
class Timed:
    """The quads of a baseline and a candidate, and the seconds spent on them; it may be timed alone."""

    baseline: str
    candidate: str | None
    quads: list[Quad]
    spent: float = 0.0


def table(timed: list[Timed], wrong: list[str]) -> str:
    """Lay out medians with their MAD, each baseline above its candidate; what is wrong has no time."""
    lines = [f"{'median':>58}  {'MAD':>9}  {'ratio':>8}"]
    for pair in timed:
        lines.append(row(pair.baseline, [time for quad in pair.quads for time in quad.samples("A")]))
        if pair.candidate:
            ratio = math.exp(statistics.median(scores_of(pair.quads)))
            times = [time for quad in pair.quads if not quad.guard for time in quad.samples("B")]
            lines.append(f"{row(pair.candidate, times)}  {ratio:>7.3f}x")
    return "\n".join(lines + [f"{short(name, 61)}: WRONG, not timed" for name in wrong])


def row(name: str, times: list[float]) -> str:
    """Say the median of a side's times, and the median distance from it."""
    median = statistics.median(times)
    mad = statistics.median(abs(time - median) for time in times)
    return f"{short(name, 47):<47}  {duration(median):>9}  {duration(mad):>9}"


def duration(seconds: float) -> str:
    """Say a time with four digits: `12.34 us`."""
    size, unit = (1.0, "s") if seconds >= 1 else (1e-3, "ms") if seconds >= 1e-3 else (1e-6, "us")
    return f"{seconds / size:.{max(0, 4 - len(str(int(seconds / size))))}f} {unit}"


def short(name: str, most: int) -> str:
    """Cut the middle out of a name longer than `most`; its end tells kernels and copies apart."""
    return name if len(name) <= most else f"{name[: most // 3]}..{name[most // 3 + 2 - most :]}"
