"""Where the time of a call goes: calls of a wrapper that reads a clock at each line, and of kernels that do
so around each loop nest, in turns with calls of the pristine code.

All times are of one clock: Python's `time.perf_counter_ns`, and ticks of C++ kernels, which each launch sets
beside `std::chrono::steady_clock`. On Linux both are CLOCK_MONOTONIC. Of a long call both are the CPU time of
its thread (`laps.clock_of`).

Kernels write to memory whose address is in the environment (`variants/nest_clock.py` has their side):

    words 0, 1, 2         threads there is room for; rows a thread has; 1 for the CPU time of the thread
    from word 8, by thread: 8 words, of which the first is the number of rows; then the rows of four words
        launch            kernel << 16, begin, nanoseconds of steady_clock at begin, end
        loop nest         (kernel << 16) + its number, begin, end of its own work, end
        nothing           (kernel << 16) + 0xFFFE and 0xFFFF, begin, end, end: what a row costs, the second
                          with a read of steady_clock
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.budget import Budget
from inductor_probe.harness.constants import bind_constants
from inductor_probe.harness.gpu_clock import device_intervals
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.jobs import JobError, Request, Tell, import_modules, options_of, text_of
from inductor_probe.harness.laps import (
    NOTHING_OF_ALL,
    clock_of,
    involuntary_switches,
    nanoseconds_queued,
    page_faults,
    seconds_queued,
)
from inductor_probe.harness.line_clock import MARK, Line, with_marks
from inductor_probe.harness.load import LoadError
from inductor_probe.harness.measure import bind_inputs, environment
from inductor_probe.harness.overheads import Part, measure_overheads, two_slots
from inductor_probe.harness.quads import Side, Subject, make_side, run_once
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.saved_inputs import InputsError
from inductor_probe.harness.timing import MOST_DRIFTING

VARIABLE = "INDUCTOR_PROBE_EVENTS"
ROWS = 1 << 15  # of a thread
HEAD, ROW = 8, 4  # words
NESTS = 0xFFFF
EMPTY = (0xFFFE, 0xFFFF)
MOST_CALLS = 32  # one after the other, before their marks are read
LATEST_NS = 60e9  # no GPU is so far behind


class Events:
    """The memory that kernels with clock reads write to."""

    def __init__(self, threads: int) -> None:
        self._memory = torch.zeros(HEAD + threads * (HEAD + ROW * ROWS), dtype=torch.int64)
        self._memory[0], self._memory[1] = threads, ROWS
        self._threads = [
            self._memory[start : start + HEAD + ROW * ROWS]
            for start in range(HEAD, self._memory.numel(), HEAD + ROW * ROWS)
        ]
        os.environ[VARIABLE] = str(self._memory.data_ptr())

    def use(self, clock: Callable[[], int]) -> None:
        """Let kernels read the CPU time of their thread, if that is what Python reads."""
        self._memory[2] = int(clock is time.thread_time_ns)

    def clear(self) -> None:
        """Forget all rows."""
        for memory in self._threads:
            memory[0] = 0

    def read(self) -> list[list[list[int]]]:
        """Return the rows of each thread."""
        return [
            memory[HEAD : HEAD + ROW * min(int(memory[0]), ROWS)].view(-1, ROW).tolist()
            for memory in self._threads
        ]

    @property
    def full(self) -> bool:
        """Whether there were more rows than there is room for."""
        return any(int(memory[0]) > ROWS for memory in self._threads)


@dataclass
class Launch:
    """One launch of a C++ kernel, in nanoseconds: of the call, and of its loop nests.

    `nests` has for each that ran its number, and of each thread: thread, begin, end of its own work, end.
    """

    kernel: int
    begin: float
    end: float
    inside_ns: float
    note_ns: float
    steady_ns: float
    nests: dict[int, list[tuple[int, float, float, float]]] = field(default_factory=dict)


@dataclass
class Traced:
    """One call of the wrapper with marks, in nanoseconds of its clock.

    `pristine` is what the code as it is took, which took turns with it call by call; 0 where none did.
    """

    begin: int
    end: int
    marks: list[tuple[int, int]]
    rows: list[list[list[int]]]
    pristine: int = 0

    def launches(self, rate: float) -> list[Launch]:
        """Return the launches of kernels with clock reads; `rate` is nanoseconds a tick."""
        made: list[Launch] = []
        if not self.rows:
            return made
        main = self.rows[0]
        noted: dict[tuple[int, int], list[list[int]]] = {}
        for thread, rows in enumerate(self.rows):
            for what, *times in rows:
                if what & NESTS:
                    noted.setdefault((what >> 16, what & NESTS), []).append([thread, *times])
        for what, begin, at, end in (row for row in main if not row[0] & NESTS):
            kernel = what >> 16
            first, second = (
                next(row for row in noted[kernel, number] if begin <= row[1] <= end) for number in EMPTY
            )

            def time_of(ticks: int, begin: int = begin, at: int = at) -> float:
                return at + (ticks - begin) * rate

            inside = (first[3] - first[1]) * rate
            steady = (second[3] - second[1]) * rate - inside
            note = (second[3] - first[3]) * rate - steady
            launch = Launch(kernel, at, time_of(end), inside, note, steady)
            for (other, nest), rows in noted.items():
                if other == kernel and nest not in EMPTY:
                    mine = (row for row in rows if begin <= row[1] <= end)
                    launch.nests[nest] = [
                        (row[0], time_of(row[1]), time_of(row[2]), time_of(row[3])) for row in mine
                    ]
            made.append(launch)
        return made


class TracedCall(Part):
    """A call with marks, in turns with one as it is: the fastest of each in a few turns is a round.

    Of calls timed by the wall clock, one that kept its cores counts; `disturbed` rounds have none. Parts of
    the one with marks are set beside the time of the other, so both are the same statistic of as many calls,
    on the same clock and data: whatever else runs on the machine meets both.
    """

    def __init__(
        self,
        side: Side,
        pristine: Side,
        marks: list[tuple[int, int]],
        events: Events | None,
        clock: Callable[[], int],
    ) -> None:
        super().__init__("traced", side.name, side)
        self._pristine, self._marks, self._events, self._clock = pristine, marks, events, clock
        self.rounds: list[Traced] = []
        self.new_pages: list[int] = []
        self.full = False
        most = MOST_DRIFTING // 2 if side.drifting else MOST_CALLS
        self._calls = 1 if side.long else min(2 * side.laps * side.calls, most)

    def on_cpu(self, number: int) -> None:
        """Take some turns one after the other, and keep the fastest of both."""
        if not self.side.long:
            run_once(self.side, number)
        self._take(number, lambda: None)

    def on_cuda(self, number: int, clock: Any) -> None:
        """Do the same with a GPU that is idle before, and done after."""
        self._take(number, clock.stream.wait)

    def _take(self, number: int, wait: Callable[[], None]) -> None:
        slot = number % len(self.side.runs)
        switches = involuntary_switches if self._clock is time.perf_counter_ns else int
        queues = torch.get_num_threads() > 1 and seconds_queued() < float("inf")
        if queues:
            switches = nanoseconds_queued
        run, plain, now = self.side.runs[slot], self._pristine.runs[slot], self._clock
        bounds, pristine = list[tuple[int, int, int]](), list[tuple[int, int]]()
        wait()
        self._marks.clear()
        if self._events:
            self._events.clear()
        for _ in range(self._calls):
            given, switched, begin = page_faults(), switches(), now()
            plain()
            taken = now() - begin
            pristine.append((switches() - switched, taken))
            self.new_pages.append(page_faults() - given)
            switched, begin = switches(), now()
            run()
            end = now()
            bounds.append((switches() - switched, begin, end))
        wait()
        self.side.ring.restore(slot, self.side.drifting)
        rows = self._events.read() if self._events else []
        if self._events and self._events.full:
            self.full, self._calls = self._calls == 1, max(1, self._calls // 4)
            if not self.full:
                self._take(number, wait)
            return
        lost, begin, end = kept = min(bounds, key=lambda call: (call[0], call[2] - call[1]))
        position = bounds.index(kept)
        marks = [mark for mark in self._marks if begin <= mark[1] <= end]
        mine = rows_of_call(rows, position, self._calls)
        for waited, taken in ((lost, end - begin), min(pristine)):
            if waited > (NOTHING_OF_ALL * taken if queues else 0):
                self.disturbed += 1
                break
        self.rounds.append(Traced(begin, end, marks, mine, min(pristine)[1]))

    def recorded(self) -> dict[str, Any] | None:
        """Return a timeline of one more call with what the GPU does, by torch.profiler; None without that.

        Where the wall clock sets the first kernel before the line that launches it, all kernels are moved.
        """
        stream, bounds = self.side.clock.stream, list[int]()

        def call() -> None:
            self._marks.clear()
            bounds[:] = [time.perf_counter_ns()]
            self.side.runs[0]()
            bounds.append(time.perf_counter_ns())

        ahead = time.time_ns() - time.perf_counter_ns()
        spans = [(name, begin - ahead, end - ahead) for name, begin, end in stream.kernels(call)]
        self.side.ring.restore(0, self.side.drifting)
        if not spans:
            return None
        shift = max(self._marks[0][1] - spans[0][1], 0.0)
        if spans[-1][2] - bounds[1] > LATEST_NS:  # no wall clock
            shift = self._marks[0][1] - spans[0][1]
        once = Traced(bounds[0], bounds[1], list(self._marks), [])
        device = [
            [name, (begin + shift - once.begin) / 1e9, (end + shift - once.begin) / 1e9]
            for name, begin, end in spans
        ]
        return {**timeline(once, 1.0), "device": device}


def rows_of_call(rows: list[list[list[int]]], position: int, calls: int) -> list[list[list[int]]]:
    """Return the rows of one of `calls` equal calls: those from its first launch to its last."""
    launches = [row for row in (rows[0] if rows else []) if not row[0] & NESTS]
    share = len(launches) // calls
    mine = launches[position * share : (position + 1) * share]
    if not mine:
        return []
    first, last = mine[0][1], mine[-1][3]
    return [[row for row in thread if first <= row[1] <= last] for thread in rows]


def profile(file: Request, request: Request, tell: Tell) -> None:
    """Trace calls of a graph in turns with plain ones, and send what they took.

    The request has `options`, `wrapper` (the names that the wrapper consists of), and `clocked`: pairs of a
    kernel and of its copy in the file that reads a clock, in the order of their numbers.

    Raises:
        JobError: the file cannot be loaded, or the graph cannot be run.
    """
    options = options_of(request["options"])
    torch.set_num_threads(options.threads)
    import_modules(file)
    clocked: list[tuple[str, str]] = [tuple(pair) for pair in request["clocked"]]
    events = Events(max(options.threads, os.cpu_count() or 1)) if clocked else None
    text = text_of(file)

    def loading(name: str) -> None:
        tell("phase", phase="loading", names=[name])

    try:
        loaded = text.load(loading, needed=[copy for _, copy in clocked])
        bench = loaded.bench()
        options = bind_inputs(bench, options)
        remarks = bind_constants(bench)
        inputs = bench.inputs(options.seed)
    except LoadError as error:
        raise JobError("load", str(error)) from error
    except (InputsError, ValueError) as error:
        raise JobError("usage", str(error)) from error
    if bench.missing:
        name, why = next(iter(bench.missing.items()))
        raise JobError("usage", f"{name} cannot be run: {why}; dump the script again with --save-inputs")
    refused = {name: error.error for name, error in loaded.refused.items()}
    with torch.no_grad():
        tell("phase", phase="checking", names=[])
        copies = {name: copy for name, copy in clocked if copy not in refused}
        differing = differing_copies(bench, copies, inputs)
        made = {name: bench.namespace[copy] for name, copy in copies.items() if name not in differing}
        tell("phase", phase="tracing", names=[])
        tell(
            "profile",
            **measure(bench, inputs, made, request["wrapper"], text.text, events, options),
            numbers={name: number for number, (name, _) in enumerate(clocked)},
            refused=[[name, refused[copy]] for name, copy in clocked if copy in refused],
            differing=differing,
            remarks=remarks,
            environment=environment(),
            torch=torch.__version__,
        )


def differing_copies(bench: Bench, copies: Mapping[str, str], inputs: list[Any]) -> list[str]:
    """Return the kernels whose copy does not compute the same bits as the kernel itself.

    A call that differs from itself, as atomic additions of several threads make it, shows nothing.
    """

    def outputs(entry: str) -> list[bytes]:
        values = clone(inputs)
        results = bench.run(entry, values)
        tensors = [*tensors_of(results), *tensors_of(values)]
        return [bits(tensor) for tensor in tensors]

    expected = outputs("call")
    if outputs("call") != expected:
        return []
    return [name for name, copy in copies.items() if outputs(copy) != expected]


def bits(tensor: Any) -> bytes:
    """Return the elements of a tensor as bytes."""
    plain = tensor.detach().to("cpu").contiguous()
    if plain.is_mkldnn:
        plain = plain.to_dense()
    return bytes(plain.flatten().view(torch.uint8).numpy().tobytes()) if plain.numel() else b""


def measure(  # noqa: PLR0917 - what one call of it takes
    bench: Bench,
    inputs: list[Any],
    copies: Mapping[str, Any],
    wrapper: Sequence[str],
    text: str,
    events: Events | None,
    options: Any,
) -> dict[str, Any]:
    """Take rounds of calls as they are, with marks, and with marks and kernels that read clocks."""
    rng = random.Random(options.seed)  # noqa: S311 - no secret
    lines: list[Line] = []
    on_cuda = any(tensor.is_cuda for tensor in tensors_of(inputs))
    if on_cuda:
        bench.run("call", clone(inputs))  # the first call of a Triton kernel tries its configs
    budget = Budget(options.budget)
    clock = time.perf_counter_ns if on_cuda else clock_of(partial(bench.run, "call", clone(inputs)))
    if events:
        events.use(clock)
    as_it_is = Subject("call", lambda values: lambda: bench.namespace["call"](list(values)), inputs)
    ring = two_slots(inputs, rng)
    before = budget.spent
    pristine = make_side(as_it_is, ring)
    # Of a long call that made one; three rounds of both are twelve.
    few = pristine.long and 12 * (budget.spent - before) > budget.left
    traced: list[TracedCall] = []
    for name, kernels in (("lines", {}), ("nests", copies)):
        namespace, lines, marks = with_marks(bench.namespace, text, wrapper, bench.kernels, clock)
        namespace.update(kernels)

        def bind(values: Any, entry: Any = namespace["call"]) -> Callable[[], object]:
            return lambda: entry(list(values))

        side = make_side(Subject(name, bind, inputs), ring, like=pristine)
        traced.append(TracedCall(side, pristine, marks, events if name == "nests" else None, clock))
    plain, clocked = traced
    overheads = measure_overheads(
        bench, inputs, budget, rng, further=[clocked] if few else traced, kernels=on_cuda
    )
    if clocked.full and few:
        measure_overheads(bench, inputs, budget, rng, further=[plain], kernels=False)
    rounds = clocked.rounds or plain.rounds  # where too many loop nests run, lines alone have times
    if not on_cuda:
        seconds = [call.pristine / 1e9 for call in rounds]
        overheads["parts"] = [Part("call", "call", pristine, seconds=seconds).plain()]
    rate = tick_rate(rounds)
    remarks: list[Remark] = list(overheads["remarks"])
    if bench.namespace.get("WRAPPER_IN_CPP"):
        remarks.append(remark("wrapper-as-python"))
    if "ONE_RANK" in bench.namespace:
        remarks.append(remark("one-rank"))
    if clocked.full:
        remarks.append(remark("too-many-nests", most=ROWS))
    if lost := clocked.disturbed + plain.disturbed:
        remarks.append(remark("parts-lost-cores", lost=lost, rounds=len(clocked.rounds) + len(plain.rounds)))
    overheads["remarks"] = []
    middle = sorted(rounds, key=lambda call: call.end - call.begin)[len(rounds) // 2 :]
    recorded = clocked.recorded() if on_cuda else None  # last: launches are slower once the profiler ran
    device: list[dict[str, Any]] = []
    if on_cuda and all(part["kind"] == "call" for part in overheads["parts"]):  # no kernel was timed alone
        device = device_intervals(
            pristine.clock.stream, pristine.runs[0], lambda: ring.restore(0, pristine.drifting)
        )
    return {
        "device": overheads["device"],
        "on_cpu_time": clock is time.thread_time_ns,
        "overheads": overheads,
        "lines": [asdict(line) for line in lines],
        "plain": [seconds_of_lines(call) for call in plain.rounds],
        "clocked": [clocked_round(call, rate) for call in rounds],
        "timeline": recorded or (timeline(middle[0], rate) if middle else None),
        "device_intervals": device,
        "measured": remarks,
        "new_pages": plain.new_pages or clocked.new_pages,
        "seconds": budget.spent,
    }


def tick_rate(calls: Sequence[Traced]) -> float:
    """Return the nanoseconds of a tick: of the longest time between two launches, on both clocks."""
    launches = [row for call in calls for row in (call.rows[0] if call.rows else []) if not row[0] & NESTS]
    if len(launches) < 2 or launches[-1][1] == launches[0][1]:
        return 1.0
    return (launches[-1][2] - launches[0][2]) / (launches[-1][1] - launches[0][1])


def seconds_of_lines(call: Traced) -> dict[str, Any]:
    """Return the seconds of each line in a call, of a mark, and of what is before the first line."""
    seconds: dict[int, float] = {}
    counts: dict[int, int] = {}
    ends = [at for _, at in call.marks[1:]] + [call.end]
    cost = []
    for (number, begin), end in zip(call.marks, ends, strict=True):
        if number == MARK:
            cost.append((end - begin) / 1e9)
        else:
            seconds[number] = seconds.get(number, 0.0) + (end - begin) / 1e9
            counts[number] = counts.get(number, 0) + 1
    return {
        "call": (call.end - call.begin) / 1e9,
        "pristine": call.pristine / 1e9,
        "entry": (call.marks[0][1] - call.begin) / 1e9,
        "mark": min(cost),  # the first one may find its code in no cache
        "lines": [[number, time_s, counts[number]] for number, time_s in sorted(seconds.items())],
    }


def clocked_round(call: Traced, rate: float) -> dict[str, Any]:
    """Return the same of a call, and what its kernels and loop nests took."""
    rows = []
    for launch in call.launches(rate):
        line = max((mark for mark in call.marks if mark[1] <= launch.begin), key=lambda mark: mark[1])[0]
        nests = []
        for number, threads in sorted(launch.nests.items()):
            if threads:
                busy = [(worked - begin) / 1e9 for _, begin, worked, _ in threads]
                wall = max(end - begin for _, begin, _, end in threads) / 1e9
                nests.append([number, wall, max(busy), sum(busy) / len(busy), len(busy)])
        rows.append(
            {
                "kernel": launch.kernel,
                "line": line,
                "seconds": (launch.end - launch.begin) / 1e9,
                "inside": launch.inside_ns / 1e9,
                "note": launch.note_ns / 1e9,
                "steady": launch.steady_ns / 1e9,
                "nests": nests,
            }
        )
    return {**seconds_of_lines(call), "launches": rows}


def timeline(call: Traced, rate: float) -> dict[str, Any]:
    """Return one call with all begins and ends, in seconds from its begin."""

    def since(at: float) -> float:
        return (at - call.begin) / 1e9

    ends = [at for _, at in call.marks[1:]] + [call.end]
    marks = zip(call.marks, ends, strict=True)
    return {
        "seconds": since(call.end),
        "lines": [[number, since(begin), since(end)] for (number, begin), end in marks if number != MARK],
        "device": [],
        "launches": [
            {
                "kernel": launch.kernel,
                "begin": since(launch.begin),
                "end": since(launch.end),
                "nests": [
                    [number, thread, since(begin), since(worked), since(end)]
                    for number, threads in sorted(launch.nests.items())
                    for thread, begin, worked, end in threads
                ],
            }
            for launch in call.launches(rate)
        ],
    }
