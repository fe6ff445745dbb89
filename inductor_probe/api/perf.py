"""Cases of scenarios timed, and files of results: measured, read again, listed."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.api.rows import Rows
from inductor_probe.errors import AmbiguousError, NotFoundError, ProbeError, UnreadableError, near_names
from inductor_probe.files import cell
from inductor_probe.model.output import Output
from inductor_probe.model.perf import (
    CompareOutput,
    CompareRow,
    PerfOutput,
    PerfRun,
    ResultEntry,
    ResultsOutput,
    RowResult,
    SeriesHistory,
)
from inductor_probe.options.cases import CompareOptions, PerfOptions, ResultsOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.document import Document
from inductor_probe.report.pages.history import history_page
from inductor_probe.report.pages.perf import compare_page, perf_page, results_table
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.perf import compare_sentence, perf_sentence
from inductor_probe.store.results import (
    FOLDER,
    entries,
    entry_of,
    find_results,
    is_ours,
    new_name,
    read_run_file,
    remove,
    write_run,
)

if TYPE_CHECKING:
    from inductor_probe.measuring.compare import Compared
    from inductor_probe.measuring.plan import Plan

_SAME_TO_RESUME = ("columns", "budget", "margin", "processes", "cold", "check_only")


class PerfTable(Shown, Struct, frozen=True, dict=True):
    """What `perf` measured: `run` are the samples, `path` is where they are."""

    run: PerfRun
    path: Path

    @cached_property
    def rows(self) -> tuple[RowResult, ...]:
        """Each row, concluded from its samples."""
        from inductor_probe.measuring.conclude import results_of

        return results_of(self.run)

    @property
    def correct(self) -> bool:
        """Whether no case failed, and no column of one failed or computes something else."""
        failed = any(row.failure and not row.lost for row in self.run.rows)
        bad = ("wrong", "failed")
        return not failed and not any(
            column.facts.problem in bad for row in self.rows for column in row.columns
        )

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return PerfOutput(
            file=self.path,
            name=self.run.name,
            interpreter=self.run.interpreter,
            other=self.run.other,
            margin=self.run.settings.margin,
            rows=self.rows,
            nodes=self.run.nodes,
            summary=perf_sentence(self.rows),
        )

    @property
    def document(self) -> Document:
        """A row for each case."""
        return perf_page(self.run, self.rows)

    @property
    def csv(self) -> str:
        """A line for each cell: what the row is, its time in seconds, and how it compares."""
        knobs = list(dict.fromkeys(name for row in self.rows for name, _ in row.key.knobs))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        host = self.run.machines[0].name
        head = (
            ["scenario", "case", "device", "threads", "data", *knobs, "column", "seconds", "mad", "baseline",
             "ratio", "low", "high", "verdict", "problem", "compiles", "recompiles", "graph_breaks",
             "limit_hits", "fallbacks", "share", "node"]
        )  # fmt: skip
        writer.writerow(map(cell, head))
        for row in self.rows:
            values = dict(row.key.knobs)
            for column in row.columns:
                facts, pair = column.facts, column.comparison
                cells = (
                    [row.key.scenario, row.key.case, row.key.device, row.key.threads, row.key.data,
                     *(values.get(knob, "") for knob in knobs), facts.name,
                     *((column.time.seconds, column.time.mad) if column.time else ("", "")),
                     *((pair.baseline, pair.ratio, pair.low, pair.high, pair.verdict) if pair else [""] * 5),
                     facts.problem or "", facts.compiles, facts.recompiles, facts.graph_breaks,
                     facts.limit_hits,
                     " ".join(name for code in facts.codes for name in code.fallbacks),
                     "" if column.share is None else column.share, row.node or host]
                )  # fmt: skip
                writer.writerow(map(cell, cells))
        return text.getvalue()


class NotSavedError(ProbeError):
    """What was measured last could not be written; `table` has it with all rows before it."""

    def __init__(self, error: ProbeError, table: PerfTable) -> None:
        super().__init__(error.message, error.hint)
        self.table = table


class ResultRows(Rows[ResultEntry]):
    """Files of results, the newest first."""

    record = ResultsOutput
    noun = "result"
    nothing = "nothing was measured here yet: probe perf SCENARIO measures"

    def _view(self) -> Document:
        return results_table(self)


class ResultHistory(Shown, Struct, frozen=True, dict=True):
    """How the times of a scenario went over `entries`, results of it, the oldest first."""

    scenario: str
    entries: tuple[ResultEntry, ...]
    margin: float = 0.01

    @cached_property
    def series(self) -> tuple[SeriesHistory, ...]:
        """Each column of a case that two results have, those that changed most first."""
        from inductor_probe.measuring.history import history_of

        return history_of([read_run_file(entry.path) for entry in self.entries], self.margin)

    @property
    def output(self) -> ResultsOutput:
        """What `--json` prints, as a record."""
        return ResultsOutput(rows=self.entries[::-1], history=self.series)

    @property
    def document(self) -> Document:
        """A row for each history, with a plot, and a line for each change."""
        return history_page(self.series, self.scenario)


def result_history(scenario: str, folder: Path | None = None, margin: float = 0.01) -> ResultHistory:
    """Return how the times of a scenario went over its results in a folder; `margin` as in `compare`.

    Raises:
        NotFoundError: it has none.
    """
    rows = entries(folder or FOLDER)
    readable = [row for row in rows if not row.problem and row.rows]
    of_scenario = [row for row in readable if row.scenario == scenario.removesuffix(".py")]
    chosen = of_scenario or [row for row in readable if scenario in row.scenario]
    names = sorted({row.scenario for row in readable})
    if not chosen:
        hint = near_names(scenario, names) or "probe perf measures; --results names another folder"
        raise NotFoundError(f"there are no results of {scenario} in {folder or FOLDER}", hint)
    if len({row.scenario for row in chosen}) > 1:
        several = ", ".join(sorted({row.scenario for row in chosen}))
        raise AmbiguousError(f"{scenario} may mean several scenarios: {several}", "name one of them")
    return ResultHistory(chosen[0].scenario, tuple(sorted(chosen, key=lambda row: row.started)), margin)


class PerfInterruptedError(KeyboardInterrupt):
    """Ctrl-C ended it. `table` is what was measured by then, None where that is nothing; it is on disk."""

    def __init__(self, table: PerfTable | None) -> None:
        super().__init__()
        self.table = table


@takes(PerfOptions)
def perf(options: PerfOptions, progress: Progress) -> PerfTable:
    """Time cases of a scenario, or a plain function: eager, compiled and variants, checked before.

    This executes the script, and the code that inductor generates for it.

    Raises:
        NotFoundError: no such script, case or column. ProbeError: bad options.
        NotSavedError: the disk is full. The rows before are in the file, and all of them in the error.
        PerfInterruptedError: Ctrl-C ended it, with the rows before.
        RunFailedError: the interpreter has no torch.
    """
    from inductor_probe.measuring.session import run_plan

    folder = options.folder or FOLDER
    plan = plan_of(options)
    path: Path | None = None

    def begin(run: PerfRun) -> PerfRun:
        nonlocal path
        if options.resume and (before := _unfinished(folder, run)) is not None:
            run = replace(
                run,
                name=before.name,
                started=before.started,
                rows=before.measured,
                rooflines=before.rooflines,
                nodes=before.nodes,
            )
        else:
            run = replace(run, name=new_name(folder, run.scenario, datetime.now(timezone.utc)))
        path = write_run(folder, run)
        return run

    def save(run: PerfRun) -> None:
        try:
            write_run(folder, run)
        except ProbeError as error:
            raise NotSavedError(error, PerfTable(run, folder / f"{run.name}.json")) from error

    try:
        run = run_plan(plan, begin, save, progress)
    except KeyboardInterrupt as interruption:
        table = None
        if path is not None and not _removed_if_empty(path):
            table = PerfTable(read_run_file(path), path)
        raise PerfInterruptedError(table) from interruption
    except ProbeError:
        if path is not None:
            _removed_if_empty(path)
        raise
    return PerfTable(run, folder / f"{run.name}.json")


class Compare(Shown, Struct, frozen=True, dict=True):
    """Two results, row by row; `allowed` is by how much B may be slower."""

    a: PerfTable
    b: PerfTable
    margin: float = 0.01
    allowed: float | None = None

    @cached_property
    def _compared(self) -> Compared:
        from inductor_probe.measuring.compare import compare_runs

        return compare_runs(self.a.run, self.b.run, self.margin)

    @property
    def rows(self) -> tuple[CompareRow, ...]:
        """What both have, regressions first."""
        return self._compared.rows

    @property
    def regressions(self) -> tuple[CompareRow, ...]:
        """Rows that are slower by more than is allowed, with their whole interval."""
        from inductor_probe.measuring.compare import regressions_of

        return regressions_of(self.rows, self.margin if self.allowed is None else self.allowed)

    @property
    def output(self) -> CompareOutput:
        """What `--json` prints, as a record."""
        return CompareOutput(
            a=entry_of(self.a.path, self.a.run),
            b=entry_of(self.b.path, self.b.run),
            rows=self.rows,
            unpaired=self._compared.unpaired,
            regressions=len(self.regressions),
            differences=self._compared.differences,
            summary=compare_sentence(self.rows, self._compared.unpaired),
        )

    @property
    def document(self) -> Document:
        """A row for each column that both have."""
        return compare_page(self.output)


@takes(CompareOptions)
def compare(options: CompareOptions, progress: Progress) -> Compare:
    """Compare two results, joined on all that a row is: scenario, case, knobs, device, threads, column.

    Raises:
        NotFoundError, UnreadableError: there are none, or they cannot be read. ProbeError: one of them has
            two interpreters in it.
    """
    tables = [open_results(str(word), options.folder) for word in (options.a, options.b)]
    for table in tables:
        if table.run.other is not None:
            raise ProbeError(
                f"{table.path} has two interpreters in one table, compared already",
                f"see probe results {table.run.name}",
            )
    return Compare(tables[0], tables[1], options.margin, options.fail_on_regression)


def plan_of(options: PerfOptions) -> Plan:
    """Return what is to be measured.

    Raises:
        NotFoundError: no such script. ProbeError: options that exclude each other, or cannot be read.
    """
    from inductor_probe.capture.scripts import find_script
    from inductor_probe.measuring.arguments import argument_of
    from inductor_probe.measuring.plan import Plan

    text, _, function = str(options.script).partition(":")
    if options.arguments and not function:
        raise ProbeError(
            "--arg is for a plain function", f"name it: probe perf {options.script}:FUNCTION --arg x=f32[3,4]"
        )
    if options.check_only and options.interleave:
        raise ProbeError("--check times nothing, and --interleave only times", "leave out one of them")
    if options.interleave and options.python:
        raise ProbeError("--interleave names both interpreters", "leave out --python")
    for name, value in options.knobs.items():
        prefix, dot, setting = name.partition(".")
        if dot and prefix == "inductor":
            raise ProbeError(
                f"--set {name}: here --set is for knobs, and a setting of inductor makes a column of its own",
                f"write --columns eager,compiled,compiled@{setting}={value}",
            )
    return Plan(
        find_script(text, Path.cwd()), options, function or None, tuple(map(argument_of, options.arguments))
    )


def _removed_if_empty(path: Path) -> bool:
    """Remove a file of results that has no row, or nothing at all: its name was only reserved."""
    try:
        empty = not read_run_file(path).rows
    except NotFoundError:
        return True
    except UnreadableError:
        empty = not path.stat().st_size
    if empty:
        path.unlink()
    return empty


def _unfinished(folder: Path, run: PerfRun) -> PerfRun | None:
    """Return the latest unfinished run of the same scenario, interpreters and executor; None without one.

    Raises:
        ProbeError: it was measured otherwise.
    """
    for entry in entries(folder):
        if entry.scenario != run.scenario or entry.finished or entry.problem:
            continue
        before = read_run_file(entry.path)
        if (before.other is None, before.executor) != (run.other is None, run.executor):
            continue
        differing = [
            name for name in _SAME_TO_RESUME if getattr(before.settings, name) != getattr(run.settings, name)
        ]
        facts_before, facts = _facts_to_resume(before), _facts_to_resume(run)
        differing += [name for name, fact in facts_before.items() if facts.get(name) != fact]
        if differing:
            raise ProbeError(
                f"{entry.path} was measured with other {', '.join(differing)}",
                "give the same options on the same machine, or leave --resume out",
            )
        return before
    return None


def _facts_to_resume(run: PerfRun) -> dict[str, str]:
    """Return what has to be the same for rows to be in one table with others; nodes are with their rows."""
    if run.executor == "ray":
        return {}
    facts = {**dict(run.machine), "torch": run.interpreter.torch, "commit": run.interpreter.git}
    if run.other is not None:
        facts |= {"torch (B)": run.other.torch, "commit (B)": run.other.git}
    return facts


def open_results(word: str, folder: Path | None = None) -> PerfTable:
    """Return results as a table: by name, the start of one, path, `latest`, or `latest~1`.

    Raises:
        NotFoundError, UnreadableError: there are none, or they cannot be read.
    """
    path = find_results(folder or FOLDER, word)
    return PerfTable(read_run_file(path), path)


@takes(ResultsOptions)
def results(options: ResultsOptions, progress: Progress) -> ResultRows:
    """Return the results of a folder that are asked for, the newest first."""
    rows = ResultRows(entries(options.folder or FOLDER, indexed=options.indexed))
    scenario, age = options.scenario, options.older_than
    if scenario is not None:
        rows = rows._with(row for row in rows if scenario in row.scenario)
    if age is not None:
        limit = (datetime.now(timezone.utc) - age).timestamp()
        rows = rows._with(row for row in rows if row.path.stat().st_mtime < limit)
    return rows._with(row for row in rows if not row.finished) if options.unfinished else rows


def remove_results(rows: ResultRows, *, dry_run: bool = False) -> tuple[ResultRows, list[Path]]:
    """Remove the files of results, and return those that are gone, or would be, and those that stay.

    A file that `perf` did not write stays.
    """
    others = [row.path for row in rows if not is_ours(row.path)]
    rows = rows._with(row for row in rows if row.path not in others)
    if not dry_run:
        remove(rows)
    return rows, others
