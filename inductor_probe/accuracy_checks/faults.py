"""What is wrong: an operator, the first wrong element, the layer of the compiler that made it so."""

from __future__ import annotations

import operator
import re
import traceback
from dataclasses import dataclass, field
from typing import Any

import torch

from inductor_probe.accuracy_checks.functional import Written
from inductor_probe.accuracy_checks.judgement import Judged

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass
class Fault:
    """Something wrong, at the first place where it is seen.

    Attributes:
        layer: see `model/accuracy.py`. operator: `aten.argmax`. fx: its node in the graph that was lowered.
        node, buffer, kernel: inductor's names, where it has them.
        graph: compile id and kind of the graph, and which of those. wrapper_line: of the launch, in the
            generated code.
        user: file and line of the user's code. judged: the values. steps: what was computed on the way, and
            whether that is right.
        part_of: the operator that `operator` was decomposed from. cause: the pass, or a pattern of one.
        trials: what was changed: kind, name, in the whole `program` or the `kernel`, and whether it is right
            then. untried: names of changes for which there was no time.
        right_alone: whether its nodes are right where they are compiled without the rest of the graph.
    """

    layer: str
    operator: str
    judged: Judged
    fx: str = ""
    node: str = ""
    buffer: str = ""
    kernel: str = ""
    graph: tuple[str, str, int] | None = None
    user: tuple[str, int] | None = None
    steps: list[tuple[str, str, str]] = field(default_factory=list)
    part_of: str = ""
    cause: str = ""
    is_pattern: bool = False
    trials: list[tuple[str, str, str, bool]] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    right_alone: bool = False


def operator_of(node: Any) -> str:
    """Return what a node calls: `aten.argmax`, without its overload; `torch.nn.functional.silu`."""
    target = node.target if isinstance(node, torch.fx.Node) else node
    if target is operator.getitem:
        return operator_of(node.args[0])
    if isinstance(target, Written):
        target = target.target
    if isinstance(target, torch._ops.OpOverload):
        return str(target.overloadpacket)
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", "") or ""
    name = getattr(target, "__name__", str(target))
    return f"{module}.{name}" if module.startswith("torch") else name


def original_operator(node: Any) -> str:
    """Return the operator of the user's program that a node is part of: before it was decomposed."""
    original = node.meta.get("original_aten")
    return operator_of(original) if original is not None else operator_of(node)


def operator_called(name: str) -> Any:
    """Return torch's operator of a name, `aten.argmax` or `aten.argmax.default`, or None."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def draws(operator_name: str) -> bool:
    """Whether an operator draws random numbers."""
    packet = operator_called(operator_name)
    is_operator = isinstance(packet, torch._ops.OpOverloadPacket)
    overloads = [getattr(packet, name) for name in packet.overloads()] if is_operator else []
    tagged = any(torch.Tag.nondeterministic_seeded in one.tags for one in overloads)
    return tagged or "rand" in operator_name or "dropout" in operator_name


def user_line(node: Any) -> tuple[str, int] | None:
    """Return the innermost line of the user's that a node comes from."""
    return line_in(str(node.meta.get("stack_trace") or ""))


def line_in(text: str) -> tuple[str, int] | None:
    """Return the innermost line of a printed stack that is not torch's own."""
    frames = [(path, int(line)) for path, line in _FRAME.findall(text)]
    mine = [frame for frame in frames if not _is_library(frame[0])]
    return mine[-1] if mine else None


def calling_line() -> tuple[str, int] | None:
    """Return the innermost line of the user's that is running now, or whose backward is."""
    node = torch._C._current_autograd_node()
    if node is not None:  # see torch.autograd.set_detect_anomaly
        return line_in("".join(node.metadata.get("traceback_", ())))
    frames = [frame for frame in traceback.extract_stack() if not _is_library(frame.filename)]
    return (frames[-1].filename, frames[-1].lineno or 0) if frames else None


def _is_library(path: str) -> bool:
    return "/torch/" in path or "/inductor_probe/" in path or path.startswith("<")
