"""Index expressions as values."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from inductor_probe.analysis.formula.values import INDEX, Value, Values
from inductor_probe.analysis.index import Index, parse_expression, parse_index

Terms = tuple[tuple[tuple[str, ...], int], ...]
"""A sum: products of factors (names, or the text of what is no sum) and their coefficients."""

_REMAINDERS = {"Mod", "PythonMod"}


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
    """Adds index expressions to a table of values."""

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
        except RecursionError:  # only a dump that nobody's compiler wrote is nested so deep
            pass
        return self._values.add(Value("verbatim", (), (text,)), INDEX)

    def terms(self, terms: Terms) -> int:
        """Add a sum."""
        constant = 0
        monomials: list[tuple[int, int]] = []
        for factors, coefficient in terms:
            if factors:
                monomials.append((self._monomial(factors), coefficient))
            else:
                constant += coefficient
        monomials.sort()
        args = (self._values.constant(constant, INDEX), *(at for at, _ in monomials))
        return self._values.add(Value("sum", args, tuple(factor for _, factor in monomials)), INDEX)

    def _monomial(self, factors: tuple[str, ...]) -> int:
        args = tuple(sorted(self._factor(_parsed(factor)) for factor in factors))
        return args[0] if len(args) == 1 else self._values.add(Value("product", args), INDEX)

    def _factor(self, node: ast.expr) -> int:
        match node:
            case ast.Name(id=name):
                known = self._names.get(name)
                return self._values.add(Value("symbol", (), (name,)), INDEX) if known is None else known
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return self._quotient(left, right)
            case ast.Call(func=ast.Name(id="FloorDiv"), args=[left, right], keywords=[]):
                return self._quotient(left, right)
            case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if name in _REMAINDERS:
                return self._values.add(Value("remainder", (self._inner(left), self._inner(right))), INDEX)
            case ast.Call(func=ast.Name(id="ModularIndexing"), args=[base, divisor, modulus], keywords=[]):
                whole = self._inner(base)
                if not (isinstance(divisor, ast.Constant) and divisor.value == 1):
                    zero = self._values.constant(0, INDEX)
                    whole = self._values.add(Value("sum", (zero, self._quotient(base, divisor)), (1,)), INDEX)
                return self._values.add(Value("remainder", (whole, self._inner(modulus))), INDEX)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                inner = tuple(self._inner(argument) for argument in arguments)
                return self._values.add(Value("function", inner, (name,)), INDEX)
        names = sorted({part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & set(self._names))
        args = tuple(self._names[name] for name in names)
        return self._values.add(Value("verbatim", args, (ast.unparse(node),)), INDEX)

    def _quotient(self, left: ast.expr, right: ast.expr) -> int:
        return self._values.add(Value("floordiv", (self._inner(left), self._inner(right))), INDEX)

    def _inner(self, node: ast.expr) -> int:
        return self.text(ast.unparse(node))
