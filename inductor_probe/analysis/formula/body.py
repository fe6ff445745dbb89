"""The statements of a loop body as values and effects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Literal, TypeAlias

from inductor_probe.analysis.formula.effects import BodyValues, Effect, unused
from inductor_probe.analysis.formula.indexing import Indexing, Terms
from inductor_probe.analysis.formula.scope import Scope, dtype_name, dtype_of_call, text_of
from inductor_probe.analysis.formula.values import INDEX, INTEGERS, OWN_KINDS, Value, Values
from inductor_probe.model.ir import Block, Dotted, LoopBody, Op, Ref
from inductor_probe.model.ir import Value as Argument

_BOOLEAN = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "logical_xor", "isnan",
     "isinf", "signbit"}
)  # fmt: skip
_ONE_NAME = {"div": "truediv", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor"}
"""Torch 2.1 names the true division `div`. The bitwise operations have two names each."""
_SECOND_DECIDES = {"where": 1}
_CALLED_FOR_EFFECT = frozenset({"device_assert_async", "partial_accumulate", "output"})
_CASTS = frozenset({"to_dtype", "index_expr", "value_expr"})
_CAST_DEFAULTS = (("use_compute_types", True),)

SLOT = "slot"
"""Stands in the pattern of a call's arguments for the next of its values."""

Subscripts: TypeAlias = Callable[[str, str, str], "tuple[Terms, ...] | None"]
"""Given a buffer, an index and the block it stands in: the subscripts, or None to keep the flat index."""


def read_body(body: LoopBody, dtypes: Mapping[str, str], subscripts: Subscripts | None = None) -> BodyValues:
    """Walk a body once.

    Args:
        body: as read.
        dtypes: of buffers, as far as known.
        subscripts: how to write the place in a buffer; the flat index unless given.
    """
    reader = _Reader(body, dtypes, subscripts)
    return reader.read()


class _Reader:
    def __init__(self, body: LoopBody, dtypes: Mapping[str, str], subscripts: Subscripts | None) -> None:
        self._dtypes = dtypes
        self._subscripts = subscripts
        self._blocks = {block.name: block for block in body.blocks}
        self._expressions = dict(body.indexes)
        self._values = Values()
        self._result = BodyValues(self._values)
        self._open: list[str] = []
        self._walked: set[str] = set()
        self._stores: dict[str, int] = {}
        self._checks: dict[tuple[Hashable, ...], int] = {}
        names = {name: self._values.add(Value("variable", (), (name,)), INDEX) for name, _ in body.var_ranges}
        self._names = names
        self._indexing = Indexing(self._values, names)
        self._first = body.blocks[0].name if body.blocks else None

    def read(self) -> BodyValues:
        if self._first is not None:
            self._block(self._blocks[self._first], None)
        for name, block in self._blocks.items():  # a block that nothing calls is still part of the text
            if name not in self._walked:
                self._block(block, None)
        self._result.effects += unused(self._values, self._result.effects)
        return self._result

    def _block(self, block: Block, under: int | None) -> int | None:
        """Add the values of a block, and return the one it returns."""
        self._open.append(block.name)
        self._walked.add(block.name)
        scope = Scope(block.name, under)
        for op in block.ops:
            self._op(op, scope)
        self._open.pop()
        for name, line in scope.index_lines.items():
            text = self._expressions.get(scope.indexes[name], scope.indexes[name])
            self._effect("unused", (self._indexing.text(text),), (), {line}, under)
        result = block.result
        if isinstance(result, Ref) and result.name in scope.no_value:
            return None
        lines: set[int] = set()
        return None if result is None else self._argument(result, scope, lines)

    def _op(self, op: Op, scope: Scope) -> None:
        lines = {op.line}
        prefix, _, name = op.target.partition(".")
        if op.target == "self.get_index" and len(op.args) == 1 and isinstance(op.args[0], str):
            scope.indexes[op.result] = op.args[0]
            scope.index_lines[op.result] = op.line
            return
        if prefix == "ops" and name in {"store", "store_reduction"} and len(op.args) >= 3:
            self._store(op, scope, lines)
            scope.no_value.add(op.result)
            return
        if op.target == "ops.check_bounds" and len(op.args) == 4:
            args = tuple(self._argument(arg, scope, lines) for arg in op.args[:2])
            self._check(args, op.args[2:], lines, scope.under)
            scope.no_value.add(op.result)
            return
        if op.target.startswith("self.set_indirect") and len(op.args) == 1:
            at = self._argument(op.args[0], scope, lines)
            self._names[op.target.removeprefix("self.set_")] = at
        elif op.target == "[]":
            of, which = op.args
            at = self._values.add(Value("item", (self._argument(of, scope, lines),), (which,)))
            at = self._with_dtype(at, None)
        elif prefix == "self" and name in self._blocks and name not in self._open and len(op.args) == 2:
            at = self._masked(name, op, scope, lines)
        else:
            at = self._call(op, scope, lines)
            if name in _CALLED_FOR_EFFECT:
                self._values.lines[at].update(lines)
                self._effect("call", (at,), (), frozenset(), scope.under)
        self._values.lines[at].update(lines)
        scope.names[op.result] = at

    def _call(self, op: Op, scope: Scope, lines: set[int]) -> int:
        prefix, _, name = op.target.partition(".")
        if prefix != "ops":
            return self._general(op.target, op, scope, lines)
        if name == "constant" and len(op.args) == 2 and not isinstance(op.args[0], Ref | tuple | Dotted):
            return self._values.constant(op.args[0], dtype_name(op.args[1]))
        if name == "load" and len(op.args) == 2 and isinstance(op.args[0], str):
            buffer = op.args[0]
            subscripts = self._place(buffer, op.args[1], scope, lines)
            mask = () if scope.under is None else (scope.under,)
            detail = (buffer, self._stores.get(buffer, 0), bool(mask))
            return self._values.add(Value("load", (*subscripts, *mask), detail), self._dtypes.get(buffer))
        if name in _CASTS and len(op.args) == 2 and isinstance(op.args[1], Dotted):
            return self._cast(op, scope, lines)
        kind = op.target if name in OWN_KINDS else _ONE_NAME.get(name, name)
        return self._general(kind, op, scope, lines)

    def _cast(self, op: Op, scope: Scope, lines: set[int]) -> int:
        """A cast to the dtype that a value has is no cast. An index is what it is in any integer dtype."""
        at = self._argument(op.args[0], scope, lines)
        dtype = dtype_name(op.args[1])
        kwargs = {key: value for key, value in op.kwargs if (key, value) not in _CAST_DEFAULTS}
        known = self._values.dtypes[at]
        source = dtype_name(kwargs.pop("src_dtype", None)) or known
        if known == INDEX and source in INTEGERS:
            known = source
        if not kwargs and source == dtype and (known is None or known == source):
            return at
        if not kwargs and op.target == "ops.index_expr" and dtype in {"int32", "int64"}:
            return at
        detail: tuple[Hashable, ...] = (dtype, tuple((key, repr(value)) for key, value in kwargs.items()))
        if source != known and known is not None:
            detail = (*detail, source)
        return self._values.add(Value("cast", (at,), detail), dtype)

    def _general(self, name: str, op: Op, scope: Scope, lines: set[int]) -> int:
        args: list[int] = []
        if not op.kwargs and all(isinstance(arg, Ref | bool | int | float) for arg in op.args):
            args = [self._argument(arg, scope, lines) for arg in op.args]
            return self._with_dtype(self._values.add(Value(name, tuple(args))), None)
        pattern = tuple(self._pattern(arg, scope, lines, args) for arg in op.args)
        kwargs = tuple((key, self._pattern(arg, scope, lines, args)) for key, arg in op.kwargs)
        detail: tuple[Hashable, ...] = (pattern, kwargs)
        if any(key == "is_pure" and value is False for key, value in op.kwargs):
            detail = (*detail, op.line)  # twice is not the same as once
        return self._with_dtype(self._values.add(Value(name, tuple(args), detail)), dtype_of_call(op))

    def _pattern(self, arg: Argument, scope: Scope, lines: set[int], args: list[int]) -> Hashable:
        if isinstance(arg, Ref):
            args.append(self._argument(arg, scope, lines))
            return SLOT
        if isinstance(arg, tuple):
            return ("tuple", *(self._pattern(part, scope, lines, args) for part in arg))
        return ("dotted", arg.text) if isinstance(arg, Dotted) else ("literal", repr(arg))

    def _masked(self, name: str, op: Op, scope: Scope, lines: set[int]) -> int:
        mask = self._argument(op.args[0], scope, lines)
        under = mask
        if scope.under is not None and scope.under != mask:
            under = self._values.add(Value("and_", (scope.under, mask)), "bool")
        inside = self._block(self._blocks[name], under)
        if inside is None:
            inside = self._values.add(Value("unknown", (), (name,)))
        dtype = self._values.dtypes[inside]
        other = op.args[1]
        if isinstance(other, Ref):
            otherwise = self._argument(other, scope, lines)
        else:
            otherwise = self._values.constant(other, dtype)
        return self._values.add(Value("masked", (mask, inside, otherwise)), dtype)

    def _store(self, op: Op, scope: Scope, lines: set[int]) -> None:
        buffer, index, value, *more = op.args
        mode = more[0] if more else dict(op.kwargs).get("mode")
        stored = self._argument(value, scope, lines)
        subscripts = self._place(str(buffer), index, scope, lines)
        self._stores[str(buffer)] = self._stores.get(str(buffer), 0) + 1
        detail = (str(buffer), mode, op.target.removeprefix("ops."))
        self._effect("store", (stored, *subscripts), detail, lines, scope.under)

    def _place(self, buffer: str, index: Argument, scope: Scope, lines: set[int]) -> tuple[int, ...]:
        """Return the subscripts of a place in `buffer`."""
        if isinstance(index, Ref) and index.name in scope.indexes and self._subscripts:
            name = scope.indexes[index.name]
            found = self._subscripts(buffer, self._expressions.get(name, name), scope.block)
            if found is not None:
                lines.update(scope.take_line(index.name))
                return tuple(self._indexing.terms(terms) for terms in found)
        return (self._argument(index, scope, lines),)

    def _argument(self, arg: Argument, scope: Scope, lines: set[int]) -> int:
        if isinstance(arg, Ref):
            if arg.name in scope.indexes:
                lines.update(scope.take_line(arg.name))
                name = scope.indexes[arg.name]
                return self._indexing.text(self._expressions.get(name, name))
            known = scope.names.get(arg.name)
            return self._values.add(Value("unknown", (), (arg.name,))) if known is None else known
        if isinstance(arg, Dotted | tuple):
            return self._values.add(Value("literal", (), (text_of(arg),)))
        return self._values.constant(arg, None)

    def _with_dtype(self, at: int, dtype: str | None) -> int:
        """Fill in the dtype of a new value, from its first operand where nothing else decides it."""
        value = self._values.table[at]
        if self._values.dtypes[at] is None:
            if value.kind in _BOOLEAN:
                dtype = "bool"
            elif dtype is None and value.args:
                first = _SECOND_DECIDES.get(value.kind, 0)
                dtypes = [self._values.dtypes[arg] for arg in value.args[first:]]
                dtype = next((known for known in dtypes if known is not None), None)
            self._values.dtypes[at] = dtype
        return at

    def _effect(
        self,
        kind: Literal["store", "check", "call", "unused"],
        args: tuple[int, ...],
        detail: tuple[Argument, ...],
        lines: set[int] | frozenset[int],
        under: int | None,
    ) -> None:
        self._result.effects.append(Effect(kind, args, detail, frozenset(lines), under))

    def _check(
        self, args: tuple[int, ...], detail: tuple[Argument, ...], lines: set[int], under: int | None
    ) -> None:
        """The same check twice is one."""
        at = self._checks.setdefault((args, detail, under), len(self._result.effects))
        if at == len(self._result.effects):
            self._effect("check", args, detail, lines, under)
        else:
            known = self._result.effects[at]
            self._result.effects[at] = Effect("check", args, detail, known.lines | lines, under)
