"""`probe layouts`: the layout of buffers, and how nodes and their kernels reach them."""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.cli.arguments import answer
from inductor_probe.cli.completion import NAME
from inductor_probe.cli.screen import give


@click.command()
@click.argument("words", nargs=-1, metavar="[NAME] [RUN|GRAPH]", type=NAME)
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def layouts(words: tuple[str, ...], json: bool) -> int:
    """Show how buffers lie in memory, and which nodes write and read them with which strides.

    NAME is a buffer (buf3), an input (arg0_1) or a node (op3); every buffer if left out. RUN or GRAPH is a
    path, a graph's name (model__0_inference_0.0), a label, or the start of one; the latest run if left out.
    """
    return give(answer(words, 1, ip.layouts), json=json)
