"""`probe runs`: the runs below here, and taking away those no longer wanted."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import timedelta

import click

import inductor_probe as ip
from inductor_probe.cli.completion import TARGET
from inductor_probe.cli.screen import complain, give, say, show, show_json
from inductor_probe.errors import ExitCode, ProbeError
from inductor_probe.model.runs import Removal, RemovalResult, RunsOutput
from inductor_probe.report.runs import RemovalText
from inductor_probe.report.units import bytes_text, counted

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command()
@click.argument("targets", nargs=-1, metavar="[PATH|RUN]...", type=TARGET)
@click.option("--older-than", metavar="AGE", help="Only runs older than this: 30m, 12h, 7d, 2w.")
@click.option("--empty", is_flag=True, help="Only runs in which nothing was dumped.")
@click.option("--rm", is_flag=True, help="Remove the runs that are named or picked.")
@click.option("--dry-run", is_flag=True, help="With --rm: say what would go, and remove nothing.")
@click.option("--yes", is_flag=True, help="With --rm: do not ask.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def runs(
    targets: tuple[str, ...],
    *,
    older_than: str | None,
    empty: bool,
    rm: bool,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> int:
    """List the runs at and below PATH, the latest first; those below the working folder if left out.

    RUN is a run's path, label, folder name or the start of one. --rm removes only what is provably a
    run: a file that neither torch nor probe wrote, a bench file or output_code.py that was edited, or a link
    keeps it. Links are never followed, and nothing outside of the run's folder goes but its own trace log.
    """
    picked = older_than is not None or empty
    if rm and not targets and not picked:
        raise ProbeError(
            "--rm needs to know which", "name runs, or pick them with --older-than 7d or --empty"
        )
    age = _age(older_than) if older_than is not None else None
    runs = ip.runs(*targets, older_than=age, empty=empty, exact=rm and not picked)
    if rm:
        return _remove(runs, dry_run=dry_run, yes=yes, json=json)
    return give(runs, json=json)


def _remove(runs: ip.RunList, *, dry_run: bool, yes: bool, json: bool) -> int:
    plans = [ip.plan_removal(run) for run in runs]
    going = [plan for plan in plans if not plan.blockers]
    removed: list[Removal] = []
    if not json and not plans:
        show(runs)
    elif not json and (dry_run or not yes or not going):
        show(RemovalText(plans, "would remove"))
    if going and not dry_run:
        if yes or _is_wanted(going):
            removed = list(_removed(going))
        else:
            say("nothing was removed")
            going = []
    if json:
        results = tuple(RemovalResult(plan, plan in removed) for plan in plans)
        show_json(RunsOutput(rows=runs, removals=results, problems=runs.problems))
    elif removed and yes:
        show(RemovalText([plan for plan in plans if plan.blockers or plan in removed], "removed"))
    elif removed:
        say(f"removed {counted(len(removed), 'run')}, {bytes_text(sum(plan.size for plan in removed))}")
    all_done = not any(plan.blockers for plan in plans) and (dry_run or len(removed) == len(going))
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


def _is_wanted(plans: list[Removal]) -> bool:
    if not sys.stdin.isatty():
        raise ProbeError("cannot ask here whether to remove them", "add --yes")
    size = bytes_text(sum(plan.size for plan in plans))
    return click.confirm(f"Remove {counted(len(plans), 'run')}, {size}?", err=True)


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})\s*([smhdw])", text)
    if not match:
        raise ProbeError(f"invalid age {text!r}", "for example 30m, 12h, 7d, 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
