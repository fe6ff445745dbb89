"""Splitting an IR file into nodes, fields and loop bodies, by structure alone.

The structure is the same in every torch version: a header line `name: Kind(IR)`, fields `name.key = value`
whose value may go on over several lines, `name.outputs = [` up to its `]`, layout lines, a loop body, and
`name.snodes[i] =` before each child of a fused node. Children are indented in some versions and flat in
others; only the `.snodes[` line tells whose child a node is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

HEADER = re.compile(r"\s*(?P<name>\w+): (?P<kind>\w+)\((?P<ir>.*)\)")
SNODE = re.compile(r"\s*(?P<parent>\w+)\.snodes\[\d+\] =\s*")
FIELD = re.compile(r"\s*(?P<owner>\w+)\.(?P<key>[\w.]+) = ?(?P<value>.*)", re.DOTALL)
LAYOUT = re.compile(r"\s*(?P<name>\w+)_layout = (?P<value>.*)", re.DOTALL)
BODY = re.compile(r"\s*class (?P<name>\w+)_loop_body:")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(slots=True)
class Statement:
    """A field or layout with its value joined over its lines; `first` and `last` are 1-based."""

    text: str
    first: int
    last: int


@dataclass(slots=True)
class NodeBlock:
    """The lines of one node, sorted by what they are, its children apart."""

    name: str
    kind: str
    ir: str
    first: int
    last: int
    statements: list[Statement] = field(default_factory=list)
    outputs: list[Statement] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    body_first: int = 0
    children: list[NodeBlock] = field(default_factory=list)


@dataclass(slots=True)
class IrBlocks:
    """The nodes of a file, and the lines (number, text) that belong to no known form."""

    nodes: list[NodeBlock] = field(default_factory=list)
    unread: list[tuple[int, str]] = field(default_factory=list)


def split(text: str) -> IrBlocks:
    """Split the text of an IR file. Never fails: what has no known form is in `unread`."""
    blocks = IrBlocks()
    lines = text.split("\n")
    stack: list[NodeBlock] = []
    expects_child = False
    position = 0
    while position < len(lines):
        line, number = lines[position], position + 1
        if not line.strip():
            stack.clear()
            expects_child = False
            position += 1
            continue
        if (not stack or expects_child) and (match := HEADER.fullmatch(line)):
            node = NodeBlock(match["name"], match["kind"], match["ir"], number, number)
            (stack[-1].children if stack else blocks.nodes).append(node)
            stack.append(node)
            expects_child = False
            position += 1
            continue
        if match := SNODE.fullmatch(line):
            depth = next((at for at in range(len(stack), 0, -1) if stack[at - 1].name == match["parent"]), 0)
            if depth:
                del stack[depth:]
                expects_child = True
            else:
                blocks.unread.append((number, line))
            position += 1
            continue
        position = _take_part(lines, position, stack[-1], blocks) if stack else _skip(lines, position, blocks)
        for node in stack:
            node.last = position
    return blocks


def _skip(lines: list[str], position: int, blocks: IrBlocks) -> int:
    blocks.unread.append((position + 1, lines[position]))
    return position + 1


def _take_part(lines: list[str], position: int, node: NodeBlock, blocks: IrBlocks) -> int:
    """Take the field, outputs block or loop body at `position` into `node`; return the next position."""
    line = lines[position]
    if BODY.fullmatch(line):
        end = position + 1
        while end < len(lines) and _indent(lines[end]) > _indent(line):
            end += 1
        node.body, node.body_first = lines[position:end], position + 1
        return end
    field_match = FIELD.fullmatch(line)
    if field_match and field_match["key"] == "outputs":
        end = position + 1
        while end < len(lines) and lines[end].strip() and _indent(lines[end]) > _indent(line):
            end += 1
        node.outputs.extend(_statements(lines, position + 1, end))
        closed = end < len(lines) and lines[end].strip() == "]"
        if not closed:
            blocks.unread.append((position + 1, line))
        return end + closed
    if field_match or LAYOUT.fullmatch(line):
        statement = _statement(lines, position, len(lines))
        node.statements.append(statement)
        return statement.last
    return _skip(lines, position, blocks)


def _statements(lines: list[str], position: int, end: int) -> Iterator[Statement]:
    while position < end:
        statement = _statement(lines, position, end)
        yield statement
        position = statement.last


def _statement(lines: list[str], position: int, end: int) -> Statement:
    """Join lines from `position` until brackets balance and a value is there.

    A line that goes on is indented deeper or closes a bracket; anything else ends a value that was cut off.
    """
    last = position + 1
    first = lines[position]
    depth = _balance(first)
    bare = first.rstrip().endswith("=")
    while last < end and (depth > 0 or bare):
        line = lines[last].strip()
        goes_on = line and (_indent(lines[last]) > _indent(first) or line[0] in _CLOSE)
        if not goes_on or (bare and line[0] not in _OPEN):
            break
        depth += _balance(lines[last])
        bare = False
        last += 1
    return Statement("\n".join(lines[position:last]), position + 1, last)


def _balance(line: str) -> int:
    return sum(line.count(mark) for mark in _OPEN) - sum(line.count(mark) for mark in _CLOSE)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0
