"""`probe kernels`: the generated kernels and library calls of a run in a table."""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.api.kernels import KERNEL_ORDERS
from inductor_probe.cli.completion import TARGET
from inductor_probe.cli.screen import say, show, show_json, warn
from inductor_probe.model.kernels import KernelsOutput
from inductor_probe.report.kernels import KernelTable


@click.command()
@click.argument("target", required=False, metavar="[RUN|GRAPH]", type=TARGET)
@click.option(
    "--sort",
    type=click.Choice(KERNEL_ORDERS),
    help="Largest first, names from a to z; in the order of first use if left out.",
)
@click.option(
    "--only",
    "traits",
    multiple=True,
    metavar="TRAIT",
    help="Only kernels that are TRAIT: cpp, triton, extern, fallback, template, pointwise, reduction, "
    "scalar, vectorised, atomic, int64, unlinked ... Several must all hold.",
)
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def kernels(target: str | None, sort: str | None, traits: tuple[str, ...], json: bool) -> int:
    """Show every kernel: nodes, loops or heuristic, bytes, launches, and remarks.

    RUN or GRAPH is a path, a graph's name (model__0_inference_0.0), a label, or the start of one; the latest
    run if left out. `probe show KERNEL` has one kernel on a page.
    """
    rows = ip.kernels(target).only(*traits).sorted_by(sort)
    if json:
        show_json(KernelsOutput(rows=rows, problems=rows.problems))
    elif rows:
        show(KernelTable(rows))
    else:
        say(f"no kernel is {' and '.join(traits)}" if traits else "nothing in it needs a kernel")
    return warn(rows.problems)
