"""The verbs about what there is: `runs`, `check` (is a dump complete), `doctor` (is this machine fit)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import click
from msgspec import Struct
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.cli.parameters import verb
from inductor_probe.cli.screen import OutputFormat, complain, give, give_rows, say, show, show_json
from inductor_probe.errors import ExitCode, ProbeError
from inductor_probe.model.runs import Removal, RemovalResult, RunsOutput
from inductor_probe.options.fields import Typed
from inductor_probe.options.reading import CheckOptions, DoctorOptions, RunsOptions
from inductor_probe.report.pages.runs import removal_lines
from inductor_probe.report.units import bytes_text, counted


class PortableShown(Struct, frozen=True):
    """Whether it is about machines, and which: `portability` in Python.

    Attributes:
        portable: What packages, bench files and wrappers assume of the machine, and whether it has that.
        target: With --portable: a machine with this GPU, by name or FILE.toml.
    """

    portable: bool = False
    target: Annotated[str | None, Typed("gpu", "NAME|FILE.toml")] = None


@verb(CheckOptions, PortableShown, github=True)
def check(options: CheckOptions, shown: PortableShown, *, output_format: OutputFormat) -> int:
    """Read everything below each PATH, and say what is missing, damaged, not understood or not linked.

    PATH is a torch_compile_debug tree, a run, a graph's folder, an archive of one, or any folder above; RUN
    or GRAPH a label, a name, or the start of one; the latest run if left out. For each kind of file, the
    lines that were read, checked, or only counted are shown. Exit status 1 if anything is wrong.

    With --portable PATH is a package of AOTInductor, a bench file, or a wrapper in Python: exit status 1 if
    this machine breaks something that it assumes. Nothing of it is run, loaded or unpickled.
    """
    if shown.portable:
        if not options.targets:
            raise ProbeError("--portable needs a file", "probe check --portable model.pt2")
        answer = ip.portability(*options.targets, target=shown.target)
        return give(answer, output_format, ok=answer.portable)
    if shown.target is not None:
        raise ProbeError("--target is about --portable", "probe check --portable FILE --target h100")
    check = ip.check(options)
    return give(check, output_format, ok=check.sound)


@verb(DoctorOptions)
def doctor(options: DoctorOptions, *, output_format: OutputFormat) -> int:
    """Say in a line each, with the remedy, whether this machine is fit for dumps and timings.

    Python, torch and its build, triton, the C++ compiler with OpenMP (a kernel is compiled as inductor does),
    vectors, caches, recompile limits, variables that are set, GPUs, other load, the timer, and disks. A
    warning is about what could mislead. Exit status 1 if something is missing that is needed.
    """
    if sys.stderr.isatty():
        say("importing torch in a child process; the first time on a machine this takes about 20 s")
    health = ip.doctor(options)
    return give(health, output_format, ok=health.fit)


class RemoveRuns(Struct, frozen=True):
    """What is done with runs: `plan_removal` and `remove_run` in Python.

    Attributes:
        rm: Remove the runs that are named or selected.
        dry_run: With --rm: say what would go, and remove nothing.
        yes: With --rm: do not ask.
    """

    rm: bool = False
    dry_run: bool = False
    yes: bool = False


@verb(RunsOptions, RemoveRuns)
def runs(options: RunsOptions, do: RemoveRuns, *, output_format: OutputFormat) -> int:
    """List the runs at and below PATH, the latest first; those below the working folder if left out.

    RUN is a run's path, label, folder name or the start of one. --rm removes only what is provably a run: a
    file that neither torch nor probe wrote, a bench file or output_code.py that was edited, or a link
    prevents it. Links are never followed, and nothing outside of the run's folder is removed but its own
    trace log.
    """
    selected = options.older_than is not None or options.empty
    if do.rm and not options.targets and not selected:
        raise ProbeError(
            "--rm needs the runs to remove", "name runs, or select them with --older-than 7d or --empty"
        )
    runs = ip.runs(replace(options, exact=do.rm and not selected))
    if do.rm:
        return _remove(runs, dry_run=do.dry_run, yes=do.yes, json=output_format == "json")
    return give_rows(runs, output_format)


def _remove(runs: ip.RunList, *, dry_run: bool, yes: bool, json: bool) -> int:
    plans = [ip.plan_removal(run) for run in runs]
    removable = [plan for plan in plans if not plan.blockers]
    removed: list[Removal] = []
    if not json and not plans:
        show(runs.document)
    elif not json and (dry_run or not yes or not removable):
        show(removal_lines(plans, "would remove"))
    if removable and not dry_run:
        if yes or _confirmed(removable):
            removed = list(_removed(removable))
        else:
            say("nothing was removed")
            removable = []
    if json:
        results = tuple(RemovalResult(plan, plan in removed) for plan in plans)
        show_json(RunsOutput(rows=runs, removals=results, problems=runs.problems))
    elif removed and yes:
        show(removal_lines([plan for plan in plans if plan.blockers or plan in removed], "removed"))
    elif removed:
        say(f"removed {_total(removed)}")
    all_done = not any(plan.blockers for plan in plans) and (dry_run or len(removed) == len(removable))
    return ExitCode.OK if all_done else ExitCode.FAILED


def _removed(plans: list[Removal]) -> Iterator[Removal]:
    """Remove runs one by one, and yield those that are gone."""
    for plan in plans:
        try:
            ip.remove_run(plan)
        except ProbeError as error:
            complain(error)
        else:
            yield plan


def _confirmed(plans: list[Removal]) -> bool:
    if not sys.stdin.isatty():
        raise ProbeError("cannot ask whether to remove them: stdin is not a terminal", "add --yes")
    return click.confirm(f"Remove {_total(plans)}?", err=True)


def _total(plans: list[Removal]) -> str:
    return f"{counted(len(plans), 'run')}, {bytes_text(sum(plan.size for plan in plans))}"
