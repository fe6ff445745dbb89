"""Splitting an IR file into nodes, fields and loop bodies, by structure alone.

The structure is the same in every torch version (torch/_inductor/debug.py, DebugFormatter._write_ir): for
each node a header line `name: Kind(IR)`, fields `name.key = value` whose value may go on over several lines,
`name.outputs = [` up to its `]`, layout lines, a loop body, and `name.snodes[i] =` before each child of a
fused node:

    op0_op1: FusedSchedulerNode(SchedulerNode,SchedulerNode)
    op0_op1.writes = [MemoryDep('buf0', c0, {c0: 8}), MemoryDep('buf1', c0, {c0: 8})]
    op0_op1.snodes[0] =
    op0: SchedulerNode(ComputedBuffer)
    op0.writes = [MemoryDep('buf0', c0, {c0: 8})]
    class op0_loop_body:
        var_ranges = {p0: 8}
    op0_op1.snodes[1] =
    op1: SchedulerNode(ComputedBuffer)

Children are indented until torch 2.4, and flat since: only the `.snodes[` line says whose child a node is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from inductor_probe.model.span import MOST_PROBLEMS
from inductor_probe.reader.values import balance

# torch/_inductor/scheduler.py: BaseSchedulerNode.debug_str and FusedSchedulerNode.debug_str
_HEADER = re.compile(r"\s*(?P<name>\w+): (?P<kind>\w+)\((?P<ir>.*)\)")
_FIELD = re.compile(r"\s*(?P<owner>\w+)\.(?P<key>[\w.]+) = ?(?P<value>.*)")
_SNODE = re.compile(r"\s*(?P<parent>\w+)\.snodes\[\d+\] =\s*")  # FusedSchedulerNode.debug_str_extra
_LAYOUT = re.compile(r"\s*(?P<owner>\w+)_layout = (?P<value>.*)")  # SchedulerNode.debug_str_extra, torch 2.4
_OUTPUT = re.compile(r"\s*(?P<owner>\w+): (?P<value>\w+)")  # SchedulerBuffer.debug_str, torch 2.5
_BODY = re.compile(r"\s*class (?P<owner>\w+)_loop_body:")  # SchedulerNode.debug_str_extra
# torch/_inductor/codegen/triton.py, debug_triton_code
_DEVICE_CODE = re.compile(r"\s*\w+ (?:Triton code:|Unfinalized multi template buffer)")
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
    children: list[NodeBlock] = field(default_factory=list)


@dataclass(slots=True)
class IrBlocks:
    """The nodes of a file, the lines (number, text) that belong to no known form, and every piece.

    `stopped` is the first line that was not read, since too many before it were in no known form. A piece is
    what consecutive lines are, and the last of them; the next one begins behind it.
    """

    nodes: list[NodeBlock] = field(default_factory=list)
    unread: list[tuple[int, str]] = field(default_factory=list)
    pieces: list[tuple[str, int]] = field(default_factory=list)
    stopped: int | None = None


def split(text: str) -> IrBlocks:
    """Split the text of an IR file. Never fails: what has no known form is in `unread`.

    What comes of it is not to be changed: it may be returned again for the same text.
    """
    return _split_again(text) if len(text) <= _LARGEST_AGAIN else _Splitter(text.split("\n")).split()


@lru_cache(maxsize=2)
def _split_again(text: str) -> IrBlocks:
    """Split a text that comes again at once: that before fusion and that after may be the same."""
    return _Splitter(text.split("\n")).split()


_LARGEST_AGAIN = 1_000_000
"""Characters of an IR file whose blocks are held until two others were split."""


class _Splitter:
    """Walks the lines once; `stack` holds the open node and the fused nodes around it.

    Of the lines above, `op0_op1.snodes[1] =` finds the stack [op0_op1, op0]: it closes what lies above
    op0_op1, and the next header is a child of that.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.blocks = IrBlocks()
        self.stack: list[NodeBlock] = []
        self.expects_child = False

    def split(self) -> IrBlocks:
        index, end = 0, len(self.lines)
        take, pieces = self._take, self.blocks.pieces
        while index < end:
            what, after = take(index)
            pieces.append((what, after))
            if what in ("unread", "outputs cut off"):
                self.blocks.unread.append((index + 1, self.lines[index]))
                if len(self.blocks.unread) >= MOST_PROBLEMS and after < end:
                    pieces.append(("not read", end))
                    self.blocks.stopped, after = after + 1, end
            index = after
        self._leave(0, end)
        return self.blocks

    def _leave(self, depth: int, index: int) -> None:
        """Close the nodes above `depth`: they end before line `index`."""
        for node in self.stack[depth:]:
            node.last = index
        del self.stack[depth:]

    def _take(self, index: int) -> tuple[str, int]:
        """Take what begins at line `index`; return what it is and the index after it."""
        line = self.lines[index]
        if not line or line.isspace():
            self._leave(0, index)
            self.expects_child = False
            return "empty", index + 1
        may_start = not self.stack or (self.expects_child and len(self.stack) < _DEEPEST)
        if may_start and (match := _HEADER.fullmatch(line)):
            node = NodeBlock(match["name"], match["kind"], match["ir"], index + 1, index + 1)
            (self.stack[-1].children if self.stack else self.blocks.nodes).append(node)
            self.stack.append(node)
            self.expects_child = False
            return "header", index + 1
        return self._take_part(self.stack[-1], line, index) if self.stack else ("unread", index + 1)

    def _take_part(self, node: NodeBlock, line: str, index: int) -> tuple[str, int]:
        """Take the layout, field, outputs block, child, loop body or device code at `index` into `node`."""
        if "_layout = " in line and (match := _LAYOUT.fullmatch(line)):
            node.statements.append(self._statement(match["owner"], LAYOUT_LINE, match["value"], index))
            return "layout", node.statements[-1].last
        if match := _FIELD.fullmatch(line):
            owner, key, value = match.groups()
            if owner != node.name:
                return "unread", index + 1
            if key == "outputs":
                return self._take_outputs(node, index)
            node.statements.append(self._statement(owner, key, value, index))
            return "field", node.statements[-1].last
        if ".snodes[" in line and (match := _SNODE.fullmatch(line)):
            names = [parent.name for parent in self.stack]
            if match["parent"] not in names:
                return "unread", index + 1
            self._leave(len(names) - names[::-1].index(match["parent"]), index)
            self.expects_child = True
            return "child", index + 1
        if _BODY.fullmatch(line) and not node.body:
            after = self._deeper(index)
            node.body, node.body_first = self.lines[index:after], index + 1
            return "body", after
        if _DEVICE_CODE.fullmatch(line):
            return "device code", self._deeper(index, over_empty=True)
        return "unread", index + 1

    def _take_outputs(self, node: NodeBlock, index: int) -> tuple[str, int]:
        after = self._deeper(index)
        inside = index + 1
        while inside < after:
            node.outputs.append(self._output_statement(inside, after))
            inside = node.outputs[-1].last
        closed = after < len(self.lines) and self.lines[after].strip() == "]"
        return ("outputs", after + 1) if closed else ("outputs cut off", after)

    def _output_statement(self, index: int, end: int) -> Statement:
        line = self.lines[index]
        if match := _FIELD.fullmatch(line):
            return self._statement(match["owner"], match["key"], match["value"], index, end)
        if match := _OUTPUT.fullmatch(line):
            return Statement(match["owner"], OUTPUT_HEADER, match["value"], index + 1, index + 1)
        return Statement("", "?", line.strip(), index + 1, index + 1)

    def _statement(self, owner: str, key: str, value: str, index: int, end: int | None = None) -> Statement:
        """Join lines from `index` until brackets balance and a value is there.

        `pformat` breaks lists of more than 80 characters: `op1.met_dependencies = ` and
        `    [   StarDep(name='arg0_1', mode=None),`, `        StarDep(name='arg2_1', mode=None)]`. A line
        that goes on is indented deeper or closes a bracket; anything else ends a value that was cut off.
        """
        lines = self.lines
        end = len(lines) if end is None else end
        last = index + 1
        if last >= end or lines[last][:1].isidentifier():
            return Statement(owner, key, value, last, last)
        indent = _indent(lines[index])
        depth, is_empty = balance(value), not value or value.isspace()
        while last < end and (depth > 0 or is_empty) and _goes_on(lines[last], indent):
            if is_empty and lines[last].lstrip()[0] not in _OPEN:
                break
            depth += balance(lines[last])
            is_empty = False
            last += 1
        return Statement(owner, key, "\n".join([value, *lines[index + 1 : last]]), index + 1, last)

    def _deeper(self, index: int, over_empty: bool = False) -> int:
        """Return the index after the lines below `index` that are indented deeper than it."""
        lines, prefix = self.lines, " " * (_indent(self.lines[index]) + 1)
        after = index + 1
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


def _goes_on(line: str, indent: int) -> bool:
    text = line.lstrip()
    return bool(text) and (len(line) - len(text) > indent or text[0] in _CLOSE)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
