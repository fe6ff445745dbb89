"""How the times of a scenario went over results: where they changed, and what each change is due to.

Change points are those of optimal partitioning (Jackson et al., 2005, "An algorithm for optimal partitioning
of data on an interval"), the exact minimum that PELT prunes its way to (Killick, Fearnhead and Eckley, 2012),
with a penalty of 3 log n (Zhang and Siegmund, 2007): the sum, over all segments, of squared deviations from
the mean of the segment, in units of the noise, and the penalty for each change. A segment has two results at
least. A change whose interval does not leave the margin is taken back, the least sure one first: one slow
session is no change until others agree.

    log-seconds  0.00 0.01 0.00 0.20 0.21 0.20   noise 0.01:  one segment 601;  two 0.7 + 0.7 + 5.4 = 6.7

The noise is what neighbours differ by, robust against the changes themselves: the median of their differences
(Hampel, 1974), over the root of two; and no less than what processes of a result scatter by.

The ratio of a change is that of the means of both segments, with Welch's interval, and its verdict is that of
`probe compare`. Its cause is looked for in this order, as what comes first makes the rest say nothing:

- `method`: settings, inputs or the version of probe differ.
- `machine`: the machine is another, or eager, the same code, changed by half as much or more.
- `code`: the build of torch, the commit of the script, or the generated code is another.
- `noise`: nothing that is recorded differs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median

import numpy as np
from msgspec import Struct

from inductor_probe.measuring.compare import (
    Cell,
    cells_of,
    differences_of,
    pooled_variance,
    verdict_of,
    welch_reach,
)
from inductor_probe.model.perf import (
    EAGER,
    CaseKey,
    ChangeCause,
    ChangePoint,
    HistoryPoint,
    PerfRun,
    SeriesHistory,
)

LEAST = 4
"""Results from which on changes are looked for: of fewer the noise is not known."""
_SHORTEST = 2
_CHANGED = ("FASTER", "SLOWER")
_NORMAL = 1.4826
"""Standard deviations of a normal distribution in its median deviation."""
_METHOD = ("budget", "processes", "cold", "check_only")
_OF_CODE = ("torch", "commit", "python", "source", "generated code")
_SHARE = 0.5
"""Of a change that eager's has to be for the machine to be its cause."""


class _Measured(Struct, frozen=True):
    """A column of a case in one result."""

    run: PerfRun
    cell: Cell
    inputs: str

    @property
    def log(self) -> float:
        return fmean(self.cell.logs)

    @property
    def code(self) -> str:
        """The generated files that ran, by the start of their sha256."""
        return ", ".join(code.sha256[:9] for code in self.cell.facts.codes)


def history_of(runs: Sequence[PerfRun], margin: float) -> tuple[SeriesHistory, ...]:
    """Return the history of each column of each case that several results have, those that changed first.

    Args:
        runs: results of a scenario, the oldest first. margin: by how much a time may differ and be the same.
    """
    measured: dict[tuple[CaseKey, str], list[_Measured]] = {}
    for run in runs:
        inputs = {row.key: row.inputs for row in run.rows}
        for (key, column), cell in cells_of(run).items():
            if cell.logs and not cell.facts.problem:
                measured.setdefault((key, column), []).append(_Measured(run, cell, inputs[key]))
    several = {name: points for name, points in measured.items() if len(points) > 1}
    rows = [_series(*name, points, several, margin) for name, points in several.items()]
    return tuple(sorted(rows, key=lambda row: -max(map(_size, row.changes), default=0)))


def _size(change: ChangePoint) -> float:
    return abs(math.log(change.ratio))


def _series(
    key: CaseKey,
    column: str,
    points: Sequence[_Measured],
    others: Mapping[tuple[CaseKey, str], Sequence[_Measured]],
    margin: float,
) -> SeriesHistory:
    logs = [point.log for point in points]
    noise = noise_of(logs, [point.cell.logs for point in points])
    places = changes_in(logs, noise, margin) if len(logs) >= LEAST else []
    ends = [0, *places, len(points)]
    eager = {point.run.name: point for point in others.get((key, EAGER), ()) if column != EAGER}
    changes = [
        _change(points[begin:place], points[place:end], eager, noise, margin)
        for begin, place, end in zip(ends, places, ends[2:], strict=False)
    ]
    return SeriesHistory(key, column, tuple(map(_point, points)), tuple(changes), math.expm1(noise))


def noise_of(logs: Sequence[float], processes: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation from result to result, of log-seconds with those of their processes."""
    steps = [abs(after - before) for before, after in pairwise(logs)]
    variance, _ = pooled_variance(processes)
    within = math.sqrt(variance / median(map(len, processes)))
    return max(_NORMAL * median(steps) / math.sqrt(2) if steps else 0.0, within, 1e-6)


def changes_in(logs: Sequence[float], noise: float, margin: float) -> list[int]:
    """Return the numbers of the values from which on log-seconds are others by more than a margin."""
    places = change_points(logs, noise)
    while places:
        ends = [0, *places, len(logs)]
        open_ = {}
        for begin, place, end in zip(ends, places, ends[2:], strict=False):
            middle, reach = _interval(logs[begin:place], logs[place:end], noise)
            if verdict_of(math.exp(middle - reach), math.exp(middle + reach), margin) not in _CHANGED:
                open_[abs(middle) / reach] = place
        if not open_:
            break
        places.remove(open_[min(open_)])
    return places


def _interval(a: Sequence[float], b: Sequence[float], noise: float) -> tuple[float, float]:
    """Return by how much the mean of B is more than that of A, and how far its interval reaches."""
    known = 1.96 * noise * math.sqrt(1 / len(a) + 1 / len(b))
    return fmean(b) - fmean(a), max(welch_reach(a, b), known)


def change_points(logs: Sequence[float], noise: float) -> list[int]:
    """Return the numbers of the values that begin another segment, by optimal partitioning."""
    values = np.asarray(logs) / noise
    count, penalty = len(values), 3 * math.log(len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best = np.full(count + 1, np.inf)  # of the values before a place
    best[0] = -penalty
    latest = [0] * (count + 1)
    for end in range(_SHORTEST, count + 1):
        begins = np.arange(end - _SHORTEST + 1)
        cost = squares[end] - squares[begins] - (sums[end] - sums[begins]) ** 2 / (end - begins)
        totals = best[begins] + cost + penalty
        latest[end] = int(np.argmin(totals))
        best[end] = totals[latest[end]]
    places, end = [], count
    while end and latest[end]:
        end = latest[end]
        places.append(end)
    return places[::-1]


def _change(
    a: Sequence[_Measured],
    b: Sequence[_Measured],
    eager: Mapping[str, _Measured],
    noise: float,
    margin: float,
) -> ChangePoint:
    middle, reach = _interval([point.log for point in a], [point.log for point in b], noise)
    low, high = math.exp(middle - reach), math.exp(middle + reach)
    differences = dict(_differences(a[-1], b[0]))
    control = _control(a, b, eager)
    moved = control is not None and control / middle >= _SHARE
    return ChangePoint(
        before=a[-1].run.name,
        at=b[0].run.name,
        ratio=math.exp(middle),
        low=low,
        high=high,
        verdict=verdict_of(low, high, margin),
        cause=_cause([*differences], moved=moved),
        differences=tuple(differences.items()),
        control=math.exp(control) if control is not None else None,
    )


def _cause(differences: Sequence[str], *, moved: bool) -> ChangeCause:
    if any(name in differences for name in (*_METHOD, "probe", "inputs")):
        return "method"
    if moved or any(name not in _OF_CODE for name in differences):
        return "machine"
    return "code" if differences else "noise"


def _differences(a: _Measured, b: _Measured) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield what differs between two results, as far as it is about this column."""
    yield from differences_of(a.run, b.run)
    pairs = {name: (getattr(a.run.settings, name), getattr(b.run.settings, name)) for name in _METHOD}
    pairs |= {
        "probe": (a.run.probe, b.run.probe),
        "inputs": (a.inputs, b.inputs),
        "source": (a.run.source, b.run.source),
        "generated code": (a.code, b.code),
    }
    for name, (before, after) in pairs.items():
        if before != after:
            yield name, (str(before), str(after))


def _control(a: Sequence[_Measured], b: Sequence[_Measured], eager: Mapping[str, _Measured]) -> float | None:
    """Return the log-ratio of eager's times over the same results; None where it was not the same code."""
    sides = [[eager[point.run.name] for point in side if point.run.name in eager] for side in (a, b)]
    builds = {(point.cell.build, point.run.source) for side in sides for point in side}
    if not all(sides) or len(builds) > 1:
        return None
    return fmean(point.log for point in sides[1]) - fmean(point.log for point in sides[0])


def _point(point: _Measured) -> HistoryPoint:
    torch, git = point.cell.build
    return HistoryPoint(
        result=point.run.name,
        started=point.run.started,
        torch=f"{torch} ({git[:9]})" if git else torch,
        source=point.run.source,
        host=point.cell.node.name,
        seconds=point.cell.seconds,
    )
