"""`ir_pre_fusion.txt` and `ir_post_fusion.txt` to scheduler nodes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.ir import Block, Buffer, BufferLayout, Dim, LoopBody, Op, Ref, SchedulerNode, Value
from inductor_probe.model.span import MOST_PROBLEMS, Problem, Span, too_many_problems
from inductor_probe.reader import blocks, values
from inductor_probe.reader.python_text import parse_expression

# Key in the file -> (attribute of SchedulerNode, reader of its value). An unknown key is kept verbatim.
# torch/_inductor/scheduler.py: BaseSchedulerNode.debug_str and debug_str_extra of SchedulerNode and
# ExternKernelSchedulerNode; the distances since torch 2.12.
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
# SchedulerBuffer.debug_str, in the outputs block, since torch 2.5; on the node itself before.
_BUFFER_FIELDS: dict[str, Callable[[str], Any]] = {
    "layout": values.layout,
    "users": values.users,
    "aliases": values.names,
    "mutations": values.names,
}
_FUSED = ("Fused", "Foreach", "OuterLoopFused")
"""Begin the classes of nodes that hold others."""
_LONGEST_NAME = 1_000
# What reading a value that is cut off or of a new form raises.
_NOT_READ = (ValueError, RecursionError)

# Statements of a loop body, a line each: torch/_inductor/loop_body.py, LoopBody.debug_str and
# LoopBodyBlock.debug_str, whose text is made by the code generator of torch.fx: `load = ops.load('arg0_1',
# get_index)`.
_CALL = re.compile(r"(?P<result>\w+) = (?P<target>[A-Za-z_][\w.]*)\((?P<arguments>.*)\)")
_ITEM = re.compile(r"(?P<result>\w+) = (?P<base>[A-Za-z_]\w*)\[(?P<index>\d{1,9})\]")
_NAME_OR_STRING = r"(?:(?!(?:True|False|inf|nan)\b)[A-Za-z_]\w*|'\w*')"
_NAMES_AND_STRINGS = re.compile(rf"{_NAME_OR_STRING}(?:, {_NAME_OR_STRING})*")
"""Of most operations: `'buf0', get_index, mul, None`. To parse them all makes reading a tenth slower."""
_DEFINITION = re.compile(r"def (?P<name>\w+)\((?P<params>[\w, ]*)\):")
_RETURN = re.compile(r"return(?: (?P<value>.+))?")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*) = (?P<value>.+)")

_known_bodies: dict[tuple[str, ...], LoopBody] = {}
_LONG_BODY = 200
_MOST_BODIES = 1_024

Arguments: TypeAlias = tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]


class IrFile(Struct, frozen=True):
    """The nodes of an IR file in order, and what could not be read."""

    nodes: tuple[SchedulerNode, ...]
    problems: tuple[Problem, ...]


def parse_ir(text: str, path: Path) -> IrFile:
    """Read the text of an IR file; `path` is what spans and problems name."""
    split = blocks.split(text)
    problems = [
        Problem(f"not understood: {values.shorten(line.strip())}", Span(path, number, number))
        for number, line in split.unread
    ]
    reader = _NodeReader(path, problems)
    nodes = []
    for block in split.nodes:
        if reader.stopped is not None:
            break
        nodes.append(reader.node(block))
    if stopped := [line for line in (split.stopped, reader.stopped) if line is not None]:
        problems.append(too_many_problems(path, min(stopped), text))
    problems.sort(key=lambda problem: problem.span.first if problem.span else 0)
    return IrFile(tuple(nodes), tuple(problems))


def lacks_children(node: SchedulerNode) -> bool:
    """Return whether a fused node stands without the nodes in it: see `with_children`."""
    return not node.children and node.kind.startswith(_FUSED)


def with_children(
    nodes: Iterable[SchedulerNode], earlier: Iterable[SchedulerNode]
) -> tuple[SchedulerNode, ...]:
    """Give fused nodes without the nodes in them those of the file before fusion.

    Torch prints all members or, where a part of it fails on the way, none: `debug_str` drops all that follows
    the outputs, and goes on (a foreach node that something was fused into has no `debug_device_str`). A node
    of which a member is not in the earlier file stays as it is.
    """
    known = {leaf.name: leaf for node in earlier for leaf in node.leaves()}
    return tuple(_with_children(node, known) for node in nodes)


def _with_children(node: SchedulerNode, known: Mapping[str, SchedulerNode]) -> SchedulerNode:
    if node.children:
        if not any(map(lacks_children, node.children)):
            return node
        return replace(node, children=tuple(_with_children(child, known) for child in node.children))
    names = _child_names(node, known) if lacks_children(node) else ()
    if not names or not known.keys() >= set(names):
        return node
    return replace(node, children=tuple(known[name] for name in names), outputs=())


def _child_names(node: SchedulerNode, known: Mapping[str, SchedulerNode]) -> tuple[str, ...]:
    """Return the names that its own name joins; none where one of them is not known."""
    names: list[str] = []
    name = ""
    for part in node.name.split("_"):
        name = f"{name}_{part}" if name else part  # `true_graph_0_op1` is one name
        if name in known:
            names.append(name)
            name = ""
        elif len(name) > _LONGEST_NAME:
            break
    return () if name else tuple(names)


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
        buffer: dict[str, Any] = {}
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
                    buffer[key] = _BUFFER_FIELDS[key](statement.value)
                else:
                    fields.append((key, statement.value.strip()))
            except _NOT_READ as error:
                self._add(str(error), self._span(statement))
        span = Span(self.path, block.first, block.last)
        children = tuple(self.node(child) for child in block.children)
        outputs = self._outputs(block.outputs)
        if not outputs and not children:
            layout, layout_span = layouts.get(block.name, (None, span))
            facts = {"layout": layout, **buffer}
            outputs = (_buffer(block.name, block.ir, facts, layout_span),)
        return SchedulerNode(
            name=block.name,
            kind=block.kind,
            ir=block.ir,
            outputs=outputs,
            layouts=tuple((name, layout, span) for name, (layout, span) in layouts.items()),
            body=self._body(block.body, block.body_first) if block.body else None,
            children=children,
            fields=tuple(fields),
            span=span,
            **attributes,
        )

    def _outputs(self, statements: list[blocks.Statement]) -> tuple[Buffer, ...]:
        outputs: list[tuple[blocks.Statement, dict[str, Any]]] = []
        for statement in statements:
            if statement.key == blocks.OUTPUT_HEADER:
                outputs.append((statement, {}))
                continue
            try:
                if not outputs or statement.key not in _BUFFER_FIELDS:
                    raise ValueError(f"not understood: {values.shorten(statement.value)}")
                outputs[-1][1][statement.key] = _BUFFER_FIELDS[statement.key](statement.value)
            except _NOT_READ as error:
                self._add(str(error), self._span(statement))
        return tuple(
            _buffer(header.owner, header.value, facts, self._span(header)) for header, facts in outputs
        )

    def _body(self, lines: list[str], first: int) -> LoopBody:
        """Read the lines of a `class op0_loop_body:`, the first of which is line `first` of the file.

        Bodies are most of what an IR file holds, and the same lines occur over and over in them, so an
        operation is read once and remembered, and so is what stands between the brackets of a call, and a
        body that is not long: it may be the same before fusion and after.
        """
        span = Span(self.path, first, first + len(lines) - 1)
        key = tuple(lines[1:]) if len(lines) <= _LONG_BODY else ()
        if known := _known_bodies.get(key):
            return replace(known, span=span)
        before = len(self.problems)
        ranges: tuple[tuple[str, Dim], ...] = ()
        indexes: list[tuple[str, str]] = []
        functions: list[tuple[re.Match[str], list[Op]]] = []
        results: list[Value] = []
        for number, line in enumerate(lines[1:], start=1):
            text = line.strip()
            try:
                if functions and (op := _op(text, number)):
                    functions[-1][1].append(op)
                elif not functions and (match := _ASSIGNMENT.fullmatch(text)):
                    if match["name"] == "var_ranges":
                        ranges = values.ranges(match["value"])
                    else:
                        indexes.append((match["name"], match["value"]))
                elif match := _DEFINITION.fullmatch(text):
                    functions.append((match, []))
                    results.append(None)
                elif functions and (match := _RETURN.fullmatch(text)):
                    results[-1] = values.operand_text(match["value"]) if match["value"] else None
                elif text != "pass":
                    raise ValueError(f"not understood: {values.shorten(text)}")
            except _NOT_READ as error:
                self._add(str(error), Span(self.path, first + number, first + number))
        body = tuple(
            Block(definition["name"], tuple(definition["params"].split(", ")), tuple(ops), result)
            for (definition, ops), result in zip(functions, results, strict=True)
        )
        read = LoopBody(ranges, tuple(indexes), body, span)
        if key and len(self.problems) == before:
            if len(_known_bodies) >= _MOST_BODIES:
                _known_bodies.clear()
            _known_bodies[key] = read
        return read

    def _span(self, statement: blocks.Statement) -> Span:
        return Span(self.path, statement.first, statement.last)

    def _add(self, message: str, span: Span) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(message, span))
        elif self.stopped is None:
            self.stopped = span.first


@lru_cache(maxsize=16384)
def _op(text: str, line: int) -> Op | None:
    if match := _CALL.fullmatch(text):
        result, target, arguments = match.groups()
        args, kwargs = _arguments(arguments)
        return Op(result, target, args, kwargs, line)
    if match := _ITEM.fullmatch(text):
        return Op(match["result"], "[]", (Ref(match["base"]), int(match["index"])), (), line)
    return None


@lru_cache(maxsize=16384)
def _arguments(text: str) -> Arguments:
    """Read `'buf0', get_index, src_dtype = torch.float32`."""
    if _NAMES_AND_STRINGS.fullmatch(text):
        parts = text.split(", ")
        return tuple(
            part[1:-1] if part[0] == "'" else None if part == "None" else Ref(part) for part in parts
        ), ()
    call = parse_expression(f"f({text})")
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):  # `f(1).g(2)`
        raise ValueError(f"not the arguments of one call: {values.shorten(text)}")
    args = tuple(values.operand(argument) for argument in call.args)
    kwargs = tuple((kw.arg, values.operand(kw.value)) for kw in call.keywords if kw.arg is not None)
    if len(kwargs) != len(call.keywords):
        raise ValueError(f"unknown argument: {values.shorten(text)}")
    return args, kwargs


def _buffer(name: str, kind: str, facts: dict[str, Any], span: Span) -> Buffer:
    return Buffer(
        name=name,
        kind=kind,
        layout=facts.get("layout"),
        users=facts.get("users", ()),
        aliases=facts.get("aliases", ()),
        mutations=facts.get("mutations", ()),
        span=span,
    )
