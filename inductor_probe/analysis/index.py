"""Sizes and index expressions as sympy prints them, without sympy and without `eval`: values and strides.

An expression such as `672*p0 - 3*p1 + p2 + 669` becomes a polynomial over its variables; the stride of a
variable is the factor it stands with. Divisions, `ModularIndexing` and the like stay opaque factors: a
variable inside one has no single stride, and is `piecewise`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from inductor_probe.model.ir import Dim
from inductor_probe.reader import python_text

PIECEWISE = "piecewise"
INDIRECT = "indirect"
SYMBOL = re.compile(r"\b[su]\d+\b")
"""Symbolic sizes: `s77` is backed (torch had a value for it), `u0` is not (`ShapeEnv` in torch)."""

_LARGEST_POWER = 8
_LARGEST_BITS = 1024
"""Of a value. An index or size of torch has 64, a product on the way to one has more. A power of powers,
`((2**8)**8)**8`, would grow until the memory is full."""
_MOST_TERMS = 1000
_MOST_FACTORS = 32
_LARGEST_COEFFICIENT_BITS = 128
"""Beyond these a product stays as it is printed: `((a + b + c)**8)**8` has 2,145 terms, and one power more
would have a hundred thousand. Indices of torch have a term a loop, and 64 bits."""
_FREE_NAME = re.compile(r"\b[A-Za-z_]\w*\b(?!\()")
_PRIMES = (10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079, 10091, 10093, 10099, 10103)

_Polynomial = dict[tuple[str, ...], int]
"""A sum of products: sorted factors -> integer coefficient. `2*s0*x + 1` is `{("s0", "x"): 2, (): 1}`."""


def parse_expression(text: str) -> ast.expr:
    """Parse an expression.

    Raises:
        ValueError: not an expression, or too long to be one of inductor's.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # about text that is read, not run
        return python_text.parse_expression(text.strip())


def all_numbers(sizes: Iterable[Dim | None]) -> list[int] | None:
    """Return sizes that are all numbers; None where one is symbolic, or not known."""
    sizes = list(sizes)
    numbers = [size for size in sizes if isinstance(size, int)]
    return numbers if len(numbers) == len(sizes) else None


def known_sum(sizes: Iterable[Dim | None]) -> int | None:
    """Return the sum of sizes; None where one is symbolic, or not known."""
    numbers = all_numbers(sizes)
    return None if numbers is None else sum(numbers)


def value_of(size: Dim | None, values: Mapping[str, int]) -> int | None:
    """Return a size as a number; None where it is no expression, or names what `values` does not hold."""
    if not isinstance(size, str):
        return size
    try:
        return evaluate(parse_expression(size), values)
    except ValueError:
        return None


def evaluate(node: ast.expr, values: Mapping[str, int]) -> int | None:
    """Evaluate `+ - * / // % **`, `FloorDiv`, `CeilDiv`, `Mod`, `PythonMod`, `ModularIndexing`, `Min`, `Max`.

    None for anything but integers, for a division by zero or with a rest, for a name that `values` does not
    hold, and for a value far beyond any size.
    """
    match node:
        case ast.Constant(value=int() as constant):
            return constant if constant.bit_length() <= _LARGEST_BITS else None
        case ast.Name(id=name):
            return values.get(name)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            function, operands = "Sub", [ast.Constant(0), inner]
        case ast.BinOp(left=left, op=op, right=right):
            function, operands = type(op).__name__, [left, right]
        case ast.Call(func=func, args=operands, keywords=[]):
            function = ast.unparse(func).removeprefix("math.")
        case _:
            return None
    numbers = [number for operand in operands if (number := evaluate(operand, values)) is not None]
    result = _apply(function, numbers) if len(numbers) == len(operands) else None
    return None if result is None or result.bit_length() > _LARGEST_BITS else result


def _apply(function: str, numbers: list[int]) -> int | None:
    match function, numbers:
        case "Add", [left, right]:
            return left + right
        case "Sub", [left, right]:
            return left - right
        case "Mult", [left, right]:
            return left * right
        case ("FloorDiv" | "CleanDiv", [left, right]) if right:
            return left // right
        case ("Div", [left, right]) if right and not left % right:
            return left // right
        case ("CeilDiv", [left, right]) if right:
            return -(-left // right)
        case ("Mod" | "PythonMod", [left, right]) if right:
            return left % right
        case ("Pow", [left, right]) if 0 <= right <= _LARGEST_POWER:
            return int(left**right)
        case ("ModularIndexing", [base, divisor, modulus]) if divisor and modulus:
            return base // divisor % modulus
        case "abs" | "floor", [number]:
            return abs(number) if function == "abs" else number
        case "Max" | "max" | "Min" | "min", [_, *_]:
            return max(numbers) if function in ("Max", "max") else min(numbers)
    return None


def prime_values(texts: Iterable[str], shift: int = 0) -> dict[str, int]:
    """Give each name in `texts` a prime of its own, by first mention: `s0*s1` -> {s0: 10007, s1: 10009}.

    Symbolic sizes are compared by value so: expressions that are equal are equal for any values, and distinct
    primes larger than real sizes are hardly equal by chance. Only the order and the products matter.
    """
    names = dict.fromkeys(name for text in texts for name in _FREE_NAME.findall(text))
    return {name: _PRIMES[(number + shift) % len(_PRIMES)] for number, name in enumerate(names)}


def dims_sum(sizes: Iterable[Dim]) -> Dim:
    """Return the sum of sizes: a number, or text where some are symbolic: `100*s0 + 4*s1 + 8`."""
    sizes = tuple(sizes)
    number = sum(size for size in sizes if isinstance(size, int))
    symbolic = [size for size in sizes if isinstance(size, str)]
    if not symbolic:
        return number
    total: _Polynomial = {(): number} if number else {}
    try:
        for parsed in map(parse_index, symbolic):
            if parsed.opaque:  # it has a floor division, which cannot be reordered within a product
                raise ValueError("no polynomial")
            for factors, value in parsed.terms:
                total[factors] = total.get(factors, 0) + value
    except ValueError:
        return " + ".join([*symbolic, *([str(number)] if number else [])])
    return _text({factors: value for factors, value in total.items() if value})


class Index(Struct, frozen=True):
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
            if factors.count(variable) > 1 or any(variable in inside.get(name, ()) for name in factors):
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
        case ast.Constant(value=int() as value) if value.bit_length() <= _LARGEST_COEFFICIENT_BITS:
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
    functions = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    opaque[text] = frozenset(
        part.id for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in functions
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
            if len(key) > _MOST_FACTORS or result[key].bit_length() > _LARGEST_COEFFICIENT_BITS:
                return None
    return {factors: value for factors, value in result.items() if value}


def _text(polynomial: _Polynomial) -> Dim:
    """Write a polynomial as a number or as text: `2*s27*s77 + 1`."""
    if set(polynomial) <= {()}:
        return polynomial.get((), 0)
    parts = []
    for factors, value in sorted(polynomial.items(), key=lambda item: (-len(item[0]), item[0])):
        product = "*".join(factors)
        parts.append(str(value) if not factors else product if value == 1 else f"{value}*{product}")
    return " + ".join(parts).replace("+ -", "- ")


def merged_loops(loops: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return loops, a stride and a size each, with those merged that one loop can be.

    The outermost comes first: 64 steps by 10 around 10 by 1 are 640 by 1.
    """
    merged: list[tuple[int, int]] = []
    for stride, size in loops:
        if merged and merged[-1][0] == stride * size:
            merged[-1] = stride, merged[-1][1] * size
        else:
            merged.append((stride, size))
    return merged


def steady_run(index: Index, variable: str, steps: int, limit: int = 4096) -> tuple[int, int] | None:
    """Walk `variable` from 0 with everything else at 0: return the first step of the index, and for how
    many values of the variable the step stays the same (at most `limit` are walked).

    None when the expression cannot be evaluated (symbolic sizes, unknown functions). For
    `ModularIndexing(x, 1, 4)` over 8 values of x the index is 0 1 2 3 0 1 2 3: (1, 4).
    """
    node = parse_expression(index.text)
    values = dict.fromkeys(index.names, 0)
    previous = step = None
    for number in range(min(steps, limit)):
        value = evaluate(node, {**values, variable: number})
        if value is None:
            return None
        if previous is not None:
            if step is None:
                step = value - previous
            elif value - previous != step:
                return step, number
        previous = value
    return None if step is None else (step, min(steps, limit))
