"""Splitting an IR file into nodes, fields and loop bodies, by structure alone.

The structure is the same in every torch version: a header line `name: Kind(IR)`, fields `name.key = value`
whose value may go on over several lines, `name.outputs = [` up to its `]`, layout lines, a loop body, and
`name.snodes[i] =` before each child of a fused node. Children are indented in some versions and flat in
others; only the `.snodes[` line tells whose child a node is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HEADER = re.compile(r"\s*(?P<name>\w+): (?P<kind>\w+)\((?P<ir>.*)\)")
_SNODE = re.compile(r"\s*(?P<parent>\w+)\.snodes\[\d+\] =\s*")
_FIELD = re.compile(r"\s*(?P<owner>\w+)\.(?P<key>[\w.]+) = ?(?P<value>.*)")
_LAYOUT = re.compile(r"\s*(?P<owner>\w+)_layout = (?P<value>.*)")
_OUTPUT = re.compile(r"\s*(?P<owner>\w+): (?P<value>\w+)")
_BODY = re.compile(r"\s*class (?P<owner>\w+)_loop_body:")
_DEVICE_CODE = re.compile(r"\s*(?P<owner>\w+) (?P<what>Triton code:|Unfinalized multi template buffer)")
_OPEN, _CLOSE = "([{", ")]}"

LAYOUT_LINE = "_layout"
"""Key of a statement `buf0_layout = FixedLayout(...)`."""
OUTPUT_HEADER = ""
"""Key of a statement `buf0: ComputedBuffer` in an outputs block; its value is the kind."""


@dataclass(slots=True)
class Statement:
    """`owner.key = value`, the value joined over its lines; `first` and `last` are 1-based."""

    owner: str
    key: str
    value: str
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
    device_code: list[str] = field(default_factory=list)
    children: list[NodeBlock] = field(default_factory=list)


@dataclass(slots=True)
class Piece:
    """Consecutive lines that were taken as one thing; the pieces of a file are all of its lines, in order."""

    what: str
    first: int
    last: int


@dataclass(slots=True)
class IrBlocks:
    """The nodes of a file, the lines (number, text) that belong to no known form, and every piece."""

    nodes: list[NodeBlock] = field(default_factory=list)
    unread: list[tuple[int, str]] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)


def split(text: str) -> IrBlocks:
    """Split the text of an IR file. Never fails: what has no known form is in `unread`."""
    return _Splitter(text.split("\n")).split()


class _Splitter:
    """Walks the lines once; `stack` holds the open node and the fused nodes around it."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.blocks = IrBlocks()
        self.stack: list[NodeBlock] = []
        self.expects_child = False

    def split(self) -> IrBlocks:
        at, end = 0, len(self.lines)
        while at < end:
            what, after = self._take(at)
            self.blocks.pieces.append(Piece(what, at + 1, after))
            if what in ("unread", "outputs cut off"):
                self.blocks.unread.append((at + 1, self.lines[at]))
            for node in self.stack:
                node.last = after
            at = after
        return self.blocks

    def _take(self, at: int) -> tuple[str, int]:
        """Take what begins at line index `at`; return what it is and the index after it."""
        line = self.lines[at]
        if not line or line.isspace():
            self.stack.clear()
            self.expects_child = False
            return "empty", at + 1
        if (not self.stack or self.expects_child) and (match := _HEADER.fullmatch(line)):
            node = NodeBlock(match["name"], match["kind"], match["ir"], at + 1, at + 1)
            (self.stack[-1].children if self.stack else self.blocks.nodes).append(node)
            self.stack.append(node)
            self.expects_child = False
            return "header", at + 1
        if not self.stack:
            return "unread", at + 1
        if ".snodes[" in line and (match := _SNODE.fullmatch(line)):
            return self._take_child_mark(match["parent"], at)
        return self._take_part(self.stack[-1], line, at)

    def _take_child_mark(self, parent: str, at: int) -> tuple[str, int]:
        depth = next(
            (depth for depth in range(len(self.stack), 0, -1) if self.stack[depth - 1].name == parent), 0
        )
        if not depth:
            return "unread", at + 1
        del self.stack[depth:]
        self.expects_child = True
        return "child", at + 1

    def _take_part(self, node: NodeBlock, line: str, at: int) -> tuple[str, int]:
        """Take the field, layout, outputs block, loop body or device code at `at` into `node`."""
        if match := _FIELD.fullmatch(line):
            if match["owner"] != node.name:
                return "unread", at + 1
            if match["key"] == "outputs":
                return self._take_outputs(node, at)
            statement = self._statement(match["owner"], match["key"], match["value"], at)
            node.statements.append(statement)
            return "field", statement.last
        if match := _LAYOUT.fullmatch(line):
            statement = self._statement(match["owner"], LAYOUT_LINE, match["value"], at)
            node.statements.append(statement)
            return "layout", statement.last
        if _BODY.fullmatch(line) and not node.body:
            after = self._deeper(at)
            node.body, node.body_first = self.lines[at:after], at + 1
            return "body", after
        if _DEVICE_CODE.fullmatch(line):
            after = self._deeper(at, over_empty=True)
            node.device_code = self.lines[at:after]
            return "device code", after
        return "unread", at + 1

    def _take_outputs(self, node: NodeBlock, at: int) -> tuple[str, int]:
        after = self._deeper(at)
        inside = at + 1
        while inside < after:
            statement = self._output_statement(inside, after)
            node.outputs.append(statement)
            inside = statement.last
        closed = after < len(self.lines) and self.lines[after].strip() == "]"
        return ("outputs", after + 1) if closed else ("outputs cut off", after)

    def _output_statement(self, at: int, end: int) -> Statement:
        line = self.lines[at]
        if match := _FIELD.fullmatch(line):
            return self._statement(match["owner"], match["key"], match["value"], at, end)
        if match := _OUTPUT.fullmatch(line):
            return Statement(match["owner"], OUTPUT_HEADER, match["value"], at + 1, at + 1)
        return Statement("", "?", line.strip(), at + 1, at + 1)

    def _statement(self, owner: str, key: str, value: str, at: int, end: int | None = None) -> Statement:
        """Join lines from `at` until brackets balance and a value is there.

        A line that goes on is indented deeper or closes a bracket; anything else ends a value that was cut
        off.
        """
        depth, bare = _balance(value), not value or value.isspace()
        if depth <= 0 and not bare:
            return Statement(owner, key, value, at + 1, at + 1)
        lines, indent = self.lines, _indent(self.lines[at])
        end = len(lines) if end is None else end
        last = at + 1
        while last < end and (depth > 0 or bare) and _goes_on(lines[last], indent):
            if bare and lines[last].lstrip()[0] not in _OPEN:
                break
            depth += _balance(lines[last])
            bare = False
            last += 1
        return Statement(owner, key, "\n".join([value, *lines[at + 1 : last]]), at + 1, last)

    def _deeper(self, at: int, over_empty: bool = False) -> int:
        """Return the index after the lines below `at` that are indented deeper than it."""
        lines, prefix = self.lines, " " * (_indent(self.lines[at]) + 1)
        after = at + 1
        while after < len(lines) and lines[after].startswith(prefix) and not lines[after].isspace():
            after += 1
            if over_empty:
                ahead = after
                while ahead < len(lines) and not lines[ahead].strip():
                    ahead += 1
                if ahead < len(lines) and lines[ahead].startswith(prefix):
                    after = ahead
        return after


def joined(text: str, blocks: IrBlocks) -> str:
    """Return the lines of the pieces of `text` joined again: `text` itself, or lines were lost or doubled."""
    lines = text.split("\n")
    return "\n".join(line for piece in blocks.pieces for line in lines[piece.first - 1 : piece.last])


def _goes_on(line: str, indent: int) -> bool:
    text = line.lstrip()
    return bool(text) and (len(line) - len(text) > indent or text[0] in _CLOSE)


def _balance(line: str) -> int:
    count = line.count
    return count("(") + count("[") + count("{") - count(")") - count("]") - count("}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
