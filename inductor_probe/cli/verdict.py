"""`probe verdict`: the report of samples that were taken before once more."""

from __future__ import annotations

import click
from rich.text import Text

import inductor_probe as ip
from inductor_probe.cli.completion import TARGET
from inductor_probe.cli.quantities import Share
from inductor_probe.cli.screen import say, show, show_json
from inductor_probe.errors import ExitCode
from inductor_probe.report.words.remarks import sentence


@click.command()
@click.argument("target", required=False, metavar="[FILE.json|GRAPH]", type=TARGET)
@click.option(
    "--margin", type=Share(), help="A smaller difference counts as none; as when measured by default."
)
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def verdict(target: str | None, *, margin: float | None, json: bool) -> int:
    """Make the report of bench-kernel again from its samples, with the same statistics; nothing is run.

    FILE.json is output_code_bench.json, or the folder that it is in; GRAPH names a graph as for bench-kernel.
    Exit status 1 if a variant was wrong.
    """
    bench = ip.verdict(target, margin=margin)
    say_warnings(bench)
    if json:
        show_json(bench.output)
    else:
        show(bench)
    return ExitCode.OK if bench.correct else ExitCode.MISMATCH


def say_warnings(bench: ip.Bench) -> None:
    """Say what spoils the times: above the report, and not in it."""
    for warning in bench.result.warnings:
        say(Text.assemble(("warning: ", "bold yellow"), sentence(warning)))
