"""Timing: blocks of calls, in quads of A and B, until the ratio is known or the time is up.

What else runs on a core, or on the other half of it, makes calls longer and none shorter, for milliseconds at
a time. A mean carries all of it. So a side counts as fast as the fastest of its laps in a quad, and the sides
take turns lap by lap.
"""

from __future__ import annotations

import math
import os
import random
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_map

from inductor_probe.harness.bench import Call
from inductor_probe.harness.gpu_clock import GpuClock, GpuStream
from inductor_probe.harness.inputs import changed, clone, tensors_of
from inductor_probe.harness.remarks import Remark, remark

Clock: TypeAlias = "Callable[[Call, int], float]"

LAP_S = 0.00012  # a timer's cost is less than a thousandth of it
LAPS = 2
LONGEST_S = 0.04  # a block of long calls has fewer laps: many quads are worth more
STEADY = 0.01
GUARD_EVERY = 6
FEWEST = GUARD_EVERY
MOST_DRIFTING = 16  # calls of a block that changes its inputs: they must not overflow or become denormal
GPU_LAP_S = 0.0005
MOST_ON_GPU = 32  # calls of a block there, each behind a flush of the L2 that is longer than a short kernel
BUSY = 0.8

WARM_SLOTS = 8
GPU_SLOTS = 2  # each has CUDA graphs of its own
COLD_SLOTS = 4096  # making one takes tens of microseconds
COLD_SIZE = 1.5  # caches: what is taken once a round is evicted before the next
LINE, PAGE = 64, 4096
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def cpu_clock(run: Call, calls: int) -> float:
    """Call `run` so many times; return the seconds a call."""
    repeats = range(calls)
    begin = time.perf_counter()
    for _ in repeats:
        run()
    return (time.perf_counter() - begin) / calls


@cache
def gpu_clock(device: str, cold: bool) -> GpuClock:
    """Return the clock of a GPU, made once: calibrating it takes a second or two."""
    return GpuClock(GpuStream(device), cold=cold)


class Ring:
    """Copies of `values`, a slot each. `cold`: each call takes the next slot; else each quad.

    Where buffers lie can change the time of a kernel twofold: so it is averaged, and the same for both sides.
    On a GPU the L2 is `flushed` before each call instead of walking through a large ring.
    """

    flushed = False

    def __init__(self, values: Any, slots: int, cold: bool, rng: random.Random) -> None:
        self.cold = cold
        self.slots = [placed(values, rng) for _ in range(slots)]
        self.original = clone(tensors_of(values))
        self.next = 0

    def take(self, number: int, calls: int) -> list[int]:
        """Return the slots of the next calls of quad `number`: one for each, or one for all."""
        if not self.cold:
            return [number % len(self.slots)]
        first, self.next = self.next, (self.next + calls) % len(self.slots)
        return [slot % len(self.slots) for slot in range(first, first + calls)]

    def restore(self, slots: list[int], changed: list[int]) -> None:
        """Give the tensors at `changed` in those slots their first values again."""
        for slot in set(slots) if changed else ():
            tensors = tensors_of(self.slots[slot])
            for index in changed:
                tensors[index].copy_(self.original[index])


def make_ring(values: Any, cold: bool, rng: random.Random, warn: Callable[[Remark], None]) -> Ring:
    """Make a ring as large as it should be, or as memory allows; warn of a cold one that stays warm."""
    tensors = tensors_of(values)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    size = max(sum(storages.values()), 1)
    on_cuda = any(tensor.is_cuda for tensor in tensors)
    free = torch.cuda.mem_get_info()[0] if on_cuda else os.sysconf("SC_AVPHYS_PAGES") * PAGE
    large = cold and not on_cuda
    slots, cache_size = GPU_SLOTS if on_cuda else WARM_SLOTS, last_level_cache()
    if large:
        slots = min(math.ceil(COLD_SIZE * cache_size / size), COLD_SLOTS)
    slots = max(1, min(slots, free // 4 // size))
    if large and slots * size <= cache_size:
        warn(remark("data-not-cold", ring_mib=slots * size >> 20, cache_mib=cache_size >> 20))
    ring = Ring(values, slots, large, rng)
    ring.flushed = cold and on_cuda
    return ring


def last_level_cache() -> int:
    """Return the size of the processor's in bytes; 64 MiB where the system does not tell."""
    sizes = [path.read_text().strip() for path in CACHES.glob("index*/size")]
    return max((int(size[:-1]) << {"K": 10, "M": 20}[size[-1]] for size in sizes), default=64 << 20)


def placed(values: Any, rng: random.Random) -> Any:
    """Copy `values`; on a CPU each storage begins at another distance from a page's start."""
    storages: dict[int, Any] = {}

    def place(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.is_cuda or value.is_mkldnn:
            return value
        if not value.untyped_storage().nbytes():
            return value
        address = value.untyped_storage().data_ptr()
        if address not in storages:
            storages[address] = _shifted(value.untyped_storage(), rng.randrange(0, PAGE, LINE))
        fresh = torch.empty(0, dtype=value.dtype)
        return fresh.set_(storages[address], value.storage_offset(), value.size(), value.stride())

    return tree_map(place, clone(values))


def _shifted(storage: Any, offset: int) -> Any:
    """Copy a storage to new memory, `offset` bytes behind where its first line could begin."""
    memory = bytearray(storage.nbytes() + LINE + offset)
    start = -torch.frombuffer(memory, dtype=torch.uint8).data_ptr() % LINE + offset
    copy = torch.frombuffer(memory, dtype=torch.uint8, count=storage.nbytes(), offset=start)
    return copy.untyped_storage().copy_(storage)


@dataclass
class Subject:
    """Something to time: `bind` makes a function without arguments that works on `values`."""

    name: str
    bind: Callable[[Any], Call]
    values: Any


@dataclass
class Side:
    """A subject bound to each slot of a ring; a block of it is so many laps of so many calls.

    `drifting` are tensors that change from call to call.
    """

    name: str
    runs: list[Call]
    ring: Ring
    clock: Clock
    drifting: list[int]
    calls: int = 1
    laps: int = 1

    def block(self, number: int) -> float:
        """Time one block; return seconds a call of its fastest lap."""
        return min(self.lap(number) for _ in range(self.laps))

    def lap(self, number: int) -> float:
        """Time some calls; return seconds a call. Restoring happens outside the clock."""
        slots = self.ring.take(number, self.calls)
        run, following = self.runs[slots[0]], cycle([self.runs[slot] for slot in slots])

        def run_next() -> object:
            return next(following)()

        seconds = self.clock(run_next if self.ring.cold else run, self.calls)
        self.ring.restore(slots, self.drifting)
        return seconds

    def once(self, number: int) -> None:
        """Call once without a clock, so that the next call finds its data warm."""
        slots = self.ring.take(number, 1)
        self.runs[slots[0]]()
        self.ring.restore(slots, self.drifting)

    def calibrate(self, samples: list[float]) -> None:
        """Choose calls and laps of a block by what samples, in seconds a call, say."""
        call = max(statistics.median(samples), 1e-9)
        most = MOST_DRIFTING if self.drifting else math.ceil(LAP_S / 1e-9)
        if self.ring.cold:
            most = min(most, len(self.runs))
        if self.clock is cpu_clock:
            self.calls = max(1, min(round(LAP_S / call), most))
            self.laps = max(1, min(int(LONGEST_S / (self.calls * call)), LAPS))
        else:
            self.calls = max(1, min(round(GPU_LAP_S / call), most, MOST_ON_GPU))


@dataclass
class Quad:
    """Four blocks on one slot of a ring: `order` is ABBA or BAAB, `seconds` a call of each.

    In a `guard`, B is A once more.

    `disturbed` says what else ran on our cores meanwhile.
    """

    order: str
    seconds: list[float]
    guard: bool
    disturbed: Remark | None

    def score(self) -> float:
        """Return the log-ratio, B over A, of the fastest each side was."""
        return math.log(min(self.samples("B")) / min(self.samples("A")))

    def samples(self, side: str) -> list[float]:
        """Return the times of A or B."""
        return [time for name, time in zip(self.order, self.seconds, strict=True) if name == side]


def make_side(subject: Subject, ring: Ring) -> Side:
    """Bind a subject to a ring, and see which of its tensors drift from call to call."""
    runs, tensors = [subject.bind(values) for values in ring.slots], tensors_of(ring.slots[0])
    runs[0]()
    once = clone(tensors)
    runs[0]()
    device = next((str(tensor.device) for tensor in tensors if tensor.is_cuda), None)
    clock: Clock = gpu_clock(device, ring.flushed) if device else cpu_clock
    side = Side(subject.name, runs, ring, clock, changed(once, tensors))
    ring.restore([0], side.drifting)
    side.calibrate([side.block(0) for _ in range(3)])
    return side


def warm_up(sides: list[Side], limit_s: float) -> None:
    """Alternate blocks until the median of the last five of each side moves by less than a hundredth."""
    end = time.perf_counter() + limit_s
    before = [math.inf] * len(sides)
    while True:
        recent = [[side.block(0) for side in sides]]
        while len(recent) < 5 and time.perf_counter() < end:
            recent.append([side.block(len(recent)) for side in sides])
        now = [statistics.median(blocks) for blocks in zip(*recent, strict=True)]
        moved = max(abs(new / old - 1) for new, old in zip(now, before, strict=True))
        if moved < STEADY or time.perf_counter() > end:
            break
        before = now
    for side, blocks in zip(sides, zip(*recent, strict=True), strict=True):
        side.calibrate(list(blocks))


def time_quad(a: Side, b: Side, number: int, guard: bool, rng: random.Random) -> Quad:
    """Time quad `number`, and watch whether something else ran on our cores meanwhile."""
    order, seconds = rng.choice(("ABBA", "BAAB")), list[float]()
    switches, wall, cpu = involuntary_switches(), time.perf_counter(), time.process_time()
    if not a.ring.cold and a.calls > 1 and a.laps == 1:  # with two laps, the second finds its data warm
        a.once(number)
    for names in (order[:2], order[2:]):
        first, second = (a if name == "A" else b for name in names)
        turns = [(first.lap(number), second.lap(number)) for _ in range(a.laps)]
        seconds += map(min, zip(*turns, strict=True))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    switches = involuntary_switches() - switches
    disturbed, allowed = None, a.laps if a.laps == LAPS else 0  # one lap in four may be hit
    if cpu < BUSY * wall and a.laps < LAPS:
        disturbed = remark("core-shared", core_ms=cpu * 1e3, wall_ms=wall * 1e3)
    elif switches > allowed:
        disturbed = remark("core-lost", times=switches)
    return Quad(order, seconds, guard, disturbed if a.clock is cpu_clock else None)


def involuntary_switches() -> int:
    """Return how often this process had to give up a core so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def time_quads(a: Side, b: Side | None, seconds: float, precision: float, rng: random.Random) -> list[Quad]:
    """Time quads of two sides, or of A alone, for `seconds`; fewer once the ratio is known to `precision`.

    It is the width of what is known that ends it early, never where it lies.
    """
    if agree := getattr(a.clock, "agree", None):  # a GPU's clock times kernels in two ways
        agree([*a.runs, *(b.runs if b else ())])
    end = time.perf_counter() + seconds
    warm_up([a, b] if b else [a], seconds / 8)
    again, quads, clocks = replace(a), list[Quad](), list[float]()
    while len(quads) < FEWEST or time.perf_counter() < end:
        guard = b is None or len(quads) % GUARD_EVERY == GUARD_EVERY - 1
        quads.append(time_quad(a, again if b is None or guard else b, len(quads), guard, rng))
        clocks.append(getattr(a.clock, "sm_hz", 0.0))
        if len(quads) % 10 == 0 and width(scores_of(quads) or [quad.score() for quad in quads]) < precision:
            break
    if any(clocks):
        median = statistics.median(clocks)
        for quad, hertz in zip(quads, clocks, strict=True):
            if abs(hertz / median - 1) > STEADY:
                quad.disturbed = remark("clock-changed", mhz=hertz / 1e6, median_mhz=median / 1e6)
    return quads


def scores_of(quads: list[Quad]) -> list[float]:
    """Return the scores of the quads with B: the undisturbed ones, or all if there are none."""
    both = [quad for quad in quads if not quad.guard]
    return [quad.score() for quad in both if not quad.disturbed] or [quad.score() for quad in both]


def width(scores: list[float]) -> float:
    """Return the width of the 95 % interval of their median, from its order statistics; of few, infinity.

    The number below the median of n is binomial, so ranks n/2 +- 0.98 sqrt(n) hold it. Of 60 scores these are
    the 23rd and the 39th.
    """
    ranked, reach = sorted(scores), 0.98 * math.sqrt(len(scores))
    low, high = math.floor(len(ranked) / 2 - reach), math.ceil(len(ranked) / 2 + reach)
    return ranked[high] - ranked[low] if low >= 0 and high < len(ranked) else math.inf
