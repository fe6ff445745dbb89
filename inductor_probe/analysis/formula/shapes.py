"""What is computed several times with other constants: the weights of five taps are a function of the tap.

Values have one shape when they differ in constants only. Of the values of one shape a general one is made,
with parameters where the constants differ, one for those that change together (anti-unification):

    exp(x - 1) * 2, exp(x - 3) * 2, exp(x - 5) * 2  ->  f(a) = exp(x - a) * 2; f(1), f(3), f(5)

The largest shapes come first, and what is left inside them is searched again, so that a row of taps becomes a
function that calls another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from inductor_probe.analysis.formula.values import INTEGERS, LIGHT, Value, Values

_MOST_PARAMETERS = 2
_MOST_SHAPES = 24
_FEWEST = 3
"""As many values make a shape worth a name; two do, if the shape is large."""
_LEAST_WORK = 3
_LEAST_WORK_OF_TWO = 5
_MOST_ATTEMPTS = 128


@dataclass(slots=True)
class Shapes:
    """General values, and the calls of them.

    `calls` has for each value that is one the general value, and which values its parameters are there.
    """

    values: Values
    general: list[int] = field(default_factory=list)
    calls: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)

    def children(self, number: int) -> tuple[int, ...]:
        """Return the values in the text of a value: its arguments, or those of the call that it is."""
        call = self.calls.get(number)
        return tuple(call[1].values()) if call else self.values.table[number].shown

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """Return the values that `roots` need, lowest first; of a call, what it is called with."""
        seen = set(roots)
        waiting = list(seen)
        while waiting:
            number = waiting.pop()
            call = self.calls.get(number)
            args = set(call[1].values() if call else self.values.table[number].args) - seen
            seen |= args
            waiting += args
        return sorted(seen)


def find_shapes(values: Values, roots: Sequence[int]) -> Shapes:
    """Find the shapes among the values that `roots` need; general values are added to `values`."""
    shapes = Shapes(values)
    index = _ShapeIndex(values)
    tried: set[int] = set()
    while len(shapes.general) < _MOST_SHAPES and len(tried) < _MOST_ATTEMPTS:
        index.update()
        groups: dict[int, list[int]] = {}
        for number in shapes.reachable([*roots, *shapes.general]):
            if index.work[number] >= _LEAST_WORK and index.shape[number] not in tried:
                groups.setdefault(index.shape[number], []).append(number)
        repeated = [(shape, members) for shape, members in groups.items() if len(members) > 1]
        repeated.sort(key=lambda group: (-index.work[group[1][0]], group[0]))
        for shape, members in repeated:
            tried.add(shape)
            general = _Generalisation(values, members, len(tried))
            if general.worthwhile:
                shapes.general.append(general.root)
                for position, member in enumerate(members):
                    arguments = {number: column[position] for number, column in general.parameters.items()}
                    shapes.calls[member] = (general.root, arguments)
                break
        else:
            break
    return shapes


class _ShapeIndex:
    """The shape of each value as a number, and how many operations it takes to compute one."""

    def __init__(self, values: Values) -> None:
        self.shape: list[int] = []
        self.work: list[int] = []
        self._values = values
        self._known: dict[Hashable, int] = {}

    def update(self) -> None:
        for value in self._values.table[len(self.shape) :]:
            key: Hashable = (value.kind, value.detail, tuple(self.shape[arg] for arg in value.args))
            if value.kind == "constant":
                key = ("constant", value.detail[1])
            self.shape.append(self._known.setdefault(key, len(self._known)))
            work = sum(self.work[arg] for arg in value.args) + (value.kind not in LIGHT)
            self.work.append(min(work, 1 << 40))


class _Generalisation:
    """One value for several of one shape. A column is what is at one place in each of the members."""

    def __init__(self, values: Values, members: Sequence[int], number: int) -> None:
        """`number` keeps its parameters apart from those of others."""
        self._values = values
        self._number = number
        self._top = tuple(members)
        self._generalise(None)
        lifted = self._lifted()
        if lifted is not None:
            self._generalise(lifted)
        self.root = self._columns[self._top]

    @property
    def worthwhile(self) -> bool:
        """Whether the general value is easier to read."""
        if not 1 <= len(self.parameters) <= _MOST_PARAMETERS:
            return False
        if len(self._top) >= _FEWEST:
            return self._work >= _LEAST_WORK
        return self._work >= _LEAST_WORK_OF_TWO and len(self.parameters) == 1

    def _generalise(self, lifted: tuple[int, ...] | None) -> None:
        """Make the general value, bottom up; `lifted` is a column that becomes a parameter."""
        self._columns: dict[tuple[int, ...], int] = {}
        self.parameters: dict[int, tuple[int, ...]] = {}
        self._work = 0
        if lifted is not None:
            self._parameter(lifted)
        waiting = [self._top]
        while waiting:
            column = waiting[-1]
            if column not in self._columns:
                if len(set(column)) == 1:
                    self._columns[column] = column[0]
                elif self._kind(column) == "constant":
                    self._parameter(column)
                else:
                    inner = self._inner(column)
                    missing = [part for part in inner if part not in self._columns]
                    if missing:
                        waiting += missing
                        continue
                    self._columns[column] = self._general(column, inner)
            waiting.pop()

    def _kind(self, column: tuple[int, ...]) -> str:
        return self._values.table[column[0]].kind

    def _inner(self, column: tuple[int, ...]) -> list[tuple[int, ...]]:
        return list(zip(*(self._values.table[number].args for number in column), strict=True))

    def _parameter(self, column: tuple[int, ...]) -> None:
        """Replace a column by a parameter. Constants that are written alike are one parameter."""
        dtype = self._values.dtypes[column[0]]
        texts = tuple(self._values.constant_text(number) or number for number in column)
        kind = "integer" if dtype in INTEGERS else dtype
        parameter = self._values.add(Value("parameter", (), (self._number, *texts, kind)), dtype)
        if self.parameters.setdefault(parameter, column) != column:
            self._values.lines[parameter].update(*(self._values.lines[number] for number in column))
        self._columns[column] = parameter

    def _general(self, column: tuple[int, ...], inner: list[tuple[int, ...]]) -> int:
        first = self._values.table[column[0]]
        self._work += first.kind not in LIGHT
        value = Value(first.kind, tuple(self._columns[part] for part in inner), first.detail)
        lines = set().union(*(self._values.lines[number] for number in column))
        return self._values.add(value, self._values.dtypes[column[0]], lines)

    def _lifted(self) -> tuple[int, ...] | None:
        """Find a column that is a better parameter than the constants in it.

        All that differs is below it, it is used more than once, and it is short: an operation on what the
        members have in common, or that once more.
        """
        differing = [column for column in self._columns if len(set(column)) > 1]
        uses = Counter(inner for column in differing for inner in self._inner(column))
        short = [
            column
            for column, count in uses.items()
            if count > 1
            and len(set(column)) > 1
            and self._kind(column) not in LIGHT
            and all(self._kind(part) in LIGHT for part in self._inner(column) if len(set(part)) > 1)
        ]
        return min(filter(self._dominates, short), default=None, key=lambda column: column[0])

    def _dominates(self, gate: tuple[int, ...]) -> bool:
        """Whether no differing constant is reached except through `gate` (a dominator of all parameters)."""
        seen = {gate, self._top}
        waiting = [self._top]
        while waiting:
            column = waiting.pop()
            if self._kind(column) == "constant":
                return False
            for inner in self._inner(column):
                if inner not in seen and len(set(inner)) > 1:
                    seen.add(inner)
                    waiting.append(inner)
        return True
