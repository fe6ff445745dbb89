"""`probe layouts`: the layout of buffers, and how nodes and their kernels reach them."""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.cli.completion import NAME, TARGET
from inductor_probe.cli.screen import is_path, show, show_json, warn
from inductor_probe.errors import NotFoundError
from inductor_probe.model.layouts import LayoutsOutput
from inductor_probe.report.layouts import LayoutPage, LayoutTable


@click.command()
@click.argument("name", required=False, type=NAME)
@click.argument("target", required=False, metavar="[RUN|GRAPH]", type=TARGET)
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def layouts(name: str | None, target: str | None, json: bool) -> int:
    """Show how buffers lie in memory, and which nodes write and read them with which strides.

    NAME is a buffer (buf3), an input (arg0_1) or a node (op3); every buffer if left out. RUN or GRAPH is a
    path, a graph's name (model__0_inference_0.0), a label, or the start of one; the latest run if left out.
    """
    rows, named = _rows(name, target)
    if json:
        show_json(LayoutsOutput(rows=rows, problems=rows.problems))
    elif named:
        for at, row in enumerate(rows):
            show(LayoutPage(row, below_another=at > 0))
    else:
        show(LayoutTable(rows))
    return warn(rows.problems)


def _rows(name: str | None, target: str | None) -> tuple[ip.LayoutRows, bool]:
    """Return the rows, and whether they were asked for by name.

    With one argument that is no buffer, it may be the run or graph that is meant.
    """
    if target is None and is_path(name):
        name, target = None, name
    if name is None or target is not None:
        return ip.layouts(name, target), name is not None
    try:
        return ip.layouts(name), True
    except NotFoundError as no_buffer:
        try:
            return ip.layouts(None, name), False
        except NotFoundError:
            raise no_buffer from None
