"""What is known of an exception that ends a compile while its frames are there: which, and at which node.

The exception's text has the operator that was lowered, but not its node, and nothing of what was scheduled
or generated: that is in the variables of the frames (`run_node` of an FX interpreter, a function that takes a
scheduler node, the compile of a kernel). What stage the frames are of is read later (`reader/failures.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

_LONGEST_TEXT = 1 << 16
_MOST_FRAMES = 200
_EMPTY = ("FailOnRecompileLimitHit",)
_FRAMES = "torch/_dynamo/convert_frame.py"
_SCHEDULER = "torch/_inductor/scheduler.py"
_INTERPRETERS = ("torch/fx/interpreter.py", "torch/_inductor/graph.py")
_CODEGEN = "torch/_inductor/codegen/"
_COMPILE = "torch/_inductor/async_compile.py"


def failure_facts(error: Exception) -> dict[str, Any]:
    """Return the fields of the event of a failed compile: its text, frames, node, and the user's line."""
    frames = [*_frames(error)][-_MOST_FRAMES:]
    config: Any = sys.modules.get("torch._dynamo.config")
    facts: dict[str, Any] = {
        "raised": type(error).__name__,
        # One that says only that a full graph is wanted has the reason as its cause.
        "text": str(error.__cause__ if type(error).__name__ in _EMPTY else error)[:_LONGEST_TEXT],
        "frames": [[frame.f_code.co_filename, frame.f_code.co_name] for frame in frames],
        "function": _function(frames),
        "suppressed": bool(getattr(config, "suppress_errors", False)),
    }
    for frame in reversed(frames):
        if about := _about(frame):
            return {**facts, **about}
    return facts


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _function(frames: list[FrameType]) -> str | None:
    """Return the name of the function that dynamo compiles: `code` of `_compile` in convert_frame.py."""
    for frame in frames:
        if frame.f_code.co_name == "_compile" and frame.f_code.co_filename.endswith(_FRAMES):
            return getattr(frame.f_locals.get("code"), "co_name", None)
    return None


def _about(frame: FrameType) -> dict[str, str | None] | None:
    """Return the node or kernel that a frame is about, and where it stands in the user's code."""
    file, function, variables = frame.f_code.co_filename, frame.f_code.co_name, frame.f_locals
    if file.endswith(_INTERPRETERS) and function == "run_node" and hasattr(variables.get("n"), "meta"):
        node = variables["n"]
        return {"node": node.name, "stack": node.stack_trace or ""}
    if file.endswith(_SCHEDULER) or _CODEGEN in file:
        # Arguments alone: the variable of a loop that has ended still holds its last node.
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        given: list[Any] = [variables.get(name) for name in names]
        if nodes := [one for one in given if hasattr(one, "get_nodes")]:
            leaves = [leaf for node in nodes for leaf in node.get_nodes() if leaf.node]
            stacks = [origin.stack_trace or "" for leaf in leaves for origin in leaf.node.get_origins()]
            name = " + ".join(node.get_name() for node in nodes)
            return {"node": name, "stack": next(filter(None, stacks), "")}
    if file.endswith(_COMPILE) and function == "_wait_futures" and isinstance(variables.get("key"), str):
        return {"node": variables["key"]}
    return None
