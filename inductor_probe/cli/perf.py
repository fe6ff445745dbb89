"""The verbs over many cases: `perf` times them, `results` lists what was measured."""

from __future__ import annotations

import sys
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.perf import PerfInterruptedError, remove_results
from inductor_probe.cli.parameters import verb
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
from inductor_probe.errors import ExitCode, ProbeError
from inductor_probe.options.cases import CompareOptions, PerfOptions, ResultsOptions
from inductor_probe.options.fields import ARGUMENT, Typed
from inductor_probe.report.units import counted

FORMATS = ("terminal", "markdown", "csv", "json")


@verb(PerfOptions, formats=FORMATS, github=True)
def perf(options: PerfOptions, *, output_format: str) -> int:
    """Time cases of a scenario: eager, compiled, and variants, in a table.

    SCENARIO is a script with named cases (probe dump takes it, too); a plain FUNCTION of a file needs none.
    Cases are compiled ahead, on all cores, and timed alone, in three fresh processes or more: eager and
    compiled take turns, call by call. Each is checked against eager and float64 before that. This executes
    the script, and the code that inductor generates for it.

    A column that ran eagerly, for instance after a recompile limit, is marked and not compared: the generated
    files that ran are recorded with their digests. All samples are kept: probe results lists them, and an
    interrupted run goes on with --resume. Exit status 1 if a column fails or computes something else.
    """
    try:
        with progress_line() as progress:
            table = ip.perf(options, progress=progress)
    except PerfInterruptedError as interruption:
        rest = "no row had been measured yet"
        if interruption.table is not None:
            _give(interruption.table, output_format)
            rest = (
                f"the rows above are in {relative(interruption.table.path)}: the same with --resume goes on"
            )
        complain(ProbeError("interrupted", rest))
        return ExitCode.INTERRUPTED
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


@verb(CompareOptions, github=True)
def compare(options: CompareOptions, *, output_format: OutputFormat) -> int:
    """Compare two results of probe perf: B against A, a row for each column of a case, regressions first.

    A and B are names, starts of names, paths, latest, latest~1 ... Rows are joined on everything: scenario,
    case, knobs, device, threads, column; what one side has alone is listed. The two were measured one after
    the other, so a ratio's interval rests on the times of processes, and is widened by as much as eager
    differs where both are the same torch. For two builds of torch, probe perf --interleave is sharper: both
    take turns within a millisecond.
    """
    view = ip.compare(options)
    give(view, output_format)
    if view.allowed is not None and view.regressions:
        percents = f"{100 * view.allowed:.3g} %"
        say_warning(f"{counted(len(view.regressions), 'row')} slower by more than {percents}")
        return ExitCode.MISMATCH
    return ExitCode.OK


class WithResults(Struct, frozen=True):
    """What is done with results: `open_results`, `result_history` and `api.perf.remove_results` in Python.

    Attributes:
        history: How the times of a scenario went over its results: what changed when, and why.
        prune: Remove those that are selected.
        dry_run: With --prune: list what would be removed.
    """

    name: Annotated[str | None, ARGUMENT, Typed(metavar="[RESULT]")] = None
    history: Annotated[str | None, Typed(metavar="SCENARIO")] = None
    prune: bool = False
    dry_run: bool = False


@verb(ResultsOptions, WithResults, formats=FORMATS)
def results(options: ResultsOptions, do: WithResults, *, output_format: str) -> int:
    """List what probe perf measured here, the newest first; or show the table of one RESULT again.

    RESULT is a name, the start of one, a path, or latest, latest~1 ... A table is made from the samples, with
    the verdicts that follow from them. With --history a time that changed has its cause: code, method,
    machine or noise. Of --prune and --dry-run the files are listed that are removed.
    """
    selected = bool(options.unfinished or options.older_than is not None or options.scenario)
    if do.history is not None and output_format != "csv":
        if do.name is not None or do.prune or selected:
            raise ProbeError("--history is about all results of a scenario", "leave out the other arguments")
        return give(ip.result_history(do.history, options.folder), output_format)  # type: ignore[arg-type]
    if do.name is not None:
        if do.prune or selected:
            raise ProbeError(f"{do.name} is one result: the other options choose among all")
        return _give(ip.open_results(do.name, options.folder), output_format)
    if output_format == "csv":
        raise ProbeError("--format csv is for a table", "name a result: probe results latest --format csv")
    if do.prune and not selected:
        raise ProbeError(
            "--prune needs to know which", "select them with --older-than 7d, --unfinished or --scenario"
        )
    rows = ip.results(replace(options, indexed=not do.prune))
    if do.prune:
        rows, others = remove_results(rows, dry_run=do.dry_run)
        for path in others:
            say_warning(f"{relative(path)} is left there: it is not a file of probe perf")
    removed = do.prune and not do.dry_run
    status = give_rows(rows, output_format) if rows or not removed else ExitCode.OK  # type: ignore[arg-type]
    if removed:
        say(f"removed {counted(len(rows), 'result')}")
    return ExitCode.OK if removed else status
