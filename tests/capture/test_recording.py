from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.capture.events import EVENTS_NAME, EventLog, EventReader
from inductor_probe.capture.recording import History, read_graph_break, read_guards, read_limit_hit
from inductor_probe.model.manifest import GraphBreak, InputFact, LimitHit, Note

RECOMPILE = """\
Recompiling function f in /repro/capture.py:6
    triggered by the following guard failure(s):
    - 1/1: n == 2.5                                                # return y + n  # capture.py:7 in f
    - User stack trace:
    -   File "/repro/capture.py", line 7, in f
    -     return y + n
    - 1/0: tensor 'x' size mismatch at index 0. expected 8, actual 12"""

BREAK = """\
Graph break in user code at /repro/capture.py:6
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
  Hint: Please report an issue to PyTorch.

User code traceback:
  File "/repro/capture.py", line 6, in f
    print("hi")
"""

LIMIT = """\
torch._dynamo hit config.recompile_limit (2)
   function: 'g' (/repro/capture.py:10)
   last reason: 2/1: n == 2.5                                                 # return x * n
To log all recompilation reasons, use TORCH_LOGS="recompiles".
To diagnose recompilation issues, see https://pytorch.org/docs"""

GUARDS = (
    "1/1: n == 2.5  # return y + n  # capture.py:7 in f",
    "1/0: tensor 'x' size mismatch at index 0. expected 8, actual 12",
)


def read_history(events: Iterable[Mapping[str, Any]]) -> History:
    history = History()
    for event in events:
        history.add(event)
    return history


def test_guards_are_found_among_stack_traces() -> None:
    assert read_guards(RECOMPILE) == GUARDS


def test_graph_break_is_one_sentence() -> None:
    reason = "Failed to trace builtin operator: Dynamo does not know how to trace builtin operator `print`"
    assert read_graph_break(BREAK, "0/0", None) == GraphBreak(reason, "/repro/capture.py:6", "0/0")


def test_graph_break_in_torch_s_older_words() -> None:
    message = "Graph break (user stack suppressed due to duplicate graph break) in user code at a.py:3\n"
    message += "Graph Break Reason: call to print"
    assert read_graph_break(message, None, None) == GraphBreak("call to print", "a.py:3", None)


def test_skipped_frame_is_placed_where_the_user_was() -> None:
    message = (
        "Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.\n"
        "The graph break occurred in the following user code:\n"
        '  File "a.py", line 1, in f\n    g()\n  File "b.py", line 2, in g\n    x\n'
    )
    found = read_graph_break(message, "0/0", "Skip it\n  Explanation: because\n")
    assert found == GraphBreak("Skip it: because", "b.py:2", "0/0")


def test_limit_hit_in_known_and_in_other_words() -> None:
    assert read_limit_hit(LIMIT) == LimitHit("g", "/repro/capture.py:10", "2/1: n == 2.5  # return x * n")
    assert read_limit_hit("hit config.x: last reason") == LimitHit("?", None, "hit config.x: last reason")


def test_line_that_a_kill_cut_short_is_a_note(tmp_path: Path) -> None:
    events = EventLog(tmp_path)
    events.write("graph", path="run/torchinductor/model__0_inference_0.0", compile_id="0/0", case=None)
    events.note("log-missing", torch="2.13", artifact="fusion")
    with (tmp_path / EVENTS_NAME).open("a") as file:
        file.write('{"event": "no')
    history = read_history(EventReader(tmp_path).new_events(ended=True))
    assert [graph.name for graph in history.graphs.values()] == ["model__0_inference_0.0"]
    assert history.notes == [
        Note("log-missing", (("torch", "2.13"), ("artifact", "fusion"))),
        Note("event-lost"),
    ]


def test_nothing_recorded_reads_as_nothing(tmp_path: Path) -> None:
    history = read_history(EventReader(tmp_path).new_events(ended=True))
    assert (history.graphs, dict(history.end)) == ({}, {})


def opened(name: str, compile_id: str | None) -> dict[str, object]:
    return {"event": "graph", "path": f"run/torchinductor/{name}", "compile_id": compile_id, "case": "c"}


@pytest.mark.parametrize(
    ("name", "compile_id", "why"),
    [
        ("model__0_inference_0.0", "0/0", "first"),
        ("model__0_inference_0.0", "10/10", "recompile"),
        ("model__0_inference_0.0", "12/0", "first"),
        ("model__0_backward_1.1", "0/1", "backward"),
        ("model___9.0", None, None),
    ],
)
def test_why_a_graph_was_compiled(name: str, compile_id: str | None, why: str | None) -> None:
    (graph,) = read_history([opened(name, compile_id)]).graphs.values()
    assert (graph.name, graph.why, graph.case) == (name, why, "c")


def test_guards_go_to_the_recompile_they_belong_to() -> None:
    recompile = {"event": "log", "artifact": "recompiles", "compile_id": "0/1", "message": RECOMPILE}
    graphs = read_history([opened("a", "0/0"), recompile, opened("b", "0/1"), opened("c", "0/2")]).graphs
    assert [graph.guards for graph in graphs.values()] == [(), GUARDS, ()]


def test_inputs_and_origins_join_their_graph() -> None:
    path = opened("a", "0/0")["path"]
    tensor = {"name": "x", "kind": "tensor", "size": [2], "stride": [1], "offset": 0, "dtype": "int8"}
    events = [
        opened("a", "0/0"),
        {"event": "became", "path": path, "became": {"aten.addcmul": ["add", "mul"]}},
        {"event": "origins", "path": path, "origins": [["buf0", None, ["add", "mul"]]]},
        {"event": "inputs", "path": path, "inputs": [tensor, {"name": "s0", "kind": "symint", "value": 7}]},
        {"event": "inputs", "path": "run/torchinductor/other", "inputs": []},
    ]
    history = read_history(events)
    graph = history.graphs[str(path)]
    assert graph.inputs == (
        InputFact("x", "tensor", size=(2,), stride=(1,), offset=0, dtype="int8"),
        InputFact("s0", "symint", 7),
    )
    assert graph.origins[0].origins == ("add", "mul")
    assert graph.became == (("aten.addcmul", ("add", "mul")),)
    assert history.notes == [Note("graph-not-opened", (("graph", "other"), ("facts", "inputs")))]
