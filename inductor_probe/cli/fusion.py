"""`probe fusion`: what was fused when, and what was refused why."""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.cli.completion import NAME
from inductor_probe.cli.screen import show, show_json, warn
from inductor_probe.errors import NotFoundError
from inductor_probe.model.fusion import FusionOutput
from inductor_probe.report.fusion import FusionPages

_MOST_ARGUMENTS = 3


@click.command()
@click.argument("names", nargs=-1, metavar="[A [B]] [RUN|GRAPH]", type=NAME)
@click.option("--all", "everything", is_flag=True, help="Show long lists to their end.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def fusion(names: tuple[str, ...], everything: bool, json: bool) -> int:
    """Show what the scheduler fused in which round, and what it refused why.

    A and B are nodes (op3), fused ones (op3_op4) or buffers (buf3): fused when, or not why? With A alone:
    what it was fused with and kept apart from. Without names: all of the graph. RUN or GRAPH is a path, a
    graph's name (model__0_inference_0.0), a label, or the start of one; the latest run if left out.
    """
    if len(names) > _MOST_ARGUMENTS:
        raise click.UsageError(f"at most two nodes and a run or graph, not {len(names)} arguments")
    rows = _rows(names)
    if json:
        show_json(FusionOutput(rows=rows, problems=rows.problems))
    else:
        show(FusionPages(rows, everything))
    return warn(rows.problems)


def _rows(names: tuple[str, ...]) -> ip.FusionRows:
    """Return what is asked for. The last argument may be a node, or else the run or graph that is meant."""
    if len(names) == _MOST_ARGUMENTS:
        return ip.fusion(*names)
    first, second = (*names, None, None)[:2]
    try:
        return ip.fusion(first, second)
    except NotFoundError as no_node:
        if not names:
            raise
        try:
            ip.open_run(names[-1])
        except NotFoundError as no_run:
            raise (no_run if "/" in names[-1] else no_node) from None
    return ip.fusion(first if second else None, None, names[-1])
