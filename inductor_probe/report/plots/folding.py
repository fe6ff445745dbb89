"""Which nodes of a long schedule are drawn as one box: equal layers of a network, then runs of light nodes.

A box stands for neighbours in the schedule, so arrows between boxes close no circle.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby, starmap

from msgspec import Struct


class Run(Struct, frozen=True):
    """Neighbours in a schedule: places from `first` up to `last`, which is not among them.

    `period` is after how many nodes an equal layer begins; 0 where they are not layers that are alike.
    """

    first: int
    last: int
    period: int = 0

    @property
    def many(self) -> int:
        """How many they are."""
        return self.last - self.first


def fold(marks: Sequence[Hashable], costs: Sequence[float], most: int) -> tuple[Run, ...]:
    """Return the runs that stand for a schedule, in its order; most have one node.

    Of layers that are alike the first stands as it is, and the others are one run. Where more than `most` are
    left, those of the greatest costs stay, and what is between them is a run each.

    Args:
        marks: of each node, equal where they do the same to as much memory. costs: of each.
        most: runs, at least 3.
    """
    runs = _layers([*_numbers(marks)])
    if len(runs) <= most:
        return tuple(runs)
    weights = [sum(costs[run.first : run.last]) for run in runs]
    ranking = sorted(range(len(runs)), key=lambda place: (-weights[place], place))
    return tuple(_joined(runs, {*ranking[: (most - 1) // 2]}))


_LONGEST_LAYER = 200
"""Nodes of a layer: longer ones are not looked for, as that takes the square of their number."""


def _numbers(marks: Sequence[Hashable]) -> Iterator[int]:
    """Yield a number for each mark: comparing those is cheap."""
    known: dict[Hashable, int] = {}
    for mark in marks:
        yield known.setdefault(mark, len(known))


def _layers(marks: Sequence[int]) -> list[Run]:
    """Return the runs of a schedule: its longest repetition, then the longest of what is left, and so on."""
    waiting = [one for one in starmap(_repetition, _alike(marks)) if one[0] < _LEAST]
    heapify(waiting)
    taken, runs = [False] * len(marks), list[Run]()
    while waiting:
        _, period, begin, end = heappop(waiting)
        if any(taken[begin:end]):  # a longer one has a part of it
            for is_taken, places in groupby(range(begin, end), taken.__getitem__):
                first, *others = places
                if not is_taken and (left := _repetition(first, first + len(others) + 1, period))[0] < _LEAST:
                    heappush(waiting, left)
            continue
        taken[begin:end] = [True] * (end - begin)
        runs += [Run(place, place + 1) for place in range(begin, begin + period)]
        runs.append(Run(begin + period, end, period))
    runs += [Run(place, place + 1) for place, is_taken in enumerate(taken) if not is_taken]
    return sorted(runs, key=lambda run: run.first)


_LEAST = -1
"""Minus the nodes saved by a box that is not made: one that saves a single node hides more."""


def _alike(marks: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield where nodes are alike to those a period later, as long as that is so: begin, end, period."""
    for period in range(1, min(len(marks) // 2, _LONGEST_LAYER) + 1):
        begin, last = 0, len(marks) - period
        for place in range(last + 1):
            if place == last or marks[place] != marks[place + period]:
                if place - begin >= period:
                    yield begin, place + period, period
                begin = place + 1


def _repetition(begin: int, end: int, period: int) -> tuple[int, int, int, int]:
    """Return a repetition of whole periods, behind minus the nodes that are saved if it is folded."""
    whole = (end - begin) // period * period
    return period - whole + 1, period, begin, begin + whole


def _joined(runs: Sequence[Run], heavy: set[int]) -> Iterator[Run]:
    """Yield the heavy runs, and what is between two of them as one."""
    begin: int | None = None
    for place, run in enumerate(runs):
        if place in heavy:
            if begin is not None:
                yield _one(runs[begin:place])
            yield run
            begin = None
        elif begin is None:
            begin = place
    if begin is not None:
        yield _one(runs[begin:])


def _one(runs: Sequence[Run]) -> Run:
    return runs[0] if len(runs) == 1 else Run(runs[0].first, runs[-1].last)
