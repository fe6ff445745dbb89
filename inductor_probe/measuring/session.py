"""All rows of a run, one after the other: compiled ahead in batches, timed alone, written down after each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from inductor_probe import __version__
from inductor_probe.bench.client import Event, JobFailedError, Server
from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError
from inductor_probe.machine.facts import machine
from inductor_probe.machine.roofline import ROOFLINE_CHILD, roofline_arguments, roofline_of
from inductor_probe.measuring.interleaved import measure_pair
from inductor_probe.measuring.plan import Plan, PlannedRow, planned_rows
from inductor_probe.measuring.rows import (
    Progress,
    answer_of,
    compile_ahead,
    measure_row,
    measuring,
    refuse_unknown,
)
from inductor_probe.model.perf import CaseKey, Interpreter, PerfRow, PerfRun
from inductor_probe.model.timing import Roofline

ROOFLINE_SHARE = 0.5  # of a row's budget
LONGEST_ROOFLINE_S = 1.5
_MOST_AT_ONCE = 8

Begin = Callable[[PerfRun], PerfRun]
"""Called once all is known but the rows: gives the run its name, and the rows that it has already."""
Save = Callable[[PerfRun], object]


def run_plan(
    plan: Plan,
    begin: Begin,
    save: Save,
    *,
    command: Sequence[str] = (),
    started: str = "",
    python: Path | None = None,
    second: Path | None = None,
    left_out: Callable[[Sequence[PlannedRow]], None] = lambda rows: None,
    progress: Progress = lambda text: None,
) -> PerfRun:
    """Measure all rows of a plan; this executes the script, and the code that inductor generates for it.

    Args:
        plan: what and how.
        begin, save: see their types; `save` is called after each row.
        command, started: for the record.
        python: another interpreter. second: one that takes turns with it, row by row and lap by lap.
        left_out: is called with the cases that this machine cannot run.
        progress: is called with what is done next, and how long it may take.

    Raises:
        ProbeError: the script cannot be loaded, nothing matches, or a file cannot be written.
    """
    progress("importing torch and inductor")
    try:
        with ExitStack() as stack:
            server = stack.enter_context(measuring(plan, python))
            rows, interpreter, gpu = list_rows(server, plan)
            other, beside = None, None
            if second is not None:
                beside = stack.enter_context(measuring(plan, second))
                rows, other = _in_both(rows, *list_rows(beside, plan)[:2])
            missing = [row for row in rows if row.missing]
            if missing and len(missing) == len(rows):
                raise ProbeError(
                    f"no case of {plan.script} can run here: {missing[0].missing}", "see --device and --case"
                )
            if missing:
                left_out(missing)
            keys = [row.key for row in rows if not row.missing]
            run = PerfRun(
                name="",
                probe=__version__,
                scenario=plan.scenario,
                command=tuple(command),
                started=started,
                settings=plan.settings,
                interpreter=interpreter,
                machine=machine({"gpu": gpu}),
                planned=len(keys),
                other=other,
            )
            run = begin(run)
            servers = [server, *([beside] if beside else [])]
            run = _measure_all(servers, plan, keys, run, save, progress)
            progress("measuring what this machine can copy and multiply")
            run = replace(run, rooflines=_rooflines(server, plan, run), finished=True)
            save(run)
            return run
    except (NotFoundError, RunFailedError) as error:
        raise refuse_unknown(plan, error) from error


def list_rows(server: Server, plan: Plan) -> tuple[tuple[PlannedRow, ...], Interpreter, str | None]:
    """Return the rows of a plan, the interpreter that lists them, and the name of its GPU.

    Raises:
        NotFoundError: no case matches.
    """
    request = {**plan.request, "matrix": plan.matrix, "cases": list(plan.cases)}
    answer = answer_of(server, "list_cases", request, "cases")
    rows = planned_rows(plan, answer["cases"])
    if not rows:
        devices = dict.fromkeys(str(case["knobs"].get("device", "cpu")) for case in answer["cases"])
        raise NotFoundError(
            f"{plan.script}: no case for {plan.device}", f"its cases are for {', '.join(devices)}"
        )
    interpreter = Interpreter(
        Path(answer["executable"]), answer["python"], answer["torch"], answer["git"] or ""
    )
    return rows, interpreter, answer["gpu"]


def _in_both(
    rows: Sequence[PlannedRow], others: Sequence[PlannedRow], other: Interpreter
) -> tuple[tuple[PlannedRow, ...], Interpreter]:
    """Return the rows that both interpreters have; what one cannot run is left out, and says why."""
    missing = {row.key: row.missing for row in others}
    return tuple(
        replace(row, missing=row.missing or missing.get(row.key, f"torch {other.torch} has no such case"))
        for row in rows
    ), other


def _measure_all(  # noqa: PLR0917 - what a run consists of
    servers: Sequence[Server],
    plan: Plan,
    keys: Sequence[CaseKey],
    run: PerfRun,
    save: Save,
    progress: Progress,
) -> PerfRun:
    """Measure the rows that the run does not have yet."""
    known = {row.key for row in run.rows}
    left = [key for key in keys if key not in known]
    batch = max(2, min(2 * len(os.sched_getaffinity(0)), _MOST_AT_ONCE))
    clock = _Clock(len(keys), len(keys) - len(left))
    for start in range(0, len(left), batch):
        group = left[start : start + batch]
        for server in servers:
            compile_ahead(server, plan, group, lambda text: progress(clock.status(text)))
        for key in group:
            name = f"{key.case}, {key.threads} threads" if len(plan.threads) > 1 else key.case

            def tell(text: str, name: str = name) -> None:
                progress(clock.status(f"{name}: {text}"))

            if len(servers) > 1:
                row = measure_pair(servers, plan, key, tell)
            else:
                row = measure_row(servers[0], plan, key, tell)
            run = replace(run, rows=(*run.rows, row))
            save(run)
            clock.done += 1
            clock.measured += 1
    return run


class _Clock:
    """How far it is, and about how long the rest takes: as long for each row as for those that are done."""

    def __init__(self, planned: int, done: int) -> None:
        self.planned, self.done, self.measured = planned, done, 0
        self._begin = time.monotonic()

    def status(self, text: str) -> str:
        """Return `3 of 12, 2 min left: TEXT`."""
        where = f"{min(self.done + 1, self.planned)} of {self.planned}"
        if not self.measured:
            return f"{where}: {text}"
        seconds = (time.monotonic() - self._begin) / self.measured * (self.planned - self.done)
        left = f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
        return f"{where}, {left} left: {text}"


def _rooflines(server: Server, plan: Plan, run: PerfRun) -> tuple[Roofline, ...]:
    """Measure what the machine reaches, for each device and number of threads of the rows."""
    wanted: dict[tuple[str, int], list[PerfRow]] = {}
    for row in run.rows:
        if row.processes:
            device = "cuda" if row.key.device.startswith("cuda") else "cpu"
            wanted.setdefault((device, row.key.threads if device == "cpu" else 1), []).append(row)
    rooflines = []
    for (device, threads), rows in wanted.items():
        arguments = roofline_arguments(
            device,
            threads=threads,
            dtypes=[row.dtype for row in rows if row.flops and row.dtype],
            seconds=min(LONGEST_ROOFLINE_S, ROOFLINE_SHARE * plan.settings.budget),
        )
        texts = list[str]()

        def hear(event: Event, texts: list[str] = texts) -> None:
            if event["event"] == "output":
                texts.append(event["text"])

        try:
            server.job({"job": "program", "file": str(ROOFLINE_CHILD), "arguments": arguments}, hear)
            rooflines.append(roofline_of("".join(texts)))
        except (JobFailedError, RunFailedError):  # times are good without it: the table has no shares
            continue
    return tuple(rooflines)
