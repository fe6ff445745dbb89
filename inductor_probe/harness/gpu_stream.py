"""A GPU's stream: what is enqueued on it, and how long that ran, by events and by the profiler."""

from __future__ import annotations

import os
import statistics
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import DeviceType

from inductor_probe.harness.remarks import Remark, remark

FLUSHED = 2  # times the L2 is written over


class GpuStream:
    """The current stream of a device. `remarks` say which of its means this torch or this GPU lacks."""

    def __init__(self, device: torch.device | str | int) -> None:
        self.device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        self.remarks: list[Remark] = []
        self._profiled = False

    def wait(self) -> None:
        """Wait until all that was enqueued has run."""
        torch.cuda.synchronize(self.device)

    def mark(self) -> Any:
        """Enqueue a time stamp."""
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def passed(self, mark: Any) -> bool:
        """Tell whether the GPU has reached `mark`."""
        return bool(mark.query())

    def seconds(self, first: Any, last: Any) -> float:
        """Return the seconds between two marks that were passed."""
        return float(first.elapsed_time(last)) / 1e3

    def sleep(self, cycles: int) -> bool:
        """Enqueue a kernel that does nothing for so many cycles of the SM clock; False without one."""
        enqueue = getattr(torch.cuda, "_sleep", None)
        if enqueue is None:
            self.add(remark("sleep-not-available", torch=torch.__version__))
            return False
        with torch.cuda.device(self.device):
            enqueue(cycles)
        return True

    def flusher(self) -> Callable[[], object]:
        """Return a function that enqueues writing over the whole L2."""
        size = torch.cuda.get_device_properties(self.device).L2_cache_size
        flush: Callable[[], object] = torch.empty(
            max(FLUSHED * size, 1 << 22), dtype=torch.int8, device=self.device
        ).zero_
        return flush

    def capture(self, enqueue: Callable[[], object]) -> Callable[[], object]:
        """Record what `enqueue` enqueues as a CUDA graph, and return what replays it.

        Raises:
            RuntimeError: it cannot be captured, or enqueues nothing on the current stream.
        """
        graph = torch.cuda.CUDAGraph()
        with warnings.catch_warnings(), torch.cuda.device(self.device):
            warnings.simplefilter("error")  # that a graph is empty is but a warning
            try:
                with torch.cuda.graph(graph):
                    enqueue()
            except UserWarning as warning:
                raise RuntimeError(str(warning)) from warning
        replay: Callable[[], object] = graph.replay
        replay()
        self.wait()
        return replay

    def durations(self, enqueue: Callable[[], object]) -> list[float]:
        """Return how long each kernel, copy and fill that `enqueue` enqueues runs, in order, in seconds.

        By torch.profiler, which has it from the driver (CUPTI); empty where that may not be asked.
        """
        # Taken down and set up again beside CUDA graphs it crashes: torch does the same for its own graphs.
        os.environ.setdefault("TEARDOWN_CUPTI", "0")
        if not self._profiled:  # what is enqueued while the profiler starts for the first time may be missing
            self._profiled = True
            self.durations(enqueue)
        self.wait()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its own cycles of recording
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                enqueue()
                self.wait()
            events = [
                event
                for event in profile.events()
                if event.device_type == DeviceType.CUDA
                and event.name != "Context Sync"
                and not getattr(event, "is_user_annotation", False)
            ]
        events.sort(key=lambda event: event.time_range.start)
        return [float(event.time_range.elapsed_us()) / 1e6 for event in events]

    def add(self, remark: Remark) -> None:
        """Add what could not be done, once."""
        if remark not in self.remarks:
            self.remarks.append(remark)


def profiled(
    stream: GpuStream, run: Callable[[], object], calls: int, ahead: Callable[[], object]
) -> float | None:
    """Return the median seconds a call that the kernels of `run` take by the profiler, `ahead` left out.

    None where the profiler sees no kernels, or not the same number of them in every call.
    """

    def enqueue(each: tuple[Callable[[], object], ...]) -> Callable[[], None]:
        def enqueue_all() -> None:
            for _ in range(calls):
                for step in each:
                    step()

        return enqueue_all

    skipped = stream.durations(enqueue((ahead,)))
    durations = stream.durations(enqueue((ahead, run)))
    if not durations:
        stream.add(remark("profiler-empty"))
    if not durations or len(durations) % calls or len(skipped) % calls:
        return None
    period, first = len(durations) // calls, len(skipped) // calls
    return statistics.median(
        sum(durations[at + first : at + period]) for at in range(0, len(durations), period)
    )
