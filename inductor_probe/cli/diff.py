"""`probe diff`: what changed between two runs or graphs."""

from __future__ import annotations

import click

import inductor_probe as ip
from inductor_probe.cli.completion import KERNEL, TARGET
from inductor_probe.cli.screen import show, show_json, warn
from inductor_probe.errors import ExitCode
from inductor_probe.report.diff import CodePage, DiffPage

_EVERY = "*"


@click.command()
@click.argument("a", required=False, metavar="[A]", type=TARGET)
@click.argument("b", required=False, metavar="[B]", type=TARGET)
@click.option(
    "--code",
    is_flag=False,
    flag_value=_EVERY,
    type=KERNEL,
    metavar="[KERNEL]",
    help="Show the unified diff of matched kernels, or of one (a name of either side, or its start).",
)
@click.option("--all", "everything", is_flag=True, help="Show what did not change as well, and every entry.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def diff(a: str | None, b: str | None, *, code: str | None, everything: bool, json: bool) -> int:
    """Show what changed between two runs (builds, flags, versions of torch), or between two graphs.

    A and B are paths, graphs' names, labels, or the start of one. Without B, B is the latest run; without
    both, the two latest runs are compared. Graphs, kernels and buffers are matched by what they compute, not
    by name.

    The exit status is 0 when both compute the same with the same code, 1 when they differ, 2 when something
    could not be read.
    """
    if code not in (None, _EVERY) and a is not None and b is None:
        a, b, code = code, a, _EVERY  # `--code A B`: an option's value cannot be told from an argument
    diff = ip.diff(a, b)
    if json:
        show_json(diff.output)
    elif code is not None:
        show(CodePage(diff.code(None if code == _EVERY else code)))
    else:
        show(DiffPage(diff.result, everything))
    unread = warn(diff.problems)
    return unread or (ExitCode.OK if diff.equal else ExitCode.MISMATCH)
