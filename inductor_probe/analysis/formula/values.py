"""The values and effects of a loop body, by value numbering: equal values are one, with all their lines."""

from __future__ import annotations

import ast
import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from inductor_probe.analysis.index import Index, parse_expression, parse_index
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

Terms = tuple[tuple[tuple[str, ...], int], ...]
"""A sum: products of factors (names, or the text of what is no sum) and their coefficients."""
Access = tuple[str, str, str]
"""A buffer, an index expression and the block it is in."""

_REMAINDERS = {"Mod", "PythonMod"}


class Value(Struct, frozen=True):
    """A value: what is done (`kind`), with which values (`args`), and what else makes it differ from others.

    Kinds are the names of inductor's operations, and these:
        constant    detail is its text and its dtype
        variable    a loop variable, by name; `symbol` is a symbolic size
        sum         of index terms: args are the constant and the monomials, detail their factors
        product     a monomial of more than one factor
        floordiv, remainder, function   the rest of index arithmetic (detail names the function)
        verbatim    an index expression that is kept as it is printed
        load        args are the subscripts, and the mask it is under where detail says so; detail is the
                    buffer, how often it was stored to before, and whether there is a mask
        cast        detail is the dtype
        masked      args are mask, value and other
        item        detail is which part of args[0]
        parameter   of a function that represents several values; detail is what it is in each
    """

    kind: str
    args: tuple[int, ...] = ()
    detail: tuple[Hashable, ...] = ()

    @property
    def shown(self) -> tuple[int, ...]:
        """The arguments that are in its text: all but the mask that a load is under."""
        return self.args[:-1] if self.kind == "load" and self.detail[2] else self.args


@dataclass(slots=True)
class Values:
    """A growing table of values, by number. A value comes after those it is made from."""

    table: list[Value] = field(default_factory=list)
    dtypes: list[str | None] = field(default_factory=list)
    lines: list[set[int]] = field(default_factory=list)
    _numbers: dict[Value, int] = field(default_factory=dict)

    def add(self, value: Value, dtype: str | None = None, lines: Iterable[int] = ()) -> int:
        """Return the number of `value`, new or known; `lines` of the body compute it."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.table)
            self.table.append(value)
            self.dtypes.append(dtype)
            self.lines.append(set())
        self.lines[number].update(lines)
        return number

    def constant(self, constant: Argument, dtype: str | None) -> int:
        """Add a constant. It is written as its dtype has it: 0 in float32 is 0.0."""
        if isinstance(constant, bool | int | float):
            if dtype in FLOATS:
                constant = float(constant) if abs(constant) <= sys.float_info.max else constant
            elif dtype == "bool":
                constant = bool(constant)
            elif dtype is not None and isinstance(constant, float) and constant.is_integer():
                constant = int(constant)
        return self.add(Value("constant", (), (repr(constant), dtype)), dtype)

    def constant_text(self, number: int) -> str | None:
        """Return the text of a constant, None for another value."""
        value = self.table[number]
        return str(value.detail[0]) if value.kind == "constant" else None


class Effect(Struct, frozen=True):
    """What a body does, besides computing.

    Attributes:
        kind: `store`; `check` (of bounds); `call` (for the sake of the call); `unused`, a value without use.
        args: a store's value and subscripts; a check's value and size; else the value.
        detail: a store's buffer, mode and operation; whether a check is of the lower and of the upper bound.
        lines: of the body, those of the values apart.
        under: the mask under which alone it happens.
    """

    kind: Literal["store", "check", "call", "unused"]
    args: tuple[int, ...]
    detail: tuple[Argument, ...] = ()
    lines: frozenset[int] = frozenset()
    under: int | None = None

    @property
    def needs(self) -> tuple[int, ...]:
        """The values it uses."""
        return self.args if self.under is None else (*self.args, self.under)


@lru_cache(maxsize=8192)
def index_of(text: str) -> Index | None:
    """Parse an index expression, or return None when it is not an arithmetic expression."""
    try:
        return parse_index(text)
    except (ValueError, RecursionError):
        return None


@lru_cache(maxsize=8192)
def _parsed(text: str) -> ast.expr:
    return parse_expression(text)


class Indexing:
    """Adds index expressions to a table of values: `2*p0 + p1//4` is a sum of a monomial and a quotient."""

    def __init__(self, values: Values, names: Mapping[str, int]) -> None:
        """`names` are the values of loop variables, and of `indirect0` once it is set; it may grow."""
        self._values = values
        self._names = names

    def text(self, text: str) -> int:
        """Add the expression `text`. What cannot be read is kept as it is printed."""
        index = index_of(text)
        try:
            if index is not None:
                return self.terms(index.terms)
        except RecursionError:  # no compiler nests so deep
            pass
        return self._add("verbatim", (), text)

    def terms(self, terms: Terms) -> int:
        """Add a sum."""
        constant = 0
        monomials: list[tuple[int, int]] = []
        for names, coefficient in terms:
            if names:
                factors = sorted(self._factor(_parsed(name)) for name in names)
                monomial = factors[0] if len(factors) == 1 else self._add("product", factors)
                monomials.append((monomial, coefficient))
            else:
                constant += coefficient
        monomials.sort()
        args = (self._values.constant(constant, INDEX), *(monomial for monomial, _ in monomials))
        return self._add("sum", args, *(coefficient for _, coefficient in monomials))

    def _add(self, kind: str, args: Iterable[int], *detail: Hashable) -> int:
        return self._values.add(Value(kind, tuple(args), detail), INDEX)

    def _factor(self, node: ast.expr) -> int:
        match node:
            case ast.Name(id=name):
                known = self._names.get(name)
                return self._add("symbol", (), name) if known is None else known
            case (
                ast.BinOp(left=left, op=ast.FloorDiv(), right=right)
                | ast.Call(func=ast.Name(id="FloorDiv"), args=[left, right], keywords=[])
            ):
                return self._add("floordiv", self._arguments(left, right))
            case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if name in _REMAINDERS:
                return self._add("remainder", self._arguments(left, right))
            case ast.Call(func=ast.Name(id="ModularIndexing"), args=[base, divisor, modulus], keywords=[]):
                (dividend,) = self._arguments(base)
                if not (isinstance(divisor, ast.Constant) and divisor.value == 1):
                    quotient = self._add("floordiv", self._arguments(base, divisor))
                    dividend = self._add("sum", (self._values.constant(0, INDEX), quotient), 1)
                return self._add("remainder", (dividend, *self._arguments(modulus)))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._add("function", self._arguments(*arguments), name)
        names = sorted({part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & set(self._names))
        return self._add("verbatim", (self._names[name] for name in names), ast.unparse(node))

    def _arguments(self, *nodes: ast.expr) -> list[int]:
        return [self.text(ast.unparse(node)) for node in nodes]
