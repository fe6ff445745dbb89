"""Which values get a name: what is used more than once, what has a shape, and what is nested too deep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from inductor_probe.analysis.formula.shapes import Shapes, children, reachable
from inductor_probe.analysis.formula.values import (
    INTEGERS,
    LEAVES,
    LIGHT,
    RUN,
    Value,
    Values,
    shown,
)

_DEEPEST = 32
"""Expressions nested deeper are cut by a name: no reader wants them, and no stack holds them all."""
_LONGEST = 14
"""Expressions of more operations are cut, if there is a part of at least `_LEAST_CUT` to be named."""
_LEAST_CUT = 7
_SUMS = frozenset({"add", "sub", "maximum", "minimum"})
_LEAST_SHARED = 2
_DEEPEST_LIGHT = 4
_WIDEST_LIGHT = 3

_LIGHT_OF_LIGHT = frozenset({"sum", "product", "cast", "floordiv", "remainder"})


@dataclass(frozen=True, slots=True)
class Named:
    """The values that get a name.

    Attributes:
        chosen: of those that stand for themselves alone, and the general ones of shapes.
        parameters: of every value, those it depends on.
        under: of every value, the mask under which alone it may be computed.
    """

    chosen: frozenset[int]
    parameters: list[tuple[int, ...]]
    under: list[int | None]


def choose_named(values: Values, roots: Iterable[int], shapes: Shapes) -> Named:
    """Choose the values to be named among those that `roots` need."""
    roots = list(roots)
    order = reachable(values, [*roots, *shapes.general], shapes.calls)
    general = set(shapes.general)
    light = _light(values, order)
    uses = dict.fromkeys(order, 0)
    for at in roots:
        uses[at] += 1
    parameters = _parameters(values)
    work = _work(values)
    for at in reversed(order):
        times = uses[at] if light[at] and at not in general else 1
        for arg in children(values, at, shapes.calls):
            uses[arg] += times
            if parameters[at] and not parameters[arg] and work[arg] >= _LEAST_SHARED:
                uses[arg] += 1  # the same in every call of the function it stands in
    chosen = {at for at in order if uses[at] > 1 and not light[at]} | general
    chosen.difference_update(shapes.calls)
    _cut_deep(values, order, shapes, chosen, light)
    _cut_long(values, order, shapes, chosen, light)
    under = _masks(values)
    for at in tuple(chosen):
        mask = under[at]
        if mask is not None and not light.get(mask, True) and mask not in shapes.calls:
            chosen.add(mask)
    return Named(frozenset(chosen), parameters, under)


def _light(values: Values, order: list[int]) -> dict[int, bool]:
    """Tell which values are better read in place than under a name."""
    with_parts = {values.table[at].args[0] for at in order if values.table[at].kind == "item"}
    depth: dict[int, int] = {}
    light: dict[int, bool] = {}
    for at in order:
        value = values.table[at]
        light[at] = value.kind in LEAVES or at in with_parts or _is_plain(values, value)
        if not light[at] and value.kind in _LIGHT_OF_LIGHT and len(value.args) <= _WIDEST_LIGHT:
            depth[at] = 1 + max((depth.get(arg, 0) for arg in value.args), default=0)
            light[at] = depth[at] <= _DEEPEST_LIGHT and all(light.get(arg, False) for arg in value.args)
    return light


def _is_plain(values: Values, value: Value) -> bool:
    """Whether it is an index that is one other value and nothing else."""
    return value.kind == "sum" and value.detail == (1,) and values.number(value.args[0]) == "0"


def _cut_deep(
    values: Values, order: list[int], shapes: Shapes, chosen: set[int], light: dict[int, bool]
) -> None:
    depth: dict[int, int] = {}
    for at in order:
        args = children(values, at, shapes.calls)
        below = [1 if arg in chosen else depth[arg] + 1 for arg in args]
        if _goes_on(values, at, shapes) and below[0] > 1:
            below[0] -= 1  # `a + b + c` is read from left to right, not inwards
        for place, arg in enumerate(args):
            if below[place] > _DEEPEST and not light[arg] and arg not in shapes.calls:
                chosen.add(arg)
                below[place] = 1
        depth[at] = max(below, default=1)


def _cut_long(
    values: Values, order: list[int], shapes: Shapes, chosen: set[int], light: dict[int, bool]
) -> None:
    """Name the longest part of an expression that is too long. Sums and the like are read term by term."""
    length: dict[int, int] = {}
    for at in order:
        kind = values.table[at].kind
        args = children(values, at, shapes.calls)
        length[at] = (kind not in LIGHT) + sum(0 if arg in chosen else length[arg] for arg in args)
        cuttable = args[1:] if _goes_on(values, at, shapes) else args
        while length[at] > _LONGEST and kind not in _SUMS:
            parts = [arg for arg in cuttable if not (arg in chosen or arg in shapes.calls or light[arg])]
            longest = max(parts, key=length.__getitem__, default=None)
            if longest is None or length[longest] < _LEAST_CUT:
                break
            chosen.add(longest)
            length[at] -= length[longest]
        if kind in _SUMS:
            length[at] = min(length[at], _LONGEST)


def _goes_on(values: Values, at: int, shapes: Shapes) -> bool:
    """Whether its text goes on where that of its first argument ends: `a + b` of `a + b + c`."""
    value = values.table[at]
    if at in shapes.calls or value.kind not in RUN or not value.args:
        return False
    return RUN.get(values.table[value.args[0]].kind) == RUN[value.kind]


def _work(values: Values) -> list[int]:
    """Count the operations of each value, as if nothing had a name."""
    work: list[int] = []
    for value in values.table:
        total = (value.kind not in LIGHT) + sum(work[arg] for arg in shown(value))
        work.append(min(total, 1 << 40))
    return work


def _masks(values: Values) -> list[int | None]:
    under: list[int | None] = []
    for value in values.table:
        inside = [found for arg in shown(value) if (found := under[arg]) is not None]
        mask = max(inside, default=None)
        if value.kind == "load" and value.detail[2]:
            mask = value.args[-1]
        elif value.kind == "masked" and mask is not None:
            outer = values.table[mask]
            if mask == value.args[0]:
                mask = max((at for arg in (0, 2) if (at := under[value.args[arg]]) is not None), default=None)
            elif outer.kind == "and_" and outer.args[1:] == value.args[:1]:
                mask = outer.args[0]
        under.append(mask)
    return under


def _parameters(values: Values) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for at, value in enumerate(values.table):
        if value.kind == "parameter":
            found.append((at,))
            continue
        inside = {arg_parameters for arg in value.args if (arg_parameters := found[arg])}
        if len(inside) < 2:
            found.append(next(iter(inside), ()))
        else:
            found.append(tuple(sorted({parameter for part in inside for parameter in part})))
    return found


class Spelling:
    """Hands out names that nothing else has: `m0` for masks, `i0` for integers, `t0`; functions are `f`."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._counts = {prefix: count() for prefix in "mit"}

    def name(self, dtype: str | None, parameters: int) -> str:
        """Return a new name for a value of `dtype`, or for a function of so many parameters."""
        if parameters:
            return self._free([*"fgh", *(f"f{number}" for number in range(len(self._taken) + 1))])
        prefix = "m" if dtype == "bool" else "i" if dtype in INTEGERS else "t"
        return self._free(f"{prefix}{number}" for number in self._counts[prefix])

    def parameter(self, dtype: str | None) -> str:
        """Return a new name for a parameter."""
        letters = "jklq" if dtype in INTEGERS else "abcd"
        return self._free([*letters, *(f"{letters[0]}{number}" for number in range(len(self._taken) + 1))])

    def _free(self, names: Iterable[str]) -> str:
        name = next(name for name in names if name not in self._taken)
        self._taken.add(name)
        return name
