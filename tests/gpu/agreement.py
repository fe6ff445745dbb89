"""How far the GPU's clock and a plain loop between two events are from the profiler's kernel time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inductor_probe.harness.gpu_clock import GpuClock, ProfiledStream, profiled


@dataclass
class Agreement:
    """Seconds a call of one function: by the profiler, by the clock, in a plain loop; None where not known.

    `mode` is how the clock timed it, `events` or `graph`.
    """

    name: str
    mode: str
    profiler: float | None
    clock: float
    loop: float

    def off(self, seconds: float) -> float | None:
        """Return how far `seconds` are from the profiler: 0.03 is 3 % more."""
        return seconds / self.profiler - 1 if self.profiler else None


def plain_loop(stream: ProfiledStream, run: Callable[[], object], calls: int) -> float:
    """Return seconds a call of calls between two events, one behind the other: launches are part of it."""
    for _ in range(3):
        run()
    stream.wait()
    first = stream.stamp()
    for _ in range(calls):
        run()
    last = stream.stamp()
    stream.wait()
    return stream.seconds(first, last) / calls


def agreement(clock: GpuClock, name: str, run: Callable[[], object], calls: int = 50) -> Agreement:
    """Time one function in all three ways; profiler and clock with the caches as the clock has them."""
    return Agreement(
        name,
        clock.mode(run),
        profiled(clock.stream, run, calls, clock.prologue(None)),
        clock(run, calls),
        plain_loop(clock.stream, run, calls),
    )


def agreement_table(rows: list[Agreement]) -> str:
    """Lay out agreements, a line each: microseconds, and how far off the profiler clock and loop are."""
    lines = [f"{'':20} {'profiler':>9} {'clock':>9} {'off':>7} {'plain loop':>11} {'off':>8}  how"]
    for row in rows:
        exact = "-" if row.profiler is None else f"{row.profiler * 1e6:.2f}"
        clock, loop = row.off(row.clock), row.off(row.loop)
        lines.append(
            f"{row.name:20} {exact:>9} {row.clock * 1e6:9.2f} {_percent(clock):>7} {row.loop * 1e6:11.2f} "
            f"{_percent(loop):>8}  {row.mode}"
        )
    return "\n".join(lines)


def _percent(off: float | None) -> str:
    return "-" if off is None else f"{off:+.1%}"
