"""Which operators eager runs in a call, how long each takes, and what torch says of its memory.

A library's kernel has no text to read. What can be had of it: its time, as torch.profiler measures it; the
operators that it calls in turn, and what they allocate; the bytes of operands and results, by their sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Facts = dict[str, Any]
MOST_CALLS = 9
LEAST_BELOW = 0.01  # of an operator's time: views, and what allocates, take less
_CALL = "a call that is looked at"


class _Functions(TorchFunctionMode):  # type: ignore[misc] # mypy does not follow torch
    """Knows which of torch's functions the program is in: `interpolate`; what that calls is not seen."""

    name = ""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.name = getattr(func, "__name__", "")
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.name = ""


class _Operands(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Counts calls of operators, and the bytes of what they are given and return; views move nothing."""

    supports_higher_order_operators = True

    def __init__(self, functions: _Functions) -> None:
        super().__init__()
        self._functions = functions
        self.seen: dict[str, Facts] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        if isinstance(func, torch._ops.OpOverload):
            seen = self.seen.setdefault(
                func._schema.name, {"calls": 0, "read": 0, "written": 0, "functions": []}
            )
            seen["calls"] += 1
            if (function := self._functions.name) and function not in seen["functions"]:
                seen["functions"].append(function)
            if not func.is_view:
                seen["read"] += _bytes((args, kwargs))
                seen["written"] += _bytes(results)
        return results


def _bytes(values: Any) -> int:
    """Return the bytes of tensors, each once: elements that are broadcast are in memory once."""
    tensors = {id(one): one for one in tree_leaves(values) if isinstance(one, torch.Tensor)}.values()
    return sum(_elements(one) * one.element_size() for one in tensors if one.layout == torch.strided)


def _elements(tensor: torch.Tensor) -> int:
    count = 1
    for size, stride in zip(tensor.size(), tensor.stride(), strict=True):
        count *= size if stride or size == 0 else 1
    return count


def eager_operators(run: Callable[[], object], restore: Callable[[], None], seconds: float) -> list[Facts]:
    """Call `run` for some `seconds`, twice at least, and return what is known of its operators, on a CPU.

    Each has its `name` (`aten::gelu`) and the `functions` of torch that the program calls it by; and, of a
    call of `run`, its `calls`, `read` and `written` bytes, `allocated` ones, its `seconds`, the `share` of
    the call that these are, that of its `own` code without the operators it calls, and those `below` it that
    take 1 % of its time and more, each with its share of that.

    Args:
        restore: puts back what a call changes.
    """
    mode = _Operands(functions := _Functions())
    with functions, mode:
        run()
    restore()
    calls: list[dict[str, list[Any]]] = []
    begin = time.monotonic()
    while not calls or (len(calls) < MOST_CALLS and time.monotonic() - begin < seconds):
        with (
            profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded,
            record_function(_CALL),
        ):
            run()
        restore()
        (root,) = [event for event in recorded.events() if event.name == _CALL]
        groups: dict[str, list[Any]] = {"": [root]}
        for event in _outermost(root, mode.seen):
            groups.setdefault(event.name, []).append(event)
        calls.append(groups)
    return [
        {"name": name, **seen, **_facts([(call[""][0], call[name]) for call in calls])}
        for name, seen in mode.seen.items()
        if all(name in call for call in calls)
    ]


def _outermost(event: Any, names: Any) -> Iterator[Any]:
    """Yield the events below one that have these names, and none that is within another."""
    for child in event.cpu_children:
        if child.name in names:
            yield child
        else:
            yield from _outermost(child, names)


def _inside(event: Any) -> Iterator[Any]:
    for child in event.cpu_children:
        yield child
        yield from _inside(child)


def _facts(calls: list[tuple[Any, list[Any]]]) -> Facts:
    """Return what calls say, each of which is all of it, and the events of an operator.

    Whatever else runs makes a call longer and none shorter: of each the fastest counts, so that operators
    together take no more than the call.
    """
    call = min(root.cpu_time_total for root, _ in calls) or 1
    events = min((events for _, events in calls), key=_whole)
    whole = _whole(events) or 1
    inner = [one for event in events for one in _inside(event)]
    below: dict[str, float] = {}
    for one in inner:
        below[one.name] = below.get(one.name, 0.0) + one.self_cpu_time_total / whole
    return {
        "seconds": whole * 1e-6,
        "share": whole / call,
        "own": sum(event.self_cpu_time_total for event in events) / whole,
        "below": [[name, share] for name, share in below.items() if share >= LEAST_BELOW],
        "allocated": sum(max(one.self_cpu_memory_usage, 0) for one in (*events, *inner)),
    }


def _whole(events: list[Any]) -> float:
    return float(sum(event.cpu_time_total for event in events))
