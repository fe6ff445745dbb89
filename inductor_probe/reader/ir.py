"""`ir_pre_fusion.txt` and `ir_post_fusion.txt` to scheduler nodes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductor_probe.model.ir import Buffer, BufferLayout, NodeUser, SchedulerNode
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader import blocks, values
from inductor_probe.reader.loop_body import parse_loop_body
from inductor_probe.reader.text import read_text

_OUTPUT_HEADER = re.compile(r"\s*(?P<name>\w+): (?P<kind>\w+)")

# key in the file -> (attribute of SchedulerNode, reader of its value). An unknown key is kept verbatim.
_FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "writes": ("writes", values.deps),
    "unmet_dependencies": ("unmet_dependencies", values.deps),
    "met_dependencies": ("met_dependencies", values.deps),
    "group.device": ("device", str),
    "group.iteration": ("iteration", values.iteration),
    "sizes": ("sizes", values.sizes),
    "min_input_distance": ("min_input_distance", int),
    "max_input_distance": ("max_input_distance", int),
    "node.kernel": ("kernel", lambda text: None if text == "None" else text),
}
# The same facts stand in the outputs block (torch 2.5 and later) or on the node itself (before).
_BUFFER_FIELDS: dict[str, Callable[[str], Any]] = {
    "layout": values.layout,
    "users": values.users,
    "aliases": values.names,
    "mutations": values.names,
}


@dataclass(frozen=True, slots=True)
class IrFile:
    """The nodes of an IR file in order, and what could not be read."""

    nodes: tuple[SchedulerNode, ...]
    problems: tuple[Problem, ...]


def read_ir(path: Path) -> IrFile:
    """Read an IR file.

    Raises:
        NotFoundError, UnreadableError: the file is missing, not readable or not text. A damaged part of a
            readable file is a problem in the result, not an error.
    """
    return parse_ir(read_text(path), path)


def parse_ir(text: str, path: Path) -> IrFile:
    """Read the text of an IR file; `path` is what spans and problems name."""
    split = blocks.split(text)
    problems = [
        Problem(f"not understood: {line.strip()[:80]}", Span(path, at, at)) for at, line in split.unread
    ]
    nodes = tuple(_node(block, path, problems) for block in split.nodes)
    problems.sort(key=lambda problem: problem.span.first if problem.span else 0)
    return IrFile(nodes, tuple(problems))


def _node(block: blocks.NodeBlock, path: Path, problems: list[Problem]) -> SchedulerNode:
    attributes: dict[str, Any] = {}
    own: dict[str, Any] = {}
    layouts: dict[str, tuple[BufferLayout, Span]] = {}
    fields: list[tuple[str, str]] = []
    for statement in block.statements:
        span = Span(path, statement.first, statement.last)
        try:
            if match := blocks.FIELD.fullmatch(statement.text):
                key, value = match["key"], match["value"].strip()
                if key in _FIELDS:
                    attribute, read = _FIELDS[key]
                    attributes[attribute] = read(value)
                elif key in _BUFFER_FIELDS:
                    own[key] = _BUFFER_FIELDS[key](value)
                else:
                    fields.append((key, value))
            elif match := blocks.LAYOUT.fullmatch(statement.text):
                layouts.setdefault(match["name"], (values.layout(match["value"]), span))
        except (ValueError, KeyError, IndexError) as error:
            problems.append(Problem(str(error), span))
    body = None
    if block.body:
        try:
            body = parse_loop_body(block.body, path, block.body_first)
        except ValueError as error:
            last = block.body_first + len(block.body) - 1
            problems.append(Problem(str(error), Span(path, block.body_first, last)))
    children = tuple(_node(child, path, problems) for child in block.children)
    outputs = _outputs(block.outputs, path, problems)
    if not outputs and not children:
        layout = layouts.get(block.name)
        own.setdefault("layout", layout[0] if layout else None)
        span = layout[1] if layout else Span(path, block.first, block.last)
        outputs = (_buffer(block.name, block.ir, own, span),)
    return SchedulerNode(
        name=block.name,
        kind=block.kind,
        ir=block.ir,
        outputs=outputs,
        layouts=tuple((name, layout, span) for name, (layout, span) in layouts.items()),
        body=body,
        children=children,
        fields=tuple(fields),
        span=Span(path, block.first, block.last),
        **attributes,
    )


@dataclass(slots=True)
class _OutputDraft:
    """A buffer of an outputs block while its lines are read."""

    name: str
    kind: str
    first: int
    facts: dict[str, Any] = field(default_factory=dict)


def _outputs(statements: list[blocks.Statement], path: Path, problems: list[Problem]) -> tuple[Buffer, ...]:
    drafts: list[_OutputDraft] = []
    for statement in statements:
        if match := _OUTPUT_HEADER.fullmatch(statement.text):
            drafts.append(_OutputDraft(match["name"], match["kind"], statement.first))
            continue
        match = blocks.FIELD.fullmatch(statement.text)
        try:
            if not match or not drafts or match["key"] not in _BUFFER_FIELDS:
                raise ValueError(f"not understood: {statement.text.strip()[:80]}")
            drafts[-1].facts[match["key"]] = _BUFFER_FIELDS[match["key"]](match["value"])
        except (ValueError, KeyError, IndexError) as error:
            problems.append(Problem(str(error), Span(path, statement.first, statement.last)))
    return tuple(
        _buffer(draft.name, draft.kind, draft.facts, Span(path, draft.first, draft.first)) for draft in drafts
    )


def _buffer(name: str, kind: str, facts: dict[str, Any], span: Span) -> Buffer:
    users: tuple[NodeUser, ...] = facts.get("users", ())
    return Buffer(
        name=name,
        kind=kind,
        layout=facts.get("layout"),
        users=users,
        aliases=facts.get("aliases", ()),
        mutations=facts.get("mutations", ()),
        span=span,
    )
