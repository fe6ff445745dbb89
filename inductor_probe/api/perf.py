"""Cases of scenarios timed, and files of results: measured, read again, listed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.api.rows import Rows
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError
from inductor_probe.files import cell
from inductor_probe.model.output import Output
from inductor_probe.model.perf import (
    CompareOutput,
    CompareRow,
    PerfOutput,
    PerfRun,
    PerfSettings,
    ResultEntry,
    ResultsOutput,
    RowResult,
)
from inductor_probe.report.document import Document
from inductor_probe.report.pages.perf import compare_page, perf_page, results_table
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.perf import compare_sentence, perf_sentence
from inductor_probe.store.results import (
    FOLDER,
    entries,
    entry_of,
    find_results,
    new_name,
    read_run_file,
    write_run,
)

if TYPE_CHECKING:
    from inductor_probe.executors.local import ExecutorName
    from inductor_probe.measuring.compare import Compared
    from inductor_probe.measuring.plan import Plan, PlannedRow

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


def perf(
    script: str | Path,
    *,
    arguments: Sequence[str] = (),
    matrix: str | None = None,
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    threads: Sequence[int] = (1,),
    device: str | None = None,
    settings: PerfSettings | None = None,
    python: Path | None = None,
    second: Path | None = None,
    resume: bool = False,
    executor: ExecutorName = "local",
    folder: Path | None = None,
    command: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    left_out: Callable[[Sequence[PlannedRow]], None] = lambda rows: None,
    begun: Callable[[Path], None] = lambda path: None,
    warn: Callable[[str], None] = lambda text: None,
) -> PerfTable:
    """Time cases of a scenario, or a plain function: eager, compiled and variants, checked before.

    This executes the script, and the code that inductor generates for it.

    Args:
        script: a scenario's script, by path or bare name, or `my.py:function`.
        arguments: of a plain function: `x=f32[1,3,224,224]:channels_last`, `size=(256, 256)`.
        matrix: which cases: `quick`, `full`, one that the scenario names, or a pattern of names.
        cases: patterns of names of cases.
        knobs: to set otherwise in all cases.
        threads: each case is measured with each of them.
        device: only cases for `cpu`, or for `cuda`.
        settings: columns, seconds for each row, margin.
        python: another interpreter, which needs torch and nothing else. second: one whose columns are
            compared with those of the first: the two take turns, lap by lap.
        resume: go on with the latest unfinished run of the same scenario; rows that it has are not measured.
        executor: `local` measures here, a row at a time; `ray` on the nodes of a Ray cluster, a row at a time
            on each, or on each of its GPUs.
        folder: for the results, `.probe/results` by default.
        command: what measures, for the record.
        progress: called with what is done next. left_out: with the cases that this machine cannot run.
        begun: with the file, once its first version is there. warn: with what happens to nodes.

    Raises:
        NotFoundError: no such script, case or column. ProbeError: bad arguments.
        NotSavedError: the disk is full. The rows before are in the file, and all of them in the error.
        RunFailedError: the interpreter has no torch.
    """
    from inductor_probe.measuring.session import run_plan

    folder = folder or FOLDER
    plan = plan_of(
        script,
        arguments=arguments,
        matrix=matrix,
        cases=cases,
        knobs=knobs,
        threads=threads,
        device=device,
        settings=settings,
    )
    name = ""

    def begin(run: PerfRun) -> PerfRun:
        nonlocal name
        if resume and (before := _unfinished(folder, run)) is not None:
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
        name = run.name
        begun(write_run(folder, run))
        return run

    def save(run: PerfRun) -> None:
        try:
            write_run(folder, run)
        except ProbeError as error:
            raise NotSavedError(error, PerfTable(run, folder / f"{run.name}.json")) from error

    try:
        run = run_plan(
            plan,
            begin,
            save,
            command=command,
            started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            python=python,
            second=second,
            executor=executor,
            left_out=left_out,
            warn=warn,
            progress=progress or (lambda text: None),
        )
    except ProbeError:
        if name:
            _remove_if_empty(folder / f"{name}.json")
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


def compare(
    a: str | Path,
    b: str | Path,
    *,
    margin: float = 0.01,
    allowed: float | None = None,
    folder: Path | None = None,
) -> Compare:
    """Compare two results, joined on all that a row is: scenario, case, knobs, device, threads, column.

    Args:
        a, b: names, starts of them, paths, `latest`, `latest~1`.
        margin: a smaller difference counts as none.
        allowed: by how much B may be slower before it counts as a regression; `margin` by default.
        folder: where results are.

    Raises:
        NotFoundError, UnreadableError: there are none, or they cannot be read. ProbeError: one of them has
            two interpreters in it.
    """
    tables = [open_results(str(word), folder) for word in (a, b)]
    for table in tables:
        if table.run.other is not None:
            raise ProbeError(
                f"{table.path} has two interpreters in one table, compared already",
                f"see probe results {table.run.name}",
            )
    return Compare(tables[0], tables[1], margin, allowed)


def plan_of(
    script: str | Path,
    *,
    arguments: Sequence[str] = (),
    matrix: str | None = None,
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    threads: Sequence[int] = (1,),
    device: str | None = None,
    settings: PerfSettings | None = None,
) -> Plan:
    """Return what is to be measured; see `perf`.

    Raises:
        NotFoundError: no such script. ProbeError: an argument cannot be read.
    """
    from inductor_probe.capture.scripts import find_script
    from inductor_probe.measuring.arguments import argument_of
    from inductor_probe.measuring.plan import Plan

    text, _, function = str(script).partition(":")
    if arguments and not function:
        raise ProbeError(
            "--arg is for a plain function", f"name it: probe perf {script}:FUNCTION --arg x=f32[3,4]"
        )
    return Plan(
        script=find_script(text, Path.cwd()),
        function=function or None,
        arguments=tuple(map(argument_of, arguments)),
        matrix=matrix,
        cases=tuple(cases),
        knobs=knobs or {},
        threads=tuple(threads),
        device=device,
        settings=settings or PerfSettings(),
    )


def _remove_if_empty(path: Path) -> None:
    """Remove a file of results that has no row, or nothing at all: its name was only reserved."""
    try:
        empty = not read_run_file(path).rows
    except NotFoundError:
        return
    except UnreadableError:
        empty = not path.stat().st_size
    if empty:
        path.unlink()


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


def results(folder: Path | None = None, *, scenario: str | None = None, indexed: bool = True) -> ResultRows:
    """Return the results of a folder, the newest first; only of a scenario where one is named.

    With `indexed=False` each file is read, and the index of the folder is not believed: to remove some.
    """
    rows = ResultRows(entries(folder or FOLDER, indexed=indexed))
    if scenario is None:
        return rows
    return rows._with(row for row in rows if scenario in row.scenario)
