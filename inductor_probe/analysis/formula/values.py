"""The values that a loop body computes: equal ones are one value, and know all lines that compute them."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from inductor_probe.model.ir import Value as Argument

INDEX = "index"
"""The dtype of index arithmetic. Inductor chooses int32 or int64 later."""

INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", INDEX})
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})

COMMUTATIVE = frozenset(
    {"add", "mul", "eq", "ne", "and_", "or_", "xor", "logical_and", "logical_or", "logical_xor",
     "bitwise_and", "bitwise_or", "bitwise_xor", "product"}
)  # fmt: skip
"""Operations that give the same bits for `(a, b)` and `(b, a)`.

`maximum` and `minimum` are not among them: which of -0.0 and 0.0 they give may depend on the order.
"""

LEAVES = frozenset({"constant", "variable", "symbol", "parameter", "literal", "unknown", "verbatim"})
OWN_KINDS = LEAVES | {"sum", "product", "function", "load", "cast", "item"}
"""Kinds that are not operations of inductor: one of that name is written in full (`ops.sum`)."""

LIGHT = LEAVES | {"sum", "product"}
"""What costs no operation on values."""

RUN = {"sub": "add", "truediv": "mul"} | {
    kind: kind
    for kind in ("add", "mul", "and_", "or_", "xor", "logical_and", "logical_or", "maximum", "minimum")
}
"""Operations of one run are written from left to right, without parentheses when they follow one another."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value: what is done (`kind`), with which values (`args`), and all else that tells it from others.

    Kinds are the names of inductor's operations, and these:
        constant    detail is its text and its dtype
        variable    a loop variable, by name; `symbol` is a symbolic size
        sum         of index terms: args are the constant and the monomials, detail their factors
        product     a monomial of more than one factor
        floordiv, remainder, function   the rest of index arithmetic (detail names the function)
        verbatim    an index expression that is kept as it is printed
        load        args are the subscripts, and the mask it stands under where detail says so; detail is the
                    buffer, how often it was stored to before, and whether there is a mask
        cast        detail is the dtype
        masked      args are mask, value and other
        item        detail is which part of args[0]
        parameter   of a function that stands for several values; detail is what it takes in each
    """

    kind: str
    args: tuple[int, ...] = ()
    detail: tuple[Hashable, ...] = ()


@dataclass(slots=True)
class Values:
    """A growing table of values. A value stands behind those it is made from."""

    table: list[Value] = field(default_factory=list)
    dtypes: list[str | None] = field(default_factory=list)
    lines: list[set[int]] = field(default_factory=list)
    _ids: dict[Value, int] = field(default_factory=dict)

    def add(self, value: Value, dtype: str | None = None, lines: Iterable[int] = ()) -> int:
        """Return the number of `value`, new or known; `lines` of the body compute it."""
        at = self._ids.get(value)
        if at is None:
            at = self._ids[value] = len(self.table)
            self.table.append(value)
            self.dtypes.append(dtype)
            self.lines.append(set())
        self.lines[at].update(lines)
        return at

    def constant(self, number: Argument, dtype: str | None, lines: Iterable[int] = ()) -> int:
        """Add a constant. It is written as its dtype has it: 0 in float32 is 0.0."""
        if isinstance(number, bool | int | float):
            if dtype in FLOATS:
                number = float(number) if abs(number) <= sys.float_info.max else number
            elif dtype == "bool":
                number = bool(number)
            elif dtype is not None and isinstance(number, float) and number.is_integer():
                number = int(number)
        return self.add(Value("constant", (), (repr(number), dtype)), dtype, lines)

    def number(self, at: int) -> str | None:
        """Return the text of a constant, None for another value."""
        value = self.table[at]
        return str(value.detail[0]) if value.kind == "constant" else None


def shown(value: Value) -> tuple[int, ...]:
    """Return the arguments that stand in the text of `value`: all but the mask a load stands under."""
    return value.args[:-1] if value.kind == "load" and value.detail[2] else value.args
