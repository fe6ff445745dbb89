"""Splitting an IR file into nodes, fields and loop bodies, by structure alone.

The structure is the same in every torch version: a header line `name: Kind(IR)`, fields `name.key = value`
whose value may go on over several lines, `name.outputs = [` up to its `]`, layout lines, a loop body, and
`name.snodes[i] =` before each child of a fused node. Children are indented in some versions and flat in
others; only the `.snodes[` line tells whose child a node is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from inductor_probe.model.span import MOST_PROBLEMS

_HEADER = re.compile(r"\s*(?P<name>\w+): (?P<kind>\w+)\((?P<ir>.*)\)")
_SNODE = re.compile(r"\s*(?P<parent>\w+)\.snodes\[\d+\] =\s*")
_FIELD = re.compile(r"\s*(?P<owner>\w+)\.(?P<key>[\w.]+) = ?(?P<value>.*)")
_LAYOUT = re.compile(r"\s*(?P<owner>\w+)_layout = (?P<value>.*)")
_OUTPUT = re.compile(r"\s*(?P<owner>\w+): (?P<value>\w+)")
_BODY = re.compile(r"\s*class (?P<owner>\w+)_loop_body:")
_DEVICE_CODE = re.compile(r"\s*(?P<owner>\w+) (?P<what>Triton code:|Unfinalized multi template buffer)")
_DEEPEST = 50
"""Nodes in nodes: torch fuses into groups, and puts groups into a foreach node, which is three."""
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
class IrBlocks:
    """The nodes of a file, the lines (number, text) that belong to no known form, and every piece.

    `stopped` is the first line that was not read, since too many before it were in no known form. A piece is
    what consecutive lines were taken for, and the last of them; the next one begins behind it.
    """

    nodes: list[NodeBlock] = field(default_factory=list)
    unread: list[tuple[int, str]] = field(default_factory=list)
    pieces: list[tuple[str, int]] = field(default_factory=list)
    stopped: int | None = None


def split(text: str) -> IrBlocks:
    """Split the text of an IR file. Never fails: what has no known form is in `unread`."""
    return _Splitter(text.split("\n")).split()


class _Splitter:
    """Walks the lines once; `stack` holds the open node and the fused nodes around it.

    Nearly every field begins as the one before: `op3.`, or `    buf3.`. What such a beginning stands for is
    kept, so that most lines are told without a pattern, which would take half of the time of all reading.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.blocks = IrBlocks()
        self.stack: list[NodeBlock] = []
        self.expects_child = False
        self.beginning = "\n"  # which no line begins with
        self.owner = ""
        self.keys: set[str] = set()

    def split(self) -> IrBlocks:
        at, end = 0, len(self.lines)
        take, pieces = self._take, self.blocks.pieces
        while at < end:
            what, after = take(at)
            pieces.append((what, after))
            if what in ("unread", "outputs cut off"):
                self.blocks.unread.append((at + 1, self.lines[at]))
            at = after
            if len(self.blocks.unread) >= MOST_PROBLEMS and at < end:
                pieces.append(("not read", end))
                self.blocks.stopped, at = at + 1, end
        self._leave(0, end)
        return self.blocks

    def _leave(self, depth: int, at: int) -> None:
        """Close the nodes above `depth`: they end before line index `at`."""
        for node in self.stack[depth:]:
            node.last = at
        del self.stack[depth:]

    def _take(self, at: int) -> tuple[str, int]:
        """Take what begins at line index `at`; return what it is and the index after it."""
        line = self.lines[at]
        if not line or line.isspace():
            self._leave(0, at)
            self.expects_child = False
            return "empty", at + 1
        is_start = not self.stack or (self.expects_child and len(self.stack) < _DEEPEST)
        if is_start and (match := _HEADER.fullmatch(line)):
            node = NodeBlock(match["name"], match["kind"], match["ir"], at + 1, at + 1)
            (self.stack[-1].children if self.stack else self.blocks.nodes).append(node)
            self.stack.append(node)
            self.expects_child = False
            return "header", at + 1
        if not self.stack:
            return "unread", at + 1
        return self._take_part(self.stack[-1], line, at)

    def _take_child_mark(self, parent: str, at: int) -> tuple[str, int]:
        depth = next(
            (depth for depth in range(len(self.stack), 0, -1) if self.stack[depth - 1].name == parent), 0
        )
        if not depth:
            return "unread", at + 1
        self._leave(depth, at)
        self.expects_child = True
        return "child", at + 1

    def _take_part(self, node: NodeBlock, line: str, at: int) -> tuple[str, int]:
        """Take the layout, field, outputs block, child, loop body or device code at `at` into `node`."""
        if "_layout = " in line and (match := _LAYOUT.fullmatch(line)):
            statement = self._statement(match["owner"], LAYOUT_LINE, match["value"], at)
            node.statements.append(statement)
            return "layout", statement.last
        if found := self._field(line):
            key, value = found
            if self.owner != node.name:
                return "unread", at + 1
            if key == "outputs":
                return self._take_outputs(node, at)
            statement = self._statement(self.owner, key, value, at)
            node.statements.append(statement)
            return "field", statement.last
        if ".snodes[" in line and (match := _SNODE.fullmatch(line)):
            return self._take_child_mark(match["parent"], at)
        if _BODY.fullmatch(line) and not node.body:
            after = self._deeper(at)
            node.body, node.body_first = self.lines[at:after], at + 1
            return "body", after
        if _DEVICE_CODE.fullmatch(line):
            after = self._deeper(at, over_empty=True)
            node.device_code = self.lines[at:after]
            return "device code", after
        return "unread", at + 1

    def _field(self, line: str) -> tuple[str, str] | None:
        """Return key and value of `owner.key = value`, and keep its owner; None for any other line."""
        if line.startswith(self.beginning):
            key, equals, value = line[len(self.beginning) :].partition(" = ")
            if equals and key in self.keys:
                return key, value
        match = _FIELD.fullmatch(line)
        if match is None:
            return None
        self.owner, self.beginning = match["owner"], line[: match.start("key")]
        self.keys.add(match["key"])
        return match["key"], match["value"]

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
        if found := self._field(line):
            return self._statement(self.owner, *found, at, end)
        if match := _OUTPUT.fullmatch(line):
            return Statement(match["owner"], OUTPUT_HEADER, match["value"], at + 1, at + 1)
        return Statement("", "?", line.strip(), at + 1, at + 1)

    def _statement(self, owner: str, key: str, value: str, at: int, end: int | None = None) -> Statement:
        """Join lines from `at` until brackets balance and a value is there.

        A line that goes on is indented deeper or closes a bracket; anything else ends a value that was cut
        off.
        """
        lines = self.lines
        end = len(lines) if end is None else end
        last = at + 1
        if last >= end or lines[last][:1].isidentifier():
            return Statement(owner, key, value, last, last)
        indent = _indent(lines[at])
        depth, bare = _balance(value), not value or value.isspace()
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
        while after < len(lines):
            line = lines[after]
            if not line.startswith(prefix) or line.isspace():
                break
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
    ends = [0, *(last for _, last in blocks.pieces)]
    return "\n".join(line for first, last in pairwise(ends) for line in lines[first:last])


def _goes_on(line: str, indent: int) -> bool:
    text = line.lstrip()
    return bool(text) and (len(line) - len(text) > indent or text[0] in _CLOSE)


def _balance(line: str) -> int:
    count = line.count
    return count("(") + count("[") + count("{") - count(")") - count("]") - count("}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
