"""What verbs that run a script have in common: knobs, and the tables and messages about the run it left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from inductor_probe.api.run import Run
from inductor_probe.cli.completion import CASE, KNOB, SCRIPT
from inductor_probe.cli.screen import complain, relative, say, show, show_json
from inductor_probe.errors import ExitCode, ProbeError, RunFailedError
from inductor_probe.report.summary import SummaryTable, summary_json

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


def tell_run(run: Run, *, json: bool) -> int:
    """Print what was compiled and how the script ended; return the exit status that tells so."""
    if json:
        show_json(summary_json(run.summary, str(run.path), run.manifest))
    elif run.graphs or run.summary.looks:
        show(SummaryTable(run.summary))
    say(f"run: {relative(run.path)}")
    if run.not_remembered:
        say(f"warning: {run.not_remembered}")
    manifest = run.manifest
    if manifest and manifest.outcome != "ok":
        complain(_failure(manifest.script, manifest.outcome, manifest.exit_status, bool(run.graphs)))
        return ExitCode.FAILED
    if not run.graphs:
        complain(run.empty())
        return ExitCode.FAILED
    say(f"next: probe layouts, or probe bench-kernel {run.graphs[0].name}")
    return ExitCode.OK


def _failure(script: str, outcome: str, status: int, has_graphs: bool) -> ProbeError:
    how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
    if outcome == "interrupted":
        how = "was interrupted"
    kept = "what it had dumped is kept and shown above" if has_graphs else "it had dumped nothing yet"
    return RunFailedError(
        f"{script} {how}; {kept}",
        "the script's own message is above; `probe doctor` says whether this machine lacks something",
    )
