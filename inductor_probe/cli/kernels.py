"""`probe kernels`: the generated kernels and library calls of a run in a table."""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.api.rows import TRAITS, KernelRows
from inductor_probe.cli.completion import TARGET, words_of
from inductor_probe.cli.screen import give


@click.command()
@click.argument("target", required=False, metavar="[RUN|GRAPH]", type=TARGET)
@click.option(
    "--sort",
    type=click.Choice(tuple(KernelRows.orders)),
    help="Largest first, names from a to z; in the order of first use if left out.",
)
@click.option(
    "--only",
    "traits",
    multiple=True,
    type=words_of("trait", TRAITS),
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
    return give(ip.kernels(target).only(*traits).sorted_by(sort), json=json)
