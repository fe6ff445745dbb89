"""How a node reaches a buffer, by the IR: index, strides, innermost loop, and the pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import prod
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.index import INDIRECT, PIECEWISE, Index, parse_index, steady_run
from inductor_probe.analysis.memory_format import ITEM_BYTES
from inductor_probe.model.ir import Block, Dim, LoopBody, MemoryDep, Op, Ref, SchedulerNode, StarDep, Value
from inductor_probe.model.layouts import Access, Pattern
from inductor_probe.model.span import Span

CACHE_LINE_BYTES = 64
"""A run shorter than this does not fill one cache line, nor one AVX-512 register."""
# Methods of `OpsHandler` (torch/_inductor/ops_handler.py) that name a buffer, and the place of its name.
LOADS = {"ops.load": 0, "ops.load_seed": 0, "ops.bucketize": 1}
STORES = {"ops.store": 0, "ops.store_reduction": 0}

Direction: TypeAlias = Literal["read", "write"]
Ranges: TypeAlias = tuple[tuple[str, Dim], ...]


def touched(node: SchedulerNode) -> frozenset[str]:
    """Return the buffers that an unfused node may reach, by any name it has for them."""
    calls = (op for op in node.ops if op.target in LOADS or op.target in STORES)
    names = {dep.name for dep in (*node.reads, *node.writes)} | {buffer.name for buffer in node.outputs}
    return frozenset(names | {arg for op in calls for arg in op.args[:2] if isinstance(arg, str)})


def accesses(
    node: SchedulerNode, kernel: str | None, dtypes: dict[str, str]
) -> Iterator[tuple[str, Direction, Access]]:
    """Yield every access of an unfused node with its buffer; the same access twice is one with its count.

    `dtypes` of buffers, as far as known, decide how long a run must be to fill a cache line.
    """
    body = _Body(node.body) if node.body else None
    counts: dict[tuple[str, Direction, str | None], int] = {}
    first: dict[tuple[str, Direction, str | None], Access] = {}
    for use in body.uses() if body else _uses_of_deps(node):
        key = (use.buffer, use.direction, use.index)
        counts[key] = counts.get(key, 0) + 1
        if key in first:
            continue
        ranges = use.ranges
        if body and use.direction == "write" and node.sizes:
            ranges = ranges[: len(node.sizes[0])]  # a store stands outside the reduction loops
        access = Access(
            node.name, kernel, use.index, ranges, (), None, Pattern("whole_buffer"), span=use.span
        )
        if use.index is not None:
            access = _walked(access, use.index, body, ITEM_BYTES.get(dtypes.get(use.buffer, ""), 4))
        first[key] = access
    for (buffer, direction, _), access in first.items():
        yield buffer, direction, replace(access, count=counts[buffer, direction, access.index])


class _Use(Struct, frozen=True):
    """A load or store in a loop body, or a dependency of a node without one."""

    buffer: str
    direction: Direction
    index: str | None
    ranges: Ranges
    span: Span | None


def _uses_of_deps(node: SchedulerNode) -> Iterator[_Use]:
    directed: tuple[tuple[Direction, Iterable[object]], ...] = (("read", node.reads), ("write", node.writes))
    for direction, deps in directed:
        for dep in deps:
            if isinstance(dep, MemoryDep):
                yield _Use(dep.name, direction, dep.index, dep.ranges, node.span)
            elif isinstance(dep, StarDep):
                yield _Use(dep.name, direction, None, (), None)


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
        self._variables_of: dict[tuple[str, str], frozenset[str]] = {}

    def uses(self) -> Iterator[_Use]:
        for block in self.body.blocks:
            for op in block.ops:
                place = LOADS.get(op.target, STORES.get(op.target))
                buffer = op.args[place] if place is not None and place < len(op.args) else None
                if isinstance(buffer, str):
                    index = self._index_text(block, op.args[1]) if not place and len(op.args) > 1 else None
                    direction: Direction = "read" if op.target in LOADS else "write"
                    yield _Use(buffer, direction, index, self.body.var_ranges, self.body.place(op))

    def _index_text(self, block: Block, value: Value) -> str | None:
        """`get_index` results name an expression; a number is an index itself (`load_seed`)."""
        if isinstance(value, int):
            return str(value)
        op = self.ops[block.name].get(value.name) if isinstance(value, Ref) else None
        return self._index_of(op) if op is not None and op.target == "self.get_index" else None

    def _index_of(self, op: Op) -> str | None:
        return self.body.index(str(op.args[0])) if op.args else None

    def variables_of_indirect(self, name: str) -> frozenset[str]:
        """Return the loop variables that the value of `indirect0` depends on."""
        if name not in self.indirect_source:
            return frozenset()
        block, op = self.indirect_source[name]
        return self._of_values(block, op.args)

    def _of_values(self, block: Block, values: Iterable[Value]) -> frozenset[str]:
        variables: frozenset[str] = frozenset()
        for value in values:
            if isinstance(value, Ref):
                variables |= self._of_result(block, value.name)
            elif isinstance(value, tuple):
                variables |= self._of_values(block, value)
        return variables

    def _of_result(self, block: Block, name: str) -> frozenset[str]:
        key = (block.name, name)
        if key in self._variables_of:
            return self._variables_of[key]
        self._variables_of[key] = frozenset()  # a damaged dump may refer to itself
        op = self.ops[block.name].get(name)
        if op is not None and op.target == "self.get_index" and op.args:
            self._variables_of[key] = self._of_index(self._index_of(op))
        elif op is not None:
            variables = self._of_values(block, (*op.args, *(value for _, value in op.kwargs)))
            called = self.blocks.get(op.target.removeprefix("self."))
            if called is not None:
                variables |= self._of_values(called, (called.result,))
            self._variables_of[key] = variables
        return self._variables_of[key]

    def _of_index(self, text: str | None) -> frozenset[str]:
        try:
            names = parse_index(text).names if text is not None else frozenset()
        except ValueError:
            return frozenset()
        indirect = (self.variables_of_indirect(name) for name in names - self.variables)
        return (names & self.variables).union(*indirect)


def _walked(access: Access, text: str, body: _Body | None, item: int) -> Access:
    """Return an access with how its loops walk memory, by its index."""
    try:
        index = parse_index(text)
    except ValueError:
        return replace(access, pattern=Pattern("unknown"))
    variables = frozenset(name for name, _ in access.ranges)
    indirect = {
        name: body.variables_of_indirect(name) & variables if body else variables
        for name in sorted(index.names)
        if name.startswith(("indirect", "tmp"))
    }
    strides, innermost, pattern, contiguous = _walk(
        index, access.ranges, frozenset().union(*indirect.values()), item
    )
    return replace(
        access,
        strides=strides,
        innermost=innermost,
        pattern=pattern,
        indirect=tuple((name, tuple(sorted(names))) for name, names in indirect.items()),
        contiguous=contiguous,
    )


@lru_cache(maxsize=8192)  # the layers of a network walk alike
def _walk(
    index: Index, ranges: Ranges, reached: frozenset[str], item: int
) -> tuple[Ranges, str | None, Pattern, bool | None]:
    """Follow the loops in `ranges`, outermost first: return the strides, innermost, pattern and contiguous.

    `reached` are the variables that indirect indices depend on, `item` the bytes of an element. For index
    `p0 + 32*p1` over p0 < 32, p1 < 8 and float32: strides 1 and 32, innermost p1, strided by 32.
    """
    steps = dict(ranges)
    strides = {name: index.stride(name) for name, _ in ranges}
    strides |= {name: INDIRECT for name, stride in strides.items() if stride == 0 and name in reached}
    looping = [name for name, length in ranges if length != 1]
    if not looping:
        return tuple(strides.items()), None, Pattern("scalar"), True
    if looping[-1] in reached:
        return tuple(strides.items()), looping[-1], Pattern("indirect"), False
    return tuple(strides.items()), looping[-1], *_pattern(index, steps, strides, looping, item)


def _pattern(
    index: Index, steps: dict[str, Dim], strides: dict[str, Dim], looping: list[str], item: int
) -> tuple[Pattern, bool | None]:
    """Return the pattern, and whether the innermost loop walks memory without jumps."""
    *outer, innermost = looping
    backwards = tuple(name for name in outer if str(strides[name]).startswith("-"))
    stride, length = strides[innermost], steps[innermost]
    run = length
    if stride == PIECEWISE:
        steady = steady_run(index, innermost, length) if isinstance(length, int) else None
        if steady is None:
            return Pattern("piecewise"), None
        stride, run = steady
    if stride == 0:
        return Pattern("broadcast", reversed_loops=backwards), True
    if stride != 1:
        return Pattern(
            "reversed" if str(stride).startswith("-") else "strided", stride, None, backwards
        ), False
    if run == length:  # the run goes on over outer loops whose stride is where the inner ones end
        for name in reversed(outer):
            if not isinstance(run, int) or strides[name] != run or not isinstance(steps[name], int):
                break
            run *= int(steps[name])
    total = prod(count for name in looping if isinstance(count := steps[name], int))
    if isinstance(run, int) and run * item < CACHE_LINE_BYTES and run < total:
        return Pattern("contiguous", 1, run, backwards), False
    return Pattern("contiguous", 1, None, backwards), True
