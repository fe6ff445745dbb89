"""Inductor's operations on numbers.

One that is not among them (`lgamma`, a reduction that inductor adds tomorrow) gives a number that depends on
its name and arguments alone.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

INTEGERS = {f"{kind}{bits}" for kind in ("int", "uint", "i", "u") for bits in (8, 16, 32, 64)}


def made_up(*parts: object) -> float:
    """Return a number that depends on `parts` alone."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=4).digest(), "big") / 2**29 - 3.0


def _safely(function: Callable[..., Any]) -> Callable[..., Any]:
    def _run(*args: Any) -> Any:
        try:
            result = function(*args)
        except ZeroDivisionError:
            return math.nan
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan
        return math.nan if isinstance(result, complex) else result

    return _run


def _extreme(choose: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """NaN goes before all numbers; of equal numbers the first is taken."""
    return lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else choose(a, b)


def cast(value: Any, dtype: str) -> Any:
    if dtype in INTEGERS:
        return int(value) if math.isfinite(value) else 0
    if dtype == "bool":
        return bool(value)
    if dtype in {"float32", "f32"}:
        try:
            return struct.unpack("f", struct.pack("f", float(value)))[0]
        except OverflowError:
            return math.inf
    return float(value)


BINARY: dict[str, Callable[..., Any]] = {
    name: _safely(function)
    for name, function in {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
        "div": operator.truediv, "floordiv": operator.floordiv, "remainder": operator.mod,
        "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
        "ge": operator.ge, "pow": operator.pow, "maximum": _extreme(max), "minimum": _extreme(min),
        "logical_and": lambda a, b: bool(a) and bool(b), "logical_or": lambda a, b: bool(a) or bool(b),
        "bitwise_left_shift": operator.lshift, "bitwise_right_shift": operator.rshift,
        "and_": operator.and_, "or_": operator.or_, "xor": operator.xor, "bitwise_and": operator.and_,
        "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    }.items()
}  # fmt: skip
OTHERS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "abs": abs, "square": lambda x: x * x, "floor": lambda x: float(math.floor(x)),
    "where": lambda c, a, b: a if c else b, "Max": max, "Min": min, "isnan": math.isnan, "isinf": math.isinf,
    "logical_not": lambda x: not x, "bitwise_not": operator.invert, "exp": math.exp, "sqrt": math.sqrt,
    "reciprocal": lambda x: 1.0 / x, "relu": lambda x: max(x, 0.0),
}  # fmt: skip
OPERATIONS = {**BINARY, **{name: _safely(function) for name, function in OTHERS.items()}}


PARTS = {
    "welford": ("mean", "m2", "weight"),
    "welford_combine": ("mean", "m2", "weight"),
    "online_softmax": ("max", "sum"),
}
WRITTEN = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "remainder", "^": "xor",
    "and": "logical_and", "or": "logical_or", "<<": "bitwise_left_shift", ">>": "bitwise_right_shift",
    "&": "and_", "|": "or_", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
    "**": "pow", "min": "minimum", "max": "maximum",
}  # fmt: skip
CASTS = {*INTEGERS, "f64", "f32", "f16", "bf16", "bool"}


def operate(name: str, args: Sequence[Any]) -> Any:
    """Apply one of inductor's operations."""
    return OPERATIONS[name](*args) if name in OPERATIONS else made_up(name, list(args))


def number_text(value: Any) -> str:
    """Write a stored value so that equal bits are equal text; 0 and 0.0 are one value of a float buffer."""
    return repr(float(value)) if abs(value) < 2**53 or math.isnan(value) else repr(value)


def reduce_all(kind: str, columns: Sequence[Any], at: int, part: str | None) -> Any:
    """Return the result of a reduction, scan or sort over what it was given at all points."""
    if kind == "sum":
        return _safely(lambda: sum(column[0] for column in columns))()
    return made_up(kind, list(columns), at if kind in {"scan", "sort"} else None, part)
