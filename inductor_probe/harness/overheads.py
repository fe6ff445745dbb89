"""Overheads: what compiled code spends besides its kernels, on launches, the wrapper and dynamo's guards."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.checks import ALLOCATORS
from inductor_probe.harness.clocks import cpu_clock, gpu_clock
from inductor_probe.harness.empty_kernels import argument, empty_kernel, signature
from inductor_probe.harness.flops import first_line, flops_of
from inductor_probe.harness.gpu_clock import GpuClock, host_seconds
from inductor_probe.harness.guards import Guarded
from inductor_probe.harness.inputs import clone
from inductor_probe.harness.launches import Launch, record
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.rings import Ring, tensors_of
from inductor_probe.harness.timing import BUSY, Side, Subject, involuntary_switches, make_side

MOST_LAUNCHES = 48
MOST_BYTES = 2 << 30  # of all that launches are passed; a ring holds a few times that
MOST_SIGNATURES = 4  # each takes seconds to compile once
FEWEST_ROUNDS = 5
TRIES = 4
DEVICE_CALLS = 16  # of a block on a GPU
NOT_WORK = ("empty", "new_empty", "_reinterpret_tensor", "_alloc_from_pool")  # operators of the wrapper


@dataclass
class Step:
    """A launch of a generated kernel, or a call of a library operator; `run` is what is called."""

    kind: str
    name: str
    launch: Launch
    run: Any


@dataclass
class Part:
    """One thing that is timed in every round: seconds a call, one number a round in each list.

    `seconds` is wall time on a CPU, and on CUDA the time that the GPU is busy. `host` is the launch cost: on
    a CPU the same call of an empty kernel, on CUDA the time to enqueue. `wall` is, on CUDA, of calls one
    after the other until the last has ended. For `guards`, `seconds` is with them and `host` without, and
    the wrapper in neither. `repeated` blocks were taken again because something else had run on our cores;
    of `disturbed` ones the last try was no better.
    """

    kind: str
    name: str
    seconds: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    repeated: int = 0
    disturbed: int = 0


@dataclass
class Timer:
    """A part, and how it is called."""

    part: Part
    side: Side
    empty: Side | None = None

    def on_cpu(self, number: int) -> None:
        """Time a block of it, and one of the empty kernel."""
        self.part.seconds.append(self._block(self.side, number))
        if self.empty:
            self.part.host.append(self._block(self.empty, number))

    def _block(self, side: Side, number: int) -> float:
        """Time a block; once more where something else had our core meanwhile, a few times at most."""
        found = 0.0
        for again in range(TRIES):
            self.part.repeated += again > 0
            self._touch(side, number)
            switches, wall, cpu = involuntary_switches(), time.perf_counter(), time.process_time()
            found = min(side.block(number) for _ in range(2))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if cpu >= BUSY * wall and involuntary_switches() == switches:
                break
        else:
            self.part.disturbed += 1
        return found

    def _touch(self, side: Side, number: int) -> None:
        """Call it once without a clock: inside the wrapper its data are warm from the step before, too."""
        slots = side.ring.take(number, 1)
        side.runs[slots[0]]()
        side.ring.restore(slots, side.drifting)

    def on_cuda(self, number: int, clock: GpuClock) -> None:
        """Time it on the device, on the host, and where it is a whole graph, both together."""
        slots = self.side.ring.take(number, 1)
        run = self.side.runs[slots[0]]
        if self.part.kind != "compiled":  # on the device it is what `call` is
            self.part.seconds.append(clock(run, DEVICE_CALLS))
        self.part.host.append(host_seconds(run, clock.stream.wait, 5))
        if self.part.kind in ("call", "compiled"):
            self.part.wall.append(wall_seconds(run, clock.stream.wait, DEVICE_CALLS))
        self.side.ring.restore(slots, self.side.drifting)


class LibraryCalls(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Notes operators that run under it, with copies of their arguments; not views, nor empty memory."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        aliases = [each.alias_info for each in func._schema.returns if each.alias_info is not None]
        views = any(not alias.is_write for alias in aliases)
        if not views and not func._schema.name.partition("::")[2].startswith(NOT_WORK):
            launch = Launch(None, *clone((args, kwargs)))
            self.steps.append(Step("library", str(func), launch, func))
        return func(*args, **kwargs)


def measure_overheads(bench: Bench, inputs: list[Any], seconds: float, rng: random.Random) -> dict[str, Any]:
    """Time kernels, launches, wrapper and compiled callable in turn for `seconds`; return it for JSON.

    Its keys are `device`, `allocations` (by the wrapper, a call), `parts` (see `Part`, in the order they
    run), `flops` (pairs of operator and count, in the order of the graph; null without a reference) and
    `remarks`: what could not be had.
    """
    remarks: list[Remark] = []
    entry = bench.namespace["call"]
    gpu = next((each for each in tensors_of(inputs) if each.is_cuda), None)
    with torch.no_grad():
        found = steps_of(bench, inputs, remarks)
        clock = gpu_clock(str(gpu.device), False) if gpu is not None else None
        try:
            timers = timers_of(found, rng, remarks, empties=gpu is None)
        except Exception as error:  # a library call may not be one to repeat: of its own, or out of memory
            timers = []
            remarks.append(remark("kernels-not-timed", error=first_line(error)))
        ring = Ring(inputs, 2, False, rng)
        call = Subject("call", lambda values: lambda: entry(list(values)), inputs)
        timers.append(Timer(Part("call", "call"), make_side(call, ring)))
        guarded = None
        try:
            guarded = Guarded(entry, inputs)
            whole = Subject("compiled", caller(guarded.whole), inputs)
            timers.append(Timer(Part("compiled", "compiled"), make_side(whole, ring)))
            sides = [host_side(caller(run), ring) for run in (guarded.only, guarded.direct)]
            timers.append(Timer(Part("guards", "guards"), *sides))
        except Exception as error:  # dynamo has many ways to refuse
            remarks.append(remark("guards-not-timed", error=first_line(error)))
        time_rounds(timers, clock, seconds, rng)
        if guarded and guarded.times_compiled > 1:
            timers = [timer for timer in timers if timer.part.kind not in ("compiled", "guards")]
            remarks.append(remark("guards-recompiled", times=guarded.times_compiled))
        return {
            "device": "cpu" if gpu is None else "cuda",
            "allocations": allocations(bench, inputs),
            "parts": [vars(timer.part) for timer in timers],
            "flops": flops_of(bench, inputs, remarks),
            "remarks": remarks + (clock.remarks if clock else []),
        }


def caller(run: Callable[..., Any]) -> Callable[[Any], Callable[[], object]]:
    """Return what makes a function without arguments, which calls `run` with some values."""
    return lambda values: lambda: run(*values)


def host_side(bind: Callable[[Any], Callable[[], object]], ring: Ring) -> Side:
    """Bind what runs nothing on a GPU and changes nothing: it is timed by the host."""
    side = Side("host", [bind(values) for values in ring.slots], ring, cpu_clock, [])
    side.runs[0]()
    side.calibrate([side.block(0) for _ in range(3)])
    return side


def steps_of(bench: Bench, inputs: list[Any], remarks: list[Remark]) -> list[Step]:
    """Return every launch and library call of the wrapper; none, and a remark, if one cannot be repeated."""
    bench.namespace["call"](clone(inputs))  # the first call of a Triton kernel tries its configs
    library = LibraryCalls()
    mine = clone(inputs)
    with library:
        bench.namespace["call"](mine)
    steps, why = library.steps, None
    for kernel in bench.kernels:
        launches = record(bench, "call", kernel, inputs)
        if not all(launch.replayable() for launch in launches):
            why = remark("launches-not-repeatable", kernel=kernel)
        steps += [Step("kernel", kernel, launch, bench.namespace[kernel]) for launch in launches]
        size = sum(
            each.untyped_storage().nbytes() for step in steps for each in tensors_of(step.launch.values())
        )
        if len(steps) > MOST_LAUNCHES:
            why = remark("too-many-launches", most=MOST_LAUNCHES)
        elif size > MOST_BYTES:
            why = remark("arguments-too-large", most_gib=MOST_BYTES >> 30)
        if why:
            remarks.append(why)
            return []
    return steps


def timers_of(steps: list[Step], rng: random.Random, remarks: list[Remark], *, empties: bool) -> list[Timer]:
    """Make a timer for each step; with `empties` beside an empty C++ kernel that takes the same arguments."""
    timers = []
    signatures = [signature(step.launch) for step in steps if step.kind == "kernel"] if empties else []
    try:
        ranked = sorted(set(signatures), key=lambda each: (-signatures.count(each), each))
        made = {each: empty_kernel(each) for each in ranked[:MOST_SIGNATURES]}
    except Exception as error:  # whatever a compiler may say
        made = {}
        remarks.append(remark("launches-included", error=first_line(error)))
    for step in steps:
        values = step.launch.values()
        ring = Ring(values, 2, False, rng)
        side = make_side(Subject(step.name, step.launch.starter(step.run), values), ring)
        timer = Timer(Part(step.kind, step.name), side)
        if made and step.kind == "kernel":
            own = signature(step.launch)
            nearest = min(made, key=lambda each: (each != own, abs(len(each) - len(own))))
            # Of another length, it is not that call; the difference is some ten nanoseconds an argument.
            launch = step.launch if nearest == own else Launch(None, tuple(map(argument, nearest)), {})
            args = launch.values()
            subject = Subject("empty", launch.starter(made[nearest]), args)
            timer.empty = make_side(subject, Ring(args, 2, False, rng))
        timers.append(timer)
    return timers


def time_rounds(timers: list[Timer], clock: GpuClock | None, seconds: float, rng: random.Random) -> None:
    """Time all of them once a round, in random order, so that differences are taken within a round."""
    end, number = time.perf_counter() + seconds, 0
    while number < FEWEST_ROUNDS or time.perf_counter() < end:
        for timer in rng.sample(timers, len(timers)):
            timer.on_cuda(number, clock) if clock and timer.part.kind != "guards" else timer.on_cpu(number)
        number += 1


def wall_seconds(run: Callable[[], object], wait: Callable[[], object], calls: int) -> float:
    """Return the seconds a call of calls one after the other, until the device has done the last."""
    wait()
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    wait()
    return (time.perf_counter() - begin) / calls


def allocations(bench: Bench, inputs: list[Any]) -> int:
    """Return how often the wrapper allocates memory in one call."""
    counted: list[str] = []

    def noting(name: str, allocate: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            counted.append(name)
            return allocate(*args, **kwargs)

        return noted

    kept = {name: bench.namespace[name] for name in ALLOCATORS if name in bench.namespace}
    bench.namespace.update({name: noting(name, allocate) for name, allocate in kept.items()})
    try:
        bench.namespace["call"](clone(inputs))
    finally:
        bench.namespace.update(kept)
    return len(counted)
