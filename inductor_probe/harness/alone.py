"""What this file does by itself: check every copy, time those that are right, print a table."""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, TypeAlias

import torch
from torch._inductor.async_compile import shutdown_compile_workers

from inductor_probe.harness.bench import Bench, original_of
from inductor_probe.harness.checks import Check
from inductor_probe.harness.events import EventClock, GpuStream
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.judge import POISON, Round
from inductor_probe.harness.launches import Pair, call_pairs, kernel_pairs
from inductor_probe.harness.reference import expect
from inductor_probe.harness.timing import Quad, cpu_clock, lap_of, time_quads

CORRECT = attrgetter("correct")  # the smallest of several checks is the first that failed
Timed: TypeAlias = "tuple[str, str | None, list[Quad]]"  # names of a baseline and a candidate, their quads


def main(bench: Bench, options: argparse.Namespace) -> int:
    """Check, time and report; return 1 if anything is wrong, else 0."""
    torch.set_num_threads(options.threads)
    shutdown_compile_workers()
    with torch.no_grad():
        checks, _ = measure(bench, options)
    wrong = [check.name for check in checks if not check.correct]
    if wrong:
        print(f"\nWRONG, so not timed: {', '.join(wrong) if 'call' not in wrong else 'call, and all else'}")
    print(f"\nprobe bench-kernel {bench.graph} adds: a verdict from several processes, overheads, a roofline")
    return 1 if wrong else 0


def measure(bench: Bench, options: argparse.Namespace) -> tuple[list[Check], list[Timed]]:
    """Check the pristine call and the copies, time those that are right, and print each result."""
    rounds = [Round(bench, options.seed + number, fill, expect) for number, fill in enumerate(POISON)]
    wrappers = {*bench.variants("call")} - {"call_v2"}
    checks = [min((prepared.check for prepared in rounds), key=CORRECT)]
    print(checks[0].sentence(), flush=True)
    for name in bench.variants() if checks[0].correct else []:  # of a wrong call, copies are as wrong
        if "call" + name.removeprefix(original_of(name)) in wrappers - {name}:
            continue  # a kernel that may fit the buffers of its own wrapper only: that is checked instead
        checks.append(min((prepared.judge(name) for prepared in rounds), key=CORRECT))
        print(checks[-1].sentence(), flush=True)
    if options.check_only or not checks[0].correct:
        return checks, []
    inputs, right = clone(rounds[0].inputs), {check.name for check in checks if check.correct}
    pairs = [] if options.kernel else list(call_pairs(bench, inputs, right))
    for kernel in [options.kernel] if options.kernel else bench.kernels:
        pairs += kernel_pairs(bench, kernel, inputs, right)
    return checks, time_pairs(pairs, options)


def time_pairs(pairs: list[Pair], options: argparse.Namespace) -> list[Timed]:
    """Time each pair on the same copies of its arguments, all of them within the budget."""
    print(f"\n{'median us':>57} {'MAD us':>10} {'ratio':>10}")
    rng, timed = random.Random(options.seed), list[Timed]()  # noqa: S311 - no secret
    end = time.perf_counter() + options.budget
    for number, (base, candidate) in enumerate(pairs):
        devices = [tensor.device for tensor in tensors_of(base.values) if tensor.is_cuda]
        clock: Any = EventClock(GpuStream(devices[0])) if devices else cpu_clock
        values = clone(base.values)
        a, b = (lap_of(subject, values, clock) for subject in (base, candidate or base))
        quads = time_quads(a, b, (end - time.perf_counter()) / (len(pairs) - number), rng)
        timed.append((base.name, candidate.name if candidate else None, quads))
        print_row(base.name, (time for quad in quads for time in quad.samples("A")))
        if candidate:
            ratio = math.exp(statistics.median(quad.score() for quad in quads))
            print_row(candidate.name, (time for quad in quads for time in quad.samples("B")), f"{ratio:.3f}x")
    return timed


def print_row(name: str, seconds: Iterable[float], ratio: str = "") -> None:
    """Print the end of a name, the median of times, and their median distance from it."""
    times = [1e6 * sample for sample in seconds]
    median = statistics.median(times)
    mad = statistics.median(abs(time - median) for time in times)
    print(f"{name[-46:]:<46} {median:>10.2f} {mad:>10.2f} {ratio:>10}", flush=True)
