"""`probe tunings`: what inductor chose among."""

from __future__ import annotations

import sys

import click

import inductor_probe as ip
from inductor_probe.cli.completion import TARGET
from inductor_probe.cli.screen import give, warn


@click.command()
@click.argument("target", required=False, metavar="[GRAPH|TABLE.csv]", type=TARGET)
@click.option("--csv", is_flag=True, help="Print a table that spreadsheets read.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def tunings(target: str | None, *, csv: bool, json: bool) -> int:
    """Show what was autotuned: choices with times, configs of Triton kernels, and which of them run.

    GRAPH is a graph's name, the start of it, or a path; it may be left out when the latest run has only one.
    TABLE.csv is what --csv printed before; `probe rewrite GRAPH --tuned TABLE.csv` makes variants of its
    configs. `probe dump` writes both down; of other dumps, torch's logs tell of them (TORCH_LOGS=+inductor).
    """
    tunings = ip.tunings(target)
    if not csv:
        return give(tunings, json=json)
    sys.stdout.write(tunings.csv)
    return warn(tunings.problems)
