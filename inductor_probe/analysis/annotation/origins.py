"""Which node each line of a kernel's text computes for.

What is proved, and how:

* A line that writes through a pointer belongs to the node that writes the buffer which the launch passes.
* A line that computes a value belongs to the first node whose result the value flows into: inductor makes a
  value when a node first asks for it. A node whose result stays inside the kernel writes through no pointer;
  it and the node that its result flows into remain candidates together.
* Candidates are distinguished by what they read, by the functions and constants that their loop bodies hold,
  and by order: nodes are generated one after the other, and values are numbered as they are made.

What is left with several candidates is ambiguous. Sets of nodes are bits of a number: bit 3 stands for the
fourth node. For example, where op0 (buf0 = sin(arg0), inside) flows into op1 (buf1 = buf0 + 1, stored):

    auto tmp0 = in_ptr0[x0];         {op0, op1}, of which op0 alone reads arg0     -> op0
    auto tmp1 = std::sin(tmp0);      {op0, op1}, of which op0 alone has a sin      -> op0
    auto tmp3 = tmp1 + tmp2;         {op0, op1}, after tmp1 in the order of values -> op0 or op1, AMBIGUOUS
    out_ptr0[x0] = tmp3;             writes buf1                                   -> op1
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from inductor_probe.analysis.access import STORES
from inductor_probe.analysis.annotation.statements import Statement
from inductor_probe.model.code import PointerUse
from inductor_probe.model.ir import Ref, SchedulerNode
from inductor_probe.model.record import grouped

# What generated code calls, and the operations that it may be generated for. Only those that identify one:
# maxima, minima and selections come from clamps, masks and reductions alike.
_CALLED: dict[str, frozenset[str]] = {
    **{
        name: frozenset((name,))
        for name in (
            "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "digamma",
            "erf", "erfc", "erfinv", "expm1", "fmod", "hypot", "lgamma", "log", "log10", "log1p", "log2",
            "pow", "rsqrt", "sin", "sinh", "tan", "tanh",
        )
    },
    "exp": frozenset(("exp", "expm1", "sigmoid")),
    "sqrt": frozenset(("sqrt", "rsqrt")),
    "sqrt_rn": frozenset(("sqrt", "rsqrt")),
    "floor": frozenset(("floor", "floor_to_int", "floordiv")),
    "normalized_rand_cpu": frozenset(("rand",)),
    "randn_cpu": frozenset(("randn",)),
}  # fmt: skip
_REDUCTION = "a reduction"
_REDUCING = frozenset((
    "sum", "max2", "min2", "prod", "any", "argmax", "argmin", "xor_sum", "vec_reduce_all", "welford",
    "welford_combine", "welford_reduce", "welford_vec_reduce_all", "online_softmax_combine",
    "online_softmax_reduce", "max_with_index", "min_with_index",
))  # fmt: skip
"""Functions that only reductions call."""


class LineOrigin(Struct, frozen=True):
    """What is known of the statement that starts at a line.

    Attributes:
        nodes: the node it belongs to; several when it is not known which.
        shared: further nodes that ask for its value.
        uses: what it reads and writes through pointers, with the names of the buffers there.
        calls: functions it calls.
    """

    nodes: tuple[str, ...]
    shared: tuple[str, ...]
    uses: tuple[tuple[PointerUse, tuple[str, ...]], ...]
    calls: frozenset[str]

    @property
    def concerned(self) -> tuple[str, ...]:
        """The nodes that it may belong to, and those that ask for its value."""
        return (*self.nodes, *self.shared)


def line_origins(
    statements: Sequence[Statement],
    uses: Sequence[PointerUse],
    leaves: Sequence[SchedulerNode],
    buffers: Mapping[str, tuple[str, ...]],
) -> dict[int, LineOrigin]:
    """Return what is known of each statement, by its first line.

    `leaves` are the unfused nodes that a launch runs, in order, and `buffers` the names of the buffers behind
    each pointer, that of the launch first.
    """
    return _Origins(statements, uses, _Nodes(leaves, buffers)).lines()


class _Nodes:
    """The nodes of a launch, and what their records prove about lines of the kernel's text.

    `needs` holds for each node those whose results it needs, directly or not; `copies` are the nodes that
    store what they load, as it is.
    """

    def __init__(self, leaves: Sequence[SchedulerNode], buffers: Mapping[str, tuple[str, ...]]) -> None:
        self.leaves = leaves
        self.buffers = buffers
        self.writers: dict[str, int] = {}
        self.readers: dict[str, int] = {}
        self._producer = {buffer.name: node for node, leaf in enumerate(leaves) for buffer in leaf.outputs}
        self._operations = [_operations(leaf) for leaf in leaves]
        self.copies = _union(1 << node for node, leaf in enumerate(leaves) if _only_copies(leaf))
        self.needs: list[int] = []
        for node, leaf in enumerate(leaves):
            for name in _written(leaf):
                self.writers[name] = self.writers.get(name, 0) | 1 << node
            for dep in leaf.reads:
                self.readers[dep.name] = self.readers.get(dep.name, 0) | 1 << node
            sources = (self._producer.get(dep.name, node) for dep in leaf.reads)
            self.needs.append(_union(1 << source | self.needs[source] for source in sources if source < node))

    def names(self, mask: int) -> tuple[str, ...]:
        return tuple(self.leaves[node].name for node in _bits(mask))

    def writing(self, use: PointerUse) -> int:
        """Return the nodes that write what is behind a pointer."""
        return _union(self.writers.get(name, 0) for name in self.buffers.get(use.pointer, ()))

    def reading(self, uses: Iterable[PointerUse]) -> list[int]:
        """Return the nodes that read what is behind the pointer of each use."""
        return [
            _union(self.readers.get(name, 0) for name in self.buffers.get(use.pointer, ())) for use in uses
        ]

    def reading_result(self, node: int) -> int:
        """Return the nodes that read what `node` writes."""
        return _union(self.readers.get(buffer.name, 0) for buffer in self.leaves[node].outputs)

    def inside(self, node: int, stored: int) -> int:
        """Return the nodes that `node` needs and whose results stay inside the kernel: not in `stored`."""
        mask = 0
        waiting = [node]
        while waiting:
            for dep in self.leaves[waiting.pop()].reads:
                source = self._producer.get(dep.name)
                if source is not None and source != node and not (mask | stored) >> source & 1:
                    mask |= 1 << source
                    waiting.append(source)
        return mask

    def with_operations(self, mask: int, statement: Statement) -> int:
        """Keep the nodes whose bodies hold the functions that a line calls, and its constants."""
        if mask.bit_count() < 2:
            return mask
        operations: list[frozenset[str | float]] = [
            _CALLED[call] for call in statement.calls if call in _CALLED
        ]
        operations += [frozenset((number,)) for number in statement.constants]
        if statement.accumulates or statement.calls & _REDUCING:
            operations.append(frozenset((_REDUCTION,)))
        nodes = list(_bits(mask))
        for any_of in operations:
            nodes = [node for node in nodes if any_of & self._operations[node]] or nodes
        return _union(1 << node for node in nodes)

    def buffer_names(self, use: PointerUse, mask: int) -> tuple[str, ...]:
        """Return what a pointer stands for in a line of one node, of the buffers that shared the memory."""
        names = self.buffers.get(use.pointer, ())
        if len(names) < 2 or mask.bit_count() != 1:
            return names
        leaf = self.leaves[mask.bit_length() - 1]
        of_leaf = {dep.name for dep in leaf.reads} if use.kind == "load" else set(_written(leaf))
        return tuple(name for name in names if name in of_leaf) or names


def _written(leaf: SchedulerNode) -> list[str]:
    return [name for buffer in leaf.outputs for name in (buffer.name, *buffer.mutations)]


def _operations(leaf: SchedulerNode) -> frozenset[str | float]:
    """Return the names of the operations of a node, and the constants in it."""
    constants = [op.args[0] for op in leaf.ops if op.target == "ops.constant" and op.args]
    operations: set[str | float] = {op.target.removeprefix("ops.") for op in leaf.ops}
    operations.update(
        float(value) if abs(value) <= sys.float_info.max else math.inf
        for value in constants
        if isinstance(value, int | float)
    )
    return frozenset(operations | ({_REDUCTION} if "reduction" in operations else set()))


def _only_copies(leaf: SchedulerNode) -> bool:
    loads = {op.result for op in leaf.ops if op.target == "ops.load"}
    stored = (value for op in leaf.ops if op.target in STORES for value in op.args[2:3])
    return leaf.body is None or any(isinstance(value, Ref) and value.name in loads for value in stored)


class _Origins:
    def __init__(self, statements: Sequence[Statement], uses: Sequence[PointerUse], nodes: _Nodes) -> None:
        self._nodes = nodes
        first_lines = {
            line: statement.line
            for statement in statements
            for line in range(statement.line, statement.last + 1)
        }
        self._uses: dict[int, list[PointerUse]] = {}
        for use in uses:
            self._uses.setdefault(first_lines.get(use.line, use.line), []).append(use)
        known = {statement.line for statement in statements}
        bare = (Statement(line, line) for line in self._uses if line not in known)
        self._statements = sorted((*statements, *bare), key=lambda statement: statement.line)
        self._stores = self._writing_nodes()
        self._vague = _union(mask for mask in self._stores.values() if mask.bit_count() > 1)
        self._stored = _union(mask for mask in self._stores.values() if mask.bit_count() == 1)
        self._inside: dict[int, int] = {}
        self._loaded = {
            value: readers
            for statement in self._statements
            for readers in nodes.reading(self._loads(statement))
            if readers
            for value in statement.defines
        }

    def lines(self) -> dict[int, LineOrigin]:
        """Put together what is known of each line."""
        reached = self._reached()
        candidates = {statement.line: self._candidates(statement, reached) for statement in self._statements}
        self._narrow_local_buffers(candidates)
        self._narrow_by_order(candidates)
        self._follow_uses(candidates)
        origins = {}
        for statement in self._statements:
            mask = candidates[statement.line]
            uses = self._uses.get(statement.line, ())
            origins[statement.line] = LineOrigin(
                self._nodes.names(mask),
                self._nodes.names(self._sharing(statement, mask, reached)),
                tuple((use, self._nodes.buffer_names(use, mask)) for use in uses),
                statement.calls,
            )
        return origins

    def _loads(self, statement: Statement) -> list[PointerUse]:
        return [use for use in self._uses.get(statement.line, ()) if use.kind == "load"]

    def _writing_nodes(self) -> dict[int, int]:
        """Return the nodes that may write in each line that writes; one where it is proved."""
        statements = {statement.line: statement for statement in self._statements}
        writing: dict[int, int] = {}
        shared: dict[str, list[int]] = {}
        for line in sorted(self._uses):
            for use in self._uses[line]:
                if use.kind != "load":
                    mask = self._nodes.writing(use)
                    writing[line] = writing.get(line, 0) | mask
                    if mask.bit_count() > 1:
                        shared.setdefault(use.pointer, []).append(line)
        for pointer, lines in shared.items():
            newest = self._nodes.writers.get(self._nodes.buffers[pointer][0], 0)
            writing.update(_by_unit([statements[line] for line in lines], writing[lines[0]], newest))
        return writing

    def _reached(self) -> dict[int, int]:
        """Return the nodes whose stores each value flows into: a backward dataflow analysis."""
        reached: dict[int, int] = {}
        changed = True
        while changed:  # once more for each loop that an accumulator goes around
            changed = False
            for statement in reversed(self._statements):
                mask = self._stores.get(statement.line, 0) | self._flows(statement, reached)
                for value in statement.uses:
                    if mask & ~reached.get(value, 0):
                        reached[value] = reached.get(value, 0) | mask
                        changed = True
        return reached

    def _flows(self, statement: Statement, reached: dict[int, int]) -> int:
        return _union(reached.get(value, 0) for value in statement.defines)

    def _candidates(self, statement: Statement, reached: dict[int, int]) -> int:
        if statement.line in self._stores:
            return self._stores[statement.line]
        mask = 0
        for node in _bits(self._flows(statement, reached)):
            if node not in self._inside:
                self._inside[node] = self._nodes.inside(node, self._stored)
            mask |= 1 << node | self._inside[node]
            if not self._vague >> node & 1:
                break  # it is certain that this one asks for the value: later ones need not make it
        # Candidates read what the line loads, and what the values it uses were loaded from. The result of a
        # node that only copies is the loaded value itself: then its users need not read that.
        readers = self._nodes.reading(self._loads(statement))
        if not mask & self._nodes.copies:
            readers += [self._loaded[value] for value in statement.uses if value in self._loaded]
        for reading in readers:
            mask = mask & reading or mask
        return self._nodes.with_operations(mask, statement)

    def _narrow_local_buffers(self, candidates: dict[int, int]) -> None:
        """Whose result a local buffer holds, that node fills it; who reads that result reads it."""
        readers: dict[int, int] = {}
        for statement in self._statements:
            if statement.fills:
                mask = candidates[statement.line] & ~self._stored or candidates[statement.line]
                candidates[statement.line] = mask
                if mask.bit_count() == 1:
                    readers[statement.defines[0]] = self._nodes.reading_result(mask.bit_length() - 1)
        for statement in self._statements:
            for value in statement.uses:
                if value in readers and not statement.fills:
                    mask = candidates[statement.line]
                    candidates[statement.line] = mask & readers[value] or mask

    def _narrow_by_order(self, candidates: dict[int, int]) -> None:
        """Of two values of a group, the one with the lower number is of no later node."""
        ordered = (one for one in self._statements if one.order is not None and candidates[one.line])
        for group in grouped(ordered, lambda statement: statement.group).values():
            group.sort(key=lambda statement: statement.order or 0)
            narrowed = _rising([candidates[statement.line] for statement in group])
            if narrowed is not None:
                candidates.update(zip((statement.line for statement in group), narrowed, strict=True))

    def _follow_uses(self, candidates: dict[int, int]) -> None:
        """What flows into no store, a check of bounds, belongs where the last value that it uses was made."""
        made: dict[int, int] = {}
        for statement in self._statements:
            if not candidates[statement.line]:
                latest_first = (made.get(value, 0) for value in sorted(statement.uses, reverse=True))
                candidates[statement.line] = next(filter(None, latest_first), 0)
            mask = candidates[statement.line]
            made.update((value, mask or made.get(value, 0)) for value in statement.defines)
        for statement in self._statements:  # `auto tmp3 = [&]` stands above what it is made from
            mask = candidates[statement.line]
            candidates[statement.line] = mask or _union(made[value] for value in statement.defines)

    def _sharing(self, statement: Statement, mask: int, reached: dict[int, int]) -> int:
        """Return the further nodes that ask for the value of a line themselves.

        A node that needs the result of the line's node gets the value along with that, so it does not count,
        unless it loads the same on its own.
        """
        if mask.bit_count() != 1:
            return 0
        reading = _union(self._nodes.reading(self._loads(statement)))
        others = _bits(self._flows(statement, reached) & ~mask)
        return _union(
            1 << node for node in others if not self._nodes.needs[node] & mask or reading >> node & 1
        )


def _by_unit(stores: list[Statement], writers: int, newest: int) -> dict[int, int]:
    """Distinguish the stores to memory that several buffers have one after the other.

    With a unit each they come in the order of the nodes. What is in the memory in the end is the buffer that
    the launch names: the only store of the last unit is of its writer, which `newest` is.
    """
    units = list(dict.fromkeys(store.unit for store in stores))
    if len(units) == writers.bit_count():
        in_order = dict(zip(units, _bits(writers), strict=True))
        return {store.line: 1 << in_order[store.unit] for store in stores}
    last = [store for store in stores if store.unit == units[-1]]
    if newest.bit_count() != 1 or max(Counter(store.group for store in last).values()) > 1:
        return {}
    return {store.line: newest if store in last else writers & ~newest or writers for store in stores}


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _bits(mask: int) -> Iterator[int]:
    """Yield the nodes of a set in order: 0b1010 -> 1, 3."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def _rising(masks: list[int]) -> list[int] | None:
    """Drop candidates that a rising order rules out: {1, 2}, {0, 1}, {0, 2} -> {1}, {1}, {2}.

    None when it rules out all of some value.
    """
    low = 0
    lows = []
    for mask in masks:
        low = max(low, (mask & -mask).bit_length() - 1)
        lows.append(low)
    high = max(mask.bit_length() for mask in masks) - 1
    narrowed = []
    for mask, least in zip(reversed(masks), reversed(lows), strict=True):
        high = min(high, mask.bit_length() - 1)
        narrowed.append(mask & ((1 << high + 1) - 1) & ~((1 << least) - 1))
    return narrowed[::-1] if all(narrowed) else None
