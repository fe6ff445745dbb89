"""The run: hazards, inputs, reference, checks, times, table, and everything measured as JSON."""

from __future__ import annotations

import argparse
import difflib
import gc
import importlib
import json
import os
import platform
import random
import re
import runpy
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch._inductor.async_compile import shutdown_compile_workers

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.configs import time_configs
from inductor_probe.harness.inputs import KINDS, InputsError, clone, tensors_of
from inductor_probe.harness.judge import check_all
from inductor_probe.harness.launches import Pair, call_pairs, kernel_pairs, record
from inductor_probe.harness.overheads import measure_overheads
from inductor_probe.harness.remarks import Remark, sentence
from inductor_probe.harness.report import Timed, describe, table, wrapped
from inductor_probe.harness.timing import Ring, Side, gpu_clock, make_ring, make_side, time_quads

SCHEMA = 2
CPUINFO = Path("/proc/cpuinfo")


def parse(bench: Bench, argv: list[str] | None) -> argparse.Namespace:
    """Read the command line; an unknown kernel ends it with near names."""
    parser = argparse.ArgumentParser(
        description=f"Check and time the kernels of {bench.graph}, and their variants, in this one process.",
        epilog=f"For a verdict, which takes several processes: probe bench-kernel {bench.graph}",
    )
    add = parser.add_argument
    add("--json", nargs="?", const="-", metavar="FILE", help="write results to FILE, or to stdout")
    limit = "for all comparisons: 500ms, 3s, 2m (3s)"
    add("--budget", type=seconds_of, default=3.0, metavar="TIME", help=limit)
    add("--precision", type=float, default=0.0025, metavar="W", help="precision to stop at (0.0025)")
    add("--kernel", metavar="NAME", help="time this kernel only")
    add("--threads", type=int, default=1, metavar="N", help="threads of torch and of OpenMP (1)")
    cached = "do calls find their data in a cache? (warm; cold on a GPU, where the L2 is flushed)"
    add("--data", choices=("cold", "warm"), help=cached)
    add("--inputs", choices=KINDS, default=KINDS[0], help="values of the inputs (random)")
    more = "Triton: time all configs, and those of TEXT: XBLOCK=1,8 num_warps=4; prints JSON"
    add("--configs", metavar="TEXT", help=more)
    first = "import this module, or run this FILE.py, first: it registers operators that the graph calls"
    add("--import", dest="imports", action="append", default=[], metavar="MODULE", help=first)
    add("--size", action="append", default=[], metavar="s77=128", help="bind a symbolic size")
    add("--copies-first", action="store_true", help="set up candidates before baselines")
    add("--seed", type=int, default=0, help="of inputs, their places, and the order of timing (0)")
    add("--copies", action="store_true", help="time unedited copies, too: A against A")
    add("--check-only", action="store_true", help="check the variants, time nothing")
    options = parser.parse_args(argv)
    if options.kernel and options.kernel not in bench.kernels:
        near = difflib.get_close_matches(options.kernel, bench.kernels, cutoff=0.3) or bench.kernels
        parser.error(f"no kernel {options.kernel}; there is {', '.join(near)}")
    for name in options.imports:
        try:
            if name.endswith(".py"):
                runpy.run_path(name, run_name=Path(name).stem)
            else:
                importlib.import_module(name)
        except (FileNotFoundError, ModuleNotFoundError) as error:
            parser.error(f"--import {name}: {error}; give a module as in Python, or a file as FILE.py")
    bench.kind, bench.sizes = options.inputs, {}
    for text in options.size:
        match = re.fullmatch(r"([^=]+)=(\d+)", text)
        if match is None:
            parser.error(f"invalid --size {text!r}: write s77=128")
        bench.sizes[match[1]] = int(match[2])
    try:
        inputs = bench.inputs(options.seed)
    except (InputsError, ValueError) as error:
        parser.error(str(error))
    on_cuda = any(tensor.is_cuda for tensor in tensors_of(inputs))
    if options.configs is not None and not on_cuda:
        parser.error("--configs is for Triton kernels, and this graph has none")
    options.json = options.json or (None if options.configs is None else "-")
    options.data = options.data or ("cold" if on_cuda else "warm")
    return options


def seconds_of(text: str) -> float:
    """Read `500ms`, `10s`, `2m`, or a number of seconds."""
    number, units = text.rstrip("ms"), {"ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0}
    try:
        return float(number) * units[text[len(number) :]]
    except (KeyError, ValueError):
        message = f"invalid duration {text!r}: write 2s, 500ms or 1m"
        raise argparse.ArgumentTypeError(message) from None


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


def sweep_configs(bench: Bench, options: argparse.Namespace, inputs: list[Any]) -> list[dict[str, Any]]:
    """Check and time every config of the Triton kernels, on what their first launch gets."""
    sweeps = []
    for name in [options.kernel] if options.kernel else bench.kernels:
        launches = record(bench, "call", name, inputs)
        if not launches or launches[0].method is None:
            continue
        remarks: list[Remark] = []
        clock, kernel = gpu_clock("cuda", options.data == "cold"), bench.namespace[name]
        times = time_configs(
            kernel, launches[0], options.configs, clock=clock, seconds=options.budget, remarks=remarks
        )
        sweeps.append({"kernel": name, "configs": [time.plain() for time in times], "remarks": remarks})
    return sweeps


def environment() -> dict[str, Any]:
    """Return versions, machine, cores, threads and load."""
    models = re.findall(r"model name\s*: (.*)", CPUINFO.read_text()) if CPUINFO.exists() else []
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cpu": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def resources(bench: Bench) -> dict[str, dict[str, int]]:
    """Return `registers` and `spills` of a thread, `shared` bytes of a block, of Triton kernels that ran."""
    attributes = {"registers": "n_regs", "spills": "n_spills", "shared": "shared"}
    kernels: dict[str, dict[str, int]] = {}
    for name, kernel in bench.namespace.items():
        generated = re.sub(r"_v\d+$", "", name) in bench.kernels
        launchers = getattr(kernel, "launchers", None) if generated else None
        if isinstance(launchers, list) and len(launchers) == 1:  # all but one lost when it was autotuned
            values = {key: getattr(launchers[0], attribute, None) for key, attribute in attributes.items()}
            known = {key: value for key, value in values.items() if isinstance(value, int)}
            if len(known) == len(attributes):
                kernels[name] = known
    return kernels


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
    configs, overheads = list[dict[str, Any]](), None
    with torch.no_grad():
        rounds, pristine, checks = check_all(bench, options.seed)
        for check in (pristine, *checks):
            print(wrapped(check.sentence()), file=human, flush=True)
        right = {check.name for check in checks if check.correct and (options.copies or not check.unedited)}
        inputs = clone(rounds[0].inputs)
        if options.configs is not None:
            configs = sweep_configs(bench, options, inputs)
        elif pristine.correct and not options.check_only:
            pairs += [] if options.kernel else call_pairs(bench, inputs, right)
            for kernel in [options.kernel] if options.kernel else bench.kernels:
                pairs += kernel_pairs(bench, kernel, inputs, right, warn)
        rng, end = random.Random(options.seed), time.perf_counter() + options.budget  # noqa: S311 - no secret
        gc.disable()
        for number, pair in enumerate(pairs):
            share = (end - time.perf_counter()) / (len(pairs) - number)
            timed.append(time_pair(pair, options, share, rng, warn))
        if pairs and not options.kernel:
            overheads = measure_overheads(bench, inputs, max(options.budget / 4, 0.3), rng)
        gc.enable()
    if timed:
        data = f"{describe(inputs)}, {options.inputs} {options.data}, {options.threads} threads"
        rows = table(timed, [check.name for check in checks if not check.correct])
        print(f"\n{bench.graph}: {data}\n{rows}", file=human)
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
        "variants": [check.plain() for check in (pristine, *checks)],
        "comparisons": [asdict(pair) for pair in timed],
        "ablations": bench.ablations(),
        "overheads": overheads,
        "resources": resources(bench),
        "configs": configs,
    }
    if options.json:
        text = json.dumps(result, allow_nan=False)
        sys.stdout.write(text + "\n") if options.json == "-" else Path(options.json).write_text(text)
    return 0 if pristine.correct and all(check.correct for check in checks) else 1
