"""Index expressions: the stride of each loop variable, read off sympy's text without sympy.

An expression such as `672*p0 - 3*p1 + p2 + 669` becomes a polynomial over its variables; the stride of a
variable is the factor it stands with. Divisions, `ModularIndexing` and the like are kept as opaque factors:
a variable inside one has no single stride, and is `piecewise`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from inductor_probe.analysis.expression import evaluate, parse_expression
from inductor_probe.model.ir import Dim

PIECEWISE = "piecewise"
INDIRECT = "indirect"

# A sum of products: sorted factors -> integer coefficient.
_Polynomial = dict[tuple[str, ...], int]
_LARGEST_POWER = 8
_MOST_TERMS = 1000
_MOST_FACTORS = 32
_LARGEST_BITS = 128
"""Beyond these a product stays as it is printed: `((a + b + c)**8)**8` has 2,145 terms, and one power more
would have a hundred thousand. Indices of torch have a term a loop, and 64 bits."""


@dataclass(frozen=True, slots=True)
class Index:
    """A parsed index expression.

    Attributes:
        text: as printed.
        terms: products of factors and their coefficients.
        opaque: factors that are not plain names, with the names inside each.
    """

    text: str
    terms: tuple[tuple[tuple[str, ...], int], ...]
    opaque: tuple[tuple[str, frozenset[str]], ...]

    @property
    def names(self) -> frozenset[str]:
        """All variables and symbols in it."""
        inside = dict(self.opaque)
        return frozenset(
            name for factors, _ in self.terms for factor in factors for name in inside.get(factor, (factor,))
        )

    def stride(self, variable: str) -> Dim:
        """Return the change of the index for one step of `variable`, in elements.

        A number, a symbolic text, 0 when the variable does not occur, or `piecewise`.
        """
        inside = dict(self.opaque)
        factor: _Polynomial = {}
        for factors, coefficient in self.terms:
            if any(variable in inside.get(name, ()) for name in factors):
                return PIECEWISE
            if factors.count(variable) > 1:
                return PIECEWISE
            if variable in factors:
                rest = tuple(name for name in factors if name != variable)
                factor[rest] = factor.get(rest, 0) + coefficient
        return _text(factor)


@lru_cache(maxsize=16384)
def parse_index(text: str) -> Index:
    """Parse an index expression.

    Raises:
        ValueError: not an arithmetic expression.
    """
    opaque: dict[str, frozenset[str]] = {}
    terms = _polynomial(parse_expression(text), opaque)
    return Index(text, tuple(sorted(terms.items())), tuple(opaque.items()))


def _polynomial(node: ast.expr, opaque: dict[str, frozenset[str]]) -> _Polynomial:
    match node:
        case ast.Constant(value=int() as value) if value.bit_length() <= _LARGEST_BITS:
            return {(): value} if value else {}
        case ast.Name(id=name):
            return {(name,): 1}
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return {factors: -value for factors, value in _polynomial(inner, opaque).items()}
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            total = _polynomial(left, opaque)
            sign = 1 if isinstance(op, ast.Add) else -1
            for factors, value in _polynomial(right, opaque).items():
                total[factors] = total.get(factors, 0) + sign * value
            return {factors: value for factors, value in total.items() if value}
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            product = _product(_polynomial(left, opaque), _polynomial(right, opaque))
            if product is not None:
                return product
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
            if 0 <= power <= _LARGEST_POWER:
                result: _Polynomial | None = {(): 1}
                base = _polynomial(left, opaque)
                for _ in range(power):
                    result = None if result is None else _product(result, base)
                if result is not None:
                    return result
    text = ast.unparse(node)
    called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    opaque[text] = frozenset(
        part.id for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in called
    )
    return {(text,): 1}


def _product(left: _Polynomial, right: _Polynomial) -> _Polynomial | None:
    """Multiply; None where the product is too large to be an index."""
    if len(left) * len(right) > _MOST_TERMS:
        return None
    result: _Polynomial = {}
    for factors, value in left.items():
        for others, other in right.items():
            key = tuple(sorted((*factors, *others)))
            result[key] = result.get(key, 0) + value * other
            if len(key) > _MOST_FACTORS or result[key].bit_length() > _LARGEST_BITS:
                return None
    return {factors: value for factors, value in result.items() if value}


def _text(polynomial: _Polynomial) -> Dim:
    """Write a polynomial as a number or as text: `2*s27*s77 + 1`."""
    if not polynomial:
        return 0
    if set(polynomial) == {()}:
        return polynomial[()]
    parts = []
    for factors, value in sorted(polynomial.items(), key=lambda item: (-len(item[0]), item[0])):
        product = "*".join(factors)
        parts.append(str(value) if not factors else product if value == 1 else f"{value}*{product}")
    return " + ".join(parts).replace("+ -", "- ")


def steady_run(index: Index, variable: str, steps: int, limit: int = 4096) -> tuple[int, int] | None:
    """Walk `variable` from 0 with everything else at 0: return the first step of the index, and for how
    many values of the variable the step stays the same (at most `limit` are walked).

    None when the expression cannot be evaluated (symbolic sizes, unknown functions).
    """
    node = parse_expression(index.text)
    values = dict.fromkeys(index.names, 0)
    previous: int | None = None
    step: int | None = None
    for at in range(min(steps, limit)):
        value = evaluate(node, {**values, variable: at})
        if value is None:
            return None
        if previous is not None:
            if step is None:
                step = value - previous
            elif value - previous != step:
                return step, at
        previous = value
    return None if step is None else (step, min(steps, limit))
