"""What a loop body computes, as a key: bodies with equal keys compute the same.

Two keys are equal when the bodies are the same but for
- the names of values (`mul_3`), of loop variables (`z0`, `p0`), of symbolic sizes (`s0`, `s27`) and of
  buffers: loops count by position, buffers and symbols by first use;
- values that are computed more than once, and values that nothing takes;
- the order of the operands of `+`, `*`, `==`, `!=` and the logical and bitwise operations, which give the
  same bits either way (maximum and minimum may not, of zeros with different signs);
- the spelling of index expressions: parentheses, order of terms, `FloorDiv`, `ModularIndexing`;
- casts to the dtype that a value is seen to have, and the spelling of operations (`div`, `truediv`).

Everything else counts: ranges, loop order, constants and their dtypes, the association of sums, masks, the
order of stores, the mode of a store. Keys that differ do not prove that results differ. The dtypes, sizes and
strides of buffers are no part of the key: compare layouts as well.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b

from inductor_probe.analysis.formula.body import read_body
from inductor_probe.analysis.formula.values import COMMUTATIVE, Effect, Indexing, Value
from inductor_probe.model.ir import LoopBody, MemoryDep, SchedulerNode, StarDep

_DIGEST_BYTES = 16


def canonical(node: SchedulerNode) -> str | None:
    """Return the key of an unfused node's body (32 hexadecimal digits), or None when it has no body."""
    if node.body is None:
        return None
    read = read_body(node.body, {})
    effects = [effect for effect in read.effects if effect.kind != "unused"]
    indexing = Indexing(read.values, {})
    ranges = [indexing.text(str(size)) for _, size in node.body.var_ranges]
    keys = _Keys(node, node.body, read.values.table, ranges, effects)
    parts: list[Hashable] = [tuple(len(sizes) for sizes in node.sizes) if node.sizes else None]
    parts += [keys.of_value[number] for number in ranges]
    parts += [keys.effect(effect) for effect in effects]
    return _digest(parts)


class _Keys:
    """A key for each value that counts, equal for equal values of any two bodies."""

    def __init__(
        self,
        node: SchedulerNode,
        body: LoopBody,
        table: list[Value],
        ranges: list[int],
        effects: list[Effect],
    ) -> None:
        self._loops = {name: number for number, (name, _) in enumerate(body.var_ranges)}
        self._symbols: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        deps = (*node.reads, *node.writes)
        self._buffers = {dep.name for dep in deps if isinstance(dep, MemoryDep | StarDep)}
        self._buffers |= {str(value.detail[0]) for value in table if value.kind == "load"}
        self._buffers |= {str(effect.detail[0]) for effect in effects if effect.kind == "store"}
        needed = {*ranges, *(number for effect in effects for number in effect.needs)}
        for number in reversed(range(len(table))):  # arguments stand before what they are taken by
            if number in needed:
                needed.update(table[number].args)
        for number in ranges:
            self._number_symbols(table, number)
        self.of_value: dict[int, str] = {}
        for number in sorted(needed):
            self.of_value[number] = self._value(table[number])

    def effect(self, effect: Effect) -> Hashable:
        """Return what distinguishes an effect from others."""
        args = tuple(self.of_value[number] for number in effect.args)
        under = None if effect.under is None else self.of_value[effect.under]
        return (effect.kind, args, self._renamed(effect.detail), under)

    def _number_symbols(self, table: list[Value], size: int) -> None:
        """Number the symbols of a range, so that they count by the loops they are the sizes of."""
        waiting = [size]
        while waiting:
            value = table[waiting.pop()]
            if value.kind == "symbol":
                self._symbols.setdefault(str(value.detail[0]), len(self._symbols))
            waiting += reversed(value.args)

    def _value(self, value: Value) -> str:
        args = [self.of_value[arg] for arg in value.args]
        if value.kind == "variable":
            return _digest(["loop", self._loops[str(value.detail[0])]])
        if value.kind == "symbol":
            return _digest(["symbol", self._symbols.setdefault(str(value.detail[0]), len(self._symbols))])
        if value.kind == "sum":
            return _digest(["sum", args[0], *sorted(zip(args[1:], value.detail, strict=True), key=str)])
        if value.kind in COMMUTATIVE and not value.detail:
            args.sort()
        if value.kind == "load":
            buffer, *rest = value.detail
            return _digest(["load", self._renamed((buffer,)), *rest, *args])
        if value.kind == "verbatim":
            return _digest(["verbatim", str(value.detail[0]), *args])
        return _digest([value.kind, self._renamed(value.detail), *args])

    def _renamed(self, part: Hashable) -> Hashable:
        """Replace the names of buffers anywhere in `part`; a literal is kept as its `repr`."""
        if isinstance(part, tuple):
            return tuple(self._renamed(inner) for inner in part)
        text = part[1:-1] if isinstance(part, str) and part[:1] == part[-1:] == "'" else part
        if isinstance(text, str) and text in self._buffers:
            return ("buffer", self._numbers.setdefault(text, len(self._numbers)))
        return part


def _digest(parts: list[Hashable]) -> str:
    return blake2b(repr(parts).encode(), digest_size=_DIGEST_BYTES).hexdigest()
