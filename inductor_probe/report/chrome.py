"""One call as a trace for chrome://tracing, Perfetto and speedscope: the Trace Event Format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from inductor_probe.model.profile import Profile

_US = 1e6
_CATEGORIES = {"line": "wrapper", "kernel": "kernel", "nest": "loop nest", "waiting": "waiting"}


def chrome_trace(profiles: Sequence[Profile]) -> str:
    """Return the trace of one call of each graph, as JSON: a process a graph, a thread an OpenMP thread.

    Guards stand before the call, as long as they take: they were timed apart.
    """
    events = [event for number, profile in enumerate(profiles, 1) for event in _events(number, profile)]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1) + "\n"


def _events(process: int, profile: Profile) -> Iterator[dict[str, object]]:
    yield {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": profile.graph}}
    for thread in sorted({span.thread for span in profile.timeline}):
        name = "wrapper, and thread 0 of its kernels" if thread == 0 else f"thread {thread} of kernels"
        yield {"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
    start = 0.0
    if guards := profile.part("guards"):
        start = max(guards.seconds, 0.0)
        yield _event("guards (timed apart)", "guards", process, 0, 0.0, start)
    nodes = {
        f"{nest.kernel} loop nest {nest.number}": {
            "nodes": ", ".join(nest.nodes),
            "lines": ", ".join(map(str, nest.sources)),
        }
        for nest in profile.nests
        if nest.number is not None
    }
    # A thread's events have to stand in their order, and what is around others before them.
    for span in sorted(profile.timeline, key=lambda span: (span.thread, span.begin, span.depth)):
        event = _event(
            span.name,
            _CATEGORIES[span.kind],
            process,
            span.thread,
            start + span.begin,
            span.end - span.begin,
        )
        yield {**event, "args": nodes[span.name]} if span.name in nodes else event


def _event(  # noqa: PLR0917 - the fields of the format
    name: str, category: str, process: int, thread: int, begin: float, seconds: float
) -> dict[str, object]:
    times = {"ts": round(begin * _US, 4), "dur": round(max(seconds, 0.0) * _US, 4)}
    return {"name": name, "cat": category, "ph": "X", "pid": process, "tid": thread, **times}
