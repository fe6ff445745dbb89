"""A call, or compiles, as a trace for chrome://tracing, Perfetto and speedscope: the Trace Event Format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from inductor_probe.model.compile_log import CompileLog
from inductor_probe.model.profile import Profile, TimelineSpan

_NS = 1e9
_CATEGORIES = {
    "line": "wrapper", "kernel": "kernel", "nest": "loop nest", "waiting": "waiting", "device": "GPU",
}  # fmt: skip
_GPU = 1 << 20  # a thread of the trace that no OpenMP thread is


def chrome_trace(profiles: Sequence[Profile]) -> str:
    """Return the trace of one call of each graph, as JSON: a process a graph, a thread an OpenMP thread.

    What a GPU does has a thread of its own.

    Guards stand before the call, as long as they take: they were timed apart.
    """
    events = [event for number, profile in enumerate(profiles, 1) for event in _events(number, profile)]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1) + "\n"


def compile_trace(logs: Sequence[CompileLog]) -> str:
    """Return the regions that torch timed in compiles, as JSON: a process a run."""
    events: list[dict[str, object]] = []
    for number, log in enumerate(logs, 1):
        begun = min((region.begin for region in log.regions), default=0.0)
        for one in sorted(log.regions, key=lambda region: (region.begin, region.depth)):
            event = _event(one.name, one.compile_id, number, 0, one.begin - begun, one.seconds, one.depth)
            events.append({**event, "args": {"compile_id": one.compile_id}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1) + "\n"


def _events(process: int, profile: Profile) -> Iterator[dict[str, object]]:
    yield {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": profile.graph}}
    names = {0: "wrapper, and thread 0 of its kernels", _GPU: "GPU"}
    for thread in sorted({_thread(span) for span in profile.timeline}):
        name = names.get(thread, f"thread {thread} of kernels")
        yield {"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
    origins = {part.name: (part.nodes, part.sources) for part in profile.parts if part.kind == "kernel"}
    origins |= {
        f"{nest.kernel} loop nest {nest.number}": (nest.nodes, nest.sources)
        for nest in profile.nests
        if nest.number is not None
    }
    nodes = {
        name: {"nodes": ", ".join(nodes), "lines": ", ".join(map(str, sources))}
        for name, (nodes, sources) in origins.items()
    }
    # A thread's events have to stand in their order, and what is around others before them.
    for span in sorted(profile.timeline, key=lambda span: (_thread(span), span.begin, span.depth)):
        event = _event(
            span.name,
            _CATEGORIES[span.kind],
            process,
            _thread(span),
            span.begin,
            span.end - span.begin,
            span.depth,
        )
        yield {**event, "args": nodes[span.name]} if span.name in nodes else event


def _thread(span: TimelineSpan) -> int:
    return _GPU if span.kind == "device" else span.thread


def _event(  # noqa: PLR0917 - the fields of the format
    name: str, category: str, process: int, thread: int, begin: float, seconds: float, depth: int = 0
) -> dict[str, object]:
    # Viewers add `ts` and `dur` in floating point, and set an event that ends a rounding error behind the
    # begin of the next around that one. So times are whole nanoseconds, and an event ends some tenths before.
    first, last = round(begin * _NS), round((begin + max(seconds, 0.0)) * _NS)
    ticks = max(last - first - 0.1 * (depth + 1), 0.0)
    times = {"ts": first / 1000, "dur": round(ticks / 1000, 4)}
    return {"name": name, "cat": category, "ph": "X", "pid": process, "tid": thread, **times}
