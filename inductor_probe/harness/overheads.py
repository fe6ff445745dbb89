"""Overheads: what compiled code spends besides its kernels, on launches and the wrapper."""

from __future__ import annotations

import ctypes
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch._inductor.config
from torch._inductor.async_compile import AsyncCompile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from inductor_probe.harness.bench import Bench, replaced
from inductor_probe.harness.budget import Budget
from inductor_probe.harness.gpu_clock import GpuClock, host_seconds
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.judge import ALLOCATORS
from inductor_probe.harness.laps import TRIES, fastest, kept_lap
from inductor_probe.harness.quads import (
    Ring,
    Side,
    Subject,
    gpu_clock,
    make_side,
    placed,
    run_once,
)
from inductor_probe.harness.reference import first_line
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.replays import Launch, record

MOST_LAUNCHES = 48
MOST_BYTES = 2 << 30  # of all that launches are passed; a ring holds a few times that
MOST_SIGNATURES = 4  # each takes seconds to compile once
FEWEST_ROUNDS = 3
DEVICE_CALLS, LONG_DEVICE_CALLS = 16, 2  # of a block on a GPU; where each takes long
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
    a CPU the same call of an `empty` kernel, on CUDA the time to enqueue. `wall` is, on CUDA, of calls one
    after the other until the last has ended. `repeated` laps were taken again, as they had lost a core
    (`laps.kept_lap`); no lap of `disturbed` blocks kept it; `tries` is how many there may be now.
    """

    kind: str
    name: str
    side: Side
    empty: Side | None = None
    seconds: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    repeated: int = 0
    disturbed: int = 0
    tries: int = TRIES

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {name: value for name, value in vars(self).items() if name not in ("side", "empty", "tries")}

    def on_cpu(self, number: int) -> None:
        """Time a block of it, and one of the empty kernel."""
        self.seconds.append(self._block(self.side, number))
        if self.empty:
            self.host.append(self._block(self.empty, number))

    def _block(self, side: Side, number: int) -> float:
        """Time a block: the fastest of laps that kept their cores, each taken again where it did not."""
        if not side.long:
            run_once(side, number)  # inside the wrapper its data are warm from the step before, too
        laps = [kept_lap(side, number, self.tries) for _ in range(1 if side.long else 2 * side.laps)]
        block = fastest(laps)
        self.repeated += sum(lap.taken - 1 for lap in laps)
        self.disturbed += block.lost > 0
        return block.seconds

    def on_cuda(self, number: int, clock: GpuClock) -> None:
        """Time it on the device, on the host, and where it is a whole graph, both together."""
        slot = number % len(self.side.runs)
        run = self.side.runs[slot]
        calls = LONG_DEVICE_CALLS if self.side.long else DEVICE_CALLS
        self.seconds.append(clock(run, calls))
        self.host.append(host_seconds(run, clock.stream.wait, min(calls, 5)))
        if self.kind == "call":
            clock.stream.wait()
            begin = time.perf_counter()
            for _ in range(calls):
                run()
            clock.stream.wait()
            self.wall.append((time.perf_counter() - begin) / calls)
        self.side.ring.restore(slot, self.side.drifting)


class LibraryCalls(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Notes operators that run under it, with copies of their arguments; not views, nor empty memory."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        aliases = [value.alias_info for value in func._schema.returns if value.alias_info is not None]
        views = any(not alias.is_write for alias in aliases)
        if not views and not func._schema.name.partition("::")[2].startswith(NOT_WORK):
            launch = Launch(None, *clone((args, kwargs)))
            self.steps.append(Step("library", str(func), launch, func))
        return func(*args, **kwargs)


class Flops(TorchDispatchMode):  # type: ignore[misc]
    """Counts the floating-point operations of each operator that registers a count, in order.

    What a higher-order operator, as `cond`, runs is not seen here: `passed` has its name.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[tuple[str, int]] = []
        self.passed = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(func, torch._ops.HigherOrderOperator):
            self.passed = self.passed or str(func)
            return out
        count = flop_registry.get(func._overloadpacket)
        if count is not None:
            self.counted.append((str(func._overloadpacket), int(count(*args, **(kwargs or {}), out_val=out))))
        return out


def measure_overheads(
    bench: Bench,
    inputs: list[Any],
    budget: Budget,
    rng: random.Random,
    *,
    further: Sequence[Part] = (),
    kernels: bool = True,
) -> dict[str, Any]:
    """Time kernels, launches, and the wrapper in turn within `budget`; return it for JSON.

    Three rounds there are at least. Compiling empty kernels does not count, nor does a call of each kind in
    which allocations and operations are counted. `further` parts take turns with the others, and keep what
    they measure. Without `kernels` they are all there is.

    Its keys are `device`, `allocations` (by the wrapper, a call), `parts` (see `Part`, in the order they
    run), `flops` (pairs of operator and count, in the order of the graph; null without a reference) and
    `remarks`: what could not be had.
    """
    remarks: list[Remark] = []
    entry = bench.namespace["call"]
    gpu = next((tensor for tensor in tensors_of(inputs) if tensor.is_cuda), None)
    with torch.no_grad():
        steps = steps_of(bench, inputs, remarks) if kernels else []
        with budget.paused():
            clock = gpu_clock(str(gpu.device), False) if gpu is not None else None
            empties = empty_kernels(steps, remarks) if gpu is None else {}
        try:
            parts = parts_of(steps, rng, empties)
        except Exception as error:  # a library call may not be one to repeat: of its own, or out of memory
            parts = []
            remarks.append(remark("kernels-not-timed", error=first_line(error)))
        if kernels:
            ring = two_slots(inputs, rng)
            call = Subject("call", lambda values: lambda: entry(list(values)), inputs)
            parts.append(Part("call", "call", make_side(call, ring)))
        # All of them once a round, in random order, so that differences are taken within a round.
        for number in budget.rounds(FEWEST_ROUNDS):
            for part in rng.sample(turns := [*parts, *further], len(turns)):
                part.tries = TRIES if budget.left > 0 else 1
                if clock:
                    part.on_cuda(number, clock)
                else:
                    part.on_cpu(number)
        allocated: list[Any] = []
        with budget.paused():
            with watched_allocators(bench.namespace, allocated.append):
                entry(clone(inputs))
            flops = flops_of(bench, inputs, remarks)
        return {
            "device": "cpu" if gpu is None else "cuda",
            "allocations": len(allocated),
            "parts": [part.plain() for part in parts],
            "flops": flops,
            "remarks": remarks + (clock.remarks if clock else []),
        }


def watched_allocators(
    namespace: dict[str, Any], watch: Callable[[Any], None]
) -> AbstractContextManager[None]:
    """Show `watch` every tensor that the allocators in `namespace` hand out."""

    def watched(allocate: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        tensor = allocate(*args, **kwargs)
        watch(tensor)
        return tensor

    names = [name for name in ALLOCATORS if name in namespace]
    return replaced(namespace, {name: partial(watched, namespace[name]) for name in names})


def two_slots(values: Any, rng: random.Random) -> Ring:
    """Return two copies of values, each placed at random."""
    return Ring(values, 2, partial(placed, rng=rng))


def steps_of(bench: Bench, inputs: list[Any], remarks: list[Remark]) -> list[Step]:
    """Return every launch and library call of the wrapper; none, and a remark, if one cannot be repeated."""
    bench.namespace["call"](clone(inputs))  # the first call of a Triton kernel tries its configs
    values = clone(inputs)
    with LibraryCalls() as library:
        bench.namespace["call"](values)
    steps: list[Step] = library.steps
    reason = None
    for kernel in bench.kernels:
        launches = record(bench, "call", kernel, inputs)
        if not all(launch.replayable() for launch in launches):
            reason = remark("launches-not-repeatable", kernel=kernel)
        steps += [Step("kernel", kernel, launch, bench.namespace[kernel]) for launch in launches]
        tensors = [tensor for step in steps for tensor in tensors_of(step.launch.values())]
        if len(steps) > MOST_LAUNCHES:
            reason = remark("too-many-launches", most=MOST_LAUNCHES)
        elif sum(tensor.untyped_storage().nbytes() for tensor in tensors) > MOST_BYTES:
            reason = remark("arguments-too-large", most_gib=MOST_BYTES >> 30)
        if reason:
            remarks.append(reason)
            return []
    return steps


def empty_kernels(steps: list[Step], remarks: list[Remark]) -> dict[str, Callable[..., object]]:
    """Compile an empty C++ kernel for each of the most frequent signatures of the steps."""
    signatures = [signature(step.launch) for step in steps if step.kind == "kernel"]
    try:
        ranked = sorted(set(signatures), key=lambda letters: (-signatures.count(letters), letters))
        return {letters: empty_kernel(letters) for letters in ranked[:MOST_SIGNATURES]}
    except Exception as error:  # whatever a compiler may say
        remarks.append(remark("launches-included", error=first_line(error)))
        return {}


def parts_of(steps: list[Step], rng: random.Random, kernels: dict[str, Callable[..., object]]) -> list[Part]:
    """Make a part of each step, beside an empty C++ kernel that takes the same arguments if there is one."""
    parts = []
    for step in steps:
        values = step.launch.values()
        subject = Subject(step.name, step.launch.starter(step.run), values)
        part = Part(step.kind, step.name, make_side(subject, two_slots(values, rng)))
        if kernels and step.kind == "kernel":
            exact, launch = signature(step.launch), step.launch
            near = nearest(exact, kernels)
            if near != exact:  # not that call; the difference is some ten nanoseconds an argument
                launch = _launch_of(near)
            empty = Subject("empty", launch.starter(kernels[near]), launch.values())
            part.empty = make_side(empty, two_slots(empty.values, rng))
        parts.append(part)
    return parts


def nearest(exact: str, signatures: Iterable[str]) -> str:
    """Return the signature that is the same, or the one with about as many arguments."""
    return min(signatures, key=lambda letters: (letters != exact, abs(len(letters) - len(exact))))


def signature(launch: Launch) -> str:
    """Return a letter for each argument: `p` tensor, `P` raw pointer, `i` integer, `f` float."""
    return "".join(
        ("P" if index in launch.pointers else "p")
        if isinstance(arg, torch.Tensor)
        else ("f" if isinstance(arg, float) else "i")
        for index, arg in enumerate(launch.args)
    )


def _launch_of(letters: str) -> Launch:
    arguments = {"p": torch.empty(1), "P": ctypes.c_void_p(), "i": 1, "f": 1.0}
    return Launch(None, tuple(arguments[letter] for letter in letters), {})


def empty_call(letters: str) -> Callable[[], object]:
    """Compile an empty kernel, and return a launch of it."""
    launch = _launch_of(letters)
    return launch.starter(empty_kernel(letters))(launch.values())


def empty_kernel(letters: str) -> Callable[..., object]:
    """Compile a C++ kernel that does nothing, with inductor's own way of passing arguments."""
    types = [{"p": "void*", "P": "void*", "i": "int64_t", "f": "float"}[letter] for letter in letters]
    arguments = ", ".join(f"{name} a{index}" for index, name in enumerate(types))
    source = f'#include <cstdint>\nextern "C" void kernel({arguments}) {{}}\n'
    with torch._inductor.config.patch(compile_threads=1):  # here: its compile workers were stopped
        compiler = AsyncCompile()
        if "P" in letters:
            by_pointers: Callable[..., object] = compiler.cpp(source)
            return by_pointers
        kernel: Callable[..., object] = compiler.cpp_pybinding(types, source)
    return kernel


def flops_of(bench: Bench, inputs: list[Any], remarks: list[Remark]) -> list[tuple[str, int]] | None:
    """Run the graph eagerly and count the floating-point operations of each operator, in order."""
    if bench.aten_graph is None:
        return None
    try:
        with Flops() as flops:
            bench.aten_graph()(*clone(inputs))
    except Exception as error:  # an operation of another torch version, or a formula that does not fit
        remarks.append(remark("flops-not-counted", error=first_line(error)))
        return None
    if flops.passed:
        why = f"the graph calls {flops.passed}, whose subgraphs are not looked into"
        remarks.append(remark("flops-not-counted", error=why))
        return None
    counted: list[tuple[str, int]] = flops.counted
    return counted
