"""A child's events, in the order they were written, to the graphs, breaks and limit hits of a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

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
    guards: dict[str | None, tuple[str, ...]] = field(default_factory=dict)
    """Of the latest recompile with that compile id."""

    def add(self, event: Mapping[str, Any]) -> None:
        """Add the next event."""
        match event["event"]:
            case "graph":
                self.graphs[event["path"]] = _graph(event, self.guards)
            case "origins":
                origins = [
                    BufferOrigin(buffer, node, tuple(names)) for buffer, node, names in event["origins"]
                ]
                self._update(event["path"], origins=tuple(origins))
            case "inputs":
                self._update(event["path"], inputs=tuple(map(_input_fact, event["inputs"])))
            case "finished":
                self._update(event["path"], finished=True)
            case "log" if event["artifact"] == "graph_breaks":
                found = graph_break(event["message"], event["compile_id"], event["error"])
                if found not in self.graph_breaks:  # dynamo retraces a frame, and breaks again
                    self.graph_breaks.append(found)
            case "log":
                self.guards[event["compile_id"]] = failed_guards(event["message"])
            case "limit":
                self.limit_hits.append(limit_hit(event["message"]))
            case "note":
                self.notes.append(event["text"])
            case "end":
                self.end = event

    def _update(self, path: str, **changes: Any) -> None:
        if path in self.graphs:
            self.graphs[path] = replace(self.graphs[path], **changes)
        else:
            self.notes.append(
                f"{Path(path).name}: {', '.join(changes)} recorded of a graph that was not opened"
            )


def read_history(events: Iterable[Mapping[str, Any]]) -> History:
    """Replay the events of a child."""
    history = History()
    for event in events:
        history.add(event)
    return history


def _graph(event: Mapping[str, Any], guards: Mapping[str | None, tuple[str, ...]]) -> GraphRecord:
    """Return the record of a graph whose compile begins."""
    name = Path(event["path"]).name
    compile_id = event["compile_id"]
    why: Literal["first", "recompile", "backward"] | None = None
    if "_backward_" in name:
        why = "backward"
    elif compile_id is not None:
        # `1/0` is the first compile of frame 1, `1/2` its second recompile.
        why = "first" if compile_id.rpartition("/")[2] == "0" else "recompile"
    failed = guards.get(compile_id, ()) if why == "recompile" else ()
    return GraphRecord(name, compile_id, why, failed, event["case"], finished=False)


def _input_fact(fact: Mapping[str, Any]) -> InputFact:
    lists = {key: tuple(fact[key]) for key in ("size", "stride") if key in fact}
    return InputFact(**{**fact, **lists})
