"""What fits into a budget: each kernel is timed once in one call, and what is compared depends on that."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from inductor_probe.harness.bench import Bench, Call, replaced
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.remarks import remark
from inductor_probe.harness.timing import Quad, Ring, Side, Subject, cpu_clock

MOST_KERNELS = 10
PROCESSES = 3  # fewer give no verdict
SETTLED = 24  # calls of a side that a comparison takes at least, with its calibration and warm-up
QUAD = 4  # calls of one quad, of both sides
MOST_QUADS = 6  # of long calls: with so many there is time to settle
OVERHEADS = 60  # calls that a table of overheads takes at least
ALLOWED = 1.2  # of its share that a comparison may take
SHARED = 0.8  # of the wall time that a quad had a core, at least


@dataclass
class Profile:
    """One call: its seconds, and those of each launch of each kernel in it."""

    call: float
    launches: dict[str, list[float]]

    def longest(self, kernels: Iterable[str], named: Iterable[str]) -> list[str]:
        """Return the `MOST_KERNELS` longest of `kernels`, and those that have a variant in `named`.

        They stand in the order of `kernels`. Of eleven kernels the shortest is left out, unless it was
        edited: then its `k_v2` is in `named`.
        """
        names = list(kernels)
        ranked = sorted(names, key=lambda name: -sum(self.launches.get(name, ())))[:MOST_KERNELS]
        originals = {re.sub(r"_v\d+$", "", name) for name in named}
        return [name for name in names if name in ranked or name in originals]

    def quad(self, names: Iterable[str]) -> float:
        """Return the seconds of a quad of each comparison: of the call, and of each launch of `names`."""
        return QUAD * (self.call + sum(sum(self.launches.get(name, ())) for name in names))

    def expected(self, subject: str) -> float:
        """Return about how long one call of `k alone #2` takes; all but kernels count as the whole call."""
        launches = self.launches.get(subject.partition(" ")[0])
        return max(launches) if launches else self.call


class Stopwatch:
    """Stands in for a kernel: passes calls on, and times them to the end of what they enqueue."""

    def __init__(self, kernel: Any, seconds: list[float], on_cuda: bool) -> None:
        self.kernel = kernel
        self._seconds = seconds
        self._on_cuda = on_cuda

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what calling a C++ kernel does."""
        return self._timed(self.kernel, args, kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do what `run` of a Triton kernel does."""
        return self._timed(self.kernel.run, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def _timed(self, start: Any, args: Any, kwargs: Any) -> Any:
        wait(self._on_cuda)
        begin = time.perf_counter()
        result = start(*args, **kwargs)
        wait(self._on_cuda)
        self._seconds.append(time.perf_counter() - begin)
        return result


def wait(on_cuda: bool) -> None:
    """Wait until a GPU has done what was enqueued."""
    if on_cuda:
        torch.cuda.synchronize()


def profile_call(bench: Bench, inputs: list[Any]) -> Profile:
    """Run the pristine call twice, once with a stopwatch at each kernel; it was run before."""
    on_cuda = any(tensor.is_cuda for tensor in tensors_of(inputs))
    call, launches = bench.namespace["call"], dict[str, list[float]]()
    values = clone(inputs)
    wait(on_cuda)
    begin = time.perf_counter()
    call(values)
    wait(on_cuda)
    seconds = time.perf_counter() - begin
    watches = {
        name: Stopwatch(bench.namespace[name], launches.setdefault(name, []), on_cuda)
        for name in bench.kernels
    }
    with replaced(bench.namespace, watches):
        call(clone(inputs))
    return Profile(seconds, launches)


def processes_within(seconds: float, profile: Profile, names: Iterable[str]) -> int | None:
    """Return how many processes a budget is enough for; None if for as many as are wanted.

    A call of 0.75 s whose one kernel takes all of it: a quad of both comparisons takes 6 s. 20 s are enough
    for three processes with a quad each, 10 s for one, and of 2 s that one takes what it can.
    """
    quad = profile.quad(names)
    if seconds >= PROCESSES * quad:
        return None
    return max(1, int(seconds / quad))


def waiting_clock(run: Call, calls: int) -> float:
    """Call `run` so many times, until the GPU has done all of it; return the seconds a call."""
    wait(on_cuda=True)
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    wait(on_cuda=True)
    return (time.perf_counter() - begin) / calls


def few_quads(
    subjects: tuple[Subject, Subject | None], rings: list[Ring], seconds: float, rng: random.Random
) -> list[Quad]:
    """Time quads of long calls for about `seconds`, one at least.

    They are neither calibrated nor warmed up, which would take longer than the budget.
    """
    sides = []
    for subject, ring in zip(subjects, rings, strict=False):
        if subject is not None:
            on_cuda = any(tensor.is_cuda for tensor in tensors_of(ring.slots[0]))
            runs = [subject.bind(values) for values in ring.slots]
            sides.append(Side(subject.name, runs, ring, waiting_clock if on_cuda else cpu_clock, []))
    a, b = sides[0], sides[-1]
    quads, begin = list[Quad](), time.perf_counter()
    while len(quads) < MOST_QUADS:
        spent = time.perf_counter() - begin
        if quads and spent * (len(quads) + 1) / len(quads) > ALLOWED * seconds:
            break
        order, wall, cpu = rng.choice(("ABBA", "BAAB")), time.perf_counter(), time.process_time()
        laps = [(a if side == "A" else b).lap(len(quads)) for side in order]
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        shared = a.clock is cpu_clock and cpu < SHARED * wall
        disturbed = remark("core-shared", core_ms=cpu * 1e3, wall_ms=wall * 1e3) if shared else None
        quads.append(Quad(order, laps, subjects[1] is None, disturbed))
    return quads
