"""`probe doctor`: is this machine fit for dumps and timings?"""

from __future__ import annotations

import sys

import click

import inductor_probe as ip
from inductor_probe.cli.screen import say, show, show_json
from inductor_probe.errors import ExitCode


@click.command()
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def doctor(json: bool) -> int:
    """Say in a line each, with the remedy, whether this machine is fit for dumps and timings.

    Python, torch and its build, triton, the C++ compiler with OpenMP (a kernel is compiled as inductor does),
    vectors, caches, recompile limits, variables that are set, GPUs, other load, the timer, and disks. A
    warning is about what could mislead. Exit status 1 if something is missing that is needed.
    """
    if sys.stderr.isatty():
        say("asking torch, in a process of its own; the first time on a machine that takes some 20 s")
    health = ip.doctor()
    if json:
        show_json(health.output)
    else:
        show(health)
    return ExitCode.OK if health.fit else ExitCode.MISMATCH
