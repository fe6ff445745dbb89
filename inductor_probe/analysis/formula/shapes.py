"""What is computed several times with other constants: the weights of five taps are a function of the tap.

Values have one shape when they differ in constants only. Of the values of one shape a general one is made,
with parameters where the constants differ; constants that change together are one parameter. The largest
shapes come first, and what is left inside them is looked at again, so that a row of taps becomes a function
that calls another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from inductor_probe.analysis.formula.values import INTEGERS, LIGHT, Value, Values, shown

_MOST_PARAMETERS = 2
_MOST_SHAPES = 24
_FEWEST = 3
"""As many values make a shape worth a name; two do, if the shape is large."""
_LEAST_WORK = 3
_LEAST_WORK_OF_TWO = 5
_MOST_ATTEMPTS = 128


Calls: TypeAlias = dict[int, tuple[int, dict[int, int]]]
"""A value -> the general value that it is, and which values the parameters of that are here."""


def children(values: Values, at: int, calls: Calls) -> tuple[int, ...]:
    """Return the values that stand in the text of `at`: its arguments, or those of the call that it is."""
    return tuple(calls[at][1].values()) if at in calls else shown(values.table[at])


@dataclass(slots=True)
class Shapes:
    """General values, and the values that they stand for."""

    general: list[int] = field(default_factory=list)
    calls: Calls = field(default_factory=dict)


def find_shapes(values: Values, roots: Iterable[int]) -> Shapes:
    """Find the shapes among the values that `roots` need; general values are added to `values`."""
    found = Shapes()
    index = _ShapeIndex(values)
    refused: set[int] = set()
    roots = list(roots)
    while len(found.general) < _MOST_SHAPES and len(refused) < _MOST_ATTEMPTS:
        groups: dict[int, list[int]] = {}
        for at in reachable(values, [*roots, *found.general], found.calls):
            groups.setdefault(index.shape(at), []).append(at)
        candidates = [
            (index.weight(members[0]), shape, members)
            for shape, members in groups.items()
            if len(members) > 1 and shape not in refused and index.weight(members[0]) >= _LEAST_WORK
        ]
        candidates.sort(key=lambda candidate: (-candidate[0], candidate[1]))
        for _, shape, members in candidates:
            refused.add(shape)
            general = _Generalisation(values, members, len(refused))
            if general.worthwhile:
                found.general.append(general.root)
                for which, member in enumerate(members):
                    arguments = {at: column[which] for at, column in general.parameters.items()}
                    found.calls[member] = (general.root, arguments)
                break
        else:
            break
    return found


def reachable(values: Values, roots: Iterable[int], calls: Calls) -> list[int]:
    """Return the values that `roots` need, lowest first; of a call, what it is called with."""
    seen = set(roots)
    waiting = list(seen)
    while waiting:
        at = waiting.pop()
        for arg in calls[at][1].values() if at in calls else values.table[at].args:
            if arg not in seen:
                seen.add(arg)
                waiting.append(arg)
    return sorted(seen)


class _ShapeIndex:
    """Numbers the shapes of values, and weighs them: how many operations to compute one."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._shapes: list[int] = []
        self._weights: list[int] = []
        self._known: dict[Hashable, int] = {}

    def shape(self, at: int) -> int:
        self._grow()
        return self._shapes[at]

    def weight(self, at: int) -> int:
        self._grow()
        return self._weights[at]

    def _grow(self) -> None:
        for at in range(len(self._shapes), len(self._values.table)):
            value = self._values.table[at]
            key: Hashable
            if value.kind == "constant":
                key = ("constant", value.detail[1])
            else:
                key = (value.kind, value.detail, tuple(self._shapes[arg] for arg in value.args))
            self._shapes.append(self._known.setdefault(key, len(self._known)))
            weight = sum(self._weights[arg] for arg in value.args) + (value.kind not in LIGHT)
            self._weights.append(min(weight, 1 << 40))


class _Generalisation:
    """One value for several of one shape.

    A column is what stands at one place in each of the members.
    """

    def __init__(self, values: Values, members: Sequence[int], number: int) -> None:
        """`number` keeps its parameters apart from those of others."""
        self._values = values
        self._number = number
        self._top = tuple(members)
        self._columns: dict[tuple[int, ...], int] = {}
        self.parameters: dict[int, tuple[int, ...]] = {}
        self._work = 0
        self.root = self._generalise()
        lifted = self._lifted()
        if lifted is not None:
            self._columns = {}
            self.parameters = {}
            self._work = 0
            self._parameter(lifted)
            self.root = self._generalise()

    @property
    def worthwhile(self) -> bool:
        """Whether a reader is better off with the general value."""
        if not 1 <= len(self.parameters) <= _MOST_PARAMETERS:
            return False
        if len(self._top) >= _FEWEST:
            return self._work >= _LEAST_WORK
        return self._work >= _LEAST_WORK_OF_TWO and len(self.parameters) == 1

    def _generalise(self) -> int:
        waiting = [self._top]
        while waiting:
            column = waiting[-1]
            if column not in self._columns:
                if len(set(column)) == 1:
                    self._columns[column] = column[0]
                elif self._values.table[column[0]].kind == "constant":
                    self._parameter(column)
                else:
                    inner = self._inner(column)
                    missing = [part for part in inner if part not in self._columns]
                    if missing:
                        waiting += missing
                        continue
                    self._columns[column] = self._general(column, inner)
            waiting.pop()
        return self._columns[self._top]

    def _inner(self, column: tuple[int, ...]) -> list[tuple[int, ...]]:
        return list(zip(*(self._values.table[at].args for at in column), strict=True))

    def _parameter(self, column: tuple[int, ...]) -> None:
        """Let a parameter stand for a column. Constants that are written alike are one parameter."""
        dtype = self._values.dtypes[column[0]]
        texts = tuple(self._values.number(at) or at for at in column)
        kind = "integer" if dtype in INTEGERS else dtype
        at = self._values.add(Value("parameter", (), (self._number, *texts, kind)), dtype)
        if self.parameters.setdefault(at, column) != column:
            self._values.lines[at].update(*(self._values.lines[one] for one in column))
        self._columns[column] = at

    def _general(self, column: tuple[int, ...], inner: list[tuple[int, ...]]) -> int:
        first = self._values.table[column[0]]
        args = tuple(self._columns[part] for part in inner)
        self._work += first.kind not in LIGHT
        lines = set().union(*(self._values.lines[at] for at in column))
        return self._values.add(Value(first.kind, args, first.detail), self._values.dtypes[column[0]], lines)

    def _lifted(self) -> tuple[int, ...] | None:
        """Find a column that is a better parameter than the constants in it: all that differs is below it,
        it is used more than once, and it is short.
        """
        uses: dict[tuple[int, ...], int] = {}
        for column in self._columns:
            if len(set(column)) > 1:
                for inner in self._inner(column):
                    uses[inner] = uses.get(inner, 0) + 1
        found = [
            column
            for column, count in uses.items()
            if count > 1 and self._is_short(column) and self._is_gate(column)
        ]
        return min(found, default=None, key=lambda column: column[0])

    def _is_short(self, column: tuple[int, ...]) -> bool:
        """Whether it is an operation on what the members have in common, or that once more."""
        if len(set(column)) == 1 or self._values.table[column[0]].kind in LIGHT:
            return False
        below = [part for part in self._inner(column) if len(set(part)) > 1]
        return all(self._values.table[part[0]].kind in LIGHT for part in below)

    def _is_gate(self, gate: tuple[int, ...]) -> bool:
        """Whether no parameter is reached but through it."""
        seen = {gate, self._top}
        waiting = [self._top]
        while waiting:
            column = waiting.pop()
            if self._values.table[column[0]].kind == "constant":
                return False
            for inner in self._inner(column):
                if inner not in seen and len(set(inner)) > 1:
                    seen.add(inner)
                    waiting.append(inner)
        return True
