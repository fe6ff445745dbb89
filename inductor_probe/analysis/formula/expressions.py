"""Values as expressions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Literal

from inductor_probe.analysis.formula.body import SLOT
from inductor_probe.analysis.formula.naming import Named
from inductor_probe.analysis.formula.shapes import Shapes
from inductor_probe.analysis.formula.values import INDEX, LEAVES, Value
from inductor_probe.model.formula import (
    Binary,
    BufferElement,
    Call,
    Chain,
    Expression,
    Name,
    Number,
    Over,
    Part,
    Text,
    Unary,
)
from inductor_probe.model.fx import short_dtype

_CHAINED = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "remainder": "%", "xor": "^",
    "logical_and": "and", "logical_or": "or", "bitwise_left_shift": "<<", "bitwise_right_shift": ">>",
    "lshift": "<<", "rshift": ">>", "product": "*", "and_": "&", "or_": "|",
}  # fmt: skip
_OF_MASKS = {"&": "and", "|": "or"}
_PAIRED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "pow": "**"}
_UNARY: dict[str, Literal["-", "~", "not"]] = {"neg": "-", "bitwise_not": "~", "logical_not": "not"}
_EXTREMES = {"maximum": "max", "minimum": "min"}
_LEVELS = ({"+", "-"}, {"*", "/", "//", "%"}, {"<<", ">>"}, {"and"}, {"or"}, {"&"}, {"|"}, {"^"})
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
"""Operators of one level follow each other without parentheses."""
_PARTS = {
    "welford": ("mean", "m2", "weight"),
    "welford_combine": ("mean", "m2", "weight"),
    "online_softmax": ("max", "sum"),
}
_PLAIN = frozenset({
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


class Expressions:
    """Makes expressions of values; where a value has a name, it is the name.

    The lines of the body that an expression is made of are added to `lines`.
    """

    def __init__(
        self, shapes: Shapes, named: Named, names: Mapping[int, str], reduced: tuple[str, ...]
    ) -> None:
        """`names` are those of named values and of parameters; it may grow. `reduced` are loop variables."""
        self._values = shapes.values
        self._shapes = shapes
        self._named = named
        self._names = names
        self._reduced = reduced
        self.lines: set[int] = set()

    def inside(self, number: int) -> Iterator[int]:
        """Yield the named values that the expression of a value itself names, in order."""
        waiting = [number]
        while waiting:
            inner = waiting.pop()
            if inner in self._shapes.calls:
                yield self._shapes.calls[inner][0]
            elif inner in self._named.chosen and inner != number:
                yield inner
                continue
            waiting += reversed(self._shapes.children(inner))

    def reference(self, number: int) -> Expression:
        """Return the name of a value, or its expression when it has none."""
        if self._named.in_place(number):
            return self.expression(number)
        arguments: dict[int, int] = {}
        if number in self._shapes.calls:
            self.lines |= self._values.lines[number]
            number, arguments = self._shapes.calls[number]
        parameters = self._named.parameters[number]
        name = self._names[number]
        if not parameters:
            return Name(name)
        return Call(
            name, self._references(*(arguments.get(parameter, parameter) for parameter in parameters))
        )

    def _references(self, *numbers: int) -> tuple[Expression, ...]:
        return tuple(self.reference(number) for number in numbers)

    def expression(self, number: int) -> Expression:
        """Return the expression of a value, named or not."""
        value = self._values.table[number]
        if self._operator(number) is not None:
            return self._chain(number)
        self.lines |= self._values.lines[number]
        if value.kind in LEAVES:
            return self._leaf(number, value)
        match value.kind:
            case "sum":
                return self._sum(value)
            case "load":
                return BufferElement(str(value.detail[0]), self._references(*value.shown))
            case "cast":
                return self._cast(value)
            case "item":
                of = value.args[0]
                names = _PARTS.get(_over_kind(self._values.table[of]) or "", ())
                part = int(str(value.detail[0]))
                return Part(self.reference(of), names[part] if part < len(names) else str(part))
            case "function":
                return Call(str(value.detail[0]), self._references(*value.args))
        return self._call(value) if value.detail else self._operation(value)

    def _leaf(self, number: int, value: Value) -> Expression:
        if value.kind == "parameter":
            return Name(self._names[number])
        text = str(value.detail[0])
        if value.kind == "constant":
            dtype = value.detail[1]
            return Number(text, None if dtype in {None, INDEX} else str(dtype))
        return Text(text) if value.kind in {"literal", "verbatim"} else Name(text)

    def _operation(self, value: Value) -> Expression:
        """Write an operation whose arguments are all values."""
        if value.kind == "minimum" and self._is_clamp(value):
            low = self._values.table[value.args[0]]
            self.lines |= self._values.lines[value.args[0]]
            return Call("clamp", self._references(*low.args, value.args[1]))
        if value.kind in _EXTREMES and len(value.args) == 2:
            return self._extreme(value)
        if value.kind == "reciprocal" and len(value.args) == 1:
            return Chain(Number("1.0"), (("/", self.reference(value.args[0])),))
        if value.kind in _PAIRED and len(value.args) == 2:
            return Binary(_PAIRED[value.kind], *self._references(*value.args))
        if value.kind in _UNARY and len(value.args) == 1:
            return Unary(_UNARY[value.kind], self.reference(value.args[0]))
        return self._call(value)

    def _operator(self, number: int) -> str | None:
        """Return the operator that a value is written with, if it is one that chains."""
        value = self._values.table[number]
        operator = _CHAINED.get(value.kind)
        if operator is None or value.detail or len(value.args) < 2:
            return None
        of_masks = all(self._values.dtypes[arg] == "bool" for arg in value.args)
        return _OF_MASKS.get(operator, operator) if of_masks else operator

    def _chain(self, number: int) -> Expression:
        """Follow the left operands down as long as they are of one level."""
        operator = self._operator(number)
        level = _LEVEL[operator or "+"]
        spine: list[tuple[str, list[int]]] = []
        while operator is not None and _LEVEL[operator] == level:
            self.lines |= self._values.lines[number]
            number, *right = self._values.table[number].args
            spine.append((operator, right))
            operator = self._operator(number) if self._named.in_place(number) else None
        first = self.reference(number)
        rest = [_signed(sign, self.reference(arg)) for sign, args in reversed(spine) for arg in args]
        return Chain(first, tuple(rest))

    def _sum(self, value: Value) -> Expression:
        """Write an index: what is added, then what is subtracted, the constant where it reads best."""
        parts: list[tuple[str, Expression]] = []
        for arg, factor in zip(value.args[1:], value.detail, strict=True):
            number = int(str(factor))
            term = self.reference(arg)
            if abs(number) != 1:
                term = _joined(Number(str(abs(number))), [("*", term)])
            parts.append(("-" if number < 0 else "+", term))
        parts.sort(key=lambda part: part[0] == "-")
        if self._values.constant_text(value.args[0]) != "0":
            constant = _signed("+", self.reference(value.args[0]))
            parts.insert(len(parts) if parts and parts[0][0] == "+" else 0, constant)
        if not parts:
            return Number("0")
        sign, first = parts[0]
        if sign == "-":
            first = Number(f"-{first.text}") if isinstance(first, Number) else Unary("-", first)
        return _joined(first, parts[1:])

    def _cast(self, value: Value) -> Expression:
        dtype, keywords, *source = value.detail
        pairs = keywords if isinstance(keywords, tuple) else ()
        known = [(str(key), Text(str(text))) for key, text in pairs]
        known += [("source", Text(short_dtype(str(name)))) for name in source]
        return Call(short_dtype(str(dtype)), self._references(*value.args), tuple(known))

    def _call(self, value: Value) -> Expression:
        pattern: tuple[Hashable, ...] = (SLOT,) * len(value.args)
        keywords: tuple[tuple[str, Hashable], ...] = ()
        if len(value.detail) >= 2:
            pattern, keywords = value.detail[:2]  # type: ignore[assignment]  # as `body` made it
        values = iter(value.args)
        arguments = tuple(self._argument(form, values) for form in pattern)
        named = tuple((key, self._argument(form, values)) for key, form in keywords)
        kind = _over_kind(value)
        if kind is not None:
            return self._over(kind, arguments, named)
        name = _EXTREMES.get(value.kind, value.kind)
        if value.kind not in _PLAIN and "." not in name:
            name = f"ops.{name}"
        return Call(name, arguments, named)

    def _extreme(self, value: Value) -> Expression:
        """Write `max(max(a, b), c)` as `max(a, b, c)`: from left to right, as a sum is."""
        kind = value.kind
        right: list[int] = []
        while True:
            left, last = value.args
            right.append(last)
            inner = self._values.table[left]
            if not self._named.in_place(left) or (inner.kind, inner.detail, len(inner.args)) != (kind, (), 2):
                break
            self.lines |= self._values.lines[left]
            value = inner
        return Call(_EXTREMES[kind], self._references(left, *reversed(right)))

    def _is_clamp(self, value: Value) -> bool:
        """Return whether it is `min(max(x, a), b)` with numbers a and b, which is how torch defines a clamp.

        Of NaN all three make NaN. The other order, `max(min(x, b), a)`, is left as it is.
        """
        if len(value.args) != 2 or not self._named.in_place(value.args[0]):
            return False
        low = self._values.table[value.args[0]]
        if low.kind != "maximum" or len(low.args) != 2 or low.detail:
            return False
        limits = (value.args[1], low.args[1])
        return all(self._values.table[limit].kind in {"constant", "parameter"} for limit in limits)

    def _over(
        self, kind: str, arguments: tuple[Expression, ...], keywords: tuple[tuple[str, Expression], ...]
    ) -> Expression:
        if kind == "sort":
            _, values, *rest = arguments
            keywords = (*zip(("stable", "descending"), rest, strict=False), *keywords)
        else:
            values = arguments[-1]
            if kind != "scan" and arguments[0] != arguments[1]:
                keywords = (("dtype", arguments[0]), *keywords)
        inner = values.arguments if isinstance(values, Call) and not values.function else (values,)
        return Over(kind, self._reduced, inner, keywords)

    def _argument(self, form: Hashable, values: Iterator[int]) -> Expression:
        """Return the argument that `form` of a pattern describes, with the next of `values` for a slot."""
        if form == SLOT:
            return self.reference(next(values))
        kind, *parts = form if isinstance(form, tuple) else ("literal", form)
        if kind == "tuple":
            return Call("", tuple(self._argument(part, values) for part in parts))
        text = str(parts[0])
        if kind == "dotted":
            return Text(short_dtype(text.removeprefix("torch.")))
        if text[:1] == "'":
            return Text(text[1:-1] if text[1:-1].isidentifier() else text)
        return Text(text) if text == "None" else Number(text)


def _over_kind(value: Value) -> str | None:
    """Name what runs over loops, None for what does not, or is not called as it should be."""
    pattern = value.detail[0] if len(value.detail) > 1 else ()
    if not isinstance(pattern, tuple):
        return None
    if value.kind == "reduction" and len(pattern) == 4 and pattern[2][:1] == ("literal",):
        return str(pattern[2][1]).strip("'").removesuffix("_reduce")
    if value.kind.startswith("self.scan") and len(pattern) == 2:
        return "scan"
    return "sort" if value.kind == "sort" and len(pattern) >= 2 else None


def _joined(first: Expression, rest: list[tuple[str, Expression]]) -> Expression:
    """Return operations from left to right, `first` alone if there are none."""
    if not rest:
        return first
    if isinstance(first, Chain) and _LEVEL[first.rest[0][0]] == _LEVEL[rest[0][0]]:
        return Chain(first.first, (*first.rest, *rest))
    return Chain(first, tuple(rest))


def _signed(operator: str, term: Expression) -> tuple[str, Expression]:
    """Write `+ -3` as `- 3`: adding a negative number and subtracting a positive one give the same bits."""
    if operator in "+-" and isinstance(term, Number) and term.text.startswith("-"):
        return "-" if operator == "+" else "+", Number(term.text[1:], term.dtype)
    return operator, term
