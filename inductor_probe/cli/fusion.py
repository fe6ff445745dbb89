"""`probe fusion`: what was fused when, and what was refused why."""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.cli.arguments import answer
from inductor_probe.cli.completion import NAME
from inductor_probe.cli.screen import give, show, warn
from inductor_probe.report.fusion import FusionPages


@click.command()
@click.argument("words", nargs=-1, metavar="[A [B]] [RUN|GRAPH]", type=NAME)
@click.option("--all", "everything", is_flag=True, help="Show long lists to their end.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def fusion(words: tuple[str, ...], everything: bool, json: bool) -> int:
    """Show what the scheduler fused in which round, and what it refused why.

    A and B are nodes (op3), fused ones (op3_op4) or buffers (buf3): fused when, or not why? With A alone:
    what it was fused with and what not. Without names: all of the graph. RUN or GRAPH is a path, a
    graph's name (model__0_inference_0.0), a label, or the start of one; the latest run if left out.
    """
    rows = answer(words, 2, ip.fusion)
    if json or not everything:
        return give(rows, json=json)
    show(FusionPages(rows, everything))
    return warn(rows.problems)
