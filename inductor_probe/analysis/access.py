"""How a node reaches a buffer: index, strides, innermost loop, and the pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from inductor_probe.analysis.index import parse_index
from inductor_probe.analysis.memory_format import ITEM_BYTES
from inductor_probe.analysis.strides import walk
from inductor_probe.model.ir import Block, Dim, LoopBody, MemoryDep, Op, Ref, SchedulerNode, StarDep, Value
from inductor_probe.model.layouts import Access, Pattern
from inductor_probe.model.span import Span

_LOADS = {"ops.load": 0, "ops.load_seed": 0, "ops.bucketize": 1}
_STORES = {"ops.store", "ops.store_reduction"}

Direction: TypeAlias = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class BufferAccess:
    """An access, and which buffer it reaches in which direction."""

    buffer: str
    direction: Direction
    access: Access


def touched(node: SchedulerNode) -> frozenset[str]:
    """Return the buffers that an unfused node may reach, by any name it has for them."""
    blocks = node.body.blocks if node.body else ()
    called = (op for block in blocks for op in block.ops if op.target in _LOADS or op.target in _STORES)
    return frozenset(
        [
            *(dep.name for dep in (*node.reads, *node.writes)),
            *(buffer.name for buffer in node.outputs),
            *(arg for op in called for arg in op.args[:2] if isinstance(arg, str)),
        ]
    )


def accesses(node: SchedulerNode, kernel: str | None, dtypes: dict[str, str]) -> tuple[BufferAccess, ...]:
    """Return every access of an unfused node; the same access twice is one with its count.

    Args:
        node: a node without children.
        kernel: the kernel it runs in, for the records.
        dtypes: dtype of each buffer, as far as known: decides how long a run must be to fill a cache line.
    """
    found: dict[tuple[str, Direction, str | None], BufferAccess] = {}
    for buffer, direction, access in _raw_accesses(node, kernel, dtypes):
        key = (buffer, direction, access.index)
        if key in found:
            known = found[key].access
            found[key] = BufferAccess(buffer, direction, replace(known, count=known.count + 1))
            continue
        found[key] = BufferAccess(buffer, direction, access)
    return tuple(found.values())


def _raw_accesses(
    node: SchedulerNode, kernel: str | None, dtypes: dict[str, str]
) -> Iterator[tuple[str, Direction, Access]]:
    if node.body is not None:
        body = _Body(node.body)
        for use in body.uses():
            ranges = node.body.var_ranges
            if use.direction == "write" and node.sizes:
                ranges = ranges[: len(node.sizes[0])]  # a store stands outside the reduction loops
            item = ITEM_BYTES.get(dtypes.get(use.buffer, ""), 4)
            yield (
                use.buffer,
                use.direction,
                _access(node.name, kernel, use, ranges=ranges, body=body, item=item),
            )
        return
    directed: tuple[tuple[Direction, Iterable[object]], ...] = (("read", node.reads), ("write", node.writes))
    for direction, deps in directed:
        for dep in deps:
            if isinstance(dep, MemoryDep):
                use = _Use(dep.name, direction, dep.index, node.span)
                item = ITEM_BYTES.get(dtypes.get(dep.name, ""), 4)
                yield (
                    dep.name,
                    direction,
                    _access(node.name, kernel, use, ranges=dep.ranges, body=None, item=item),
                )
            elif isinstance(dep, StarDep):
                yield (
                    dep.name,
                    direction,
                    Access(node.name, kernel, None, (), (), None, Pattern("whole_buffer")),
                )


@dataclass(frozen=True, slots=True)
class _Use:
    """A load or store in a loop body."""

    buffer: str
    direction: Direction
    index: str | None
    span: Span | None


class _Body:
    """Follows values through a loop body: which loop variables does one depend on?"""

    def __init__(self, body: LoopBody) -> None:
        self.body = body
        self.variables = frozenset(name for name, _ in body.var_ranges)
        self.blocks = {block.name: block for block in body.blocks}
        self.ops = {block.name: {op.result: op for op in block.ops} for block in body.blocks}
        self.indirect_source = {
            op.target.removeprefix("self.set_"): (block, op)
            for block in body.blocks
            for op in block.ops
            if op.target.startswith("self.set_indirect")
        }
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def uses(self) -> Iterator[_Use]:
        for block in self.body.blocks:
            for op in block.ops:
                if op.target in _LOADS:
                    yield from self._use(block, op, _LOADS[op.target], "read")
                elif op.target in _STORES:
                    yield from self._use(block, op, 0, "write")

    def _use(self, block: Block, op: Op, at: int, direction: Direction) -> Iterator[_Use]:
        buffer = op.args[at] if at < len(op.args) else None
        if isinstance(buffer, str):
            where = op.args[1] if at == 0 and len(op.args) > 1 else None
            yield _Use(buffer, direction, self._index_text(block, where), self.body.place(op))

    def _index_text(self, block: Block, value: Value) -> str | None:
        """`get_index` results name an expression; a number is an index itself (`load_seed`)."""
        if isinstance(value, int):
            return str(value)
        op = self.ops[block.name].get(value.name) if isinstance(value, Ref) else None
        if op is None or op.target != "self.get_index" or not op.args:
            return None
        return self.body.index(str(op.args[0]))

    def variables_of_indirect(self, name: str) -> frozenset[str]:
        """Return the loop variables that the value of `indirect0` depends on."""
        if name not in self.indirect_source:
            return frozenset()
        block, op = self.indirect_source[name]
        return self._of_values(block, op.args)

    def _of_values(self, block: Block, values: Iterable[Value]) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for value in values:
            if isinstance(value, Ref):
                found |= self._of_result(block, value.name)
            elif isinstance(value, tuple):
                found |= self._of_values(block, value)
        return found

    def _of_result(self, block: Block, name: str) -> frozenset[str]:
        key = (block.name, name)
        if key in self._known:
            return self._known[key]
        self._known[key] = frozenset()  # a damaged dump may refer to itself
        op = self.ops[block.name].get(name)
        found: frozenset[str] = frozenset()
        if op is not None:
            if op.target == "self.get_index" and op.args:
                found = self._of_index(self.body.index(str(op.args[0])))
            else:
                found = self._of_values(block, (*op.args, *(value for _, value in op.kwargs)))
                called = self.blocks.get(op.target.removeprefix("self."))
                if called is not None:
                    found |= self._of_values(called, (called.result,))
        self._known[key] = found
        return found

    def _of_index(self, text: str | None) -> frozenset[str]:
        if text is None:
            return frozenset()
        try:
            names = parse_index(text).names
        except ValueError:
            return frozenset()
        found = names & self.variables
        for name in names - self.variables:
            found |= self.variables_of_indirect(name)
        return found


def _access(
    node: str,
    kernel: str | None,
    use: _Use,
    *,
    ranges: tuple[tuple[str, Dim], ...],
    body: _Body | None,
    item: int,
) -> Access:
    if use.index is None:
        return Access(node, kernel, None, ranges, (), None, Pattern("whole_buffer"), span=use.span)
    try:
        index = parse_index(use.index)
    except ValueError:
        return Access(node, kernel, use.index, ranges, (), None, Pattern("unknown"), span=use.span)
    variables = frozenset(name for name, _ in ranges)
    hidden = tuple(
        (name, body.variables_of_indirect(name) & variables if body else variables)
        for name in sorted(index.names)
        if name.startswith(("indirect", "tmp"))
    )
    walked = walk(index, ranges, frozenset().union(*(names for _, names in hidden)), item)
    return Access(
        node=node,
        kernel=kernel,
        index=use.index,
        ranges=ranges,
        strides=walked.strides,
        innermost=walked.innermost,
        pattern=walked.pattern,
        indirect=tuple((name, tuple(sorted(names))) for name, names in hidden),
        contiguous=walked.contiguous,
        span=use.span,
    )
