"""The statements of a loop body as values and effects."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from inductor_probe.analysis.formula.values import (
    INDEX,
    INTEGERS,
    OWN_KINDS,
    Access,
    Effect,
    Indexing,
    Terms,
    Value,
    Values,
)
from inductor_probe.model.ir import Block, Dotted, LoopBody, Op, Ref
from inductor_probe.model.ir import Value as Argument

_BOOLEAN = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "logical_xor", "isnan",
     "isinf", "signbit"}
)  # fmt: skip
_ONE_NAME = {"div": "truediv", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor"}
"""Torch 2.1 names the true division `div`. The bitwise operations have two names each."""
_CALLED_FOR_EFFECT = frozenset({"device_assert_async", "partial_accumulate", "output"})
_CASTS = frozenset({"to_dtype", "index_expr", "value_expr"})
_CAST_DEFAULTS = (("use_compute_types", True),)

SLOT = "slot"
"""The place of the next value in the pattern of a call's arguments."""


class BodyValues(NamedTuple):
    """A loop body as values and effects, in the order of its lines."""

    values: Values
    effects: list[Effect]


def read_body(
    body: LoopBody, dtypes: Mapping[str, str], subscripts: Mapping[Access, tuple[Terms, ...]] | None = None
) -> BodyValues:
    """Walk a body once.

    Args:
        body: as read.
        dtypes: of buffers, as far as known.
        subscripts: of accesses; others keep the flat index.
    """
    reader = _Reader(body, dtypes, subscripts or {})
    if body.blocks:
        reader.block(body.blocks[0], None)
    for block in body.blocks:  # a block that nothing calls is still part of the text
        if block.name not in reader.walked:
            reader.block(block, None)
    return BodyValues(reader.values, [*reader.effects, *_unused(reader.values, reader.effects)])


@dataclass(slots=True)
class _Scope:
    """The names of a block while its lines are walked, and the mask it is under.

    Attributes:
        lines: of the operation that is read.
        values: by name. without_value: names of stores and checks.
        indexes: what `get_index` was called with, by the name of its result.
        index_lines: the lines of those that no operation used yet: the first one that does gets the line.
    """

    block: str
    under: int | None
    lines: set[int] = field(default_factory=set)
    values: dict[str, int] = field(default_factory=dict)
    without_value: set[str] = field(default_factory=set)
    indexes: dict[str, str] = field(default_factory=dict)
    index_lines: dict[str, int] = field(default_factory=dict)

    def index(self, name: str) -> str:
        """Return the name of the index expression that `name` is."""
        if name in self.index_lines:
            self.lines.add(self.index_lines.pop(name))
        return self.indexes[name]


class _Reader:
    def __init__(
        self, body: LoopBody, dtypes: Mapping[str, str], subscripts: Mapping[Access, tuple[Terms, ...]]
    ) -> None:
        self.values = Values()
        self.effects: list[Effect] = []
        self.walked: set[str] = set()
        self._dtypes = dtypes
        self._subscripts = subscripts
        self._blocks = {block.name: block for block in body.blocks}
        self._expressions = dict(body.indexes)
        self._open: list[str] = []
        self._stores: dict[str, int] = {}
        self._checks: dict[tuple[Hashable, ...], int] = {}
        self._names = {
            name: self.values.add(Value("variable", (), (name,)), INDEX) for name, _ in body.var_ranges
        }
        self._indexing = Indexing(self.values, self._names)

    def block(self, block: Block, under: int | None) -> int | None:
        """Add the values of a block, and return the one it returns."""
        self._open.append(block.name)
        self.walked.add(block.name)
        scope = _Scope(block.name, under)
        for op in block.ops:
            scope.lines = {op.line}
            self._op(op, scope)
        self._open.pop()
        for name, line in scope.index_lines.items():
            index = self._index(scope.indexes[name])
            self.effects.append(Effect("unused", (index,), (), frozenset({line}), under))
        scope.index_lines.clear()
        result = block.result
        if result is None or (isinstance(result, Ref) and result.name in scope.without_value):
            return None
        return self._argument(result, scope)

    def _op(self, op: Op, scope: _Scope) -> None:
        prefix, _, name = op.target.partition(".")
        if op.target == "self.get_index" and len(op.args) == 1 and isinstance(op.args[0], str):
            scope.indexes[op.result] = op.args[0]
            scope.index_lines[op.result] = op.line
            return
        if prefix == "ops" and name in {"store", "store_reduction"} and len(op.args) >= 3:
            self._store(op, scope)
            scope.without_value.add(op.result)
            return
        if op.target == "ops.check_bounds" and len(op.args) == 4:
            self._check(op, scope)
            scope.without_value.add(op.result)
            return
        if op.target.startswith("self.set_indirect") and len(op.args) == 1:
            number = self._argument(op.args[0], scope)
            self._names[op.target.removeprefix("self.set_")] = number
        elif op.target == "[]":
            of, part = op.args
            item = Value("item", (self._argument(of, scope),), (part,))
            number = self._with_dtype(self.values.add(item), None)
        elif prefix == "self" and name in self._blocks and name not in self._open and len(op.args) == 2:
            number = self._masked(name, op, scope)
        else:
            number = self._call(op, scope)
            if name in _CALLED_FOR_EFFECT:
                self.effects.append(Effect("call", (number,), under=scope.under))
        self.values.lines[number].update(scope.lines)
        scope.values[op.result] = number

    def _call(self, op: Op, scope: _Scope) -> int:
        prefix, _, name = op.target.partition(".")
        if prefix != "ops":
            return self._general(op.target, op, scope)
        if name == "constant" and len(op.args) == 2 and not isinstance(op.args[0], Ref | tuple | Dotted):
            return self.values.constant(op.args[0], _dtype(op.args[1]))
        if name == "load" and len(op.args) == 2 and isinstance(op.args[0], str):
            buffer = op.args[0]
            subscripts = self._subscript_values(buffer, op.args[1], scope)
            mask = () if scope.under is None else (scope.under,)
            detail = (buffer, self._stores.get(buffer, 0), bool(mask))
            return self.values.add(Value("load", (*subscripts, *mask), detail), self._dtypes.get(buffer))
        if name in _CASTS and len(op.args) == 2 and isinstance(op.args[1], Dotted):
            return self._cast(op, scope)
        return self._general(op.target if name in OWN_KINDS else _ONE_NAME.get(name, name), op, scope)

    def _cast(self, op: Op, scope: _Scope) -> int:
        """A cast to the dtype that a value has is no cast. An index is what it is in any integer dtype."""
        number = self._argument(op.args[0], scope)
        dtype = _dtype(op.args[1])
        kwargs = {key: value for key, value in op.kwargs if (key, value) not in _CAST_DEFAULTS}
        known = self.values.dtypes[number]
        source = _dtype(kwargs.pop("src_dtype", None)) or known
        if known == INDEX and source in INTEGERS:
            known = source
        is_same = source == dtype and known in (None, source)
        if not kwargs and (is_same or (op.target == "ops.index_expr" and dtype in {"int32", "int64"})):
            return number
        detail: tuple[Hashable, ...] = (dtype, tuple((key, repr(value)) for key, value in kwargs.items()))
        if source != known and known is not None:
            detail = (*detail, source)
        return self.values.add(Value("cast", (number,), detail), dtype)

    def _general(self, name: str, op: Op, scope: _Scope) -> int:
        args: list[int] = []
        if not op.kwargs and all(isinstance(arg, Ref | bool | int | float) for arg in op.args):
            args = [self._argument(arg, scope) for arg in op.args]
            return self._with_dtype(self.values.add(Value(name, tuple(args))), None)
        pattern = tuple(self._pattern(arg, scope, args) for arg in op.args)
        kwargs = tuple((key, self._pattern(arg, scope, args)) for key, arg in op.kwargs)
        detail: tuple[Hashable, ...] = (pattern, kwargs)
        if ("is_pure", False) in op.kwargs:
            detail = (*detail, op.line)  # twice is not the same as once
        # The first dtype of a call is that of its result.
        dtype = next((_dtype(arg) for arg in op.args if isinstance(arg, Dotted)), None)
        return self._with_dtype(self.values.add(Value(name, tuple(args), detail)), dtype)

    def _pattern(self, arg: Argument, scope: _Scope, args: list[int]) -> Hashable:
        """Replace the values in an argument by slots and add them to `args`."""
        if isinstance(arg, Ref):
            args.append(self._argument(arg, scope))
            return SLOT
        if isinstance(arg, tuple):
            return ("tuple", *(self._pattern(part, scope, args) for part in arg))
        return ("dotted", arg.text) if isinstance(arg, Dotted) else ("literal", repr(arg))

    def _masked(self, name: str, op: Op, scope: _Scope) -> int:
        mask = self._argument(op.args[0], scope)
        under = mask
        if scope.under is not None and scope.under != mask:
            under = self.values.add(Value("and_", (scope.under, mask)), "bool")
        inside = self.block(self._blocks[name], under)
        if inside is None:
            inside = self.values.add(Value("unknown", (), (name,)))
        dtype = self.values.dtypes[inside]
        other = op.args[1]
        constant = not isinstance(other, Ref)
        otherwise = self.values.constant(other, dtype) if constant else self._argument(other, scope)
        return self.values.add(Value("masked", (mask, inside, otherwise)), dtype)

    def _store(self, op: Op, scope: _Scope) -> None:
        buffer, index, value, *more = op.args
        mode = more[0] if more else dict(op.kwargs).get("mode")
        stored = self._argument(value, scope)
        subscripts = self._subscript_values(str(buffer), index, scope)
        self._stores[str(buffer)] = self._stores.get(str(buffer), 0) + 1
        detail = (str(buffer), mode, op.target.removeprefix("ops."))
        self.effects.append(
            Effect("store", (stored, *subscripts), detail, frozenset(scope.lines), scope.under)
        )

    def _check(self, op: Op, scope: _Scope) -> None:
        """The same check twice is one."""
        args = tuple(self._argument(arg, scope) for arg in op.args[:2])
        check = Effect("check", args, op.args[2:], frozenset(scope.lines), scope.under)
        position = self._checks.setdefault((args, check.detail, check.under), len(self.effects))
        if position == len(self.effects):
            self.effects.append(check)
        else:
            lines = self.effects[position].lines | check.lines
            self.effects[position] = replace(check, lines=lines)

    def _subscript_values(self, buffer: str, index: Argument, scope: _Scope) -> tuple[int, ...]:
        if isinstance(index, Ref) and index.name in scope.indexes:
            name = scope.indexes[index.name]
            subscripts = self._subscripts.get((buffer, self._expressions.get(name, name), scope.block))
            if subscripts is not None:
                scope.index(index.name)
                return tuple(self._indexing.terms(terms) for terms in subscripts)
        return (self._argument(index, scope),)

    def _index(self, name: str) -> int:
        return self._indexing.text(self._expressions.get(name, name))

    def _argument(self, arg: Argument, scope: _Scope) -> int:
        if isinstance(arg, Ref):
            if arg.name in scope.indexes:
                return self._index(scope.index(arg.name))
            known = scope.values.get(arg.name)
            return self.values.add(Value("unknown", (), (arg.name,))) if known is None else known
        if isinstance(arg, Dotted | tuple):
            return self.values.add(Value("literal", (), (_text(arg),)))
        return self.values.constant(arg, None)

    def _with_dtype(self, number: int, dtype: str | None) -> int:
        """Fill in the dtype of a new value, from its first operand where nothing else decides it."""
        value = self.values.table[number]
        if self.values.dtypes[number] is None:
            if value.kind in _BOOLEAN:
                dtype = "bool"
            elif dtype is None:
                operands = value.args[1:] if value.kind == "where" else value.args
                dtypes = (self.values.dtypes[operand] for operand in operands)
                dtype = next((known for known in dtypes if known is not None), None)
            self.values.dtypes[number] = dtype
        return number


def _unused(values: Values, effects: list[Effect]) -> list[Effect]:
    """Return the values of a body that nothing uses, the outermost of each, in order.

    One of several results that is not used is left out: the part that is used says which.
    """
    table, lines = values.table, values.lines
    reached = [False] * len(table)
    for effect in effects:
        for number in effect.needs:
            reached[number] = True
    downwards = range(len(table) - 1, -1, -1)
    for number in downwards:
        for arg in table[number].args if reached[number] else ():
            reached[arg] = True
    unused = []
    for number in downwards:
        value = table[number]
        if not reached[number]:
            if value.kind == "item" and reached[value.args[0]]:
                lines[value.args[0]] |= lines[number]
                continue
            if not lines[number]:
                continue
            unused.append(Effect("unused", (number,)))
        for arg in value.args:
            reached[arg] = True
    return unused[::-1]


def _dtype(value: Argument) -> str | None:
    """`float32` of `torch.float32`."""
    return value.text.removeprefix("torch.") if isinstance(value, Dotted) else None


def _text(arg: Argument) -> str:
    """Return an argument as it is printed."""
    if isinstance(arg, Dotted | Ref):
        return arg.text if isinstance(arg, Dotted) else arg.name
    if isinstance(arg, tuple):
        return f"({', '.join(map(_text, arg))}{',' if len(arg) == 1 else ''})"
    return repr(arg)
