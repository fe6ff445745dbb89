"""Clocks: each times a block of calls, and says how many seconds a call took."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from inductor_probe.harness.gpu_clock import GpuClock, make_clock

Clock: TypeAlias = "Callable[[Callable[[], object], int], float]"


def cpu_clock(run: Callable[[], object], calls: int) -> float:
    """Call `run` so many times; return the seconds a call."""
    repeats = range(calls)
    begin = time.perf_counter()
    for _ in repeats:
        run()
    return (time.perf_counter() - begin) / calls


def clock_for(tensors: list[Any], cold: bool) -> Clock:
    """Return the clock of the device that `tensors` are on; `cold` flushes a GPU's L2 before each call."""
    device = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
    return cpu_clock if device is None else gpu_clock(str(device), cold)


@cache
def gpu_clock(device: str, cold: bool) -> GpuClock:
    """Return the clock of a GPU, made once: calibrating it takes a second or two."""
    return make_clock(device, cold=cold)


def time_alike(clock: Clock, runs: Sequence[Callable[[], object]]) -> None:
    """Have `clock` time all of `runs` in one way, where it has several."""
    if agree := getattr(clock, "agree", None):
        agree(runs)
