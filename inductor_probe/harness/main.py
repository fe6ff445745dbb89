"""The run: hazards, inputs, reference, checks, times, table, and everything measured as JSON."""

from __future__ import annotations

import argparse
import difflib
import gc
import importlib
import json
import random
import runpy
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TextIO

import torch
from torch._inductor.async_compile import shutdown_compile_workers

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.checks import Check
from inductor_probe.harness.clocks import gpu_clock
from inductor_probe.harness.config_report import config_table, configs_sentence
from inductor_probe.harness.configs import time_configs
from inductor_probe.harness.copies import unedited
from inductor_probe.harness.environment import environment
from inductor_probe.harness.inputs import KINDS, InputsError, clone
from inductor_probe.harness.judge import POISON, Round, judge, prepare
from inductor_probe.harness.launches import record, resources
from inductor_probe.harness.overheads import measure_overheads
from inductor_probe.harness.remarks import Remark, remark, sentence
from inductor_probe.harness.report import Timed, describe, plain, table, verdict_on, wrapped
from inductor_probe.harness.rings import Ring, make_ring, tensors_of
from inductor_probe.harness.subjects import Pair, call_pairs, kernel_pairs
from inductor_probe.harness.timing import Side, make_side, time_quads

SCHEMA = 2


def parse(bench: Bench, argv: list[str] | None) -> argparse.Namespace:
    """Read the command line; an unknown kernel ends it with near names."""
    parser = argparse.ArgumentParser(
        description=f"Check and time the kernels of {bench.graph}, and their variants, in this one process.",
        epilog=f"For a verdict, which takes several processes: probe bench-kernel {bench.graph}",
    )
    add = parser.add_argument
    add("--json", nargs="?", const="-", metavar="FILE", help="write results to FILE, or to stdout")
    add(
        "--budget",
        type=length_of_time,
        default=3.0,
        metavar="TIME",
        help="for all comparisons: 500ms, 3s, 2m (3s)",
    )
    add("--precision", type=float, default=0.0025, metavar="W", help="end one that is known so well (0.0025)")
    add("--kernel", metavar="NAME", help="time this kernel only")
    add("--threads", type=int, default=1, metavar="N", help="threads of torch and of OpenMP (1)")
    add(
        "--data",
        choices=("cold", "warm"),
        help="do calls find their data in a cache? (warm; cold on a GPU, where the L2 is flushed)",
    )
    add("--inputs", choices=KINDS, default=KINDS[0], help="values of the inputs (random)")
    add(
        "--configs",
        metavar="TEXT",
        help="Triton: time all configs, and those of TEXT: XBLOCK=1,8 num_warps=4",
    )
    add(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this module, or run this FILE.py, first: it registers operators that the graph calls",
    )
    add("--size", action="append", default=[], metavar="s77=128", help="bind a symbolic size")
    add("--copies-first", action="store_true", help="set up candidates before baselines")
    add("--seed", type=int, default=0, help="of inputs, their places, and the order of timing (0)")
    add("--copies", action="store_true", help="time copies that nobody edited, too: A against A")
    add("--check-only", action="store_true", help="check the variants, time nothing")
    options = parser.parse_args(argv)
    if options.kernel and options.kernel not in bench.kernels:
        near = difflib.get_close_matches(options.kernel, bench.kernels, cutoff=0.3) or bench.kernels
        parser.error(f"no kernel {options.kernel}; there is {', '.join(near)}")
    for name in options.imports:
        try:
            import_first(name)
        except (FileNotFoundError, ModuleNotFoundError) as error:
            parser.error(f"--import {name}: {error}; give a module as in Python, or a file as FILE.py")
    try:
        bench.kind, bench.sizes = options.inputs, dict(map(binding, options.size))
        inputs = bench.inputs(options.seed)
    except (InputsError, ValueError) as error:
        parser.error(str(error))
    if options.configs is not None and not on_cuda(inputs):
        parser.error("--configs is for Triton kernels, and this graph has none")
    options.data = options.data or ("cold" if on_cuda(inputs) else "warm")
    return options


def import_first(name: str) -> None:
    """Import a module, or run a file under the name that it would be imported by."""
    if name.endswith(".py"):
        runpy.run_path(name, run_name=Path(name).stem)
    else:
        importlib.import_module(name)


def binding(text: str) -> tuple[str, int]:
    """Read `s77=128`."""
    name, equals, number = text.partition("=")
    if not equals or not number.isdecimal():
        raise ValueError(f"--size {text} is not of the form s77=128")
    return name, int(number)


def on_cuda(values: object) -> bool:
    """Tell whether any tensor in `values` is on a GPU."""
    return any(tensor.is_cuda for tensor in tensors_of(values))


def length_of_time(text: str) -> float:
    """Read `500ms`, `10s`, `2m`, or a number of seconds."""
    number, units = text.rstrip("ms"), {"ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0}
    if text[len(number) :] not in units:
        raise ValueError(text)
    return float(number) * units[text[len(number) :]]


def check_all(bench: Bench, seed: int) -> tuple[list[Round], Check, list[Check]]:
    """Check the pristine call and every variant on two sets of inputs; return the rounds and checks."""
    rounds, pristine = [], Check("call")
    for at, pattern in enumerate(POISON):
        each, check = prepare(bench, seed + at, pattern)
        rounds.append(each)
        if pristine.correct:
            pristine = check
    checks: dict[str, Check] = {}
    for variant in bench.variants():
        own = "call" + variant.name[variant.name.rindex("_v") :]
        if (
            variant.swaps
            and own != "call_v2"
            and own in checks
            and record(bench, own, variant.name, rounds[0].inputs)
        ):
            # Made for the buffers of its own wrapper: inside `call` it might write past the end of one.
            inside = [remark("own-wrapper", variant.name, wrapper=own)]
            checks[variant.name] = replace(checks[own], name=variant.name, remarks=inside)
        else:
            checks[variant.name] = judge(bench, variant, rounds)
    for variant in bench.variants():
        if checks[variant.name].correct or not variant.swaps:
            continue
        # It may need buffers that its own wrapper lays out differently, and be right as part of that.
        whole = checks.get("call" + variant.name[variant.name.rindex("_v") :])
        if whole and whole.correct and record(bench, whole.name, variant.name, rounds[0].inputs):
            needed = remark("own-wrapper-needed", variant.name, wrapper=whole.name)
            checks[variant.name] = Check(variant.name, remarks=[needed])
    same = unedited(bench)
    return rounds, pristine, [replace(check, unedited=name in same) for name, check in checks.items()]


def time_pair(
    pair: Pair, options: argparse.Namespace, budget: float, rng: random.Random, warn: Callable[[Remark], None]
) -> Timed:
    """Time two subjects against each other for `budget` seconds, on one ring if they take the same values."""
    baseline, candidate = pair
    rings: dict[int, Ring] = {}
    sides: dict[str, Side] = {}
    subjects = [baseline, candidate] if candidate else [baseline]
    for subject in reversed(subjects) if options.copies_first else subjects:
        key = id(subject.values)
        rings[key] = rings.get(key) or make_ring(subject.values, options.data == "cold", rng, warn)
        sides[subject.name] = make_side(subject, rings[key])
    b, begin = sides[candidate.name] if candidate else None, time.perf_counter()
    quads = time_quads(sides[baseline.name], b, budget, options.precision, rng)
    name = candidate.name if candidate else None
    return Timed(baseline.name, name, quads, time.perf_counter() - begin)


def configs_of(
    bench: Bench, options: argparse.Namespace, inputs: list[Any], human: TextIO
) -> list[dict[str, Any]]:
    """Check and time every config of the Triton kernels, on what their first launch gets; print a table."""
    found = []
    for name in [options.kernel] if options.kernel else bench.kernels:
        launches = record(bench, "call", name, inputs)
        if not launches or launches[0].method is None:
            continue
        remarks: list[Remark] = []
        clock = gpu_clock("cuda", options.data == "cold")
        times = time_configs(
            bench.namespace[name],
            launches[0],
            options.configs,
            clock=clock,
            seconds=options.budget,
            remarks=remarks,
        )
        lines = ["", config_table(name, times), configs_sentence(times), *map(sentence, remarks)]
        print("\n".join(lines), file=human)
        found.append({"kernel": name, "configs": [each.plain() for each in times], "remarks": remarks})
    return found


def main(bench: Bench, argv: list[str] | None = None) -> int:
    """Check, time and report; return 1 if anything is wrong, else 0."""
    options = parse(bench, argv)
    torch.set_num_threads(options.threads)
    shutdown_compile_workers()
    human = sys.stderr if options.json == "-" else sys.stdout
    warnings: list[Remark] = []

    def warn(remark: Remark) -> None:
        warnings.append(remark)
        print(wrapped(f"warning: {sentence(remark)}"), file=sys.stderr, flush=True)

    machine, timed, pairs = environment(), list[Timed](), list[Pair]()
    with torch.no_grad():
        rounds, pristine, checks = check_all(bench, options.seed)
        for check in (pristine, *checks):
            print(wrapped(verdict_on(check)), file=human, flush=True)
        right = {check.name for check in checks if check.correct and (options.copies or not check.unedited)}
        inputs = clone(rounds[0].inputs)
        configs = configs_of(bench, options, inputs, human) if options.configs is not None else []
        if pristine.correct and not options.check_only and options.configs is None:
            pairs += [] if options.kernel else call_pairs(bench, inputs, right)
            for kernel in [options.kernel] if options.kernel else bench.kernels:
                pairs += kernel_pairs(bench, kernel, inputs, right, warn)
        rng, end = random.Random(options.seed), time.perf_counter() + options.budget  # noqa: S311 - no secret
        gc.disable()
        for number, pair in enumerate(pairs):
            share = (end - time.perf_counter()) / (len(pairs) - number)
            timed.append(time_pair(pair, options, share, rng, warn))
        overheads = None
        if pairs and not options.kernel:
            overheads = measure_overheads(bench, inputs, max(options.budget / 4, 0.3), rng)
        gc.enable()
    if timed:
        data = f"{describe(inputs)}, {options.inputs} {options.data}, {options.threads} threads"
        shown = table(timed, [check.name for check in checks if not check.correct])
        print(f"\n{bench.graph}: {data}\n{shown}", file=human)
        print(f"\nfor a verdict, from several processes: probe bench-kernel {bench.graph}", file=human)
    if not pristine.correct:
        text = (
            "the pristine call is wrong: nothing was timed. If the dump comes from another machine: C++ code "
            f"needs vectors as wide as there, and this machine has {torch.backends.cpu.get_cpu_capability()}"
        )
        print(wrapped(text), file=human)
    result = {
        "schema": SCHEMA,
        "graph": bench.graph,
        "kernels": bench.kernels,
        "inputs": describe(inputs),
        "data": options.data,
        "values": options.inputs,
        "sizes": bench.sizes,
        "threads": options.threads,
        "seed": options.seed,
        "first": "candidate" if options.copies_first else "baseline",
        "command": sys.argv if argv is None else argv,
        "environment": machine,
        "warnings": warnings,
        "variants": [plain(check) for check in (pristine, *checks)],
        "comparisons": [asdict(each) for each in timed],
        "ablations": bench.ablations(),
        "overheads": overheads,
        "resources": resources(bench),
        "configs": configs,
    }
    if options.json:
        text = json.dumps(result, allow_nan=False)
        sys.stdout.write(text + "\n") if options.json == "-" else Path(options.json).write_text(text)
    return 0 if pristine.correct and all(check.correct for check in checks) else 1
