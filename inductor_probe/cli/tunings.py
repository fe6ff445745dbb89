"""`probe tunings`: what max-autotune considered."""

from __future__ import annotations

import sys

import click

import inductor_probe as ip
from inductor_probe.cli.screen import say, show, show_json, warn


@click.command()
@click.argument("target", required=False, metavar="[GRAPH]")
@click.option("--csv", is_flag=True, help="Print a table that spreadsheets read.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def tunings(target: str | None, *, csv: bool, json: bool) -> int:
    """Show every choice that max-autotune timed for each operation, and which of them the wrapper runs.

    GRAPH is a graph's name, the start of it, or a path; it may be left out when the latest run has only one.
    `probe dump` writes the choices down; of a dump that torch made alone they are known with
    torch._inductor.config.trace.log_autotuning_results.
    """
    found = ip.tunings(target)
    if json:
        show_json(found.json)
    elif csv:
        sys.stdout.write(found.csv)
    elif found:
        show(found)
    else:
        say(
            "nothing was autotuned in it, or nobody wrote it down: dump what calls "
            "torch.compile(mode='max-autotune')"
        )
    return warn(found.problems)
