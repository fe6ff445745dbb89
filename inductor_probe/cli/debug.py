"""`probe debug`: run a script, and stop inside the compiler for a debugger."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import click

import inductor_probe as ip
from inductor_probe import debugging
from inductor_probe.cli.completion import PLACE, SUBJECT
from inductor_probe.cli.dumped import knobs_of, outliving_signals, script_options, tell_run
from inductor_probe.cli.screen import relative, say
from inductor_probe.errors import ProbeError


@click.command(context_settings={"max_content_width": 80})
@script_options
@click.option("--break", "places", multiple=True, type=PLACE, metavar="PLACE", help="Stop there.")
@click.option(
    "--break-on",
    "subjects",
    multiple=True,
    type=SUBJECT,
    metavar="SUBJECT",
    help="Stop when it is decided on.",
)
@click.option(
    "--listen", metavar="[HOST:]PORT", help="Where the editor attaches; this machine's port 5678 if left out."
)
@click.option("--pdb", is_flag=True, help="Stop in this terminal instead, with pdb.")
@click.option("--write", is_flag=True, help="Add to an existing .vscode/launch.json without asking.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for torch_compile_debug; the working folder if left out.",
)
@click.option("--json", is_flag=True, help="Print JSON with stable keys when the script has ended.")
def debug(
    script: str,
    args: tuple[str, ...],
    *,
    cases: tuple[str, ...],
    pairs: tuple[str, ...],
    places: tuple[str, ...],
    subjects: tuple[str, ...],
    listen: str | None,
    pdb: bool,
    write: bool,
    out: Path | None,
    json: bool,
) -> int:
    """Dump SCRIPT as `probe dump` does, under a debugger that stops in the compiler.

    \b
    A PLACE is one of
      torch._inductor.codegen.cpp:LoopLevel.lines      a function or method
      "scheduler:Scheduler.can_fuse if node1.get_name() == 'op3'"
      torch/_inductor/ir.py:123                        a line
      fusion vectorisation tiling layout lowering codegen    a set of places

    \b
    A SUBJECT is one of
      buf3                it is realised, and its layout decided
      op3                 it is made, and its code generated
      op3,op4             the two are tried for fusion
      cpp_fused_add_0     the kernel is tiled and generated; triton_... too

    In the script itself, write breakpoint().
    """
    if pdb and listen is not None:
        raise ProbeError("--pdb and --listen exclude each other", "--pdb stays in this terminal")
    with ExitStack() as during_the_dump:

        def before(planned: debugging.Planned, endpoint: debugging.Endpoint | None) -> None:
            _tell(planned, endpoint, write=write)
            during_the_dump.enter_context(outliving_signals())

        run = ip.debug(
            script,
            places=places,
            subjects=subjects,
            listen=None if pdb else listen or "5678",
            args=args,
            cases=cases,
            knobs=knobs_of(pairs),
            out=out,
            stdout_to_stderr=json,
            before=before,
        )
        return tell_run(run, json=json)


def _tell(planned: debugging.Planned, endpoint: debugging.Endpoint | None, *, write: bool) -> None:
    """Say where it will stop, and how an editor gets there."""
    for sentence in planned.gone:
        say(f"warning: {sentence}")
    for stop in planned.stops:
        condition = f" if {stop.condition}" if stop.condition and not stop.why else ""
        say(f"will stop: {stop}{condition}, {Path(stop.path).name}:{stop.line}")
    if endpoint is None:
        return
    if not endpoint.is_loopback:
        say(f"warning: whoever reaches {endpoint} can run code as you")
    _offer(debugging.launch_file(Path.cwd(), endpoint), write=write)
    for editor, step in debugging.instructions(endpoint):
        say(f"{editor:<9} {step}")


def _offer(file: debugging.LaunchFile, *, write: bool) -> None:
    """Write launch.json where there is none; touch one that is there only when told to."""
    path = relative(file.path)
    if file.after == file.before:
        return
    if file.before is None or write or _agrees(f"add an entry to {path}?"):
        file.write()
        say(f"{'wrote' if file.before is None else 'added an entry to'} {path}")
    else:
        say(f"add this to the configurations in {path}, or say --write:\n{file.configuration}")


def _agrees(question: str) -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty() and click.confirm(question, err=True)
