"""`probe check`: is everything in a dump there and understood?"""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.cli.completion import TARGET
from inductor_probe.cli.screen import show, show_json
from inductor_probe.errors import ExitCode
from inductor_probe.model.check import CheckOutput
from inductor_probe.report.check import CheckText


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH|RUN|GRAPH]...", type=TARGET)
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def check(paths: tuple[str, ...], json: bool) -> int:
    """Read everything below each PATH, and say what is missing, damaged, not understood or not linked.

    PATH is a torch_compile_debug tree, a run, a graph's folder, an archive of one, or any folder above; the
    latest run if left out. Of each kind of file it is said how many lines were read, were checked, or only
    counted. Exit status 1 if anything is wrong.
    """
    found = ip.check(*paths)
    if json:
        show_json(CheckOutput(check=found, problems=found.problems))
    else:
        show(CheckText(found))
    return ExitCode.OK if found.sound else ExitCode.MISMATCH
