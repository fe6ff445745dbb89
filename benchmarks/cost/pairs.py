"""Whole commands timed in pairs: A B A B ..., so that a drift of the machine hits both alike."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """A command with a name, where it runs, and what to do before each run, outside the clock."""

    name: str
    arguments: Sequence[str]
    cwd: Path
    environment: dict[str, str]
    prepare: Callable[[], object] = lambda: None


def seconds(command: Command) -> float:
    """Run a command once; return its wall time in seconds. A failure ends the benchmark."""
    command.prepare()
    begin = time.perf_counter()
    ended = subprocess.run(
        command.arguments,
        cwd=command.cwd,
        env={**os.environ, **command.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    taken = time.perf_counter() - begin
    if ended.returncode:
        sys.exit(f"{command.name} failed with status {ended.returncode}:\n{ended.stderr[-2000:]}")
    return taken


def cpu_seconds(command: Command) -> float:
    """Run a command once; return the processor time that it and those that it started took, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(
    candidate: Command, baseline: Command, pairs: int, clock: Callable[[Command], float] = seconds
) -> list[float]:
    """Run both in turn, after one uncounted pair; print medians and ratios, and return the ratios."""
    clock(candidate), clock(baseline)
    timed = [(clock(candidate), clock(baseline)) for _ in range(pairs)]
    ratios = [one / other for one, other in timed]
    for name, times in zip((candidate.name, baseline.name), zip(*timed, strict=True), strict=True):
        spread = f"min {min(times):.3f}, max {max(times):.3f}"
        print(f"{name}: median {statistics.median(times):.3f} s of {pairs} ({spread})")
    print(
        f"ratio {candidate.name} / {baseline.name}: median {statistics.median(ratios):.3f} "
        f"(min {min(ratios):.3f}, max {max(ratios):.3f})"
    )
    return ratios
