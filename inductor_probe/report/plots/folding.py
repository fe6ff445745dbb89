"""Which nodes of a long schedule are drawn as one box: equal layers of a network, then runs of light nodes.

A box stands for neighbours in the schedule, so arrows between boxes close no circle.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

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
    runs = [*_layers([*_numbers(marks)], 0, len(marks))]
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


def _layers(marks: Sequence[int], first: int, last: int) -> Iterator[Run]:
    """Yield runs from `first` to `last`: the longest repetition, and what is around it in the same way."""
    best = (1, 0, 0, 0)  # nodes saved, begin, period, copies: one that saves a single node hides more
    for period in range(1, min((last - first) // 2, _LONGEST_LAYER) + 1):
        length = 0
        for place in range(last - 1 - period, first - 2, -1):
            if place >= first and marks[place] == marks[place + period]:
                length += 1
                continue
            copies = length // period + 1
            saved = (copies - 1) * period - 1
            if copies > 1 and saved > best[0]:
                best = (saved, place + 1, period, copies)
            length = 0
    _, begin, period, copies = best
    if not copies:
        yield from (Run(place, place + 1) for place in range(first, last))
        return
    end = begin + copies * period
    yield from _layers(marks, first, begin)
    yield from (Run(place, place + 1) for place in range(begin, begin + period))
    yield Run(begin + period, end, period)
    yield from _layers(marks, end, last)


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
