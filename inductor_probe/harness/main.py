"""The command line of a bench file: what is asked for, checked and timed; a table, and JSON."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from dataclasses import fields
from pathlib import Path

import torch
from torch._inductor.async_compile import shutdown_compile_workers

from inductor_probe.harness.alone import say
from inductor_probe.harness.bench import Bench
from inductor_probe.harness.jobs import JobError, import_modules
from inductor_probe.harness.measure import (
    Listener,
    Options,
    Times,
    bind_inputs,
    describe,
    environment,
    process_record,
    run_checks,
    run_timing,
)
from inductor_probe.harness.options import seconds_of
from inductor_probe.harness.references import plain_check
from inductor_probe.harness.remarks import Remark, sentence
from inductor_probe.harness.report import table
from inductor_probe.harness.saved_inputs import KINDS, InputsError


def parse(bench: Bench, argv: list[str] | None) -> tuple[Options, str | None]:
    """Read the command line: return what to measure, and where its JSON goes (`-`: stdout).

    An unknown kernel ends the program with near names.
    """
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
    arguments = parser.parse_args(argv)
    if arguments.kernel and arguments.kernel not in bench.kernels:
        near = difflib.get_close_matches(arguments.kernel, bench.kernels, cutoff=0.3) or bench.kernels
        parser.error(f"no kernel {arguments.kernel}; there is {', '.join(near)}")
    try:
        import_modules({"imports": arguments.imports})
    except JobError as error:
        parser.error(str(error))
    sizes: dict[str, int] = {}
    for text in arguments.size:
        match = re.fullmatch(r"([^=]+)=(\d+)", text)
        if match is None:
            parser.error(f"invalid --size {text!r}: write s77=128")
        sizes[match[1]] = int(match[2])
    named = {field.name for field in fields(Options)} & vars(arguments).keys()
    options = Options(
        **{name: value for name, value in vars(arguments).items() if name in named},
        cold=None if arguments.data is None else arguments.data == "cold",
        sizes=tuple(sizes.items()),
        overheads=max(arguments.budget / 4, 0.3),
    )
    try:
        options = bind_inputs(bench, options)
    except (InputsError, ValueError) as error:
        parser.error(str(error))
    return options, arguments.json or (None if options.configs is None else "-")


def main(bench: Bench, argv: list[str] | None = None) -> int:
    """Check, time and report; return 1 if anything is wrong, else 0."""
    options, file = parse(bench, argv)
    torch.set_num_threads(options.threads)
    shutdown_compile_workers()
    human = sys.stderr if file == "-" else sys.stdout
    warnings: list[Remark] = []

    def warn(remark: Remark) -> None:
        warnings.append(remark)
        say(f"warning: {sentence(remark)}", sys.stderr)

    machine, times = environment(), Times([])
    try:
        checked = run_checks(bench, options)
    except InputsError as error:
        print(f"{Path(sys.argv[0]).name}: error: {error}", file=sys.stderr)
        return 2
    for known in checked.remarks:
        warn(known)
    checks = [checked.pristine, *checked.checks]
    for check in checks:
        say(check.sentence(), human)
    if options.configs is not None or (checked.pristine.correct and not options.check_only):
        times = run_timing(
            bench, options, checked.inputs, checked.to_time(options.copies), Listener(warn=warn)
        )
    if times.comparisons:
        data = "cold" if options.cold else "warm"
        title = f"{describe(checked.inputs)}, {options.inputs} {data}, {options.threads} threads"
        rows = table(times.comparisons, [check.name for check in checked.checks if not check.correct])
        print(f"\n{bench.graph}: {title}\n{rows}", file=human)
        print(f"\nfor a verdict, from several processes: probe bench-kernel {bench.graph}", file=human)
    if not checked.pristine.correct:
        text = (
            "the pristine call is wrong: nothing was timed. If the dump comes from another machine: C++ code "
            f"needs vectors as wide as there, and this machine has {torch.backends.cpu.get_cpu_capability()}"
        )
        say(text, human)
    if file:
        command, variants = sys.argv if argv is None else argv, [plain_check(check) for check in checks]
        result = process_record(
            bench,
            options,
            times,
            inputs=checked.inputs,
            variants=variants,
            warnings=warnings,
            machine=machine,
            command=command,
        )
        text = json.dumps(result, allow_nan=False)
        sys.stdout.write(text + "\n") if file == "-" else Path(file).write_text(text)
    return 0 if checked.correct else 1
