"""What torch's allocator gives in a call, and what of it lives where it is most.

torch.profiler records each allocation and each free with its address and its time, below the operator that
asked for it, on a CPU and on a GPU (`_EventType.Allocation`; `profile_memory=True`).
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile

MOST_OPERATORS = 12
# What compiled code runs in, of dynamo, AOTAutograd and inductor, and what runs a backward.
_AROUND = ("Torch-Compiled Region", "CompiledFunction", "## Call", "autograd::engine::evaluate_function: ")


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
    events.sort(key=lambda event: event[0])
    live: dict[int, tuple[str, int]] = {}
    at_peak: dict[int, tuple[str, int]] = {}
    total = peak = allocated = 0
    for _, pointer, size, operator in events:
        if size >= 0:
            live[pointer] = (operator, size)
            allocated += size
        elif live.pop(pointer, None) is None:
            continue  # what was there before
        total += size
        if total > peak:
            peak, at_peak = total, dict(live)
    sizes, counts = Counter[str](), Counter[str]()
    for operator, size in at_peak.values():
        sizes[operator] += size
        counts[operator] += 1
    rows = [[name, size, counts[name]] for name, size in sizes.most_common(MOST_OPERATORS) if size]
    return {"peak": peak, "left": total, "allocated": allocated, "live": rows}


def _allocations(event: Any, operator: str, device: str) -> Iterator[tuple[int, int, int, str]]:
    """Yield time, address, bytes (below 0: freed) and outermost operator of what is allocated below one."""
    if event.tag == _EventType.Allocation:
        fields = event.extra_fields
        if fields.device.type == device:
            yield event.start_time_ns, fields.ptr, fields.alloc_size, operator
    elif event.tag == _EventType.TorchOp and not operator and not event.name.startswith(_AROUND):
        operator = event.name
    for child in event.children:
        yield from _allocations(child, operator, device)
