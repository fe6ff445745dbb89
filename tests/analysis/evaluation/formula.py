"""Evaluates a formula."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from inductor_probe.model.formula import (
    Binary,
    BufferElement,
    Call,
    Chain,
    Definition,
    Expression,
    Formula,
    Name,
    Number,
    Over,
    Part,
    Store,
    Text,
    Unary,
)
from inductor_probe.model.ir import BufferLayout
from tests.analysis.evaluation.operations import (
    BINARY,
    CASTS,
    WRITTEN,
    cast,
    made_up,
    number_text,
    operate,
    reduce_all,
)
from tests.analysis.evaluation.world import Stored, World


class FormulaMachine:
    """Evaluates a formula at one point; a definition only when it is asked for."""

    def __init__(self, world: World, formula: Formula) -> None:
        self._world = world
        self._formula = formula
        self._strides = {
            view.buffer: _strides(view, world.layouts.get(view.buffer)) for view in formula.views
        }
        self._definitions = {s.name: s for s in formula.statements if isinstance(s, Definition)}

    def run(self, outer: dict[str, int], inner: list[dict[str, int]]) -> list[Stored]:
        stored: list[Stored] = []
        self._inner = inner
        for at, point in enumerate(inner):
            self._at = at
            self._outer = outer
            names = {**outer, **point}
            self._known: dict[tuple[Any, ...], Any] = {}
            for statement in self._formula.statements:
                if isinstance(statement, Definition) or (
                    statement.under is not None and not self.value(statement.under, names)
                ):
                    continue
                if isinstance(statement, Store):
                    place = self._place(statement.target, names)
                    value = self.value(statement.value, names)
                    stored.append((statement.target.buffer, place, number_text(value), statement.mode))
        return stored

    def value(self, expression: Expression, names: dict[str, Any]) -> Any:  # noqa: PLR0912 - an arm a record
        match expression:
            case Number(text=text):
                return _number(text, expression.dtype)
            case Name(name=name):
                if name in names:
                    return names[name]
                if name in self._definitions:
                    return self._call(name, [], names)
                return self._world.index(name, {})
            case BufferElement(buffer=buffer):
                return self._world.load(buffer, self._place(expression, names))
            case Unary(operator=sign, operand=operand):
                name = {"-": "neg", "~": "bitwise_not", "not": "logical_not"}[sign]
                return operate(name, [self.value(operand, names)])
            case Binary(operator=sign, left=left, right=right):
                return operate(WRITTEN[sign], [self.value(left, names), self.value(right, names)])
            case Chain(first=first, rest=rest):
                value = self.value(first, names)
                for sign, term in rest:
                    value = operate(WRITTEN[sign], [value, self.value(term, names)])
                return value
            case Part(of=Over() as over, part=part):
                return self._over(over, names, part)
            case Part(of=of, part=part):
                return made_up("item", self.value(of, names), int(part))
            case Over():
                return self._over(expression, names, None)
            case Text(text=text):
                return self._world.index(text, names)
            case Call():
                return self._function(expression, names)

    def _function(self, call: Call, names: dict[str, Any]) -> Any:
        name = call.function
        if name in self._definitions:
            return self._call(name, [self.value(arg, names) for arg in call.arguments], names)
        if name == "masked":
            mask, inside, other = call.arguments
            return self.value(inside if self.value(mask, names) else other, names)
        args = [self.value(arg, names) for arg in _flat(call)]
        if name in CASTS:
            return cast(args[0], name)
        if name in {"max", "min"} and len(args) > 1:
            return reduce(BINARY[WRITTEN[name]], args)
        if name == "clamp":
            return operate("minimum", [operate("maximum", args[:2]), args[2]])
        return operate(WRITTEN.get(name, name.removeprefix("ops.")), args)

    def _call(self, name: str, args: list[Any], names: dict[str, Any]) -> Any:
        definition = self._definitions[name]
        loops = {loop.variable: names[loop.variable] for loop in self._formula.loops}
        key = (name, *map(repr, args), *loops.values())
        if key not in self._known:
            inside = {**loops, **dict(zip(definition.parameters, args, strict=True))}
            self._known[key] = self.value(definition.value, inside)
        return self._known[key]

    def _place(self, access: BufferElement, names: dict[str, Any]) -> int:
        places = [self.value(subscript, names) for subscript in access.subscripts]
        offset, strides = self._strides[access.buffer]
        return int(offset + sum(s * self._world.size(t) for s, t in zip(places, strides, strict=True)))

    def _over(self, over: Over, names: dict[str, Any], part: str | None) -> Any:
        columns = [[self.value(value, {**names, **point}) for value in over.values] for point in self._inner]
        return reduce_all(over.kind, columns, self._at, part)


def _number(text: str, dtype: str | None) -> Any:
    number = {"True": True, "False": False}.get(text)
    if number is None:
        number = float(text) if any(c in text for c in ".enf") else int(text)
    return number if dtype is None else cast(number, dtype)


def _flat(call: Call) -> Iterator[Expression]:
    for arg in (*call.arguments, *(value for _, value in call.keywords)):
        if isinstance(arg, Call) and not arg.function:
            yield from _flat(arg)
        elif not isinstance(arg, Text):
            yield arg


def _strides(view: Any, layout: BufferLayout | None) -> tuple[Any, list[Any]]:
    """Return the offset and the strides of what the subscripts run over, from the layout alone."""
    if view.shape is None or layout is None:
        return 0, [1]
    sizes, strides = list(layout.size or ()), list(layout.stride or ())
    if view.order is not None:
        sizes, strides = [sizes[dim] for dim in view.order], [strides[dim] for dim in view.order]
    if tuple(sizes) == view.shape:
        return layout.offset, strides
    kept = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size != 1]
    found = []
    for length in view.shape:
        whole = 1
        while whole < length:
            size, stride = kept.pop(0)
            whole *= size
        assert whole == length
        found.append(stride)
    assert not kept
    return layout.offset, found
