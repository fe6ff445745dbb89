"""The run: hazards, inputs, reference, checks, times, table, sentences."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch._inductor.async_compile import shutdown_compile_workers

from inductor_probe.rewrite.harness.bench import Bench
from inductor_probe.rewrite.harness.checks import Check
from inductor_probe.rewrite.harness.inputs import clone
from inductor_probe.rewrite.harness.judge import POISON, Round, judge, prepare
from inductor_probe.rewrite.harness.launches import Launch, record
from inductor_probe.rewrite.harness.report import (
    describe,
    environment,
    hazards,
    measured,
    plain,
    sentence,
    table,
    verdict_on,
    wandering,
    wrapped,
)
from inductor_probe.rewrite.harness.timing import Comparison, Side, compare_times, make_side, time_alone

Pairs: TypeAlias = "list[tuple[Side, Side | None]]"


def parse(bench: Bench, argv: list[str] | None) -> argparse.Namespace:
    """Read the command line; an unknown kernel ends it with near names."""
    parser = argparse.ArgumentParser(
        description=f"Check and time the kernels of {bench.graph}, and their variants."
    )
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="write results to FILE, or to stdout"
    )
    parser.add_argument(
        "--min-run-time", type=float, default=1.0, metavar="S", help="seconds a comparison (1)"
    )
    parser.add_argument("--kernel", metavar="NAME", help="time this kernel only")
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="threads of torch and of OpenMP (1)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of inputs and of the order of timing (0)")
    parser.add_argument("--check-only", action="store_true", help="check the variants, time nothing")
    options = parser.parse_args(argv)
    if options.kernel and options.kernel not in bench.kernels:
        near = difflib.get_close_matches(options.kernel, bench.kernels, cutoff=0.3) or bench.kernels
        parser.error(f"no kernel {options.kernel}; there is {', '.join(near)}")
    return options


def check_all(bench: Bench, seed: int) -> tuple[list[Round], Check, list[Check]]:
    """Check the pristine call and every variant on two sets of inputs; return the rounds and findings."""
    rounds, pristine = [], Check("call")
    for at, pattern in enumerate(POISON):
        each, check = prepare(bench, seed + at, pattern)
        rounds.append(each)
        if pristine.correct:
            pristine = check
    checks = {variant.name: judge(bench, variant, rounds) for variant in bench.variants()}
    for variant in bench.variants():
        if checks[variant.name].correct or not variant.swaps:
            continue
        # It may need buffers that its own wrapper lays out differently, and be right as part of that.
        whole = checks.get("call" + variant.name[variant.name.rindex("_v") :])
        if whole and whole.correct and record(bench, whole.name, variant.name, rounds[0].inputs):
            note = f"inside {whole.name}: it does not fit the buffers of call"
            checks[variant.name] = Check(variant.name, note=note)
    return rounds, pristine, list(checks.values())


def call_pairs(bench: Bench, inputs: list[Any], right: set[str]) -> Pairs:
    """Pair eager with the pristine call, and that with each right variant of it, on the same inputs."""

    def caller(entry: Callable[[list[Any]], Any]) -> Callable[[], object]:
        return lambda: entry(list(inputs))  # it empties the list that it is given

    call = make_side("Compiled call", caller(bench.namespace["call"]), inputs)
    pairs: Pairs = []
    if bench.aten_graph is not None:
        graph = bench.aten_graph()
        pairs.append((make_side("Eager (aten graph)", lambda: graph(*inputs), inputs), call))
    for variant in bench.variants():
        if not variant.swaps and variant.name in right:
            pairs.append((call, make_side(variant.name, caller(bench.namespace[variant.name]), inputs)))
    return pairs or [(call, None)]


def kernel_pairs(
    bench: Bench, kernel: str, inputs: list[Any], right: set[str], warn: Callable[[str], None]
) -> Pairs:
    """Pair each launch of `kernel` with that of its right variants: on the same buffers, where they fit."""
    launches = record(bench, "call", kernel, inputs)
    if not all(launch.replayable() for launch in launches):
        warn(f"{kernel} is not timed alone: its launches pass raw pointers")
        return []
    copies: dict[str, list[Launch]] = {}
    for variant in bench.variants():
        if kernel in variant.swaps and variant.name in right:
            entry = "call" + variant.name.removeprefix(kernel)
            own = record(bench, entry, variant.name, inputs) if entry in right else []
            copies[variant.name] = own or launches
            if len(copies[variant.name]) != len(launches):
                warn(f"{variant.name} is not timed alone: {entry} launches it {len(own)} times")
                del copies[variant.name]
    pairs: Pairs = []
    for number, launch in enumerate(launches):
        suffix = " alone" if len(launches) == 1 else f" alone #{number + 1}"
        base = make_side(kernel + suffix, launch.bind(bench.namespace[kernel]), launch.tensors())
        for name, own in copies.items():
            used = launch if launch.fits(own[number]) else own[number]
            pairs.append((base, make_side(name + suffix, used.bind(bench.namespace[name]), used.tensors())))
        if not copies:
            pairs.append((base, None))
    return pairs


def main(bench: Bench, argv: list[str] | None = None) -> int:
    """Check, time and report; return 1 if anything is wrong, else 0."""
    options = parse(bench, argv)
    torch.set_num_threads(options.threads)
    shutdown_compile_workers()
    human = sys.stderr if options.json == "-" else sys.stdout

    def say(text: str) -> None:
        print(text if text.startswith("\n") else wrapped(text), file=human, flush=True)

    warnings: list[str] = []

    def warn(text: str) -> None:
        warnings.append(text)
        print(wrapped(f"warning: {text}"), file=sys.stderr, flush=True)

    for hazard in hazards():
        warn(hazard)
    with torch.no_grad():
        rounds, pristine, checks = check_all(bench, options.seed)
        for check in (pristine, *checks):
            say(verdict_on(check))
        right = {check.name for check in checks if check.correct}
        inputs, pairs = clone(rounds[0].inputs), []
        if pristine.correct and not options.check_only:
            pairs = [] if options.kernel else call_pairs(bench, inputs, right)
            for kernel in [options.kernel] if options.kernel else bench.kernels:
                pairs += kernel_pairs(bench, kernel, inputs, right, warn)
        comparisons: list[Comparison] = []
        for a, b in pairs:
            if b is None:
                time_alone(a, options.min_run_time / 2)
            else:
                comparisons.append(compare_times(a, b, options.min_run_time, options.seed))
    sides = list({id(side): side for pair in pairs for side in pair if side}.values())
    shown = table(bench.graph, describe(inputs), sides, [check for check in checks if not check.correct])
    if sides:
        say(f"\n{shown}\n")
    for found in comparisons:
        say(sentence(found))
    for warning in wandering(comparisons):
        warn(warning)
    if not pristine.correct:
        say(
            "the pristine call is wrong: nothing was timed. If the dump comes from another machine: C++ code "
            f"needs vectors as wide as there, and this machine has {torch.backends.cpu.get_cpu_capability()}"
        )
    result = {
        "graph": bench.graph,
        "kernels": bench.kernels,
        "variants": [plain(check) for check in (pristine, *checks)],
        "measurements": [measured(side) for side in sides],
        "comparisons": [asdict(found) for found in comparisons],
        "warnings": warnings,
        "environment": environment(),
        "seed": options.seed,
        "table": shown,
    }
    if options.json:
        text = json.dumps(result, indent=1, allow_nan=False)
        sys.stdout.write(text + "\n") if options.json == "-" else Path(options.json).write_text(text)
    return 0 if pristine.correct and all(check.correct for check in checks) else 1
