"""A child's events, in the order they were written, to the graphs, breaks and limit hits of a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inductor_probe.capture.dynamo_messages import failed_guards, graph_break, limit_hit
from inductor_probe.model.manifest import BufferOrigin, GraphBreak, GraphRecord, InputFact, LimitHit


@dataclass
class History:
    """What happened in a run. `end` holds the facts that the child wrote last; empty when it was killed."""

    graphs: dict[str, GraphRecord] = field(default_factory=dict)  # by folder
    graph_breaks: list[GraphBreak] = field(default_factory=list)
    limit_hits: list[LimitHit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    end: Mapping[str, Any] = field(default_factory=dict)


def read_history(events: Iterable[Mapping[str, Any]]) -> History:
    """Replay the events of a child."""
    history = History()
    guards: dict[str | None, tuple[str, ...]] = {}  # of the latest recompile with that compile id
    for event in events:
        match event["event"]:
            case "graph":
                history.graphs[event["path"]] = _graph(event, guards)
            case "origins":
                origins = [
                    BufferOrigin(buffer, node, tuple(names)) for buffer, node, names in event["origins"]
                ]
                _update(history, event["path"], origins=tuple(origins))
            case "inputs":
                _update(history, event["path"], inputs=tuple(map(_input_fact, event["inputs"])))
            case "log" if event["artifact"] == "graph_breaks":
                found = graph_break(event["message"], event["compile_id"], event["error"])
                if found not in history.graph_breaks:  # dynamo retraces a frame, and breaks again
                    history.graph_breaks.append(found)
            case "log":
                guards[event["compile_id"]] = failed_guards(event["message"])
            case "limit":
                history.limit_hits.append(limit_hit(event["message"]))
            case "note":
                history.notes.append(event["text"])
            case "end":
                history.end = event
    return history


def _graph(event: Mapping[str, Any], guards: Mapping[str | None, tuple[str, ...]]) -> GraphRecord:
    name = Path(event["path"]).name
    compile_id = event["compile_id"]
    if "_backward_" in name:
        return GraphRecord(name, compile_id, "backward", case=event["case"])
    if compile_id is None:
        return GraphRecord(name, None, None, case=event["case"])
    # `1/0` is the first compile of frame 1, `1/2` its second recompile.
    if compile_id.rpartition("/")[2] == "0":
        return GraphRecord(name, compile_id, "first", case=event["case"])
    return GraphRecord(name, compile_id, "recompile", guards.get(compile_id, ()), event["case"])


def _update(history: History, path: str, **changes: Any) -> None:
    if path in history.graphs:
        history.graphs[path] = replace(history.graphs[path], **changes)
    else:
        history.notes.append(
            f"{Path(path).name}: {', '.join(changes)} recorded of a graph that was not opened"
        )


def _input_fact(fact: Mapping[str, Any]) -> InputFact:
    lists = {key: tuple(fact[key]) for key in ("size", "stride") if key in fact}
    return InputFact(**{**fact, **lists})
