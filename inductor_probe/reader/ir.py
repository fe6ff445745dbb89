"""`ir_pre_fusion.txt` and `ir_post_fusion.txt` to scheduler nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inductor_probe.files import read_text
from inductor_probe.model.ir import Buffer, BufferLayout, LoopBody, NodeUser, SchedulerNode
from inductor_probe.model.span import MOST_PROBLEMS, Problem, Span, too_many_problems
from inductor_probe.reader import blocks, values
from inductor_probe.reader.loop_body import parse_loop_body

# key in the file -> (attribute of SchedulerNode, reader of its value). An unknown key is kept verbatim.
_FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "writes": ("writes", values.deps),
    "unmet_dependencies": ("unmet_dependencies", values.deps),
    "met_dependencies": ("met_dependencies", values.deps),
    "group.device": ("device", str),
    "group.iteration": ("iteration", values.iteration),
    "sizes": ("sizes", values.sizes),
    "min_input_distance": ("min_input_distance", values.count),
    "max_input_distance": ("max_input_distance", values.count),
    "node.kernel": ("kernel", lambda text: None if text == "None" else text),
}
# The same facts stand in the outputs block (torch 2.5 and later) or on the node itself (before).
_BUFFER_FIELDS: dict[str, Callable[[str], Any]] = {
    "layout": values.layout,
    "users": values.users,
    "aliases": values.names,
    "mutations": values.names,
}
_CHILD_NAMES = "snodes"
# What reading a value that is cut off or of a new form raises.
_NOT_READ = (ValueError, RecursionError)


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
        Problem(f"not understood: {values.shorten(line.strip())}", Span(path, at, at))
        for at, line in split.unread
    ]
    reader = _NodeReader(path, problems)
    nodes = []
    for block in split.nodes:
        if reader.stopped is not None:
            break
        nodes.append(reader.node(block))
    if stops := [line for line in (split.stopped, reader.stopped) if line is not None]:
        problems.append(too_many_problems(path, min(stops), text))
    problems.sort(key=lambda problem: problem.span.first if problem.span else 0)
    return IrFile(tuple(nodes), tuple(problems))


def names_children(nodes: Iterable[SchedulerNode]) -> bool:
    """Tell whether fused nodes name the nodes in them instead of printing them: see `with_children`."""
    return any(_child_names(node) for node in nodes)


def with_children(
    nodes: Iterable[SchedulerNode], earlier: Iterable[SchedulerNode]
) -> tuple[SchedulerNode, ...]:
    """Give fused nodes that only name the nodes in them those of the file before fusion.

    `buf0_buf1.snodes = ['buf0', 'buf1']` is all that torch printed until August 2023 (pull request 106356). A
    node of which one is not in the earlier file stays as it is.
    """
    known = {node.name: node for node in earlier}
    return tuple(_with_children(node, known) for node in nodes)


def _with_children(node: SchedulerNode, known: Mapping[str, SchedulerNode]) -> SchedulerNode:
    names = _child_names(node)
    if not names or not known.keys() >= set(names):
        return node
    fields = tuple(pair for pair in node.fields if pair[0] != _CHILD_NAMES)
    return replace(node, children=tuple(known[name] for name in names), outputs=(), fields=fields)


def _child_names(node: SchedulerNode) -> tuple[str, ...]:
    text = dict(node.fields).get(_CHILD_NAMES)
    if text is None or node.children:
        return ()
    try:
        return values.names(text)
    except ValueError:
        return ()


@dataclass(slots=True)
class _OutputDraft:
    """A buffer of an outputs block while its lines are read."""

    name: str
    kind: str
    first: int
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _NodeReader:
    """Turns blocks into nodes; what cannot be read goes to `problems`.

    `stopped` is the line behind which nothing is read any more, since too much before it could not be.
    """

    path: Path
    problems: list[Problem]
    stopped: int | None = None

    def node(self, block: blocks.NodeBlock) -> SchedulerNode:
        """Read the lines of one node and of its children."""
        attributes: dict[str, Any] = {}
        own: dict[str, Any] = {}
        layouts: dict[str, tuple[BufferLayout, Span]] = {}
        fields: list[tuple[str, str]] = []
        for statement in block.statements:
            if self.stopped is not None:
                break
            key = statement.key
            try:
                if key == blocks.LAYOUT_LINE:
                    if statement.owner not in layouts:
                        layouts[statement.owner] = (values.layout(statement.value), self._span(statement))
                elif known := _FIELDS.get(key):
                    attributes[known[0]] = known[1](statement.value.strip())
                elif key in _BUFFER_FIELDS:
                    own[key] = _BUFFER_FIELDS[key](statement.value)
                else:
                    fields.append((key, statement.value.strip()))
            except _NOT_READ as error:
                self._problem(error, statement)
        children = tuple(self.node(child) for child in block.children)
        outputs = self._outputs(block.outputs)
        if not outputs and not children:
            layout = layouts.get(block.name)
            own.setdefault("layout", layout[0] if layout else None)
            span = layout[1] if layout else Span(self.path, block.first, block.last)
            outputs = (_buffer(block.name, block.ir, own, span),)
        return SchedulerNode(
            name=block.name,
            kind=block.kind,
            ir=block.ir,
            outputs=outputs,
            layouts=tuple((name, layout, span) for name, (layout, span) in layouts.items()),
            body=self._body(block),
            children=children,
            fields=tuple(fields),
            span=Span(self.path, block.first, block.last),
            **attributes,
        )

    def _body(self, block: blocks.NodeBlock) -> LoopBody | None:
        if not block.body:
            return None

        def bad_line(line: int, message: str) -> None:
            at = block.body_first + line
            self._add(Problem(message, Span(self.path, at, at)), at)

        return parse_loop_body(block.body, self.path, block.body_first, bad_line)

    def _outputs(self, statements: list[blocks.Statement]) -> tuple[Buffer, ...]:
        drafts: list[_OutputDraft] = []
        for statement in statements:
            if statement.key == blocks.OUTPUT_HEADER:
                drafts.append(_OutputDraft(statement.owner, statement.value, statement.first))
                continue
            try:
                if not drafts or statement.key not in _BUFFER_FIELDS:
                    raise ValueError(f"not understood: {values.shorten(statement.value)}")
                drafts[-1].facts[statement.key] = _BUFFER_FIELDS[statement.key](statement.value)
            except _NOT_READ as error:
                self._problem(error, statement)
        return tuple(
            _buffer(draft.name, draft.kind, draft.facts, Span(self.path, draft.first, draft.first))
            for draft in drafts
        )

    def _span(self, statement: blocks.Statement) -> Span:
        return Span(self.path, statement.first, statement.last)

    def _problem(self, error: Exception, statement: blocks.Statement) -> None:
        self._add(Problem(str(error), self._span(statement)), statement.first)

    def _add(self, problem: Problem, line: int) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)
        elif self.stopped is None:
            self.stopped = line


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
