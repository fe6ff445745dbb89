"""What a call of a compiled callable consists of, measured in the process that compiled it.

    callable(x)                                   the call, as the user makes it
      guards                                      what skipping them saves
      dynamo's entry, Python between graphs       all outside of the functions that dynamo compiled
      __compiled_fn_1(x)
        AOTAutograd's runtime                     all of it outside of inductor's graphs
        CompiledFxGraph(inputs)
          inductor's entry                        outside of the generated `call`
          call(inputs)
            launches, kernels, library calls, copies
            wrapper                               what else `call` does
    backward(outputs)                             autograd's engine, and AOTAutograd's runtime in it

Laps of calls as they are take turns with laps in which a clock is read at the begin and end of one of these:
of what dynamo compiled, of inductor's graphs, of `call`, or of its lines. So each gets the arguments that it
really gets, and no other clock runs in it; a part is what one takes more than what it calls. A wrapper in C++
is compiled once more, with readings of the same clock in it. Guards are what a call that leaves out what
dynamo compiled takes more than the same with `torch.compiler.set_stance(skip_guard_eval_unsafe=True)`:
beside a long call they would drown in noise.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.utils import counters
from torch._inductor.codecache import PyCodeCache
from torch._inductor.output_code import CompiledFxGraph

from inductor_probe.harness.bench import Call, replaced
from inductor_probe.harness.budget import LONG_S, Budget
from inductor_probe.harness.call_marks import (
    DYNAMO,
    END,
    FORWARD,
    FX,
    LINES,
    RUN,
    Costs,
    Level,
    added,
    costs_of,
    timed,
)
from inductor_probe.harness.gpu_clock import DEVICE_ROUNDS, device_intervals
from inductor_probe.harness.inputs import tensors_of
from inductor_probe.harness.laps import clock_of
from inductor_probe.harness.marked_wrappers import MOST_NOTES, CppWrapper, Marks, PythonWrapper
from inductor_probe.harness.overheads import FEWEST_ROUNDS, MOST_SIGNATURES, empty_call, nearest, signature
from inductor_probe.harness.quads import gpu_clock
from inductor_probe.harness.reference import first_line
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.replays import Launch
from inductor_probe.harness.timing import LAP_S

COMPILED_BY_DYNAMO = "__compiled_fn_"  # torch/_dynamo/output_graph.py, compile_and_call_fx_graph
MOST_CALLS = 200  # of a lap
LAPS = 2  # of which the faster counts


class NothingCompiledError(Exception):
    """The call ran nothing that dynamo compiled."""


@dataclass
class Seen:
    """What one call ran.

    Attributes:
        functions: of dynamo: a global name, and where it is one. outputs: what calls of it returned.
        graphs: of inductor. wrappers: of the graph of that number, where it can be looked into.
        launches: signatures of what kernels are passed by wrappers in Python. inputs: one of each graph.
    """

    functions: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    outputs: list[list[Any]] = field(default_factory=list)
    graphs: list[Any] = field(default_factory=list)
    wrappers: dict[int, PythonWrapper | CppWrapper] = field(default_factory=dict)
    launches: dict[str, list[str]] = field(default_factory=dict)
    inputs: list[Any] = field(default_factory=list)
    empties: dict[str, list[tuple[float, str]]] = field(default_factory=dict)


def measure_call_parts(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    seconds: float,
    rng: random.Random,
    *,
    backward: Callable[[Any], object] | None = None,
    restore: Callable[[], object] | None = None,
    most: int = MOST_CALLS,
) -> dict[str, Any]:
    """Time the parts of `function(*args, **kwargs)` for about `seconds`; three rounds there are at least.

    Compiling does not count: empty kernels, and a C++ wrapper with clocks. Nothing is changed behind it but
    what calls change.

    Args:
        function: a compiled callable, as the user has it; a call of it compiles nothing any more.
        args: of a call. kwargs: those with names.
        seconds: how long to measure.
        rng: draws which side comes first.
        backward: called with what `function` returned, as a part of the call.
        restore: called behind each lap, outside of the clock, where calls change something. most: calls of
            a lap.

    Returns:
        for JSON what `model.timing.CallSamples` describes. A round has each part once; what a GPU does
        has rounds of its own.

    Raises:
        NothingCompiledError: the call ran nothing that dynamo compiled.
    """
    measurement = _Measurement(function, tuple(args), dict(kwargs), backward, restore, most)
    return measurement.measure(Budget(seconds), rng)


class _Passed:
    """Stands in for a kernel: passes launches on, and notes their signatures."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.signatures = kernel, list[str]()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.signatures.append(signature(Launch(None, args, kwargs)))
        return self.kernel(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


@dataclass
class _Measurement:
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    backward: Callable[[Any], object] | None
    restore: Callable[[], object] | None
    most: int
    marks: Marks = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    times: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    now: Callable[[], int] = time.perf_counter_ns

    def measure(self, budget: Budget, rng: random.Random) -> dict[str, Any]:
        with budget.paused():
            self._look()
            values = (self.args, self.kwargs, self.seen.outputs, self.seen.inputs)
            gpu = next((tensor for tensor in tensors_of(values) if tensor.is_cuda), None)
            clock = gpu_clock(str(gpu.device), False) if gpu is not None else None
            empties = self._empties() if clock is None else {}
        further: dict[str, Collection[str]] = {"fx": (), "call": (), "lines": LINES.values()}
        further["dynamo"] = ("between", "forward") if self.backward is not None else ("between",)
        wait: Call = clock.stream.wait if clock else lambda: None
        calls, long = self._calls(self._run)
        costs = costs_of(self.now)
        # In a long call, clocks of all levels together are not seen, nor that the interpreter is new to them.
        levels = [tuple(further)] if long else [(level,) for level in further]
        times = range(1 if long else LAPS)

        def plain() -> None:
            if not long:
                self._run()
            self._note("compiled", "", min(self._lap(self._run, calls, wait) for _ in times))

        def marked(levels: Collection[str]) -> None:
            with self._marking(levels):
                if not long:
                    self._marked_run()  # what the interpreter specialised is specialised anew
                laps = [self._marked_lap(calls, wait, costs) for _ in times]
            for (kind, name), seconds in laps[0].items():
                if any(kind.startswith(level) or kind in further[level] for level in levels):
                    self._note(kind, name, min(seconds, laps[-1].get((kind, name), seconds)))

        def empty() -> None:
            seconds = {
                letters: min(self._lap(run, 100) for _ in range(LAPS)) for letters, run in empties.items()
            }
            for name, signatures in self.seen.launches.items():
                self._note("launch", name, sum(seconds[nearest(letters, empties)] for letters in signatures))

        sides: list[Call] = [plain, *(partial(marked, each) for each in levels)]
        sides += [*([empty] if empties else []), *self._guards()]
        for _ in budget.rounds(FEWEST_ROUNDS):
            for side in rng.sample(sides, len(sides)):
                side()
        device = self._on_device(clock) if clock is not None else []
        return self._plain("cpu" if clock is None else "cuda", device)

    def _note(self, kind: str, name: str, seconds: float) -> None:
        self.times.setdefault((kind, name), []).append(max(seconds, 1e-12))

    # What is called.

    def _run(self) -> None:
        out = self.function(*self.args, **self.kwargs)
        if self.backward is not None:
            self.backward(out)

    def _forward(self) -> None:
        self.function(*self.args, **self.kwargs)

    def _marked_run(self) -> None:
        self.marks.append((RUN, self.now()))
        out = self.function(*self.args, **self.kwargs)
        self.marks.append((FORWARD, self.now()))
        if self.backward is not None:
            self.backward(out)

    def _lap(self, run: Call, calls: int, wait: Call = lambda: None) -> float:
        """Return the seconds a call of some calls, which a GPU has done before and behind."""
        wait()
        begin = self.now()
        for _ in range(calls):
            run()
        taken = self.now() - begin
        wait()
        if self.restore is not None:
            self.restore()
        return taken / 1e9 / calls

    def _calls(self, run: Call) -> tuple[int, bool]:
        """Return of how many calls a lap is, and whether they are long."""
        if (seconds := self._lap(run, 1)) > LONG_S:
            return 1, True
        self._lap(run, 1)
        seconds = min(seconds, *(self._lap(run, 1) for _ in range(3)))
        most = min([self.most, *(MOST_NOTES // max(each.notes, 1) for each in self.seen.wrappers.values())])
        return max(1, min(round(LAP_S / max(seconds, 1e-9)), most)), False

    # What a call runs.

    def _look(self) -> None:
        """Call once, and see what dynamo and inductor run in it; once more to see what kernels are passed."""
        spaces: dict[int, dict[str, Any]] = {}

        def watch(frame: Any, event: str, _: Any) -> None:
            if event == "call" and id(frame.f_globals) not in spaces:
                spaces[id(frame.f_globals)] = frame.f_globals

        sys.setprofile(watch)
        try:
            self._run()
        finally:
            sys.setprofile(None)
        names = [
            (space, name)
            for space in spaces.values()
            for name in space
            if name.startswith(COMPILED_BY_DYNAMO)
        ]
        ran: dict[int, list[Any]] = {}

        def noting(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any) -> Any:
                ran.setdefault(number, []).append(out := function(*args))
                return out

            return call

        with self._functions_replaced(names, noting), self._graphs_seen():
            self._run()
        if not ran:
            raise NothingCompiledError
        for number, outputs in ran.items():
            self.seen.functions.append(names[number])
            self.seen.outputs.append(outputs)
        if not self.seen.graphs:
            self.remarks.append(remark("not-inductor"))
        modules = {module.key: module for module in PyCodeCache.modules if hasattr(module, "key")}
        for number, graph in enumerate(self.seen.graphs):
            try:
                module = modules[graph.cache_key]
                in_cpp = hasattr(module, "inductor_entry")
                self.seen.wrappers[number] = (CppWrapper if in_cpp else PythonWrapper)(module)
            except Exception as error:  # a form of another torch, a compiler, a module that is gone
                self.remarks.append(remark("wrapper-not-marked", error=first_line(error)))
        with ExitStack() as stack:
            for wrapper in self.seen.wrappers.values():
                if isinstance(wrapper, PythonWrapper):
                    kernels = {name: _Passed(wrapper.namespace[name]) for name in wrapper.kernels}
                    stack.enter_context(replaced(wrapper.namespace, kernels))
                    self.seen.launches |= {name: kernel.signatures for name, kernel in kernels.items()}
            self._run()
        self.now = clock_of(self._run)
        if self.restore is not None:
            self.restore()

    @contextmanager
    def _functions_replaced(
        self, names: Sequence[tuple[dict[str, Any], str]], make: Callable[[int, Any], Any]
    ) -> Iterator[None]:
        """Put something in the place of what dynamo compiled for a while."""
        with ExitStack() as stack:
            for number, (space, name) in enumerate(names):
                place, key, original = _inner(space, name)
                stack.enter_context(_patched(place, key, make(number, original)))
            yield

    @contextmanager
    def _graphs_seen(self) -> Iterator[None]:
        call = CompiledFxGraph.__call__

        def seeing(graph: Any, inputs: Any) -> Any:
            if not any(graph is other for other in self.seen.graphs):
                self.seen.graphs.append(graph)
            self.seen.inputs += tensors_of(list(inputs))[:1]  # tell whether a GPU runs it
            return call(graph, inputs)

        with _patched(CompiledFxGraph, "__call__", seeing):
            yield

    # Laps with clocks.

    @contextmanager
    def _marking(self, levels: Collection[str]) -> Iterator[None]:
        """Read a clock around what is of some levels."""
        marks, now, call = self.marks, self.now, CompiledFxGraph.__call__

        def timed_graph(graph: Any, inputs: Any) -> Any:
            marks.append((FX, now()))
            out = call(graph, inputs)
            marks.append((END, now()))
            return out

        def timed_function(_: int, function: Any) -> Any:
            return timed(function, DYNAMO, marks, now)

        with ExitStack() as stack:
            if "dynamo" in levels:
                stack.enter_context(self._functions_replaced(self.seen.functions, timed_function))
            if "fx" in levels:
                stack.enter_context(_patched(CompiledFxGraph, "__call__", timed_graph))
            if "call" in levels or "lines" in levels:
                for number, graph in enumerate(self.seen.graphs):
                    call_level = Level("call", number)
                    marked = timed(graph.current_callable, call_level, marks, now)
                    stack.enter_context(_patched(graph, "current_callable", marked))
            if "lines" in levels:
                for wrapper in self.seen.wrappers.values():
                    stack.enter_context(wrapper.marking(marks, now))
            yield

    def _marked_lap(self, calls: int, wait: Call, costs: Costs) -> dict[tuple[str, str], float]:
        """Return the seconds a call of each part that was marked: a kind and a name."""
        cpp = [each for each in self.seen.wrappers.values() if isinstance(each, CppWrapper)]
        for wrapper in cpp:
            wrapper.read()
        self.marks.clear()
        self._lap(self._marked_run, calls, wait)
        marks = list(self.marks)
        if notes := [note for wrapper in cpp for note in wrapper.read()]:
            marks = sorted([*marks, *notes], key=lambda mark: mark[1])
        parts, counts = added(marks, self.seen.wrappers, costs)
        self.counts |= {part: max(1, round(count / calls)) for part, count in counts.items()}
        return {part: taken / 1e9 / calls for part, taken in parts.items()}

    # Guards.

    def _guards(self) -> list[Call]:
        """Return what times guards, none where they cannot be skipped."""

        def stub(number: int, _: Any) -> Any:
            outputs = self.seen.outputs[number]
            if len(outputs) == 1:
                only = outputs[0]
                return lambda *args: only
            following = cycle(outputs)
            return lambda *args: next(following)

        def take(calls: int) -> tuple[float, float]:
            laps = [self._lap(self._forward, calls) for _ in range(LAPS)]
            with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
                self._forward()
                skipped = [self._lap(self._forward, calls) for _ in range(LAPS)]
            self._forward()
            return min(laps), min(skipped)

        compiled = counters["frames"]["total"]
        try:
            with self._functions_replaced(self.seen.functions, stub):
                calls, _ = self._calls(self._forward)
                take(calls)
            if counters["frames"]["total"] != compiled:
                raise RuntimeError("what follows a graph break was compiled again")
        except Exception as error:  # an older torch; Python between graphs that needs what they compute
            self.remarks.append(remark("guards-not-skipped", error=first_line(error)))
            return []

        def guards() -> None:
            with self._functions_replaced(self.seen.functions, stub):
                self._forward()
                guarded, skipped = take(calls)
            self._note("guards", "with", guarded)
            self._note("guards", "without", skipped)

        return [guards]

    # Launches.

    def _empties(self) -> dict[str, Call]:
        """Return calls of empty C++ kernels by their signature, of the most frequent ones."""
        every = [letters for signatures in self.seen.launches.values() for letters in signatures]
        ranked = sorted(set(every), key=lambda letters: (-every.count(letters), letters))
        try:
            return {letters: empty_call(letters) for letters in ranked[:MOST_SIGNATURES]}
        except Exception as error:  # whatever a compiler may say
            self.remarks.append(remark("launches-included", error=first_line(error)))
            return {}

    def _on_device(self, clock: Any) -> list[dict[str, Any]]:
        """Return what the GPU does in a call, and how long calls take until it has done all."""
        walls = []
        for _ in range(DEVICE_ROUNDS):
            clock.stream.wait()
            begin = time.perf_counter_ns()
            for _ in range(calls := 8):
                self._run()
            clock.stream.wait()
            walls.append((time.perf_counter_ns() - begin) / 1e9 / calls)
        wall = {"kind": "gpu-wall", "name": "gpu-wall", "seconds": walls, "host": [], "launches": 1}
        return [wall, *device_intervals(clock.stream, self._run)]

    def _plain(self, device: str, on_device: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return all for JSON."""
        guarded = self.times.pop(("guards", "with"), [])
        unguarded = self.times.pop(("guards", "without"), [])
        launches = {name: self.times.pop(("launch", name), []) for name in self.seen.launches}
        parts, rounds = [], len(self.times["compiled", ""])
        if guarded:
            parts.append(("guards", "guards", guarded, unguarded))
        for (kind, name), seconds in self.times.items():
            host = launches.get(name, []) if kind == "kernel" else []
            if len(seconds) == rounds:
                parts.append((kind, name or kind, seconds, host if len(host) == len(seconds) else []))
        allocations = [
            line
            for wrapper in self.seen.wrappers.values()
            for line in wrapper.lines
            if line.kind == "allocation"
        ]
        return {
            "device": device,
            "allocations": len(allocations),
            "graphs": len(self.seen.functions),
            "parts": [
                {
                    "kind": kind,
                    "name": name,
                    "seconds": seconds,
                    "host": host,
                    "launches": self.counts.get((kind, name), 1),
                }
                for kind, name, seconds, host in parts
            ]
            + [*on_device],
            "remarks": self.remarks,
        }


def _inner(space: dict[str, Any], name: str) -> tuple[Any, str, Any]:
    """Return where what dynamo compiled is called from with dynamo switched off, and that.

    The global is a function of `torch._dynamo.disable` around it: a function in its place would be one more
    frame that dynamo looks at.
    """
    function = space[name]
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    if "fn" in names:
        cell = function.__closure__[names.index("fn")]
        return cell, "cell_contents", cell.cell_contents
    return _Item(space), name, function


class _Item:
    """A dictionary whose items are attributes."""

    def __init__(self, items: dict[str, Any]) -> None:
        self.__dict__ = items


@contextmanager
def _patched(place: Any, name: str, value: Any) -> Iterator[None]:
    original = getattr(place, name)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, original)
