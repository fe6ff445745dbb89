"""The verbs over many cases: `perf` times them, `results` lists what was measured."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

import inductor_probe as ip
from inductor_probe.cli.completion import CASE, KNOB, SCRIPT
from inductor_probe.cli.parameters import IN_GITHUB, CommaList, command, percent, shared_option
from inductor_probe.cli.screen import (
    OutputFormat,
    complain,
    give,
    give_rows,
    progress_line,
    relative,
    say,
    say_warning,
)
from inductor_probe.cli.scripts import set_values
from inductor_probe.errors import ExitCode, ProbeError
from inductor_probe.model.perf import PerfSettings
from inductor_probe.report.units import counted

if TYPE_CHECKING:
    from inductor_probe.executors.local import ExecutorName
    from inductor_probe.measuring.plan import PlannedRow

_INTERRUPTED = 130
FORMATS = ("terminal", "markdown", "csv", "json")


def _python(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Return an interpreter's path as it can be started from elsewhere; links in it stay: they say which."""
    return None if path is None else Path(path).expanduser().absolute()


def _two_pythons(
    ctx: click.Context, parameter: click.Parameter, paths: tuple[Path, Path] | None
) -> tuple[Path, Path] | None:
    if not paths:
        return None
    a, b = (Path(path).expanduser().absolute() for path in paths)
    return a, b


def _knobs(ctx: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    knobs = set_values(ctx, parameter, pairs)
    for name, value in knobs.items():
        prefix, dot, setting = name.partition(".")
        if dot and prefix == "inductor":
            raise ProbeError(
                f"--set {name}: here --set is for knobs, and a setting of inductor makes a column of its own",
                f"write --columns eager,compiled,compiled@{setting}={value}",
            )
    return knobs


def _columns(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not all(names):
        raise click.BadParameter(f"invalid list {text!r} (example: eager,compiled,call)")
    return names


_FOLDER = click.option(
    "--results", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Where results are.  [.probe/results]",
)  # fmt: skip


@command(
    click.argument("script", type=SCRIPT, metavar="SCENARIO|FILE.py:FUNCTION"),
    click.option(
        "--case", "cases", multiple=True, type=CASE, metavar="PATTERN",
        help="Only cases whose names match, of all matrices: 'channels_*'.",
    ),
    click.option(
        "--matrix", metavar="NAME", help="quick, full, a matrix of the scenario, or a pattern.  [quick]"
    ),
    click.option(
        "--columns", callback=_columns, metavar="LIST",
        help="eager, compiled, call, kernel, VARIANT; a setting of inductor: compiled@cpp.simdlen=256. The "
        "first is what others are compared with.  [eager,compiled and all variants]",
    ),
    click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE",
                 help="Argument of FUNCTION: x=u8[1,3,345,456]:channels_last, size=(256,256)."),
    click.option("--set", "knobs", multiple=True, type=KNOB, callback=_knobs, metavar="NAME=VALUE",
                 help="Set a knob of the scenario in all cases."),
    click.option("--threads", type=CommaList(), default="1", metavar="LIST", help="Threads: 1 or 1,2.  [1]"),
    click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Only cases for it."),
    shared_option("--budget", default="3s", help="Measuring of each row: 500ms, 3s, 1m.  [3s]"),
    shared_option("--margin", default="1%", help="A smaller difference counts as none.  [1%]"),
    click.option("--processes", type=click.IntRange(1, 99), metavar="N",
                 help="Measuring processes of a row.  [3, more where they differ]"),
    shared_option("--cold/--warm", help="Calls find none of their data in a cache.  [cold on a GPU]"),
    click.option("--python", type=click.Path(path_type=Path), callback=_python, metavar="PATH",
                 help="Measure under this interpreter: it needs torch, and nothing else."),
    click.option("--interleave", nargs=2, type=click.Path(path_type=Path), callback=_two_pythons,
                 metavar="PY_A PY_B", help="Two interpreters that take turns: two builds of torch."),
    shared_option("--executor"),
    click.option("--check", "check_only", is_flag=True, help="Compile and check all columns, and time none."),
    click.option("--resume", is_flag=True, help="Go on with the latest run of this that was not finished."),
    _FOLDER,
    formats=FORMATS,
)  # fmt: skip
def perf(
    script: str,
    *,
    cases: tuple[str, ...],
    matrix: str | None,
    columns: tuple[str, ...],
    arguments: tuple[str, ...],
    knobs: dict[str, str],
    threads: tuple[int, ...],
    device: str | None,
    budget: float,
    margin: float,
    processes: int | None,
    cold: bool | None,
    python: Path | None,
    interleave: tuple[Path, Path] | None,
    check_only: bool,
    resume: bool,
    executor: ExecutorName,
    folder: Path | None,
    output_format: str,
) -> int:
    """Time cases of a scenario: eager, compiled, and variants, in a table.

    SCENARIO is a script with named cases (probe dump takes it, too); a plain FUNCTION of a file needs none.
    Cases are compiled ahead, on all cores, and timed alone, in three fresh processes or more: eager and
    compiled take turns, call by call. Each is checked against eager and float64 before that. This executes
    the script, and the code that inductor generates for it.

    A column that ran eagerly, for instance after a recompile limit, is marked and not compared: the generated
    files that ran are recorded with their digests. All samples are kept: probe results lists them, and an
    interrupted run goes on with --resume. Exit status 1 if a column fails or computes something else.
    """
    settings = PerfSettings(
        columns=columns,
        budget=budget,
        margin=margin,
        processes=processes,
        cold=cold,
        check_only=check_only,
    )
    if check_only and interleave:
        raise ProbeError("--check times nothing, and --interleave only times", "leave out one of them")
    path: Path | None = None
    second: Path | None = None
    if interleave:
        if python:
            raise ProbeError("--interleave names both interpreters", "leave out --python")
        python, second = interleave

    def begun(file: Path) -> None:
        nonlocal path
        path = file

    try:
        with progress_line() as progress:
            table = ip.perf(
                script,
                arguments=arguments,
                matrix=matrix,
                cases=cases,
                knobs=knobs,
                threads=threads,
                device=device,
                settings=settings,
                python=python,
                second=second,
                resume=resume,
                executor=executor,
                folder=folder,
                command=("probe", *sys.argv[1:]),
                progress=progress,
                left_out=_say_left_out,
                warn=say_warning,
                begun=begun,
            )
    except KeyboardInterrupt:
        return _interrupted(path, output_format)
    except ip.NotSavedError as error:
        _give(error.table, output_format)
        complain(error)
        say(f"the table above has all that was measured; {relative(error.table.path)} lacks the last of it")
        return ExitCode.FAILED
    status = _give(table, output_format)
    say(f"samples: {relative(table.path)}")
    return status


def _give(table: ip.PerfTable, output_format: str) -> int:
    if output_format == "csv":
        sys.stdout.write(table.csv)
        return ExitCode.OK if table.correct else ExitCode.MISMATCH
    return give(table, output_format, ok=table.correct)  # type: ignore[arg-type] # csv is dealt with


def _interrupted(path: Path | None, output_format: str) -> int:
    """Show the rows that were there by then."""
    table = ip.open_results(str(path)) if path is not None else None
    if path is None or table is None or not table.run.rows:
        if path is not None:
            path.unlink(missing_ok=True)
        complain(ProbeError("interrupted", "no row had been measured yet"))
        return _INTERRUPTED
    _give(table, output_format)
    complain(
        ProbeError("interrupted", f"the rows above are in {relative(path)}: the same with --resume goes on")
    )
    return _INTERRUPTED


def _say_left_out(rows: Sequence[PlannedRow]) -> None:
    reasons: dict[str, int] = {}
    for row in rows:
        reasons[row.missing or ""] = reasons.get(row.missing or "", 0) + 1
    for reason, number in reasons.items():
        say_warning(f"{counted(number, 'case')} left out: {reason}")


@command(
    click.argument("a", metavar="A"),
    click.argument("b", metavar="B"),
    shared_option("--margin", default="1%", help="A smaller difference counts as none.  [1%]"),
    click.option(
        "--fail-on-regression", metavar="PERCENT",
        callback=lambda ctx, parameter, text: text and percent(text),
        help="Exit status 1 if a row is slower by more than this, with its whole interval.",
    ),
    _FOLDER,
    IN_GITHUB,
)  # fmt: skip
def compare(
    a: str,
    b: str,
    *,
    margin: float,
    fail_on_regression: float | None,
    folder: Path | None,
    output_format: OutputFormat,
) -> int:
    """Compare two results of probe perf: B against A, a row for each column of a case, regressions first.

    A and B are names, starts of names, paths, latest, latest~1 ... Rows are joined on everything: scenario,
    case, knobs, device, threads, column; what one side has alone is listed. The two were measured one after
    the other, so a ratio's interval rests on the times of processes, and is widened by as much as eager
    differs where both are the same torch. For two builds of torch, probe perf --interleave is sharper: both
    take turns within a millisecond.
    """
    view = ip.compare(a, b, margin=margin, allowed=fail_on_regression, folder=folder)
    give(view, output_format)
    if fail_on_regression is not None and view.regressions:
        percents = f"{100 * fail_on_regression:.3g} %"
        say_warning(f"{counted(len(view.regressions), 'row')} slower by more than {percents}")
        return ExitCode.MISMATCH
    return ExitCode.OK


@command(
    click.argument("name", required=False, metavar="[RESULT]"),
    click.option("--scenario", metavar="TEXT", help="Only of scenarios with this in their name."),
    click.option("--older-than", metavar="AGE", help="Only older ones: 30m, 12h, 7d, 2w."),
    click.option("--unfinished", is_flag=True, help="Only those that were not finished, or cannot be read."),
    click.option("--prune", is_flag=True, help="Remove those that are selected."),
    click.option("--dry-run", is_flag=True, help="With --prune: list what would be removed."),
    _FOLDER,
    formats=FORMATS,
)
def results(
    name: str | None,
    *,
    scenario: str | None,
    older_than: str | None,
    unfinished: bool,
    prune: bool,
    dry_run: bool,
    folder: Path | None,
    output_format: str,
) -> int:
    """List what probe perf measured here, the newest first; or show the table of one RESULT again.

    RESULT is a name, the start of one, a path, or latest, latest~1 ... A table is made from the samples, with
    the verdicts that follow from them. Of --prune and --dry-run the files are listed that are removed.
    """
    if name is not None:
        if prune or unfinished or older_than or scenario:
            raise ProbeError(f"{name} is one result: the other options choose among all")
        return _give(ip.open_results(name, folder), output_format)
    if output_format == "csv":
        raise ProbeError("--format csv is for a table", "name a result: probe results latest --format csv")
    rows = ip.results(folder, scenario=scenario, indexed=not prune)
    if older_than is not None:
        limit = datetime.now(timezone.utc) - _age(older_than)
        rows = rows._with(row for row in rows if row.path.stat().st_mtime < limit.timestamp())
    if unfinished:
        rows = rows._with(row for row in rows if not row.finished)
    if not prune:
        return give_rows(rows, output_format)  # type: ignore[arg-type] # csv is dealt with
    if not (scenario or older_than or unfinished):
        raise ProbeError(
            "--prune needs to know which", "select them with --older-than 7d, --unfinished or --scenario"
        )
    from inductor_probe.store.results import is_ours, remove

    others = [row.path for row in rows if not is_ours(row.path)]
    rows = rows._with(row for row in rows if row.path not in others)
    for path in others:
        say_warning(f"{relative(path)} is left there: it is not a file of probe perf")
    if rows or dry_run:
        status = give_rows(rows, output_format)  # type: ignore[arg-type]
    if dry_run:
        return status
    remove(rows)
    say(f"removed {counted(len(rows), 'result')}")
    return ExitCode.OK


def _age(text: str) -> timedelta:
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    match = re.fullmatch(r"(\d{1,6})\s*([smhdw])", text)
    if not match:
        raise ProbeError(f"invalid age {text!r}", "for example 30m, 12h, 7d, 2w")
    return timedelta(**{units[match[2]]: int(match[1])})
