"""`probe dump`: run a script, keep what inductor wrote, and say what was compiled."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import inductor_probe as ip
from inductor_probe.cli.dumped import knobs_of, outliving_signals, script_options, tell_run
from inductor_probe.cli.screen import say


@click.command()
@script_options
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
    knobs = knobs_of(pairs)
    if sys.stderr.isatty():
        say(f"running {script} with empty caches: every kernel is compiled anew")
    with outliving_signals():
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
        return tell_run(run, json=json)
