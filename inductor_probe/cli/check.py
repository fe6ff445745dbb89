"""`probe check`: is everything in a dump there and understood?"""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.cli.completion import TARGET
from inductor_probe.cli.screen import show, show_json
from inductor_probe.errors import ExitCode


@click.command()
@click.argument("targets", nargs=-1, metavar="[PATH|RUN|GRAPH]...", type=TARGET)
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def check(targets: tuple[str, ...], json: bool) -> int:
    """Read everything below each PATH, and say what is missing, damaged, not understood or not linked.

    PATH is a torch_compile_debug tree, a run, a graph's folder, an archive of one, or any folder above; RUN
    or GRAPH a label, a name, or the start of one; the latest run if left out. Of each kind of file it is said
    how many lines were read, were checked, or only counted. Exit status 1 if anything is wrong.
    """
    check = ip.check(*targets)
    if json:
        show_json(check.output)
    else:
        show(check)
    return ExitCode.OK if check.sound else ExitCode.MISMATCH
