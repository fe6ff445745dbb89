"""What this file does by itself: check every copy, time those that are right, print a table."""

from __future__ import annotations

import argparse
import gc
import importlib
import random
import runpy
import time
from typing import Any

import torch
from torch._inductor.async_compile import shutdown_compile_workers

from inductor_probe.harness.bench import Bench, original_of
from inductor_probe.harness.checks import Check
from inductor_probe.harness.events import EventClock, GpuStream
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.judge import judge, prepare_all
from inductor_probe.harness.launches import Pair, call_pairs, kernel_pairs
from inductor_probe.harness.reference import expect
from inductor_probe.harness.report import Timed, table
from inductor_probe.harness.timing import SLOTS, Ring, cpu_clock, make_side, time_quads

MOST_BYTES = 1 << 30  # of all copies of the arguments of a launch


def main(bench: Bench, options: argparse.Namespace) -> int:
    """Check, time and report; return 1 if anything is wrong, else 0."""
    if "make_constants" in bench.namespace:
        print(f"this graph has constants: probe bench-kernel {bench.graph} loads them and runs this file")
        return 2
    torch.set_num_threads(options.threads)
    shutdown_compile_workers()
    for name in options.imports:
        runpy.run_path(name) if name.endswith(".py") else importlib.import_module(name)
    with torch.no_grad():
        checks, timed = measure(bench, options)
    wrong = [check.name for check in checks if not check.correct]
    if timed:
        print(f"\n{bench.graph}, {options.threads} threads\n{table(timed, wrong)}\n")
    if "call" in wrong:
        width = torch.backends.cpu.get_cpu_capability()
        print(f"call is wrong, so nothing was timed; has this machine ({width}) the vectors of the dump's?")
    print(f"probe bench-kernel {bench.graph} adds: a verdict from several processes, overheads, a roofline")
    return 1 if wrong else 0


def measure(bench: Bench, options: argparse.Namespace) -> tuple[list[Check], list[Timed]]:
    """Check the pristine call and the copies, print what comes out, and time those that are right."""
    rounds, pristine = prepare_all(bench, options.seed, expect)
    print(pristine.sentence(), flush=True)
    checks, wrappers = [pristine], {*bench.variants("call")} - {"call_v2"}
    for name in bench.variants():
        if "call" + name.removeprefix(original_of(name)) in wrappers - {name}:
            continue  # a kernel that may fit the buffers of its own wrapper only: that is checked instead
        checks.append(judge(bench, name, rounds))
        print(checks[-1].sentence(), flush=True)
    if options.check_only or not pristine.correct:
        return checks, []
    inputs, right = clone(rounds[0].inputs), {check.name for check in checks if check.correct}
    pairs = [] if options.kernel else list(call_pairs(bench, inputs, right))
    for kernel in [options.kernel] if options.kernel else bench.kernels:
        pairs += kernel_pairs(bench, kernel, inputs, right)
    return checks, time_pairs(pairs, options)


def time_pairs(pairs: list[Pair], options: argparse.Namespace) -> list[Timed]:
    """Time each pair on the same copies of its arguments, all of them within the budget."""
    rng, timed = random.Random(options.seed), list[Timed]()  # noqa: S311 - no secret
    end = time.perf_counter() + options.budget
    gc.disable()
    for number, (base, candidate) in enumerate(pairs):
        tensors = tensors_of(base.values)
        size = sum(tensor.untyped_storage().nbytes() for tensor in tensors) or 1
        ring = Ring(base.values, max(1, min(SLOTS, MOST_BYTES // size)))
        devices = [tensor.device for tensor in tensors if tensor.is_cuda]
        clock: Any = EventClock(GpuStream(devices[0])) if devices else cpu_clock
        sides = [make_side(subject, ring, clock) for subject in (base, candidate) if subject]
        share = (end - time.perf_counter()) / (len(pairs) - number)
        quads = time_quads(sides[0], sides[1] if candidate else None, share, rng)
        timed.append(Timed(base.name, candidate.name if candidate else None, quads))
    return timed
