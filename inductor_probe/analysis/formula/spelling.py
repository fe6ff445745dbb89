"""How operations are written."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_probe.model.formula import Chain, Expression, Number

CHAINED = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "remainder": "%", "xor": "^",
    "logical_and": "and", "logical_or": "or", "bitwise_left_shift": "<<", "bitwise_right_shift": ">>",
    "lshift": "<<", "rshift": ">>", "product": "*", "and_": "&", "or_": "|",
}  # fmt: skip
OF_MASKS = {"&": "and", "|": "or"}
PAIRED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "pow": "**"}
RENAMED = {"maximum": "max", "minimum": "min"}
_LEVELS = ({"+", "-"}, {"*", "/", "//", "%"}, {"<<", ">>"}, {"and"}, {"or"}, {"&"}, {"|"}, {"^"})
LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
"""Operators of one level follow each other without parentheses."""
PARTS = {
    "welford": ("mean", "m2", "weight"),
    "welford_combine": ("mean", "m2", "weight"),
    "online_softmax": ("max", "sum"),
}
PLAIN = frozenset({
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "ceil_to_int", "copysign",
    "cos", "cosh", "digamma", "div_rn", "dot", "erf", "erfc", "erfcx", "erfinv", "exp", "exp2", "expm1",
    "floor", "floor_to_int", "fma", "fmod", "frexp", "hypot", "i0", "i0e", "i1", "i1e", "igamma", "igammac",
    "int_truediv", "isinf", "isnan", "ldexp", "lgamma", "load_seed", "log", "log10", "log1p", "log2",
    "logical_xor", "masked", "maximum", "minimum", "mod", "mul_rn", "nextafter", "polygamma", "rand",
    "randint64", "randn", "relu", "round", "round_to_int", "rsqrt", "sigmoid", "sign", "signbit", "sin",
    "sinh", "sqrt", "square", "tan", "tanh", "to_dtype_bitcast", "trunc", "trunc_to_int", "truncdiv",
    "where", "zeta",
})  # fmt: skip
"""Operations that are written by their name alone; all others keep the `ops.` of inductor."""


def chain(first: Expression, rest: Sequence[tuple[str, Expression]]) -> Expression:
    """Return operations from left to right, `first` alone if there are none."""
    if not rest:
        return first
    if isinstance(first, Chain) and LEVEL[first.rest[0][0]] == LEVEL[rest[0][0]]:
        return Chain(first.first, (*first.rest, *rest))
    return Chain(first, tuple(rest))


def signed(operator: str, term: Expression) -> tuple[str, Expression]:
    """Write `+ -3` as `- 3`: adding a negative number and subtracting a positive one give the same bits."""
    if operator in "+-" and isinstance(term, Number) and term.text.startswith("-"):
        return "-" if operator == "+" else "+", Number(term.text[1:], term.dtype)
    return operator, term
