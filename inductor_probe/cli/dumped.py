"""What verbs that run a script have in common: knobs, and the tables and messages about the run it left."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

import inductor_probe as ip
from inductor_probe.cli.completion import CASE, KNOB, SCRIPT
from inductor_probe.cli.screen import complain, relative, say, show, show_json
from inductor_probe.errors import ExitCode, ProbeError, RunFailedError
from inductor_probe.model.manifest import Manifest
from inductor_probe.model.runs import NextStep
from inductor_probe.report.summary import next_text
from inductor_probe.report.words.runs import how_it_ended

_Verb = TypeVar("_Verb", bound=Callable[..., int])


def script_options(verb: _Verb) -> _Verb:
    """Give a verb what says which script runs: SCRIPT, its own arguments, cases and knobs."""
    for option in (
        click.option(
            "--set",
            "pairs",
            multiple=True,
            type=KNOB,
            metavar="KNOB=VALUE",
            help="Set a knob of the scenario.",
        ),
        click.option(
            "--case",
            "cases",
            multiple=True,
            type=CASE,
            help="A case of the scenario; all of them if left out.",
        ),
        click.argument("args", nargs=-1, metavar="[-- ARGS]"),
        click.argument("script", type=SCRIPT),
    ):
        verb = option(verb)
    return verb


def knobs_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return the knobs that `--set KNOB=VALUE` sets."""
    knobs = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ProbeError(f"--set {pair} is not KNOB=VALUE", "for example --set dtype=float32")
        knobs[name] = value
    return knobs


@contextmanager
def outliving_signals() -> Iterator[None]:
    """Leave SIGTERM and its like to the dump: this process has still to say what was dumped."""
    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in signals}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # by nohup
                signal.signal(number, lambda number, frame: None)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tell_run(run: ip.Run, *, json: bool) -> int:
    """Print what was compiled and how the script ended; return the exit status that tells so.

    Of a run that a signal interrupted it is the one that shells give: 130 for Ctrl-C, 143 for SIGTERM.
    """
    manifest = run.manifest
    number = getattr(signal, manifest.ended_by or "", None) if manifest else None
    if manifest is None or manifest.outcome != "interrupted" or number is None:
        return _tell(run, json=json)
    try:
        _tell(run, json=json)
    except OSError:  # the terminal is gone, as SIGHUP said: let the rest of it go nowhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
    return 128 + int(number)


def _tell(run: ip.Run, *, json: bool) -> int:
    if json:
        show_json(run.output)
    elif run.graphs or run.summary.remarks or run.summary.problems:
        show(run)
    say(f"run: {relative(run.path)}")
    if run.not_remembered:
        say(f"warning: {run.not_remembered}")
    manifest = run.manifest
    if manifest and manifest.outcome != "ok":
        complain(_failure(manifest, bool(run.graphs)))
        return ExitCode.FAILED
    if not run.graphs:
        complain(run.empty())
    for step in run.summary.next:
        say(f"next: {next_text(step, _target(run, step))}")
    return ExitCode.OK if run.graphs else ExitCode.FAILED


def _target(run: ip.Run, step: NextStep) -> str:
    """Name the graph where there are several, and its path where verbs would not find the run from here."""
    graph = next((graph for graph in run.graphs if graph.name == step.graph), None)
    if not run.path.is_relative_to(Path.cwd()):
        return str(graph.path if graph else run.path)
    return graph.name if graph and len(run.graphs) > 1 else ""


def _failure(manifest: Manifest, has_graphs: bool) -> ProbeError:
    kept = "what it had dumped is shown above" if has_graphs else "it had dumped nothing yet"
    hint: str | None = (
        "the script's own message is above; `probe doctor` says whether this machine lacks something"
    )
    if manifest.outcome == "interrupted":
        hint = "`probe check` says what of it is whole" if has_graphs else None
    elif manifest.ended_by == "SIGKILL":
        hint = "if nobody killed it, the kernel did, for lack of memory: see `dmesg`"
    return RunFailedError(f"{manifest.script} {how_it_ended(manifest)}; {kept}", hint)
