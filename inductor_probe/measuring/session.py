"""All rows of a run: handed to an executor, and written down as they come."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timezone
from functools import partial

from msgspec.structs import replace

from inductor_probe import __version__
from inductor_probe.errors import ProbeError
from inductor_probe.executors.cluster import RayExecutor
from inductor_probe.executors.local import Executor, LocalExecutor, Needs, UserFile
from inductor_probe.measuring.plan import Plan, PlannedRow
from inductor_probe.measuring.rows import Progress as Tell
from inductor_probe.measuring.worker import MeasuredRow, RowWorker, row_name
from inductor_probe.model.perf import CaseKey, PerfRow, PerfRun
from inductor_probe.model.timing import Roofline
from inductor_probe.options.fields import words_of
from inductor_probe.options.verb import Progress
from inductor_probe.report.units import counted

_MOST_AT_ONCE = 8

Begin = Callable[[PerfRun], PerfRun]
"""Called once all is known but the rows: gives the run its name, and the rows that it has already."""
Save = Callable[[PerfRun], object]


def run_plan(plan: Plan, begin: Begin, save: Save, progress: Progress) -> PerfRun:
    """Measure all rows of a plan; this executes the script, and the code that inductor generates for it.

    Args:
        plan: what, how and where; this machine lists the rows in any case.
        begin, save: see their types; `save` is called after each row.
        progress: hears what is done next, how long it may take, which cases cannot run, and what happens to
            nodes.

    Raises:
        ProbeError: the script cannot be loaded, nothing matches, or a file cannot be written; ray is not
            installed, or there is no cluster.
    """
    file = UserFile.read(plan.script)
    runner = RayExecutor(warn=progress.warn) if plan.options.executor == "ray" else LocalExecutor()
    worker = RowWorker(plan, file, progress)
    try:
        progress("importing torch and inductor")
        worker.open()
        rows = worker.list_rows()
        if isinstance(runner, RayExecutor):
            rows = _on_cluster(rows, runner.gpus)
        missing = [row for row in rows if row.missing]
        if missing and len(missing) == len(rows):
            raise ProbeError(
                f"no case of {plan.script} can run here: {missing[0].missing}", "see --device and --case"
            )
        for reason, number in Counter(row.missing for row in missing).items():
            progress.warn(f"{counted(number, 'case')} left out: {reason}")
        keys = [row.key for row in rows if not row.missing]
        node = worker.node
        run = begin(
            PerfRun(
                name="",
                probe=__version__,
                scenario=plan.scenario,
                command=("probe", "perf", *words_of(plan.options)),
                started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
                settings=plan.settings,
                interpreter=node.interpreter,
                machine=node.machine,
                planned=len(keys),
                other=node.other,
                executor=plan.options.executor,
                source=plan.commit(),
            )
        )
        if isinstance(runner, RayExecutor):
            worker.close()
            make: Callable[[Tell], RowWorker] = partial(RowWorker, plan, file)
        else:

            def make(tell: Tell) -> RowWorker:
                worker.progress = tell  # it has imported torch already
                return worker

        run = _measure_all(runner, make, plan, keys, run, save, progress)
        run = replace(run, finished=len(run.measured) == len(run.rows))
        save(run)
        return run
    finally:
        worker.close()
        runner.close()


def _on_cluster(rows: Sequence[PlannedRow], gpus: int) -> tuple[PlannedRow, ...]:
    """Return rows as a cluster can run them: this machine may lack a GPU, or be the only one with one."""
    lacking = None if gpus else "no node of the Ray cluster has a GPU"
    return tuple(replace(row, missing=lacking) if row.key.device.startswith("cuda") else row for row in rows)


def _measure_all(  # noqa: PLR0917 - what a run consists of
    executor: Executor,
    make: Callable[[Tell], RowWorker],
    plan: Plan,
    keys: Sequence[CaseKey],
    run: PerfRun,
    save: Save,
    progress: Progress,
) -> PerfRun:
    """Measure the rows that the run does not have yet; on nodes those for a GPU after those for a CPU."""
    known = {row.key for row in run.rows}
    order = {key: number for number, key in enumerate(keys)}
    left = [key for key in keys if key not in known]
    clock = _Clock(len(keys), len(keys) - len(left))
    groups = {Needs("cpu", alone=True): left}  # one after the other on this machine, whatever they are for
    if run.executor == "ray":
        groups = {
            Needs("cpu", alone=True): [key for key in left if not key.device.startswith("cuda")],
            Needs("cuda", alone=True): [key for key in left if key.device.startswith("cuda")],
        }
    for needs, group in groups.items():
        results = executor.map(
            make,
            group,
            needs,
            batch=max(2, min(2 * len(os.sched_getaffinity(0)), _MOST_AT_ONCE)),
            name=partial(row_name, plan),
            tell=lambda text: progress(clock.status(text)),
        )
        with closing(results) as several:
            for done in several:
                if done.result is None:
                    row = PerfRow(done.task, failure=done.lost, lost=True)
                else:
                    run, row = _with_node(run, done.result)
                rows = sorted((*run.rows, row), key=lambda row: order.get(row.key, -1))
                run = replace(run, rows=tuple(rows))
                save(run)
                clock.done += 1
                clock.measured += 1
    return run


def _with_node(run: PerfRun, measured: MeasuredRow) -> tuple[PerfRun, PerfRow]:
    """Return the run with what is known now of the machine of a row, and the row with that machine's name.

    Locally that is the run's own machine. A node with the name of an earlier one is another one if its facts,
    or those of its interpreters, are others: since then somebody has changed it.
    """
    node, row = measured.node, measured.row
    if run.executor == "local":
        return replace(run, rooflines=_merged(run.rooflines, node.rooflines)), row
    nodes = {one.name: one for one in run.nodes}
    names = [node.name, *(f"{node.name} ({number})" for number in range(2, len(nodes) + 2))]
    for name in names:
        before = nodes.get(name)
        if before is None or replace(before, name=node.name, rooflines=node.rooflines) == node:
            earlier = before.rooflines if before else ()
            nodes[name] = replace(node, name=name, rooflines=_merged(earlier, node.rooflines))
            return replace(run, nodes=tuple(nodes.values())), replace(row, node=name)
    raise AssertionError("there are more names than nodes")


def _merged(before: Sequence[Roofline], now: Sequence[Roofline]) -> tuple[Roofline, ...]:
    """Return rooflines, one for each device and number of threads: that with more rates, else the newer."""
    merged = {(one.device, one.threads): one for one in before}
    for one in now:
        other = merged.get((one.device, one.threads))
        if other is None or len(other.peaks) <= len(one.peaks):
            merged[one.device, one.threads] = one
    return tuple(merged.values())


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
