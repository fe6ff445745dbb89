"""The verb that says in 25 lines what to do about a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import inductor_probe as ip
from inductor_probe.api.overview import BUDGET_S
from inductor_probe.cli.completion import CASE, SCRIPT
from inductor_probe.cli.expect import dumped_or_found
from inductor_probe.cli.parameters import command, shared_option
from inductor_probe.cli.screen import OutputFormat, give, progress_line, warn
from inductor_probe.cli.scripts import SETTINGS, VARIABLES
from inductor_probe.model.bench import BenchSettings


@command(
    click.argument("words", nargs=-1, metavar="[SCRIPT|RUN|GRAPH [-- ARGS]]", type=SCRIPT),
    click.option("--case", "cases", multiple=True, type=CASE, help="A case of the scenario."),
    SETTINGS,
    VARIABLES,
    shared_option(
        "--budget", default=f"{BUDGET_S:.0f}s", help=f"Measuring of everything: 10s, 1m.  [{BUDGET_S:.0f}s]"
    ),
    click.option("--no-measure", "measure", is_flag=True, flag_value=False, default=True,
                 help="Run nothing: rank by what bounds the time of kernels."),
    click.option("--again", is_flag=True, help="Measure what was measured before, too."),
    click.option("--operators", is_flag=True,
                 help="Compare what inductor decomposed with eager's kernels, figure by figure."),
    shared_option("--import", "imports"),
    shared_option("--trust"),
    shared_option("--out"),
)  # fmt: skip
def overview(
    words: tuple[str, ...],
    *,
    cases: tuple[str, ...],
    knobs: dict[str, str],
    env: dict[str, str],
    budget: float,
    measure: bool,
    again: bool,
    operators: bool,
    imports: tuple[str, ...],
    trust: bool,
    out: Path | None,
    output_format: OutputFormat,
) -> int:
    """What to do about a program: its call against eager, where the time goes, what was missed, what to try.

    SCRIPT is dumped first; of a RUN or GRAPH what was measured before is taken as it is, the latest run if
    left out. What is measured: the script runs again up to its call, and copies of the code that inductor
    generated read clocks. Where nothing can be run, parts are ranked by what bounds their time, and the first
    line says so.

    Exit status 1 if the compiled call gives other values than eager.
    """
    opened: Any = dumped_or_found(words, cases, knobs, env, out)
    settings = BenchSettings(budget=budget, imports=imports)
    with progress_line() as progress:
        answer = ip.overview(
            opened,
            settings,
            measure=measure,
            again=again,
            operators=operators,
            trust=trust,
            progress=progress,
        )
    status = give(answer, output_format, ok=not answer.record.wrong)
    return max(status, warn(answer.record.problems))
