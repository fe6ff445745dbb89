"""Quads as `probe` takes them: memory placed at random, cold data, and what else ran on our cores."""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_map

from inductor_probe.harness import sides, timing
from inductor_probe.harness.bench import Call
from inductor_probe.harness.budget import ALLOWED, GUARD_EVERY, width
from inductor_probe.harness.gpu_clock import GpuClock, session_clock
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.laps import TRIES, Lap, disturbance, fastest, kept_lap
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.sides import SLOTS, STEADY, Ring, Side, warm_up
from inductor_probe.harness.timing import FEWEST, Subject, cpu_clock

__all__ = [
    "Quad",
    "Ring",
    "Side",
    "Subject",
    "cpu_clock",
    "make_ring",
    "make_side",
    "time_long_calls",
    "time_quad",
    "time_quads",
]

FEW = 2  # of them there are at least, however long one takes
LEAST_S = 0.1  # in which `FEWEST` of short calls are taken in any case
MOST_QUADS = 6  # of calls that are not warmed up: where there is time for more, there is for warming up
GPU_SLOTS = 2  # each has CUDA graphs of its own
COLD_SLOTS = 4096  # making one takes tens of microseconds
COLD_SIZE = 1.5  # caches: what is taken once a round is evicted before the next
LINE, PAGE = 64, 4096
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@cache
def gpu_clock(device: str, cold: bool) -> GpuClock:
    """Return the clock of a GPU, made once: calibrating it takes a second or two."""
    return session_clock(device, cold)


@dataclass
class Quad(timing.Quad):
    """Four blocks on one slot of a ring. In a `guard`, B is A once more.

    `disturbed` says what else ran on our cores meanwhile, if it is known.
    """

    guard: bool
    disturbed: Remark | None = None


class FlushedRing(Ring):
    """Its values are on a GPU, whose L2 is written over before each call."""


class ColdRing(Ring):
    """Each call takes the next slot, so that its data are in no cache."""

    def __init__(self, values: Any, slots: int, copy: Callable[[Any], Any] = clone) -> None:
        super().__init__(values, slots, copy)
        self.next = 0

    def take(self, calls: int) -> list[int]:
        """Return the slots of the next calls: one for each."""
        first, self.next = self.next, (self.next + calls) % len(self.slots)
        return [slot % len(self.slots) for slot in range(first, first + calls)]


@dataclass
class ColdSide(Side):
    """A subject bound to each slot of a cold ring."""

    ring: ColdRing

    def lap(self, number: int) -> float:
        """Time some calls, each on the next slot; return seconds a call."""
        slots = self.ring.take(self.calls)
        following = cycle([self.runs[slot] for slot in slots])

        def run_next() -> object:
            return next(following)()

        seconds = self.clock(run_next, self.calls)
        for slot in set(slots):
            self.ring.restore(slot, self.drifting)
        return float(seconds)

    def calibrate(self, samples: list[float]) -> None:
        """Choose calls and laps of a block by what samples, in seconds a call, say."""
        super().calibrate(samples)
        self.calls = min(self.calls, len(self.runs))


def make_ring(
    values: Any, cold: bool, rng: random.Random, warn: Callable[[Remark], None], seconds: float = math.inf
) -> Ring:
    """Make a ring as large as it should be, or as memory allows; warn of a cold one that stays warm.

    A warm one has fewer copies where making them takes longer than `seconds`.
    """
    end = time.perf_counter() + seconds
    tensors = tensors_of(values)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    size = max(sum(storages.values()), 1)
    on_cuda = any(tensor.is_cuda for tensor in tensors)
    free = torch.cuda.mem_get_info()[0] if on_cuda else os.sysconf("SC_AVPHYS_PAGES") * PAGE
    large = cold and not on_cuda
    slots, cache_size = GPU_SLOTS if on_cuda else SLOTS, last_level_cache()
    if large:
        slots = min(math.ceil(COLD_SIZE * cache_size / size), COLD_SLOTS)
    slots = max(1, min(slots, free // 4 // size))
    if large and slots * size <= cache_size:
        warn(remark("data-not-cold", ring_mib=slots * size >> 20, cache_mib=cache_size >> 20))
    if large:
        return ColdRing(values, slots, partial(placed, rng=rng))
    ring = (FlushedRing if cold else Ring)(values, 1, partial(placed, rng=rng))
    while len(ring.slots) < slots and time.perf_counter() < end:
        ring.slots.append(placed(values, rng))
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


def make_side(subject: Subject, ring: Ring, like: Side | None = None) -> Side:
    """Bind a subject to a ring, and see which of its tensors drift; `like` as in `sides.make_side`."""
    device = next((str(tensor.device) for tensor in tensors_of(ring.slots[0]) if tensor.is_cuda), None)
    clock = gpu_clock(device, isinstance(ring, FlushedRing)) if device else cpu_clock
    return sides.make_side(subject, ring, clock, ColdSide if isinstance(ring, ColdRing) else Side, like)


def time_quad(  # noqa: PLR0917 - the last is for who has little time left
    a: Side, b: Side, number: int, guard: bool, rng: random.Random, tries: int = TRIES
) -> Quad:
    """Time quad `number`: a block counts as its fastest lap, and the sides of it take turns lap by lap.

    A lap that lost its core is taken again; see `laps`.
    """
    if a.calls > 1 and a.laps == 1:
        run_once(a, number)  # so that the first call finds its data warm: of two laps, the second does
    order, blocks = rng.choice(("ABBA", "BAAB")), list[Lap]()
    for names in (order[:2], order[2:]):
        first, second = (a if name == "A" else b for name in names)
        turns = [(kept_lap(first, number, tries), kept_lap(second, number, tries)) for _ in range(a.laps)]
        blocks += [fastest([turn[side] for turn in turns]) for side in range(2)]
    return Quad(order, [block.seconds for block in blocks], guard, disturbance(blocks))


def run_once(side: Side, number: int) -> None:
    """Call a side once without a clock, unless its data are to be cold."""
    if not isinstance(side, ColdSide):
        slot = number % len(side.runs)
        side.runs[slot]()
        side.ring.restore(slot, side.drifting)


def time_quads(a: Side, b: Side | None, seconds: float, precision: float, rng: random.Random) -> list[Quad]:
    """Time quads of two sides, or of A alone, for `seconds`; fewer once the ratio is known to `precision`.

    It is the width of what is known that ends it early, never where it lies. Where other programs have the
    cores there may be fewer than `FEWEST`, but two.
    """
    if agree := getattr(a.clock, "agree", None):  # a GPU's clock times kernels in two ways
        agree([*a.runs, *(b.runs if b else ())])
    begin = time.perf_counter()
    end, latest = begin + seconds, begin + max(ALLOWED * seconds, LEAST_S)
    quads, clocks = list[Quad](), list[float]()
    warm_up([a, b] if b else [a], seconds / 8)
    again = replace(a)

    def known() -> bool:
        if not quads or len(quads) % 10:
            return False
        both = [quad for quad in quads if not quad.guard] or quads
        scores = [quad.score() for quad in both if not quad.disturbed] or [quad.score() for quad in both]
        return width(scores) < precision

    while not known():
        now = time.perf_counter()
        if len(quads) >= (FEWEST if now < latest else FEW) and now >= end:
            break
        guard = b is None or len(quads) % GUARD_EVERY == GUARD_EVERY - 1
        quads.append(
            time_quad(
                a, again if b is None or guard else b, len(quads), guard, rng, TRIES if now < end else 1
            )
        )
        clocks.append(getattr(a.clock, "sm_hz", 0.0))
    median = statistics.median(clocks)
    for quad, hertz in zip(quads, clocks, strict=True):
        if median and abs(hertz / median - 1) > STEADY:
            quad.disturbed = remark("clock-changed", mhz=hertz / 1e6, median_mhz=median / 1e6)
    return quads


def waiting_clock(run: Call, calls: int) -> float:
    """Call `run` so many times, until the GPU has done all of it; return the seconds a call."""
    torch.cuda.synchronize()
    seconds: float = cpu_clock(lambda: (run(), torch.cuda.synchronize()), calls)
    return seconds


def time_long_calls(
    subjects: tuple[Subject, Subject | None],
    rings: list[Ring],
    seconds: float,
    expected: float,
    rng: random.Random,
) -> list[Quad]:
    """Time long calls in turns for about `seconds`: quads, or one call of each where that is all.

    They are neither calibrated nor warmed up, which would take longer than the budget. With 2 s for calls
    that take 0.3 s each: a quad (1.2 s), then one call of each (0.6 s). With 0.1 s: one call of each.

    Args:
        subjects: to compare; the second is None where the first is timed against itself.
        rings: of each subject's values.
        seconds: how long it may take; twice a call at least.
        expected: about how long a call takes; later rounds go by what the first took.
        rng: draws which comes first.
    """
    sides = []
    for subject, ring in zip(subjects, rings, strict=False):
        if subject is not None:
            on_cuda = any(tensor.is_cuda for tensor in tensors_of(ring.slots[0]))
            runs = [subject.bind(values) for values in ring.slots]
            sides.append(Side(subject.name, runs, ring, waiting_clock if on_cuda else cpu_clock, []))
    a, b = sides[0], sides[-1]
    quads, spent, calls = list[Quad](), 0.0, 0
    while len(quads) < MOST_QUADS:
        left, call_s = seconds - spent, spent / calls if calls else expected
        if quads and left < 2 * call_s:
            break
        order = rng.choice(("ABBA", "BAAB") if left >= 4 * call_s else ("AB", "BA"))
        wall = time.perf_counter()
        laps = [kept_lap(a if side == "A" else b, len(quads), tries=1) for side in order]
        wall = time.perf_counter() - wall
        quads.append(Quad(order, [lap.seconds for lap in laps], subjects[1] is None, disturbance(laps)))
        spent, calls = spent + wall, calls + len(order)
    return quads
