"""What measures rows, wherever it is: processes that have imported torch, of one interpreter or of two.

It knows nothing of other rows, so that an executor has one of it on each machine that measures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.errors import NotFoundError, ProbeError, RunFailedError
from inductor_probe.executors.local import UserFile
from inductor_probe.executors.server import JobFailedError, Server
from inductor_probe.machine.facts import machine
from inductor_probe.measuring.interleaved import time_pair
from inductor_probe.measuring.plan import Plan, PlannedRow, planned_rows
from inductor_probe.measuring.rows import (
    CaseProcess,
    Progress,
    answer_of,
    compile_ahead,
    measure_row,
    measuring,
    time_columns,
)
from inductor_probe.model.perf import CaseKey, Interpreter, PerfNode, PerfRow
from inductor_probe.model.timing import Roofline

ROOFLINE_SHARE = 0.5  # of a row's budget
LONGEST_ROOFLINE_S = 1.5


class MeasuredRow(Struct, frozen=True):
    """A row, and the machine as it is known by then."""

    row: PerfRow
    node: PerfNode


class RowWorker:
    """Measures rows of a plan, one after the other; see `executors.local.Worker`."""

    def __init__(self, plan: Plan, file: UserFile, progress: Progress) -> None:
        """Start nothing yet.

        Args:
            plan: what and how. file: its script, which another machine may not have.
            progress: is called with what is done next.
        """
        self.progress = progress
        self._plan, self._file = plan, file
        self._typed = str(plan.script)
        self._stack = ExitStack()
        self._servers: list[Server] = []
        self._node: PerfNode | None = None
        self._rooflines: dict[tuple[str, int], tuple[set[str], Roofline | None]] = {}

    def open(self) -> None:
        """Import torch in the processes that measure.

        Raises:
            RunFailedError: an interpreter is not there, is too old, or has no torch.
        """
        if self._servers:
            return
        try:
            folder = tempfile.TemporaryDirectory(prefix="perf-", ignore_cleanup_errors=True)
            script = self._file.place(Path(self._stack.enter_context(folder)))
            plan = self._plan = replace(self._plan, script=script)
            self._servers = [self._stack.enter_context(measuring(plan, python)) for python in plan.pythons]
            interpreters, gpus = zip(*map(_interpreter, self._servers), strict=True)
            facts = machine({"gpu": gpus[0]})
            self._node = PerfNode(dict(facts)["host"], interpreters[0], facts, *interpreters[1:])
        except ProbeError as error:
            self.close()
            raise self._as_typed(error) from error

    @property
    def node(self) -> PerfNode:
        """This machine, with the interpreters, and the rooflines that were measured by now."""
        assert self._node is not None  # noqa: S101 - it is open
        return replace(self._node, rooflines=tuple(one for _, one in self._rooflines.values() if one))

    def list_rows(self) -> tuple[PlannedRow, ...]:
        """Return the rows of the plan; what one of two interpreters cannot run says why.

        Raises:
            NotFoundError: no case matches.
        """
        try:
            rows, *others = [self._rows_of(server) for server in self._servers]
        except ProbeError as error:
            raise self._as_typed(error) from error
        for server, other in zip(self._servers[1:], others, strict=True):
            missing = {row.key: row.missing for row in other}
            absent = f"torch {server.torch} has no such case"
            rows = tuple(replace(row, missing=row.missing or missing.get(row.key, absent)) for row in rows)
        return rows

    def prepare(self, tasks: Sequence[CaseKey], cores: int) -> None:
        """Compile cases on so many cores."""
        try:
            for server in self._servers:
                compile_ahead(server, self._plan, tasks, cores, self.progress)
        except ProbeError as error:
            raise self._as_typed(error) from error

    def run(self, task: CaseKey) -> MeasuredRow:
        """Measure a case, and what this machine reaches, where that was not measured for a row like it."""

        def tell(text: str) -> None:
            self.progress(f"{row_name(self._plan, task)}: {text}")

        def measure(number: int, seconds: float) -> CaseProcess:
            if len(self._servers) > 1:
                return time_pair(self._servers, self._plan, task, number, seconds, tell)
            return time_columns(self._servers[0], self._plan, task, number, seconds, tell)

        try:
            row = measure_row(self._plan, task, measure)
        except ProbeError as error:
            raise self._as_typed(error) from error
        if row.processes and not self._plan.settings.check_only:
            self._measure_roofline(row, tell)
        return MeasuredRow(row, self.node)

    def close(self) -> None:
        """End the processes."""
        self._servers = []
        self._stack.close()

    def _rows_of(self, server: Server) -> tuple[PlannedRow, ...]:
        plan = self._plan
        request = {**plan.request, "matrix": plan.options.matrix, "cases": list(plan.options.cases)}
        cases = answer_of(server, "list_cases", request, "cases")["cases"]
        rows = planned_rows(plan, cases)
        if not rows:
            devices = dict.fromkeys(str(case["knobs"].get("device", "cpu")) for case in cases)
            raise NotFoundError(
                f"{plan.script}: none of the cases that were chosen is for {plan.options.device}",
                f"they are for {', '.join(devices)}: --set device={plan.options.device} changes that, "
                "--case and --matrix choose others",
            )
        return rows

    def _measure_roofline(self, row: PerfRow, tell: Progress) -> None:
        """Measure copies, and products of the row's dtype, once for a device and a number of threads."""
        device = "cuda" if row.key.device.startswith("cuda") else "cpu"
        key = (device, row.key.threads if device == "cpu" else 1)
        dtypes = {row.dtype} if row.flops and row.dtype else set[str]()
        before, roofline = self._rooflines.get(key, (set[str](), None))
        if key in self._rooflines and dtypes <= before:
            return
        tell("measuring what this machine can copy and multiply")
        seconds = min(LONGEST_ROOFLINE_S, ROOFLINE_SHARE * self._plan.settings.budget)
        try:
            roofline = self._servers[0].roofline(device, key[1], sorted(before | dtypes), seconds)
        except (JobFailedError, RunFailedError):  # times are good without it: the row has no share
            tell("the roofline could not be measured")
        self._rooflines[key] = (before | dtypes, roofline)

    def _as_typed(self, error: ProbeError) -> ProbeError:
        """Return an error with the script under the name that the user typed."""
        script, message = self._plan.script, error.message
        for path in dict.fromkeys((script.resolve(), script)):
            message = message.replace(str(path), self._typed)
        return type(error)(message, error.hint)


def row_name(plan: Plan, key: CaseKey) -> str:
    """Return what a row is called while it is measured."""
    return f"{key.case}, {key.threads} threads" if len(plan.options.threads) > 1 else key.case


def _interpreter(server: Server) -> tuple[Interpreter, str | None]:
    """Return the interpreter of a server, and the name of the GPU that it sees."""
    answer = answer_of(server, "describe_interpreter", {}, "interpreter")
    path, git = Path(answer["executable"]), answer["git"] or ""
    return Interpreter(path, answer["python"], answer["torch"], git), answer["gpu"]
