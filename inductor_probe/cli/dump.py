"""`probe dump`: run a script, keep what inductor wrote, and say what was compiled."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import inductor_probe as ip
from inductor_probe.cli.screen import complain, relative, say, show, show_json
from inductor_probe.errors import ExitCode, ProbeError, RunFailedError
from inductor_probe.report.summary import SummaryTable, summary_json


@click.command()
@click.argument("script")
@click.argument("args", nargs=-1, metavar="[-- ARGS]")
@click.option("--case", "cases", multiple=True, help="A case of the scenario; all of them if left out.")
@click.option("--set", "pairs", multiple=True, metavar="KNOB=VALUE", help="Set a knob of the scenario.")
@click.option("--label", help="A name to find the run by.")
@click.option("--save-inputs", is_flag=True, help="Keep the bytes of every graph's real inputs.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for torch_compile_debug; the working folder if left out.",
)
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def dump(
    script: str,
    args: tuple[str, ...],
    *,
    cases: tuple[str, ...],
    pairs: tuple[str, ...],
    label: str | None,
    save_inputs: bool,
    out: Path | None,
    json: bool,
) -> int:
    """Run SCRIPT with its own empty inductor caches and dump every graph that inductor compiles.

    SCRIPT is any Python script that calls torch.compile: a path, or the bare name of one here or in the
    project's scenarios. Its own arguments follow after --.
    """
    knobs = _knobs(pairs)
    if sys.stderr.isatty():
        say(f"running {script} with empty caches: every kernel is compiled anew")
    run = ip.dump(
        script,
        args=args,
        cases=cases,
        knobs=knobs,
        label=label,
        save_inputs=save_inputs,
        out=out,
        stdout_to_stderr=json,
    )
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


def _knobs(pairs: tuple[str, ...]) -> dict[str, str]:
    knobs = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ProbeError(f"--set {pair} is not KNOB=VALUE", "for example --set dtype=float32")
        knobs[name] = value
    return knobs


def _failure(script: str, outcome: str, status: int, has_graphs: bool) -> ProbeError:
    how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
    if outcome == "interrupted":
        how = "was interrupted"
    kept = "what it had dumped is kept and shown above" if has_graphs else "it had dumped nothing yet"
    return RunFailedError(f"{script} {how}; {kept}", "the script's own message is above")
