"""Values as expressions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Literal

from inductor_probe.analysis.formula.body import SLOT
from inductor_probe.analysis.formula.naming import Named
from inductor_probe.analysis.formula.shapes import Shapes, children
from inductor_probe.analysis.formula.spelling import (
    CHAINED,
    LEVEL,
    OF_MASKS,
    PAIRED,
    PARTS,
    PLAIN,
    RENAMED,
    chain,
    signed,
)
from inductor_probe.analysis.formula.values import INDEX, LEAVES, Value, Values, shown
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

_ALONE: dict[str, Literal["-", "~", "not"]] = {"neg": "-", "bitwise_not": "~", "logical_not": "not"}


class Tree:
    """Makes expressions of values; where a value has a name, it is the name.

    The lines of the body that an expression stands for are added to `lines`.
    """

    def __init__(
        self, values: Values, shapes: Shapes, named: Named, names: Mapping[int, str], reduced: tuple[str, ...]
    ) -> None:
        """`names` are those of named values and of parameters; it may grow. `reduced` are loop variables."""
        self._values = values
        self._shapes = shapes
        self._named = named
        self._names = names
        self._reduced = reduced
        self.lines: set[int] = set()

    def inside(self, at: int) -> Iterator[int]:
        """Yield the named values that the expression of `at` itself names, in order."""
        waiting = [at]
        while waiting:
            inner = waiting.pop()
            if inner in self._shapes.calls:
                yield self._shapes.calls[inner][0]
            elif inner in self._named.chosen and inner != at:
                yield inner
                continue
            waiting += reversed(children(self._values, inner, self._shapes.calls))

    def reference(self, at: int) -> Expression:
        """Return the name of a value, or its expression when it has none."""
        if at in self._shapes.calls:
            general, given = self._shapes.calls[at]
            self.lines |= self._values.lines[at]
            own = self._named.parameters[general]
            return Call(self._names[general], tuple(self.reference(given.get(arg, arg)) for arg in own))
        if at in self._named.chosen:
            own = self._named.parameters[at]
            name = self._names[at]
            return Call(name, tuple(self.reference(arg) for arg in own)) if own else Name(name)
        return self.expression(at)

    def expression(self, at: int) -> Expression:
        """Return the expression of a value, named or not."""
        value = self._values.table[at]
        if self._operator(at) is not None:
            return self._chain(at)
        self.lines |= self._values.lines[at]
        if value.kind in LEAVES:
            return self._leaf(at, value)
        match value.kind:
            case "sum":
                return self._sum(value)
            case "load":
                places = tuple(self.reference(arg) for arg in shown(value))
                return BufferElement(str(value.detail[0]), places)
            case "cast":
                return self._cast(value)
            case "item":
                return self._item(value)
            case "function":
                return Call(str(value.detail[0]), tuple(self.reference(arg) for arg in value.args))
        return self._call(value) if value.detail else self._operation(value)

    def _leaf(self, at: int, value: Value) -> Expression:
        if value.kind == "parameter":
            return Name(self._names[at])
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
            return Call("clamp", tuple(self.reference(arg) for arg in (*low.args, value.args[1])))
        if value.kind in RENAMED and len(value.args) == 2:
            return self._extreme(value)
        if value.kind == "reciprocal" and len(value.args) == 1:
            return Chain(Number("1.0"), (("/", self.reference(value.args[0])),))
        if value.kind in PAIRED and len(value.args) == 2:
            left, right = (self.reference(arg) for arg in value.args)
            return Binary(PAIRED[value.kind], left, right)
        if value.kind in _ALONE and len(value.args) == 1:
            return Unary(_ALONE[value.kind], self.reference(value.args[0]))
        return self._call(value)

    def _operator(self, at: int) -> str | None:
        """Return the operator that a value is written with, if it is one that chains."""
        value = self._values.table[at]
        operator = CHAINED.get(value.kind)
        if operator is None or value.detail or len(value.args) < 2:
            return None
        if operator in OF_MASKS and all(self._values.dtypes[arg] == "bool" for arg in value.args):
            return OF_MASKS[operator]
        return operator

    def _chain(self, at: int) -> Expression:
        """Follow the left operands down as long as they are of one level."""
        operator = self._operator(at)
        level = LEVEL[operator or "+"]
        spine: list[tuple[str, tuple[int, ...]]] = []
        inner = at
        while operator is not None and LEVEL[operator] == level:
            self.lines |= self._values.lines[inner]
            left, *right = self._values.table[inner].args
            spine.append((operator, tuple(right)))
            inner = left
            inline = inner not in self._named.chosen and inner not in self._shapes.calls
            operator = self._operator(inner) if inline else None
        first = self.reference(inner)
        rest = [signed(sign, self.reference(arg)) for sign, args in reversed(spine) for arg in args]
        return Chain(first, tuple(rest))

    def _sum(self, value: Value) -> Expression:
        """Write an index: what is added, then what is taken away, the constant where it reads best."""
        parts: list[tuple[str, Expression]] = []
        for arg, factor in zip(value.args[1:], value.detail, strict=True):
            number = int(str(factor))
            term = self.reference(arg)
            if abs(number) != 1:
                term = chain(Number(str(abs(number))), [("*", term)])
            parts.append(("-" if number < 0 else "+", term))
        parts.sort(key=lambda part: part[0] == "-")
        if self._values.number(value.args[0]) != "0":
            constant = signed("+", self.reference(value.args[0]))
            parts.insert(len(parts) if parts and parts[0][0] == "+" else 0, constant)
        if not parts:
            return Number("0")
        sign, first = parts[0]
        if sign == "-":
            first = Number(f"-{first.text}") if isinstance(first, Number) else Unary("-", first)
        return chain(first, parts[1:])

    def _cast(self, value: Value) -> Expression:
        dtype, keywords, *source = value.detail
        pairs = keywords if isinstance(keywords, tuple) else ()
        known = [(str(key), Text(str(text))) for key, text in pairs]
        known += [("source", Text(short_dtype(str(name)))) for name in source]
        return Call(short_dtype(str(dtype)), (self.reference(value.args[0]),), tuple(known))

    def _item(self, value: Value) -> Expression:
        of = value.args[0]
        kind = _over_kind(self._values.table[of])
        at = int(str(value.detail[0]))
        names = PARTS.get(kind or "", ())
        return Part(self.reference(of), names[at] if at < len(names) else str(at))

    def _call(self, value: Value) -> Expression:
        pattern: tuple[Hashable, ...] = (SLOT,) * len(value.args)
        keywords: tuple[tuple[str, Hashable], ...] = ()
        if len(value.detail) >= 2:
            pattern, keywords = value.detail[:2]  # type: ignore[assignment]  # as `body` made it
        args = iter(value.args)
        given = [self._argument(form, args) for form in pattern]
        named = tuple((key, self._argument(form, args)) for key, form in keywords)
        kind = _over_kind(value)
        if kind is not None:
            return self._over(kind, given, named)
        name = value.kind
        if name in PLAIN:
            name = RENAMED.get(name, name)
        elif "." not in name:
            name = f"ops.{name}"
        return Call(name, tuple(given), named)

    def _extreme(self, value: Value) -> Expression:
        """Write `max(max(a, b), c)` as `max(a, b, c)`: from left to right, as a sum is."""
        kind = value.kind
        right: list[int] = []
        while True:
            left, last = value.args
            right.append(last)
            inner = self._values.table[left]
            named = left in self._named.chosen or left in self._shapes.calls
            if named or inner.kind != kind or inner.detail or len(inner.args) != 2:
                break
            self.lines |= self._values.lines[left]
            value = inner
        return Call(RENAMED[kind], tuple(self.reference(arg) for arg in (left, *reversed(right))))

    def _is_clamp(self, value: Value) -> bool:
        """Tell whether it is `min(max(x, a), b)` with numbers a and b, which is how torch defines a clamp.

        Of NaN all three make NaN. The other order, `max(min(x, b), a)`, is left as it is.
        """
        if len(value.args) != 2 or value.args[0] in self._named.chosen or value.args[0] in self._shapes.calls:
            return False
        low = self._values.table[value.args[0]]
        limits = (value.args[1], *low.args[1:])
        plain = low.kind == "maximum" and len(low.args) == 2 and not low.detail
        return plain and all(map(self._is_number, limits))

    def _is_number(self, at: int) -> bool:
        return self._values.table[at].kind in {"constant", "parameter"}

    def _over(
        self, kind: str, given: list[Expression], keywords: tuple[tuple[str, Expression], ...]
    ) -> Expression:
        if kind == "sort":
            values, *rest = given[1:]
            keywords = (*zip(("stable", "descending"), rest, strict=False), *keywords)
        else:
            values = given[-1]
            if kind != "scan" and given[0] != given[1]:
                keywords = (("dtype", given[0]), *keywords)
        inner = values.arguments if isinstance(values, Call) and not values.function else (values,)
        return Over(kind, self._reduced, inner, keywords)

    def _argument(self, form: Hashable, args: Iterator[int]) -> Expression:
        """Return the argument that `form` of a pattern stands for, taking its values from `args`."""
        if form == SLOT:
            return self.reference(next(args))
        kind, *parts = form if isinstance(form, tuple) else ("literal", form)
        if kind == "tuple":
            return Call("", tuple(self._argument(part, args) for part in parts))
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
