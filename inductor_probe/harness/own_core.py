"""Runs a bench file by the core that is pasted into it: one of another version, or one that somebody edited.

Command line: `own_core.py FILE RESULTS [OPTION ...]`, the text of FILE on stdin. Each core has `Bench` and
`measure(bench, options)`, which returns checks and quads; the JSON of them is made here.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

from inductor_probe.harness.constants import bind_constants
from inductor_probe.harness.jobs import JobError, import_modules
from inductor_probe.harness.load import BenchText, LoadError
from inductor_probe.harness.measure import Options, Timed, Times, environment, process_record
from inductor_probe.harness.options import seconds_of
from inductor_probe.harness.quads import Quad
from inductor_probe.harness.references import plain_check, unedited


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the command line; what a core cannot do alone ends the program."""
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("path", type=Path)
    add("results", type=Path)
    add("--budget", type=seconds_of, default=3.0)
    add("--threads", type=int, default=1)
    add("--seed", type=int, default=0)
    add("--kernel")
    add("--size", action="append", default=[])
    add("--import", dest="imports", action="append", default=[])
    add("--inputs", default="random")
    add("--data", default="warm")
    add("--configs")
    for name in ("--copies", "--copies-first", "--check-only"):
        add(name, action="store_true")
    add("--precision")
    options = parser.parse_args(argv)
    if options.inputs != "random" or options.data != "warm" or options.configs is not None:
        parser.error(
            f"the core in {options.path} was edited or is of another version, and has random inputs and warm "
            "data only, and no configs; delete the file to have it written again"
        )
    options.size = {name: int(number) for name, _, number in (size.partition("=") for size in options.size)}
    return options


def timed_of(pair: Any, same: set[str]) -> Timed:
    """Return the times of a pair as every core has them: of those in `same` it has none.

    They are unedited copies, which count as their baseline beside itself.
    """
    baseline, candidate, quads = pair
    alone = (candidate or "").partition(" ")[0] in {"", *same}
    return Timed(
        baseline, None if alone else candidate, [Quad(quad.order, quad.seconds, alone) for quad in quads]
    )


def main() -> None:
    """Check and time a file by its own core; write what `probe` reads."""
    options = parse(sys.argv[1:])
    text = BenchText(options.path, sys.stdin.buffer.read().decode())
    torch.set_num_threads(options.threads)
    try:
        import_modules({"imports": options.imports})
        names = text.load(copies_first=options.copies_first).namespace
    except LoadError as error:
        sys.exit(str(error))
    except JobError as error:
        sys.stderr.write(f"own_core.py: error: {error}\n")
        sys.exit(2)
    if options.kernel not in (None, *names["KERNELS"]):
        sys.stderr.write(
            f"own_core.py: error: no kernel {options.kernel}; there is {', '.join(names['KERNELS'])}\n"
        )
        sys.exit(2)
    bench = names["Bench"](names, options.size)
    if options.copies:
        names["unedited"] = lambda bench: set()  # of a core that has it, and times no unedited copies
    bind_constants(bench)
    machine, same = environment(), unedited(bench)
    with torch.no_grad():
        checks, timed = names["measure"](bench, options)
    cold = "EventClock" in names  # on a GPU
    requested = Options(options.kernel, options.budget, threads=options.threads, cold=cold, seed=options.seed)
    record = process_record(
        bench,
        requested,
        Times([timed_of(pair, set() if options.copies else same) for pair in timed]),
        inputs=bench.inputs(options.seed),
        variants=[{**plain_check(check), "unedited": check.name in same} for check in checks],
        warnings=[],
        machine=machine,
        command=[str(options.path)],
    )
    record["first"] = "candidate" if options.copies_first else "baseline"
    options.results.write_text(json.dumps(record, allow_nan=False))


if __name__ == "__main__":
    main()
