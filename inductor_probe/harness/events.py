"""A simple clock of a GPU."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch

from inductor_probe.harness.bench import Call

FLUSHED = 2  # times the L2 is written over
AHEAD = 100_000  # cycles: what is enqueued next is there before the GPU comes to it


class GpuStream:
    """The current stream of a device."""

    def __init__(self, device: torch.device | str | int) -> None:
        self.device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)

    def wait(self) -> None:
        """Wait until all that was enqueued has run."""
        torch.cuda.synchronize(self.device)

    def stamp(self) -> Any:
        """Enqueue a time stamp."""
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def passed(self, stamp: Any) -> bool:
        """Tell whether the GPU has reached `stamp`."""
        return bool(stamp.query())

    def seconds(self, first: Any, last: Any) -> float:
        """Return the seconds between two time stamps that were passed."""
        return float(first.elapsed_time(last)) / 1e3

    def sleep(self, cycles: int) -> bool:
        """Enqueue a kernel that does nothing for so many cycles of the SM clock; False without one."""
        enqueue = getattr(torch.cuda, "_sleep", None)
        if enqueue is not None:
            with torch.cuda.device(self.device):
                enqueue(cycles)
        return enqueue is not None

    def flusher(self) -> Call:
        """Return a function that enqueues writing over the whole L2."""
        size = torch.cuda.get_device_properties(self.device).L2_cache_size
        flush: Call = torch.empty(max(FLUSHED * size, 1 << 22), dtype=torch.int8, device=self.device).zero_
        return flush


class EventClock:
    """Times functions that enqueue kernels: `clock(run, calls)` is the seconds a call between two events.

    Behind a kernel that only waits, everything is enqueued before the GPU starts on it, so that no time in
    which it waits for the host is counted. A `cold` clock writes over the L2 before every call, outside of
    the time. What events add, up to a microsecond, is part of it.
    """

    limits = (0.0005, 32)  # of a lap: seconds and calls; a flush takes longer than a short kernel
    sm_hz = 2e9

    def __init__(self, stream: Any, *, cold: bool = True) -> None:
        self.stream, self.host_s = stream, 50e-6
        self.flush: Call = stream.flusher() if cold else lambda: None

    def __call__(self, run: Call, calls: int) -> float:
        """Return the median seconds a call, over `calls` calls."""
        seconds, self.host_s = self.between(run, calls, self.flush, self.host_s)
        return statistics.median(seconds)

    def between(self, run: Call, calls: int, ahead: Call, host_s: float) -> tuple[list[float], float]:
        """Time each call between two events; `ahead` is called before each. Return them, and the host's."""
        stamps: list[tuple[Any, Any]] = []

        def enqueue() -> None:
            stamps.clear()
            for _ in range(calls):
                ahead()
                first = self.stream.stamp()
                run()
                stamps.append((first, self.stream.stamp()))

        host_s = self.blocked(enqueue, host_s * calls) / calls
        return [self.stream.seconds(*pair) for pair in stamps], host_s

    def blocked(self, enqueue: Call, host_s: float) -> float:
        """Enqueue while the GPU waits, longer where the host is slower than `host_s`; return the seconds."""
        for patience in (2, 8, 32):
            cycles = int(self.sm_hz * min(max(patience * host_s, 100e-6), 0.5))
            self.stream.wait()
            self.stream.sleep(AHEAD)
            first = self.stream.stamp()
            slept = self.stream.sleep(cycles)
            last = self.stream.stamp()
            begin = time.perf_counter()
            enqueue()
            spent = time.perf_counter() - begin
            late = slept and self.stream.passed(last)
            self.stream.wait()
            self.note(cycles if slept else 0, first, last, late and patience == 32)
            if not late:
                return spent
        return host_s

    def note(self, cycles: int, first: Any, last: Any, late: bool) -> None:
        """Learn from so many cycles between two stamps; `late`: the host was slower all the same."""
