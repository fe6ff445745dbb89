"""`probe nodes`: the scheduler's nodes in a table."""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.api.rows import NODE_KINDS, NodeRows
from inductor_probe.cli.completion import BUFFER, KERNEL, TARGET, words_of
from inductor_probe.cli.screen import give


@click.command()
@click.argument("target", required=False, metavar="[RUN|GRAPH]", type=TARGET)
@click.option("--pre", is_flag=True, help="The nodes before fusion, with those removed since.")
@click.option(
    "--kind",
    type=words_of("kind", NODE_KINDS),
    help="Only pointwise, reduction, scan, sort, scatter, template, extern, fallback, item, nop; a class "
    "(ComputedBuffer); fused, foreach, unlinked.",
)
@click.option(
    "--kernel", type=KERNEL, help="Only nodes that run in this kernel, or one whose name starts so."
)
@click.option("--reads", type=BUFFER, metavar="BUFFER", help="Only nodes that read this buffer or input.")
@click.option(
    "--writes", type=BUFFER, metavar="BUFFER", help="Only nodes that write it, or change it in place."
)
@click.option("--op", help="Only nodes whose loop body calls this: exp, load, sum ...")
@click.option("--source", metavar="FILE:LINE", help="Only nodes from this line of yours, or file, or line.")
@click.option(
    "--sort", type=click.Choice(tuple(NodeRows.orders)), help="Largest first; in order if left out."
)
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def nodes(
    target: str | None,
    *,
    pre: bool,
    kind: str | None,
    kernel: str | None,
    reads: str | None,
    writes: str | None,
    op: str | None,
    source: str | None,
    sort: str | None,
    json: bool,
) -> int:
    """Show every node of the scheduler: what it does, reads, writes and loops over, and what it belongs to.

    RUN or GRAPH is a path, a graph's name (model__0_inference_0.0), a label, or the start of one; the latest
    run if left out. `probe show NODE` has one node on a page.
    """
    rows = ip.nodes(target, pre=pre)
    rows = rows.where(kind=kind, kernel=kernel, reads=reads, writes=writes, op=op, source=source)
    return give(rows.sorted_by(sort), json=json)
