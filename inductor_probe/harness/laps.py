"""Laps in which no thread was preempted.

Where more programs want to run than there are cores, each has one for a slice of a few milliseconds (4 on
Linux at 250 Hz), and waits while the others have theirs. So a lap that fits into a slice takes what it takes
on an idle machine, and any other is longer by whole slices of other programs: of 3 ms and 1.2 ms beside four
busy programs, 19 ms and 1.2 ms are seen as often as not. Neither the fastest of two laps nor their median
shows it. The system does: it counts how often a thread had to give up its core. A lap in which one of this
process had to is taken again, and one that is long at the beginning of a slice.

What no slice holds counts with the CPU time of the process, where that is all it takes: it runs on one
thread and waits for nothing. That is not quite the time on an idle machine: after each switch caches and
predictors have to be filled again.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

from inductor_probe.harness.budget import LONG_S as CALL_S
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.sides import Side
from inductor_probe.harness.timing import cpu_clock

BUSY = 0.8  # of its time a process has a core, or others take too much of it
TRIES = 4
LONG_S = 0.0005  # it is worth waiting for a slice: a shorter lap is seldom hit twice
NOTHING = 0.002  # of a long lap: the system itself takes a core for microseconds now and then
NOTHING_OF_ALL = 0.01  # the same of all threads of a lap on several
SLICE_S = 0.02  # of CPU time; no scheduler leaves a core longer to one program where others want it
KEPT_S = 0.001  # of a few calls as long as this, one keeps its core
BEYOND = 3  # laps in a row that no slice held: the next ones are not tried again


class Lap(NamedTuple):
    """Seconds a call, and how often a core was lost meanwhile.

    `on_cpu`: the seconds are CPU time. `taken`: how often the lap was, until it was not preempted.
    """

    seconds: float
    lost: int = 0
    on_cpu: bool = False
    taken: int = 1


def kept_lap(side: Side, number: int, tries: int = TRIES) -> Lap:
    """Time a lap of a side until it was not preempted, a few times at most; a GPU's clock needs no core."""
    if side.clock is not cpu_clock:
        return Lap(side.lap(number))
    best, fresh = Lap(0.0), False
    for taken in range(1, tries + 1):
        threads = torch.get_num_threads()
        queued = seconds_queued() if threads > 1 else None
        before, wall, cpu = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter(), time.process_time()
        seconds = side.lap(number)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        after = resource.getrusage(resource.RUSAGE_SELF)
        lost, waited = after.ru_nivcsw - before.ru_nivcsw, 1 - cpu / wall
        if lost and queued is not None and seconds_queued() - queued < NOTHING_OF_ALL * wall:
            lost = 0  # the system took a core for microseconds, as it does where threads have all of them
        alone = threads == 1 and after.ru_nvcsw == before.ru_nvcsw and not side.drifting
        if alone and wall > SLICE_S:
            lost = 0 if waited < NOTHING else max(lost, waited > 1 - BUSY)
        if not lost:
            side.beyond = 0
            return Lap(seconds, taken=taken)
        lap = Lap(min(cpu / side.calls, seconds) if alone else seconds, lost, alone, taken)
        best = min(best, lap)._replace(taken=taken) if best.lost else lap
        if cpu < LONG_S:
            continue
        side.beyond += fresh
        if fresh or side.beyond >= BEYOND:
            break
        await_slice()
        fresh = True
    return best


def clock_of(run: Callable[[], object]) -> Callable[[], int]:
    """Return the clock that parts of calls of `run` are timed by, in nanoseconds; a GPU has its own.

    In the middle of a long call others have its core, which would be charged to its long parts. Where it runs
    on one thread and waits for nothing, that thread's CPU time tells how long each part ran; reading it is a
    system call, which short calls do without: of a few of them, one keeps its core.
    """
    if torch.get_num_threads() > 1 or not hasattr(time, "CLOCK_THREAD_CPUTIME_ID"):
        return time.perf_counter_ns
    seconds, waits = list[float](), list[int]()
    while len(seconds) < (1 if min(seconds, default=0.0) > CALL_S else 3):
        waited, began = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw, time.thread_time()
        run()
        seconds.append(time.thread_time() - began)
        waits.append(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - waited)
    return time.thread_time_ns if min(seconds) > KEPT_S and not min(waits) else time.perf_counter_ns


def await_slice() -> None:
    """Keep the core until it is taken away and given back: a whole slice is ahead then."""
    lost, end = involuntary_switches(), time.thread_time() + SLICE_S
    while involuntary_switches() == lost and time.thread_time() < end:
        pass


def seconds_queued() -> float:
    """Return how long threads of this process were ready to run and had no core; infinite if not known.

    The second number of /proc/PID/task/TID/schedstat, in nanoseconds (Documentation/scheduler/sched-stats).
    """
    queued = list[int]()
    for thread in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError, IndexError, ValueError):  # it ends meanwhile, or the system does not count
            queued.append(int(thread.read_text().split()[1]))
    return sum(queued) / 1e9 if queued else float("inf")


def nanoseconds_queued() -> int:
    """Return `seconds_queued` in nanoseconds, 0 where it is not known."""
    seconds = seconds_queued()
    return int(seconds * 1e9) if math.isfinite(seconds) else 0


def involuntary_switches() -> int:
    """Return how often threads of this process had to give up a core so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def page_faults() -> int:
    """Return how many pages of memory the system gave to this process so far, each cleared first."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def fastest(laps: list[Lap]) -> Lap:
    """Return the fastest of the laps that were not preempted, or of all where each was."""
    return min([lap for lap in laps if not lap.lost] or laps)


def disturbance(blocks: list[Lap]) -> Remark | None:
    """Return what disturbed any of some blocks; None if none was preempted."""
    lost = sum(block.lost for block in blocks)
    if not lost:
        return None
    if all(block.on_cpu for block in blocks if block.lost):
        return remark("cpu-time", times=lost)
    return remark("core-lost", times=lost, threads=torch.get_num_threads())
