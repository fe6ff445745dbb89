"""Cases of scenarios timed, and files of results: measured, read again, listed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.api.rows import Rows
from inductor_probe.errors import ProbeError
from inductor_probe.model.output import Output
from inductor_probe.model.perf import (
    PerfOutput,
    PerfRun,
    PerfSettings,
    ResultEntry,
    ResultsOutput,
    RowResult,
)
from inductor_probe.report.document import Document
from inductor_probe.report.pages.perf import perf_page, results_table
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.perf import perf_sentence
from inductor_probe.store.results import (
    FOLDER,
    entries,
    find_results,
    new_name,
    read_run_file,
    write_run,
)

if TYPE_CHECKING:
    from inductor_probe.perf.plan import Plan, PlannedRow

_SAME_TO_RESUME = ("columns", "budget", "margin", "processes", "cold")


@dataclass(frozen=True, repr=False)
class PerfTable(Shown):
    """What `perf` measured: `run` are the samples, `path` is where they are."""

    run: PerfRun
    path: Path

    @cached_property
    def rows(self) -> tuple[RowResult, ...]:
        """Each row, concluded from its samples."""
        from inductor_probe.perf.conclude import results_of

        return results_of(self.run)

    @property
    def correct(self) -> bool:
        """Whether no column computes something else, and none ran other code than it should."""
        return not any(column.facts.problem == "wrong" for row in self.rows for column in row.columns)

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
        writer.writerow(
            ["scenario", "case", "device", "threads", "data", *knobs, "column", "seconds", "mad", "baseline",
             "ratio", "low", "high", "verdict", "problem", "compiles", "recompiles", "graph_breaks",
             "limit_hits", "fallbacks", "share"]
        )  # fmt: skip
        for row in self.rows:
            values = dict(row.key.knobs)
            for column in row.columns:
                facts, pair = column.facts, column.comparison
                writer.writerow(
                    [row.key.scenario, row.key.case, row.key.device, row.key.threads, row.key.data,
                     *(values.get(knob, "") for knob in knobs), facts.name,
                     *((column.time.seconds, column.time.mad) if column.time else ("", "")),
                     *((pair.baseline, pair.ratio, pair.low, pair.high, pair.verdict) if pair else [""] * 5),
                     facts.problem or "", facts.compiles, facts.recompiles, facts.graph_breaks,
                     facts.limit_hits,
                     " ".join(name for code in facts.codes for name in code.fallbacks),
                     "" if column.share is None else column.share]
                )  # fmt: skip
        return text.getvalue()


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
    resume: bool = False,
    folder: Path | None = None,
    command: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    left_out: Callable[[Sequence[PlannedRow]], None] = lambda rows: None,
    begun: Callable[[Path], None] = lambda path: None,
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
        python: another interpreter, which needs torch and nothing else.
        resume: go on with the latest unfinished run of the same scenario; rows that it has are not measured.
        folder: for the results, `.probe/results` by default.
        command: what measures, for the record.
        progress: called with what is done next. left_out: with the cases that this machine cannot run.
        begun: with the file, once its first version is there.

    Raises:
        NotFoundError: no such script, case or column. ProbeError: bad arguments, a full disk.
        RunFailedError: the interpreter has no torch.
    """
    from inductor_probe.perf.session import run_plan

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
            run = replace(run, name=before.name, started=before.started, rows=before.rows)
        else:
            run = replace(run, name=new_name(folder, run.scenario, datetime.now(timezone.utc)))
        name = run.name
        begun(write_run(folder, run))
        return run

    try:
        run = run_plan(
            plan,
            begin,
            lambda run: write_run(folder, run),
            command=command,
            started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            python=python,
            left_out=left_out,
            progress=progress or (lambda text: None),
        )
    except ProbeError:
        path = folder / f"{name}.json"
        if name and path.exists() and not read_run_file(path).rows:
            path.unlink()
        raise
    return PerfTable(run, folder / f"{run.name}.json")


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
    from inductor_probe.perf.arguments import argument_of
    from inductor_probe.perf.plan import Plan

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


def _unfinished(folder: Path, run: PerfRun) -> PerfRun | None:
    """Return the latest unfinished run of the same scenario; None if there is none.

    Raises:
        ProbeError: it was measured otherwise.
    """
    for entry in entries(folder):
        if entry.scenario == run.scenario and not entry.finished and not entry.problem:
            before = read_run_file(entry.path)
            differing = [
                name
                for name in _SAME_TO_RESUME
                if getattr(before.settings, name) != getattr(run.settings, name)
            ]
            facts = {
                **dict(before.machine),
                "torch": before.interpreter.torch,
                "commit": before.interpreter.git,
            }
            now = {**dict(run.machine), "torch": run.interpreter.torch, "commit": run.interpreter.git}
            differing += [name for name, fact in facts.items() if now.get(name) != fact]
            if differing:
                raise ProbeError(
                    f"{entry.path} was measured with other {', '.join(differing)}",
                    "give the same options on the same machine, or leave --resume out",
                )
            return before
    return None


def open_results(word: str, folder: Path | None = None) -> PerfTable:
    """Return results as a table: by name, the start of one, path, `latest`, or `latest~1`.

    Raises:
        NotFoundError, UnreadableError: there are none, or they cannot be read.
    """
    path = find_results(folder or FOLDER, word)
    return PerfTable(read_run_file(path), path)


def results(folder: Path | None = None, *, scenario: str | None = None) -> ResultRows:
    """Return the results of a folder, the newest first; only of a scenario where one is named."""
    rows = ResultRows(entries(folder or FOLDER))
    if scenario is None:
        return rows
    return rows._with(row for row in rows if scenario in row.scenario)
