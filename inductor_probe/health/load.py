"""What else runs here, and how finely time can be told."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from inductor_probe.machine.cpu import CpuState
from inductor_probe.machine.hazards import hazards
from inductor_probe.model.health import Fact, Finding

_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_PARALLEL = {"a parallel kernel": "#pragma omp parallel"}
_COARSE_S = 1e-6
_READS = 2000


def load_finding(state: CpuState) -> Finding:
    """Return what runs here, and what of it would spoil the times of a kernel on all processors.

    Those are the hazards of a bench file: they say the same numbers again and the opposite of `fine`, so
    they belong to the same finding.
    """
    text = f"{_processors(state.processors)}, {state.busy:.1f} of them busy"
    text += f", {state.quota:g} paid for by the control group" if state.quota is not None else ", no quota"
    if state.governors:
        text += f", governor {' and '.join(state.governors)}"
    facts: tuple[tuple[str, Fact], ...] = (
        ("processors", state.processors),
        ("busy", state.busy),
        ("stolen", state.stolen),
        ("quota", state.quota),
        ("load", state.load),
        ("governors", state.governors),
    )
    spoilers = [sentence.rpartition("; ") for sentence in hazards(_PARALLEL, state)]
    if not spoilers:
        return Finding("processors", "fine", text, facts=facts)
    text = "; ".join([text, *(what for what, _, _ in spoilers)])
    remedies = dict.fromkeys(remedy for _, _, remedy in spoilers)
    return Finding("processors", "note", text, "; ".join(remedies), facts)


def timer_finding(read: Callable[[], float] = time.perf_counter, clock: Path = _CLOCK) -> Finding:
    """Return the smallest step of the clock that everything here is timed with, in seconds."""
    step = timer_step(read)
    try:
        source = clock.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        source = None
    facts: tuple[tuple[str, Fact], ...] = (("step_s", step), ("source", source))
    text = f"time.perf_counter goes in steps of {step * 1e9:.0f} ns" + (f", from {source}" if source else "")
    if step > _COARSE_S:
        remedy = "give short kernels a larger --budget; a machine whose clock source is tsc tells time finer"
        return Finding("timer", "note", text, remedy, facts)
    return Finding("timer", "fine", text, facts=facts)


def timer_step(read: Callable[[], float], reads: int = _READS) -> float:
    """Return the median of the differences, but zero, of a clock read over and over, in seconds."""
    times = [read() for _ in range(reads)]
    steps = sorted(late - early for early, late in pairwise(times) if late > early)
    return steps[len(steps) // 2] if steps else 0.0


def _processors(number: int) -> str:
    return "1 processor" if number == 1 else f"{number} processors"
