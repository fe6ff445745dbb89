"""The verb that says whether a compiled program is right, and if not, which operator is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import inductor_probe as ip
from inductor_probe.api.accuracy import SECONDS, TRY_S
from inductor_probe.cli.completion import CASE, SCRIPT
from inductor_probe.cli.expect import dumped_or_found
from inductor_probe.cli.parameters import command, seconds, shared_option
from inductor_probe.cli.screen import OutputFormat, give, progress_line, warn
from inductor_probe.cli.scripts import SETTINGS, SIMULATED, VARIABLES
from inductor_probe.errors import ExitCode


@command(
    click.argument("words", nargs=-1, metavar="[SCRIPT|RUN|GRAPH [-- ARGS]]", type=SCRIPT),
    click.option("--case", "cases", multiple=True, type=CASE, help="A case of the scenario."),
    SETTINGS,
    VARIABLES,
    SIMULATED,
    shared_option(
        "--budget", default=f"{SECONDS:.0f}s", help=f"Judging of calls; then of few.  [{SECONDS:.0f}s]"
    ),
    click.option("--vary", is_flag=True, help="With other sizes, memory and values, too."),
    click.option("--try", "try_s", type=seconds, default=f"{TRY_S:.0f}s", metavar="TIME",
                 help=f"For changes that may make it right: settings, flips.  [{TRY_S:.0f}s]"),
    click.option("--no-try", "tries", is_flag=True, flag_value=False, default=True,
                 help="Do not look for what makes it right."),
    click.option("--cost", is_flag=True, help="Time your call with each change that makes it right."),
    shared_option("--trust"),
    shared_option("--out"),
)  # fmt: skip
def accuracy(
    words: tuple[str, ...],
    *,
    cases: tuple[str, ...],
    knobs: dict[str, str],
    env: dict[str, str],
    target: str | None,
    budget: float,
    vary: bool,
    try_s: float,
    tries: bool,
    cost: bool,
    trust: bool,
    out: Path | None,
    output_format: OutputFormat,
) -> int:
    """Is what a compiled program computes right, and if not: which operator, which line, whose fault?

    SCRIPT is dumped first. The script of a run is run again, the latest one if left out: each call of what it
    compiles is made eagerly, in float64, and compiled. What differs by more than rounding is followed down:
    through decompositions, passes, each launch and its loop body, to the operator that is wrong first, with
    its values, and the layer of the compiler that makes it so. With --target, and of a run that was made with
    it, the GPU is simulated, and triton's interpreter runs the kernels.

    Exit status 1 if something is wrong, 2 if nothing could be judged.
    """
    opened: Any = dumped_or_found(words, cases, knobs, env, out, target=target, may_fail=True)
    with progress_line() as progress:
        answer = ip.accuracy(
            opened,
            seconds=budget,
            try_s=try_s if tries else 0.0,
            vary=vary,
            cost=cost,
            trust=trust,
            progress=progress,
        )
    status = give(answer, output_format, ok=answer.record.verdict != "wrong")
    if answer.record.verdict is None:
        status = ExitCode.FAILED
    return max(status, warn(answer.record.problems))
