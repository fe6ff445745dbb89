"""A GPU watched while something is timed on it: samples taken under other conditions can be marked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from inductor_probe.bench.gpu_state import GpuState, gpu_state

CLOCK_CHANGE = 0.01
"""Share by which the clock of the multiprocessors may differ."""
COMMAND_PERIOD = 2.0
"""Seconds between two calls of nvidia-smi, which itself takes half a second of a processor."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of the GPU at `at`: seconds of the monotonic clock, which all processes share."""

    at: float
    state: GpuState


@dataclass(slots=True)
class GpuWatch:
    """Reads the state again and again, in a thread, from `with` on until its end.

    `seen` are the states; `period` is the time between them in seconds. It ends by itself where the GPU does
    not tell.
    """

    read: Callable[[], GpuState] = gpu_state
    period: float = 0.1
    seen: list[Seen] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> GpuWatch:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            state = self.read()
            self.seen.append(Seen(time.monotonic(), state))
            if state.source is None:
                return
            self._stop.wait(self.period if state.source == "nvml" else max(self.period, COMMAND_PERIOD))

    def disturbed(self, begin: float, end: float) -> str | None:
        """Say what was wrong from `begin` to `end` (monotonic seconds): throttled, or another clock; or None.

        The clock is compared with its median over all of the time in which the GPU was not idle.
        """
        return disturbance(self.seen, begin, end)


def disturbance(seen: list[Seen], begin: float, end: float) -> str | None:
    """Say what was wrong with the GPU from `begin` to `end`, None if nothing, or if it was not seen then."""
    working = [each for each in seen if not each.state.idle and each.state.sm_mhz]
    inside = [each for each in working if begin <= each.at <= end]
    if not inside:  # shorter than the time between two looks: what was seen just before and after counts
        earlier = [each for each in working if each.at < begin]
        later = [each for each in working if each.at > end]
        inside = [*earlier[-1:], *later[:1]]
    held = dict.fromkeys(reason for each in inside for reason in each.state.reasons)
    if held:
        return f"the clock was held back by {' and '.join(held)}"
    clocks = sorted(each.state.sm_mhz or 0.0 for each in working)
    usual = clocks[len(clocks) // 2] if clocks else 0.0
    for each in inside:
        clock = each.state.sm_mhz or 0.0
        if abs(clock / usual - 1) > CLOCK_CHANGE:
            return f"the clock was {clock:g} MHz instead of {usual:g}"
    return None
