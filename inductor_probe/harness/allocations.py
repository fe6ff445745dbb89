"""What torch's allocator gives in a call, and what of it lives where it is most.

torch.profiler records each allocation and each free with its address, its time, and what is allocated in all,
below the operator that asked for it, on a CPU and on a GPU (`_EventType.Allocation`; `profile_memory=True`).
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile

MOST_OPERATORS = 12
# Of regions that are recorded: operators, and the nodes of a backward. Others are around them: what compiled
# code runs in, `Optimizer.step#Adam.step`, those of the user's.
_OPERATOR = re.compile(r"(?!autograd::engine)(?:\w+::|.*Backward\d+$)")


def allocations(run: Callable[[], object], device: str) -> dict[str, Any]:
    """Call `run`, whose result is there until the end; return the bytes that it takes beyond what was there.

    Returns:
        `peak`, `left` and `allocated` bytes; `live`: of each operator whose memory lives at the peak its
        name, bytes and number of allocations.
    """
    gc.collect()
    activities = [ProfilerActivity.CPU] if device == "cpu" else [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, profile_memory=True) as recorded:
        result = run()
        if device != "cpu":
            torch.cuda.synchronize()
    events = [
        event
        for root in recorded.profiler.kineto_results.experimental_event_tree()
        for event in _allocations(root, "", device)
    ]
    del result
    events.sort(key=lambda event: event.time)
    live: dict[int, tuple[str, int]] = {}
    at_peak: dict[int, tuple[str, int]] = {}
    total = peak = allocated = 0
    before = events[0].total - events[0].size if events else 0
    for event in events:
        missed = total + event.size - (event.total - before)
        total = event.total - before
        if event.size >= 0:
            live[event.address] = event.operator, event.size
            allocated += event.size
        else:
            live.pop(event.address, None)
        if missed > 0:  # a free on another thread has no event, but the allocator counted it
            gone = next((address for address, (_, size) in live.items() if size == missed), None)
            if gone is not None:
                del live[gone]
        if total > peak:
            peak, at_peak = total, dict(live)
    sizes, counts = Counter[str](), Counter[str]()
    for operator, size in at_peak.values():
        sizes[operator] += size
        counts[operator] += 1
    rows = [[name, size, counts[name]] for name, size in sizes.most_common(MOST_OPERATORS) if size]
    return {"peak": peak, "left": total, "allocated": allocated, "live": rows}


class _Allocation(NamedTuple):
    """Bytes that were given, or taken back (below 0), by the outermost operator; and the total since then."""

    time: int
    address: int
    size: int
    total: int
    operator: str


def _allocations(event: Any, operator: str, device: str) -> Iterator[_Allocation]:
    """Yield what is allocated and freed below an event, on one kind of device."""
    if event.tag == _EventType.Allocation:
        fields = event.extra_fields
        if fields.device.type == device:
            yield _Allocation(
                event.start_time_ns, fields.ptr, fields.alloc_size, fields.total_allocated, operator
            )
    elif event.tag == _EventType.TorchOp and not operator and _OPERATOR.match(event.name):
        operator = event.name
    for child in event.children:
        yield from _allocations(child, operator, device)
