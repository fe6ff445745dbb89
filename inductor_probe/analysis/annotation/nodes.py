"""The nodes that one launch of a kernel runs, and what their records prove about lines of its text."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

from inductor_probe.analysis.annotation.masks import bits, by_name, joined
from inductor_probe.analysis.annotation.statements import Statement
from inductor_probe.model.code import PointerUse
from inductor_probe.model.ir import Ref, SchedulerNode

# What generated code calls, and the operations that it may be generated for. Only functions that tell:
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
_REDUCES = "a reduction"
_REDUCING = frozenset((
    "sum", "max2", "min2", "prod", "any", "argmax", "argmin", "xor_sum", "vec_reduce_all", "welford",
    "welford_combine", "welford_reduce", "welford_vec_reduce_all", "online_softmax_combine",
    "online_softmax_reduce", "max_with_index", "min_with_index",
))  # fmt: skip
"""Functions that only reductions call."""


class RunningNodes:
    """The unfused nodes of a launch in order, and the names of the buffers behind each pointer.

    Sets of nodes are numbers, see `masks`. `needs` holds for each node those whose results it needs, directly
    or not; `copies` are the nodes that store what they load, as it is.
    """

    def __init__(self, leaves: Sequence[SchedulerNode], buffers: Mapping[str, tuple[str, ...]]) -> None:
        self.leaves = leaves
        self.buffers = buffers
        self.writers = by_name((name, at) for at, leaf in enumerate(leaves) for name in _written(leaf))
        self.readers = by_name((dep.name, at) for at, leaf in enumerate(leaves) for dep in leaf.reads)
        self._producer = {buffer.name: at for at, leaf in enumerate(leaves) for buffer in leaf.outputs}
        self._operations = [_operations(leaf) for leaf in leaves]
        self.copies = sum(1 << at for at, leaf in enumerate(leaves) if _only_copies(leaf))
        self.needs: list[int] = []
        for leaf in leaves:
            sources = (self._producer.get(dep.name, len(leaves)) for dep in leaf.reads)
            self.needs.append(joined(1 << at | self.needs[at] for at in sources if at < len(self.needs)))

    def names(self, mask: int) -> tuple[str, ...]:
        """Return the names of nodes."""
        return tuple(self.leaves[at].name for at in bits(mask))

    def writing(self, use: PointerUse) -> int:
        """Return the nodes that write what is behind a pointer."""
        return joined(self.writers.get(name, 0) for name in self.buffers.get(use.pointer, ()))

    def reading(self, use: PointerUse) -> int:
        """Return the nodes that read what is behind a pointer."""
        return joined(self.readers.get(name, 0) for name in self.buffers.get(use.pointer, ()))

    def reading_result(self, node: int) -> int:
        """Return the nodes that read what `node` writes."""
        return joined(self.readers.get(buffer.name, 0) for buffer in self.leaves[node].outputs)

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

    def by_operation(self, mask: int, at: Statement) -> int:
        """Keep the nodes whose bodies hold the functions that a line calls, and its constants."""
        if mask.bit_count() < 2:
            return mask
        kept = list(bits(mask))
        asked: list[frozenset[str | float]] = [_CALLED[call] for call in at.calls if call in _CALLED]
        asked += [frozenset((number,)) for number in at.constants]
        if at.accumulates or at.calls & _REDUCING:
            asked.append(frozenset((_REDUCES,)))
        for what in asked:
            having = [node for node in kept if what & self._operations[node]]
            kept = having or kept
        return joined(1 << node for node in kept)

    def buffer_names(self, use: PointerUse, mask: int) -> tuple[str, ...]:
        """Return what a pointer stands for in a line of one node, of the buffers that shared the memory."""
        names = self.buffers.get(use.pointer, ())
        if len(names) < 2 or mask.bit_count() != 1:
            return names
        leaf = self.leaves[mask.bit_length() - 1]
        mine = {dep.name for dep in leaf.reads} if use.kind == "load" else set(_written(leaf))
        return tuple(name for name in names if name in mine) or names


def _written(leaf: SchedulerNode) -> list[str]:
    return [name for buffer in leaf.outputs for name in (buffer.name, *buffer.mutations)]


def _operations(leaf: SchedulerNode) -> frozenset[str | float]:
    """Return the names of the operations of a node, and the constants in it."""
    if leaf.body is None:
        return frozenset()
    ops = [op for block in leaf.body.blocks for op in block.ops]
    constants = [op.args[0] for op in ops if op.target == "ops.constant" and op.args]
    found: set[str | float] = {op.target.removeprefix("ops.") for op in ops}
    found.update(
        float(value) if abs(value) <= sys.float_info.max else math.inf
        for value in constants
        if isinstance(value, int | float)
    )
    if "reduction" in found:
        found.add(_REDUCES)
    return frozenset(found)


def _only_copies(leaf: SchedulerNode) -> bool:
    if leaf.body is None:
        return True
    loads = {op.result for block in leaf.body.blocks for op in block.ops if op.target == "ops.load"}
    return any(
        isinstance(value, Ref) and value.name in loads
        for block in leaf.body.blocks
        for op in block.ops
        if op.target in ("ops.store", "ops.store_reduction")
        for value in op.args[2:3]
    )
