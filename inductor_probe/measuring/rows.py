"""One row: the processes that measure a case, each a fork of one that has imported torch."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from msgspec.structs import replace

import inductor_probe
from inductor_probe.bench.stop_rule import StopRule
from inductor_probe.errors import NotFoundError, RunFailedError
from inductor_probe.executors.child import Event
from inductor_probe.executors.server import COMPILING, JobFailedError, Server
from inductor_probe.measuring.conclude import comparisons_of
from inductor_probe.measuring.plan import Plan
from inductor_probe.model.codec import from_json
from inductor_probe.model.perf import (
    EAGER,
    CaseKey,
    ColumnFacts,
    PerfRow,
    RowFailure,
    RowFailureCode,
    RowProcess,
)
from inductor_probe.model.timing import Series

JOBS = "inductor_probe.measuring.child.jobs"
_OLDEST = (3, 10)

Progress = Callable[[str], None]


@contextmanager
def measuring(plan: Plan, python: Path | None = None) -> Iterator[Server]:
    """Start a process that has imported torch, under another interpreter where one is named; end it at last.

    An interpreter needs nothing but torch: it finds this package through a link in a folder of its own.

    Raises:
        RunFailedError: there is no such interpreter, it is too old, or has no torch.
    """
    with tempfile.TemporaryDirectory(prefix="perf-", ignore_cleanup_errors=True) as folder:
        if python is not None:
            _check_python(python)
        Path(folder, "inductor_probe").symlink_to(Path(inductor_probe.__file__).parent)
        path = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"PYTHONPATH": os.pathsep.join(path)}
        with Server(plan.script, COMPILING, environment=environment, python=python) as server:
            try:
                server.start()
            except RunFailedError as error:
                if python is None:
                    raise
                last = error.message.splitlines()[-1]
                hint = "install torch there, or name another interpreter" if "'torch'" in last else None
                raise RunFailedError(f"{python} cannot measure: {last}", hint) from error
            yield server


def _check_python(python: Path) -> None:
    """Refuse what is no Python that could measure."""
    try:
        ended = subprocess.run(
            [str(python), "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        version = tuple(map(int, ended.stdout.split()))
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise RunFailedError(f"{python} is not a Python interpreter: {error}", "give its path") from error
    if ended.returncode or not version:
        raise RunFailedError(f"{python} is not a Python interpreter", "give its path")
    if version < _OLDEST:
        raise RunFailedError(f"{python} is Python {'.'.join(map(str, version))}: 3.10 or later is needed")


def answer_of(server: Server, job: str, request: Event, event: str) -> Event:
    """Have a short job done, and return the event that is its answer.

    Raises:
        ProbeError: it failed; says why.
    """
    try:
        sent = [*server.events({"job": f"{JOBS}:{job}", **request})]
    except JobFailedError as error:
        raise error.error(server.path) from error
    return next(answer for answer in sent if answer["event"] == event)


def case_request(plan: Plan, key: CaseKey, number: int = 0) -> Event:
    """Return what process `number` of those that measure a case needs to build it; the first checks it."""
    return {
        **plan.request,
        "case": key.case,
        "threads": key.threads,
        "columns": list(plan.settings.columns),
        "check": number == 0,
        "second": bool(number % 2),
        "seed": 2 * number,
    }


def compile_ahead(
    server: Server, plan: Plan, keys: Sequence[CaseKey], cores: int, progress: Progress
) -> None:
    """Compile cases on so many cores into inductor's caches: nothing is timed meanwhile.

    Those for a GPU are compiled one after the other: inductor times the configs of Triton kernels there, and
    keeps the fastest, which beside other work on the GPU may be any.

    What fails is left to the process that measures it, which says why.
    """
    if plan.settings.columns == (EAGER,):
        return
    on_gpu = [key for key in keys if key.device.startswith("cuda")]
    done = 0
    progress(f"compiling {len(keys)} cases")
    for several, most in (([key for key in keys if key not in on_gpu], cores), (on_gpu, 1)):
        cases = [case_request(plan, key) for key in several]
        request = {"job": f"{JOBS}:compile_cases", "cases": cases, "children": min(len(cases), most)}
        try:
            for event in server.events(request) if cases else ():
                if event["event"] == "compiled":
                    done += 1
                    progress(f"compiling: {done} of {len(keys)} cases")
        except JobFailedError as error:
            if error.kind == "usage":
                raise error.error(server.path) from error


def measure_row(plan: Plan, key: CaseKey, measure: Callable[[int, float], CaseProcess]) -> PerfRow:
    """Measure a case in several processes, until they agree, or check it in one; return what they saw.

    Args:
        measure: lets the process of a number, the first is 0, time its columns for so many seconds.

    Raises:
        ProbeError: the case or a column is not known. A process that ends before its time does not: what was
            measured by then is in the row, or why nothing was.
    """
    settings, row = plan.settings, PerfRow(key)
    rule = StopRule(settings.budget, settings.margin, settings.processes)
    while True:
        number = len(row.processes)
        case = measure(number, rule.share(number))
        if (failure := case.failure) is not None:
            ending = failure.error(plan.script)
            if isinstance(ending, NotFoundError):
                raise ending from failure
            if not case.series and row.processes:
                return row
            if not case.series:
                return replace(row, failure=failure_of(failure), lost=failure.from_outside, **case.facts)
        row = replace(row, **case.facts, processes=(*row.processes, case.record(number)))
        if failure or settings.check_only or not case.series:
            return row
        if rule.enough(number + 1, comparisons_of(row, settings.margin).values()):
            return row


@dataclass
class CaseProcess:
    """What a process that builds a case says of it. `failure`: why it ended before its time."""

    facts: dict[str, Any] = field(default_factory=dict)
    columns: tuple[ColumnFacts, ...] = ()
    series: list[Series] = field(default_factory=list)
    measured: float = 0.0
    load: float = 0.0
    failure: JobFailedError | None = None

    def take(self, event: Event) -> None:
        """Take over what an event says."""
        match event["event"]:
            case "row":
                self.facts = {key: event[key] for key in ("inputs", "moved", "flops", "dtype")}
            case "columns":
                self.columns = tuple(from_json(ColumnFacts, facts) for facts in event["columns"])
                self.measured, self.load = event["measured"], event["load"]
            case "series":
                self.series.append(from_json(Series, event["series"]))

    def record(self, number: int) -> RowProcess:
        """Return it as a process of a row."""
        return RowProcess(
            seed=2 * number,
            first="candidate" if number % 2 else "baseline",
            columns=self.columns,
            series=tuple(self.series),
            measured=self.measured,
            load=self.load,
        )


def time_columns(  # noqa: PLR0917 - what is timed, and how
    server: Server, plan: Plan, key: CaseKey, number: int, seconds: float, progress: Progress
) -> CaseProcess:
    """Let a process check the columns of a case, if it is the first, and time them in turns."""
    settings, case = plan.settings, CaseProcess()
    request = {
        **case_request(plan, key, number),
        "job": f"{JOBS}:time_case",
        "check_only": settings.check_only,
        "cold": settings.cold,
        "margin": settings.margin,
        "budget": seconds,
    }
    try:
        for event in server.events(request):
            case.take(event)
            if event["event"] == "phase":
                progress(f"{event['phase']} {' and '.join(event['names'])} ({number + 1})")
    except JobFailedError as error:
        case.failure = error
    return case


def failure_of(error: JobFailedError) -> RowFailure:
    """Return why nothing was measured of a row."""
    if error.kind == "killed":
        return RowFailure("killed", phase=error.phase, signal=error.signal)
    code: RowFailureCode = next((code for code in get_args(RowFailureCode) if code == error.kind), "error")
    return RowFailure(code, error.message.removeprefix("failed: "))
