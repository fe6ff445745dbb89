"""The clock of a GPU: the time of kernels alone, without launches, gaps and what events add."""

from __future__ import annotations

import os
import statistics
import time
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import DeviceType

from inductor_probe.harness.bench import Call
from inductor_probe.harness.events import AHEAD, EventClock, GpuStream
from inductor_probe.harness.reference import first_line
from inductor_probe.harness.remarks import Remark, remark

NEAR_LAUNCH_S = 40e-6  # shorter kernels are replayed: what events add differs by up to 1 us between kernels
ALIKE = 4  # times that: longer ones are not timed in the way of a short one
REPLAYED = 16  # calls in a graph
REFERENCE = (1 << 16, 1 << 20, 1 << 22)  # elements of the kernels that tell what events add: 2 to 10 us
SHORTEST_S = 0.3e-6  # no kernel is shorter: a graph that seems so was left empty
QUAD = 4  # blocks: a clock read from one alone is off by a hundredth now and then
PLANS = 64  # that are kept: a graph each
QUEUED_S = 0.004  # of enqueuing: the driver queues about a thousand launches, and then the host waits
DEVICE_ROUNDS = 5
COPIES = ("Memcpy", "Memset")
FEW_CALLS = 3  # of a call that takes so long to enqueue


class ProfiledStream(GpuStream):
    """The current stream of a device. `remarks` say which of its means this torch or this GPU lacks."""

    def __init__(self, device: torch.device | str | int) -> None:
        super().__init__(device)
        self.remarks: list[Remark] = []
        self._profiled = False

    def sleep(self, cycles: int) -> bool:
        """Enqueue a kernel that does nothing for so many cycles of the SM clock; False without one."""
        slept = super().sleep(cycles)
        if not slept:
            self.add(remark("sleep-not-available", torch=torch.__version__))
        return slept

    def capture(self, enqueue: Call) -> Call:
        """Record what `enqueue` enqueues as a CUDA graph, and return what replays it.

        Raises:
            RuntimeError: it cannot be captured, or enqueues nothing on the current stream.
        """
        graph = torch.cuda.CUDAGraph()
        with warnings.catch_warnings(), torch.cuda.device(self.device):
            warnings.simplefilter("error")  # that a graph is empty is but a warning
            try:
                with torch.cuda.graph(graph):
                    enqueue()
            except UserWarning as warning:  # torch/cuda/graphs.py, CUDAGraph.capture_end, by way of C++
                empty = "it enqueues nothing on the current stream" if "is empty" in str(warning) else None
                raise RuntimeError(empty or str(warning)) from warning
        replay: Call = graph.replay
        replay()
        self.wait()
        return replay

    def durations(self, enqueue: Call) -> list[float]:
        """Return how long each kernel, copy and fill that `enqueue` enqueues runs, in order, in seconds."""
        return [(end - begin) / 1e9 for _, begin, end in self.kernels(enqueue)]

    def kernels(self, enqueue: Call) -> list[tuple[str, float, float]]:
        """Return each kernel, copy and fill that `enqueue` enqueues: name, begin and end, in order.

        By torch.profiler, which has it from the driver (CUPTI); empty where that may not be asked. Times are
        nanoseconds of `time.time_ns`; where this torch does not say when the recording began, since then.
        """
        # Taken down and set up again beside CUDA graphs it crashes: torch does the same for its own graphs.
        os.environ.setdefault("TEARDOWN_CUPTI", "0")
        if not self._profiled:  # what is enqueued while the profiler starts for the first time may be missing
            self._profiled = True
            self.kernels(enqueue)
        self.wait()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its own cycles of recording
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                enqueue()
                self.wait()
            events = [
                event
                for event in profile.events()
                if event.device_type == DeviceType.CUDA
                and event.name != "Context Sync"
                and not getattr(event, "is_user_annotation", False)
            ]
        # torch/autograd/profiler.py, _parse_kineto_results: events count from `trace_start_ns`.
        recorded = getattr(getattr(profile, "profiler", None), "kineto_results", None)
        begin: float = getattr(recorded, "trace_start_ns", int)()
        spans = [(event.name, event.time_range.start, event.time_range.end) for event in events]
        spans.sort(key=lambda span: span[1])
        return [(name, begin + first * 1e3, begin + last * 1e3) for name, first, last in spans]

    def add(self, remark: Remark) -> None:
        """Add what could not be done, once."""
        if remark not in self.remarks:
            self.remarks.append(remark)


def device_intervals(stream: ProfiledStream, run: Call, between: Call = lambda: None) -> list[dict[str, Any]]:
    """Return what the GPU does in `run` by the profiler, for JSON: kernels, copies, and nothing between them.

    Each has its seconds in as many calls as have it: `DEVICE_ROUNDS`, but where calls differ. `between` them
    something else may be run.
    """
    times: dict[tuple[str, str], list[float]] = {}
    counts: dict[tuple[str, str], int] = {}
    for _ in range(DEVICE_ROUNDS):
        spans = stream.kernels(run)
        between()
        if not spans:
            continue
        busy: dict[tuple[str, str], float] = {}
        counts.clear()
        covered, end = 0.0, spans[0][1]
        for name, first, last in spans:
            part = ("gpu-copy", "copies") if name.startswith(COPIES) else ("gpu-kernel", name)
            busy[part] = busy.get(part, 0.0) + (last - first) / 1e9
            counts[part] = counts.get(part, 0) + 1
            covered += max(last - max(first, end), 0.0)
            end = max(end, last)
        busy["gpu-gap", "gpu-gap"] = max((end - spans[0][1] - covered) / 1e9, 1e-12)
        for part, seconds in busy.items():
            times.setdefault(part, []).append(seconds)
    return [
        {"kind": kind, "name": name, "seconds": seconds, "host": [], "launches": counts.get((kind, name), 1)}
        for (kind, name), seconds in times.items()
        if len(seconds) == DEVICE_ROUNDS
    ]


def profiled(stream: ProfiledStream, run: Call, calls: int, ahead: Call) -> float | None:
    """Return the median seconds a call that the kernels of `run` take by the profiler, `ahead` left out.

    None where the profiler sees no kernels, or not the same number of them in every call.
    """

    def enqueue() -> None:
        for _ in range(calls):
            ahead()
            run()

    skipped = stream.durations(lambda: [ahead() for _ in range(calls)])
    durations = stream.durations(enqueue)
    if not durations:
        stream.add(remark("profiler-empty"))
    if not durations or len(durations) % calls or len(skipped) % calls:
        return None
    period, first = len(durations) // calls, len(skipped) // calls
    return statistics.median(
        sum(durations[call + first : call + period]) for call in range(0, len(durations), period)
    )


@dataclass
class Plan:
    """How one function is timed: `more` and `less` are graphs that differ by REPLAYED calls of it.

    `host` is the seconds that enqueueing a call took last, `replay` those for starting both graphs, `between`
    those that the GPU took between events around a call. `waits`: the host waits for the GPU in it.
    """

    host: float
    replay: float = 50e-6
    between: float = 0.0
    more: Call | None = None
    less: Call | None = None
    waits: bool = False


class GpuClock(EventClock):
    """Times functions that enqueue kernels: `clock(run, calls)` is the seconds a call that the GPU is busy.

    Behind a kernel that only waits, everything is enqueued before the GPU starts on it, so that no time in
    which it waits for the host is counted. A `cold` clock writes over the L2 before every call, outside of
    the time; what `before` enqueues (restoring arguments) is outside of it, too. Short functions are recorded
    as CUDA graphs: one with the calls and one without them are replayed, and the difference counts. What
    events add is known from kernels that the profiler has timed as well, and is taken off.

    Attributes:
        remarks: what could not be done as said here.
        added: seconds that are taken off, by how a function is timed: `events` or `graph`. They are measured,
            unless they are given.
    """

    laps = 1  # of a block

    def __init__(
        self,
        stream: ProfiledStream,
        *,
        cold: bool = True,
        corrected: bool = True,
        added: dict[str, float] | None = None,
    ) -> None:
        super().__init__(stream, cold=cold)
        self.remarks = stream.remarks
        self._clocks = deque([1e9], maxlen=QUAD)
        self._sleep_s = 0.0
        self._late = False
        self.cold = cold
        self._plans: dict[tuple[int, int], tuple[Plan, Any]] = {}
        self.added = added or {"events": 0.0, "graph": 0.0}
        self._measure_sm()
        if corrected and not added:
            self._measure_added()

    @property
    def sm_hz(self) -> float:  # type: ignore[override] # known here, not assumed
        """Clock of the multiprocessors during the last blocks, from cycles waited: it is to be compared."""
        return statistics.median(self._clocks)

    def __call__(self, run: Call, calls: int, before: Call | None = None) -> float:
        """Return the median seconds a call, over `calls` calls."""
        return statistics.median(self.samples(run, calls, before))

    def samples(self, run: Call, calls: int, before: Call | None = None) -> list[float]:
        """Return seconds a call: a sample a call, or one for each replay of REPLAYED calls."""
        plan = self._plan(run, before)
        if plan.more and plan.less:
            raw = self._replays(plan, plan.more, plan.less, max(1, round(calls / REPLAYED)))
            added = self.added["graph"]
        else:
            raw = self._pairs(plan, run, calls, before)
            added = self.added["events"]
        return [max(seconds - added, SHORTEST_S / 3) for seconds in raw]

    def mode(self, run: Call, before: Call | None = None) -> str:
        """Say how `run` is timed: `graph` or `events`."""
        return "graph" if self._plan(run, before).more else "events"

    def agree(self, runs: Sequence[Call]) -> None:
        """Time all of `runs` in one way, as two ways differ by more than kernels may that are compared."""
        plans = {run: self._plan(run, None) for run in runs}
        if max(plan.between for plan in plans.values()) > ALIKE * NEAR_LAUNCH_S or all(
            plan.more is None for plan in plans.values()
        ):
            return
        for run, plan in plans.items():
            if plan.more is None:
                self._record(plan, run, None)
        if any(plan.more is None for plan in plans.values()):
            for plan in plans.values():
                plan.more = plan.less = None

    def prologue(self, before: Call | None) -> Call:
        """Return what is enqueued ahead of each call, outside of its time."""
        steps = [step for step in (before, self.flush if self.cold else None) if step]
        return lambda: [step() for step in steps]

    def _plan(self, run: Call, before: Call | None) -> Plan:
        key = (id(run), id(before))
        if key not in self._plans:  # the functions are kept with the plan, so that no other gets their id
            while len(self._plans) >= PLANS:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = (self._make_plan(run, before), (run, before))
        return self._plans[key][0]

    def _make_plan(self, run: Call, before: Call | None) -> Plan:
        ahead = self.prologue(before)
        ahead()
        run()
        self.stream.wait()
        begin = time.perf_counter()
        ahead()
        run()
        plan = Plan(time.perf_counter() - begin)
        plan.between = statistics.median(self._pairs(plan, run, 10, before)) - self.added["events"]
        if plan.between < NEAR_LAUNCH_S:
            self._record(plan, run, before)
        return plan

    def _record(self, plan: Plan, run: Call, before: Call | None) -> None:
        """Record the graphs of a plan, if it can be done."""
        ahead = self.prologue(before)

        def times(prologues: int, calls: int) -> Call:
            def enqueue() -> None:
                for number in range(prologues):
                    ahead()
                    if number < calls:
                        run()

            replay: Call = self.stream.capture(enqueue)
            return replay

        # Warm, with nothing ahead of the calls, twice as many calls as once: starting a graph drops out.
        bare = before is None and not self.cold
        try:
            more = times(2 * REPLAYED, 2 * REPLAYED) if bare else times(REPLAYED, REPLAYED)
            less = times(REPLAYED, REPLAYED) if bare else times(REPLAYED, 0)
        except RuntimeError as error:
            self.stream.add(remark("not-replayed", error=first_line(error)))
            return
        if statistics.median(self._replays(plan, more, less, 5)) < max(SHORTEST_S, plan.between / 10):
            self.stream.add(remark("other-stream"))
            return
        plan.more, plan.less = more, less

    def _pairs(self, plan: Plan, run: Call, calls: int, before: Call | None) -> list[float]:
        """Time each call between two events; of a call of many launches a few, a few at a time.

        A call of 200 launches takes 3 ms to enqueue: ten of them do not fit into the driver's queue, however
        long the GPU is kept waiting. One of 2,000 does not fit alone; where that was seen, nothing is gained
        by keeping the GPU waiting for it.
        """
        limit = max(1, int(QUEUED_S / max(plan.host, 1e-6)))
        calls = calls if limit >= calls else min(calls, max(FEW_CALLS, limit))
        seconds = list[float]()
        while len(seconds) < calls:
            self._late = False
            part, host_s = min(limit, calls - len(seconds)), 0.0 if plan.waits else plan.host
            timed, host = self.between(run, part, self.prologue(before), host_s)
            seconds += timed
            plan.waits = plan.waits or (self._late and plan.host > QUEUED_S)
            plan.host = plan.host if plan.waits else host
        return seconds

    def _replays(self, plan: Plan, more: Call, less: Call, count: int) -> list[float]:
        """Replay both graphs in turn; return the difference, a call."""
        stamps: list[Any] = []

        def enqueue() -> None:
            stamps.clear()
            for _ in range(count):
                for replay in (more, less):
                    stamps.append(self.stream.stamp())
                    replay()
                    stamps.append(self.stream.stamp())

        plan.replay = self.blocked(enqueue, plan.replay * count) / count
        spans = [self.stream.seconds(*stamps[index : index + 2]) for index in range(0, len(stamps), 2)]
        return [(long - short) / REPLAYED for long, short in zip(spans[0::2], spans[1::2], strict=True)]

    def note(self, cycles: int, first: Any, last: Any, late: bool) -> None:
        """Read the SM clock off so many cycles between two stamps."""
        if cycles and self._sleep_s:
            self._clocks.append(cycles / max(self.stream.seconds(first, last) - self._sleep_s, 1e-6))
        if late:
            self._late = True
            self.stream.add(remark("host-waits"))

    def _measure_sm(self) -> None:
        """Learn the SM clock, and what events add to a kernel that waits: two equations."""

        def waited(cycles: int) -> float:
            seconds = list[float]()
            for _ in range(5):
                self.stream.sleep(AHEAD)
                begin = self.stream.stamp()
                self.stream.sleep(cycles)
                end = self.stream.stamp()
                self.stream.wait()
                seconds.append(self.stream.seconds(begin, end))
            return statistics.median(seconds)

        if not self.stream.sleep(1000):
            return
        short, long = waited(200_000), waited(600_000)
        self._clocks = deque([400_000 / (long - short)], maxlen=QUAD)
        self._sleep_s = max(short - 200_000 / self.sm_hz, 1e-9)

    def _measure_added(self) -> None:
        """Learn what events and graphs add: time kernels both ways, and by the profiler."""
        ahead = self.prologue(None)
        added: dict[str, list[float]] = {"events": [], "graph": []}
        for elements in REFERENCE:
            run = torch.zeros(elements, device=self.stream.device).neg_
            exact = profiled(self.stream, run, 20, ahead)
            if exact is None:
                return
            plan = self._plan(run, None)
            added["events"].append(statistics.median(self._pairs(plan, run, 30, None)) - exact)
            if plan.more and plan.less:
                replays = self._replays(plan, plan.more, plan.less, 10)
                added["graph"].append(statistics.median(replays) - exact)
        self.added = {mode: statistics.median(values) if values else 0.0 for mode, values in added.items()}
        self._plans.clear()


ADDED: dict[str, dict[str, float]] = {}
"""What events add, to `cold` and to `warm` clocks, as this process or an earlier one measured it."""


def session_clock(device: str, cold: bool) -> GpuClock:
    """Return a clock of a GPU that takes off what the first process of a session found that events add.

    The profiler takes a second to start, in each process. What events add is a property of GPU and driver.
    """
    name = "cold" if cold else "warm"
    clock = GpuClock(ProfiledStream(device), cold=cold, added=ADDED.get(name))
    if any(clock.added.values()):
        ADDED[name] = clock.added
    return clock


def host_seconds(run: Call, wait: Call, calls: int = 50) -> float:
    """Return the median seconds that the host needs to enqueue one call: the launch cost.

    Measure it before the profiler was used in the process: launches are slower afterwards.
    """
    seconds = []
    for _ in range(calls):
        wait()
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    wait()
    return statistics.median(seconds)


def device_error() -> str:
    """Return what the GPU says when it is waited for, if it is an error: then no later call does better."""
    if torch.cuda.is_initialized():
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            return first_line(error)
    return ""
