"""The run of a bench file without `probe`: checks, times, a table."""

from __future__ import annotations

import argparse
import gc
import importlib
import random
import runpy
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import torch
from torch._inductor.async_compile import shutdown_compile_workers

from inductor_probe.harness.bench import Bench, original_of, unedited
from inductor_probe.harness.checks import Check
from inductor_probe.harness.events import EventClock, GpuStream
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.judge import judge, prepare_all
from inductor_probe.harness.launches import Pair, call_pairs, launch_pairs, record
from inductor_probe.harness.report import Timed, table
from inductor_probe.harness.timing import SLOTS, Ring, cpu_clock, make_side, time_quads

MOST_BYTES = 1 << 30  # of a ring


def say(text: str, file: TextIO | None = None) -> None:
    """Print a sentence in lines of 80 columns."""
    lines = textwrap.fill(text, 80, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    print(lines, file=file, flush=True)


def pairs_of(bench: Bench, kernel: str | None, inputs: list[Any], right: set[str]) -> Iterator[Pair]:
    """Return what is timed against each other: the call, then each launch of the kernels, or of one."""
    yield from () if kernel else call_pairs(bench, inputs, right)
    for name in [kernel] if kernel else bench.kernels:
        launches = record(bench, "call", name, inputs)
        if all(launch.replayable() for launch in launches):
            copies = dict.fromkeys((copy for copy in bench.variants(name) if copy in right), launches)
            yield from launch_pairs(bench, name, launches, copies)
        else:
            say(f"{name} is not timed alone: it is passed raw pointers, which probe bench-kernel follows")


def time_pair(pair: Pair, clock: Any, seconds: float, rng: random.Random) -> Timed:
    """Time two subjects against each other, on the same copies of their arguments."""
    base, candidate = pair
    size = sum(tensor.untyped_storage().nbytes() for tensor in tensors_of(base.values)) or 1
    ring = Ring(base.values, max(1, min(SLOTS, MOST_BYTES // size)))
    sides = [make_side(subject, ring, clock) for subject in pair if subject]
    quads = time_quads(sides[0], sides[1] if candidate else None, seconds, rng)
    return Timed(base.name, candidate.name if candidate else None, quads)


def measure(bench: Bench, options: argparse.Namespace) -> tuple[list[Check], list[Timed]]:
    """Check the pristine call and its variants, say how, and time what is right."""
    same, rng, timed = unedited(bench), random.Random(options.seed), list[Timed]()  # noqa: S311 - no secret
    rounds, pristine = prepare_all(bench, options.seed)
    say(pristine.sentence())
    wrappers = {*bench.variants("call")} - {"call_v2"}  # its kernels may fit the buffers of such a one only
    names = [
        name for name in bench.variants() if "call" + name[len(original_of(name)) :] not in wrappers - {name}
    ]
    checks = [replace(judge(bench, name, rounds), unedited=name in same) for name in names]
    for check in checks:
        say(check.sentence())
    inputs, right = clone(rounds[0].inputs), {check.name for check in checks if check.correct} - same
    wanted = pristine.correct and not options.check_only
    pairs = list(pairs_of(bench, options.kernel, inputs, right)) if wanted else []
    devices = [tensor.device for tensor in tensors_of(inputs) if tensor.is_cuda]
    clock, end = (
        EventClock(GpuStream(devices[0])) if devices else cpu_clock,
        time.perf_counter() + options.budget,
    )
    gc.disable()
    for number, pair in enumerate(pairs):
        timed.append(time_pair(pair, clock, (end - time.perf_counter()) / (len(pairs) - number), rng))
    return [pristine, *checks], timed


def main(bench: Bench, options: argparse.Namespace) -> int:
    """Check, time and report; return 1 if anything is wrong, else 0."""
    if "make_constants" in bench.namespace:
        say(f"the constants of this graph are loaded by probe bench-kernel {bench.graph} only")
        return 2
    torch.set_num_threads(options.threads)
    shutdown_compile_workers()
    for name in options.imports:
        runpy.run_path(name, run_name=Path(name).stem) if name.endswith(".py") else importlib.import_module(
            name
        )
    with torch.no_grad():
        checks, timed = measure(bench, options)
    if timed:
        wrong = [check.name for check in checks if not check.correct]
        print(f"\n{bench.graph}, {options.threads} threads\n{table(timed, wrong)}\n")
    if not checks[0].correct:
        width = torch.backends.cpu.get_cpu_capability()
        say(f"call is wrong, so nothing was timed; has this machine ({width}) the vectors of the dump's?")
    say(f"probe bench-kernel {bench.graph} adds: a verdict from several processes, overheads, a roofline")
    return 0 if all(check.correct for check in checks) else 1
