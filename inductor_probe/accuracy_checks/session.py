"""Runs a script in a child that judges its calls, and makes records of what that says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.accuracy_checks.interpreted import ENVIRONMENT
from inductor_probe.accuracy_checks.options import AccuracyOptions, Key
from inductor_probe.executors.child import Event
from inductor_probe.measuring.script_process import OwnChildError, OwnProgram, ScriptProcess
from inductor_probe.model.accuracy import (
    AccuracyStep,
    CheckedCall,
    CheckedValue,
    CodeLine,
    Off,
    RightWhen,
    Verdict,
    WrongValue,
)
from inductor_probe.model.timing import Element

CHILD = Path(__file__).with_name("child.py")
ORDER: Mapping[str, int] = {"right": 0, "rounding": 1, "undecided": 2, "wrong": 3}
_PATIENCE_S = 600.0
"""What a call takes to be followed down, at most."""


class Judgement(Struct, frozen=True):
    """What a child said of a script.

    Attributes:
        calls: for each callable, the worst that was judged.
        called: for each of those, the graphs that its calls compiled.
        wrong_values: which call of all that were judged, and the name of the value.
        wrong: each with its graph; None for what is in none.
        compared: of each graph that was followed, how many buffers were compared, and those that
            are no FX node's.
        graphs: that calls ran, with the worst verdict of those calls, where that is not of another graph.
        not_judged: why calls were not. problem: why the script ended before its end.
    """

    calls: tuple[CheckedCall, ...]
    called: tuple[tuple[Key, ...], ...]
    wrong_values: frozenset[tuple[int, str]]
    wrong: tuple[tuple[Key | None, WrongValue], ...]
    compared: tuple[tuple[Key, int, tuple[str, ...]], ...]
    graphs: tuple[tuple[Key, Verdict], ...]
    not_judged: tuple[str, ...]
    problem: str


def judge_program(
    program: OwnProgram, options: AccuracyOptions, progress: Callable[[str], None] = lambda text: None
) -> Judgement:
    """Run a script, and judge its calls; `folder` of the options is chosen here."""
    events: Sequence[Event] = []
    problem = ""
    if program.target is not None:
        program = replace(program, variables={**program.variables, **ENVIRONMENT})
    progress(f"running {program.script}, and judging its calls")
    with ScriptProcess(
        program,
        CHILD,
        lambda folder: options.in_folder(folder, program.settings, program.flips, program.target),
        patience=_PATIENCE_S,
    ) as process:
        events = process.seen
        try:
            for event in process.events():
                if event["event"] == "call" and event["verdict"] == "wrong":
                    progress(f"call {event['call']} of {event['name']} is wrong: following it down")
                elif event["event"] == "fault":
                    progress(f"{event['operator']} is wrong ({event['layer']})")
        except OwnChildError as error:
            problem = f"the script {_HOW.get(error.code, error.code)}: {error.message}".rstrip(": ")
    return _judgement(events, problem)


_HOW = {
    "script-failed": "ended with an exception",
    "script-ended": "ended its process",
    "too-long": "took too long",
}


def _judgement(events: Iterable[Event], problem: str) -> Judgement:
    calls: dict[tuple[str, str], CheckedCall] = {}
    wrong_values: set[tuple[int, str]] = set()
    called: dict[tuple[str, str], dict[Key, None]] = {}
    judged = 0
    wrong: dict[Any, tuple[Key | None, WrongValue]] = {}
    graphs: dict[Key, Verdict] = {}
    compared: dict[Key, tuple[int, tuple[str, ...]]] = {}
    not_judged: list[str] = []
    for event in events:
        if event["event"] == "call":
            call = _call(event)
            key = (call.name, call.where)
            judged += 1
            called.setdefault(key, {}).update(dict.fromkeys(map(_key, event["graphs"])))
            wrong_values |= {(judged, one.name) for one in call.values if one.verdict == "wrong"}
            before = calls.get(key)
            number = (before.calls if before else 0) + 1
            worse = before is None or ORDER[call.verdict] > ORDER[before.verdict]
            calls[key] = replace(call if worse or before is None else before, calls=number)
            for graph in map(_key, event["graphs"]):
                verdict: Verdict = "rounding" if call.verdict == "rounding" else "right"
                graphs[graph] = max(graphs.get(graph, "right"), verdict, key=ORDER.__getitem__)
        elif event["event"] == "casts":
            key = (event["name"], event["where"] or "")
            if calls[key].call == event["call"]:
                calls[key] = _with_casts(calls[key], event["values"])
        elif event["event"] == "fault":
            at, value = _key(event["graph"]) if event["graph"] else None, _wrong(event)
            wrong[at, value.operator, value.fx, value.cause] = (at, value)
        elif event["event"] == "launches":
            compared[_key(event["graph"])] = (event["compared"], tuple(event["unknown"]))
            if event["problem"]:
                not_judged.append(f"launches of graph {event['graph'][0]}: {event['problem']}")
        elif event["event"] == "not-followed":
            not_judged.append(f"{event['stage']}: {event['message']}")
        elif event["event"] == "not-judged":
            not_judged.append(f"call {event['call']} of {event['name']}: {event['message']}")
    return Judgement(
        tuple(calls.values()),
        tuple(tuple(called[key]) for key in calls),
        frozenset(wrong_values),
        tuple(wrong.values()),
        tuple((graph, *found) for graph, found in compared.items()),
        tuple(graphs.items()),
        tuple(dict.fromkeys(not_judged)),
        problem,
    )


def _key(graph: Sequence[Any]) -> Key:
    return str(graph[0]), str(graph[1]), int(graph[2])


def _with_casts(call: CheckedCall, names: Sequence[str]) -> CheckedCall:
    """Say which values are right where the casts are kept that code leaves out."""
    values = (replace(one, why="elided-cast") if one.name in names else one for one in call.values)
    return replace(call, values=tuple(values))


def _call(event: Event) -> CheckedCall:
    values = [_value(name, judged) for name, judged in event["judged"].items()]
    verdict: Verdict = max((value.verdict for value in values), key=ORDER.__getitem__, default="right")
    return CheckedCall(
        name=event["name"],
        where=event["where"] or "",
        call=event["call"],
        calls=1,
        verdict=verdict,
        values=tuple(value for value in values if verdict == "right" or value.verdict != "right"),
        elements=sum(value.elements for value in values),
        inputs=event["inputs"],
        remarks=tuple(event["remarks"].items()),
        not_in_float64=tuple(event["refused"]),
    )


def _value(name: str, judged: Mapping[str, Any]) -> CheckedValue:
    form = tuple(judged["form"]) if judged["form"] else None
    return CheckedValue(name=name, verdict=judged["verdict"], why=judged["why"], form=form, **_judged(judged))


def _judged(judged: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a wrong value shares with every checked value."""
    return {
        **{name: judged[name] for name in ("elements", "wrong")},
        **{side: scalar(judged[side]) for side in ("eager", "compiled", "reference")},
        **{f"{side}_off": _off(judged[f"{side}_error"]) for side in ("eager", "compiled")},
        "index": tuple(judged["index"]),
    }


_AS_TOLD = ("operator", "part_of", "fx", "node", "buffer", "kernel", "layer", "cause", "is_pattern")


def _wrong(event: Event) -> WrongValue:
    tried = event["trials"]
    # The last one says most: a kernel alone is tried before the program.
    best = {(kind, name): (kind, name, by, right) for kind, name, by, right in tried if right}
    right_when = tuple(_right_when(*one) for one in best.values())
    names = dict.fromkeys(name for _, name, _, right in tried if not right)
    return WrongValue(
        **{name: event[name] for name in _AS_TOLD},
        **_judged(event["judged"]),
        user_line=_line(event["user"]),
        steps=tuple(AccuracyStep(*step) for step in event["steps"]),
        right_when=right_when,
        not_right_when=tuple(name for name in names if name not in {one.name for one in right_when}),
        not_tried=tuple(event["untried"]),
    )


def _right_when(kind: Any, name: str, by: Any, right: bool) -> RightWhen:
    return RightWhen(kind, setting=name, by=by, checked=right)


def scalar(value: Any) -> Element:
    """Return the value of an element for JSON, which has neither NaN nor infinity."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _off(error: Sequence[float] | None) -> Off | None:
    return None if error is None else Off(scalar(error[0]), scalar(error[1]))


def _line(user: Sequence[Any] | None) -> CodeLine | None:
    """Return a line of the user's program, with its text where the file is there."""
    if not user:
        return None
    path, number = str(user[0]), int(user[1])
    text = ""
    if os.path.isfile(path):  # noqa: PTH113 - it may be no path at all: `<stdin>`
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return CodeLine(path, number, text)
