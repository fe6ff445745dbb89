"""Which values get a name: what is used more than once, what has a shape, and what is nested too deep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, count

from inductor_probe.analysis.formula.shapes import Shapes
from inductor_probe.analysis.formula.values import INTEGERS, LEAVES, LIGHT

_DEEPEST = 32
"""Expressions nested deeper are cut by a name: nobody can read them, and no stack holds them all."""
_LONGEST = 14
"""Expressions of more operations are cut, if there is a part of at least `_LEAST_CUT` to be named."""
_LEAST_CUT = 7
_SUMS = frozenset({"add", "sub", "maximum", "minimum"})
_LEAST_SHARED = 2
_DEEPEST_LIGHT = 4
_WIDEST_LIGHT = 3
_LIGHT_OF_LIGHT = frozenset({"sum", "product", "cast", "floordiv", "remainder"})
_RUN = {"sub": "add", "truediv": "mul"} | {
    kind: kind
    for kind in ("add", "mul", "and_", "or_", "xor", "logical_and", "logical_or", "maximum", "minimum")
}
"""Operations of one run are written from left to right, without parentheses when they follow one another."""


class Named:
    """The values that get a name among those that `roots` need.

    Attributes:
        chosen: of those without parameters, and the general ones of shapes.
        parameters: of every value, those it depends on.
        under: of every value, the mask under which alone it may be computed.
    """

    def __init__(self, shapes: Shapes, roots: Sequence[int]) -> None:
        self._shapes = shapes
        self._values = shapes.values
        self._order = shapes.reachable([*roots, *shapes.general])
        self.parameters = self._parameters()
        self.under = self._masks()
        self._light = self._light_values()
        self.chosen = self._used_often(roots).union(shapes.general).difference(shapes.calls)
        self._cut_deep()
        self._cut_long()
        masks = {self.under[number] for number in self.chosen}
        self.chosen.update(mask for mask in masks if mask is not None and not self._stays(mask, absent=True))

    def in_place(self, number: int) -> bool:
        """Whether a value is written where it is used, neither by its name nor as a call."""
        return number not in self.chosen and number not in self._shapes.calls

    def _stays(self, number: int, *, absent: bool = False) -> bool:
        """Whether a value is not worth a name of its own; `absent` is the answer where nothing needs it."""
        return self._light.get(number, absent) or number in self._shapes.calls

    def _used_often(self, roots: Iterable[int]) -> set[int]:
        """Return the values that are used more than once and are better read under a name."""
        uses = dict.fromkeys(self._order, 0)
        for root in roots:
            uses[root] += 1
        work: list[int] = []  # operations of each value, as if nothing had a name
        for value in self._values.table:
            work.append(min((value.kind not in LIGHT) + sum(work[arg] for arg in value.shown), 1 << 40))
        general = set(self._shapes.general)
        for number in reversed(self._order):
            times = uses[number] if self._light[number] and number not in general else 1
            for arg in self._shapes.children(number):
                uses[arg] += times
                if self.parameters[number] and not self.parameters[arg] and work[arg] >= _LEAST_SHARED:
                    uses[arg] += 1  # the same in every call of the function it is in
        return {number for number in self._order if uses[number] > 1 and not self._light[number]}

    def _light_values(self) -> dict[int, bool]:
        """Return which values are better read in place than under a name."""
        table = self._values.table
        with_parts = {table[number].args[0] for number in self._order if table[number].kind == "item"}
        depth: dict[int, int] = {}
        light: dict[int, bool] = {}
        for number in self._order:
            value = table[number]
            plain = value.kind == "sum" and value.detail == (1,)  # an index that is one other value
            plain = plain and self._values.constant_text(value.args[0]) == "0"
            light[number] = value.kind in LEAVES or number in with_parts or plain
            if not light[number] and value.kind in _LIGHT_OF_LIGHT and len(value.args) <= _WIDEST_LIGHT:
                depth[number] = 1 + max((depth.get(arg, 0) for arg in value.args), default=0)
                small = depth[number] <= _DEEPEST_LIGHT
                light[number] = small and all(light.get(arg, False) for arg in value.args)
        return light

    def _cut_deep(self) -> None:
        depth: dict[int, int] = {}
        for number in self._order:
            args = self._shapes.children(number)
            below = [1 if arg in self.chosen else depth[arg] + 1 for arg in args]
            if self._continues_run(number) and below[0] > 1:
                below[0] -= 1  # `a + b + c` is read from left to right, not inwards
            for position, arg in enumerate(args):
                if below[position] > _DEEPEST and not self._stays(arg):
                    self.chosen.add(arg)
                    below[position] = 1
            depth[number] = max(below, default=1)

    def _cut_long(self) -> None:
        """Name the longest part of an expression that is too long. Sums are read term by term."""
        length: dict[int, int] = {}
        for number in self._order:
            kind = self._values.table[number].kind
            args = self._shapes.children(number)
            length[number] = (kind not in LIGHT) + sum(length[arg] for arg in args if arg not in self.chosen)
            parts = args[1:] if self._continues_run(number) else args
            while length[number] > _LONGEST and kind not in _SUMS:
                parts = tuple(arg for arg in parts if not (arg in self.chosen or self._stays(arg)))
                longest = max(parts, key=length.__getitem__, default=None)
                if longest is None or length[longest] < _LEAST_CUT:
                    break
                self.chosen.add(longest)
                length[number] -= length[longest]
            if kind in _SUMS:
                length[number] = min(length[number], _LONGEST)

    def _continues_run(self, number: int) -> bool:
        """Whether its text continues where that of its first argument ends: `a + b` of `a + b + c`."""
        value = self._values.table[number]
        if number in self._shapes.calls or value.kind not in _RUN or not value.args:
            return False
        return _RUN.get(self._values.table[value.args[0]].kind) == _RUN[value.kind]

    def _masks(self) -> list[int | None]:
        table = self._values.table
        under: list[int | None] = []
        for value in table:
            mask = max((mask for arg in value.shown if (mask := under[arg]) is not None), default=None)
            if value.kind == "load" and value.detail[2]:
                mask = value.args[-1]
            elif value.kind == "masked" and mask is not None:
                if mask == value.args[0]:  # the value is under the mask, and the result is not
                    outer = (under[value.args[0]], under[value.args[2]])
                    mask = max((number for number in outer if number is not None), default=None)
                elif table[mask].kind == "and_" and table[mask].args[1:] == value.args[:1]:
                    mask = table[mask].args[0]
            under.append(mask)
        return under

    def _parameters(self) -> list[tuple[int, ...]]:
        parameters: list[tuple[int, ...]] = []
        for number, value in enumerate(self._values.table):
            distinct = {parameters[arg] for arg in value.args} - {()}
            if value.kind == "parameter":
                parameters.append((number,))
            elif len(distinct) < 2:
                parameters.append(next(iter(distinct), ()))
            else:
                parameters.append(tuple(sorted(set(chain.from_iterable(distinct)))))
        return parameters


class Spelling:
    """Makes names that nothing else has: `m0` for masks, `i0` for integers, `t0`; functions are `f`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        self._counts = {prefix: count() for prefix in "mit"}

    def name(self, dtype: str | None, parameters: int) -> str:
        """Return a new name for a value of `dtype`, or for a function of so many parameters."""
        if parameters:
            return self._new("fgh")
        prefix = "m" if dtype == "bool" else "i" if dtype in INTEGERS else "t"
        return self._first(f"{prefix}{number}" for number in self._counts[prefix])

    def parameter(self, dtype: str | None) -> str:
        """Return a new name for a parameter."""
        return self._new("jklq" if dtype in INTEGERS else "abcd")

    def _new(self, letters: str) -> str:
        return self._first(chain(letters, (f"{letters[0]}{number}" for number in count())))

    def _first(self, names: Iterable[str]) -> str:
        name = next(name for name in names if name not in self._names)
        self._names.add(name)
        return name
