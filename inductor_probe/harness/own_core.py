"""A bench file checked and timed by the core that is pasted into it: a job of the server.

It is a core of another version, or one that somebody edited. Each core has `Bench` and
`measure(bench, options)`, which returns checks and quads; what is sent of them is made here.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import torch

from inductor_probe.harness.constants import bind_constants
from inductor_probe.harness.jobs import JobError, Request, Tell, import_modules, options_of, text_of
from inductor_probe.harness.load import LoadError
from inductor_probe.harness.measure import Options, Timed, Times, environment, process_record
from inductor_probe.harness.quads import Quad
from inductor_probe.harness.references import plain_check, unedited


def measure(file: Request, request: Request, tell: Tell) -> None:
    """Check and time a file by its own core, and send what `jobs.measure` sends."""
    options = options_of(request["options"])
    if options.inputs != "random" or options.cold or options.configs is not None:
        raise JobError(
            "usage",
            "the core in it was edited or is of another version, and has random inputs and warm data only, "
            "and no configs; delete the file to have it written again",
        )
    torch.set_num_threads(options.threads)
    import_modules(file)
    tell("phase", phase="loading", names=[])
    try:
        names = text_of(file).load(copies_first=options.copies_first).namespace
    except LoadError as error:
        raise JobError("load", str(error)) from error
    if options.kernel not in (None, *names["KERNELS"]):
        raise JobError("usage", f"no kernel {options.kernel}; there is {', '.join(names['KERNELS'])}")
    bench = names["Bench"](names, dict(options.sizes))
    if options.copies:
        names["unedited"] = lambda bench: set()  # of a core that has it, and times no unedited copies
    bind_constants(bench)
    machine, same = environment(), unedited(bench)
    with torch.no_grad():
        checks, timed = names["measure"](bench, options_of_core(options))
    for check in checks:
        tell("check", variant={**plain_check(check), "unedited": check.name in same})
    tell("checked", variants=[check.name for check in checks if check.correct], needed=[])
    process = process_record(
        bench,
        replace(options, cold="EventClock" in names),  # on a GPU
        Times([timed_of(pair, set() if options.copies else same) for pair in timed]),
        inputs=bench.inputs(options.seed),
        variants=[],
        warnings=[],
        machine=machine,
        command=[str(file["path"])],
    )
    tell("process", process=process)


def options_of_core(options: Options) -> argparse.Namespace:
    """Return options as cores know them: what their command line is read into."""
    return argparse.Namespace(
        kernel=options.kernel,
        budget=options.budget,
        precision=options.precision,
        threads=options.threads,
        seed=options.seed,
        size=dict(options.sizes),
        copies=options.copies,
        copies_first=options.copies_first,
        check_only=False,
        inputs="random",
        data="warm",
        configs=None,
    )


def timed_of(pair: Any, same: set[str]) -> Timed:
    """Return the times of a pair as every core has them: of those in `same` it has none.

    They are unedited copies, which count as their baseline beside itself.
    """
    baseline, candidate, quads = pair
    alone = (candidate or "").partition(" ")[0] in {"", *same}
    return Timed(
        baseline, None if alone else candidate, [Quad(quad.order, quad.seconds, alone) for quad in quads]
    )
