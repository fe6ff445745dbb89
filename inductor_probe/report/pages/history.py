"""How times went over results: a row for each column of a case, with a plot, and a line for each change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inductor_probe.model.perf import HistoryPoint, SeriesHistory
from inductor_probe.report.document import Block, Cell, Column, Fold, Heading, Line, Picture, Table
from inductor_probe.report.pages.perf import number, unit_of
from inductor_probe.report.units import counted
from inductor_probe.report.words.perf import (
    change_sentence,
    history_sentence,
    verdict_style,
)

_LEVELS = "▁▂▃▄▅▆▇█"
_MARK = "│"
_MOST_POINTS = 40
_FLAT = math.log(1.1)
"""A plot is no higher than a tenth of a time where the times differ by less."""
_WIDTH, _HEIGHT, _EDGE = 360, 60, 6


def history_page(series: Sequence[SeriesHistory], scenario: str) -> Iterator[Block]:
    """Yield the history of a scenario's cases, those that changed first, and what it comes to."""
    results = dict.fromkeys(point.result for row in series for point in row.points)
    yield Heading([(scenario, "bold"), f"  {counted(len(results), 'result')}, the oldest first"], 2)
    if series:
        scale, unit, _ = unit_of([point.seconds for row in series for point in row.points])
        threads = len({row.key.threads for row in series}) > 1
        columns = [
            Column("case", fold="middle", least=20),
            *([Column("threads", right=True)] if threads else []),
            Column("column", fold="middle"),
            Column("results", right=True, rank=3),
            Column(f"first, {unit}", right=True, rank=1),
            Column(f"last, {unit}", right=True),
            Column("noise", right=True, rank=2),
            Column("plot", fold="never"),
            Column(""),
        ]
        yield Table(columns, [_cells(row, scale, threads=threads) for row in series], indent=2)
    for row in series:
        for change in row.changes:
            name = f"{row.key.case}, {row.column}: "
            verdict = (f"takes {number(change.ratio, 3)} times as long", verdict_style(change.verdict))
            yield Line([(name, "bold"), verdict, change_sentence(change, _point(row, change.at))], 2)
    for row in series:
        yield Fold(f"{row.key.case}, {row.column}: each result", lambda row=row: [_points(row)])  # type: ignore[misc]
    yield Line()
    yield Line((history_sentence(series), "bold"))


def _point(row: SeriesHistory, result: str) -> HistoryPoint:
    return next(point for point in row.points if point.result == result)


def _cells(row: SeriesHistory, scale: float, *, threads: bool) -> list[Cell]:
    real = [change for change in row.changes if change.cause != "noise"]
    style = verdict_style(real[-1].verdict) if real else ""
    return [
        (row.key.case, "bold"),
        *([str(row.key.threads)] if threads else []),
        row.column,
        str(len(row.points)),
        number(row.points[0].seconds / scale),
        (number(row.points[-1].seconds / scale), style),
        f"{100 * row.noise:.1f} %",
        plot(row),
        Picture(lambda: drawing(row)),
    ]


def _heights(row: SeriesHistory) -> list[float]:
    """Return where each time is between the shortest, 0, and the longest, 1, of their logs."""
    logs = [math.log(point.seconds) for point in row.points]
    least, span = min(logs), max(logs) - min(logs)
    below = max(_FLAT - span, 0) / 2
    return [(log - least + below) / max(span, _FLAT) for log in logs]


def plot(row: SeriesHistory) -> str:
    """`▁▁▂▁│▇▇█`: the latest results, a letter each, with a bar where a time changed."""
    begins = {change.at for change in row.changes}
    levels = [_LEVELS[min(int(height * len(_LEVELS)), len(_LEVELS) - 1)] for height in _heights(row)]
    parts = [
        f"{_MARK if point.result in begins else ''}{level}"
        for point, level in zip(row.points, levels, strict=True)
    ]
    more = "…" if len(parts) > _MOST_POINTS else ""
    return more + "".join(parts[-_MOST_POINTS:])


def drawing(row: SeriesHistory) -> str:
    """Return the same as a picture: a line through all results, dashed where a time changed."""
    step = (_WIDTH - 2 * _EDGE) / max(len(row.points) - 1, 1)
    places = [
        (_EDGE + index * step, _HEIGHT - _EDGE - height * (_HEIGHT - 2 * _EDGE))
        for index, height in enumerate(_heights(row))
    ]
    line = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dots = "".join(f"M{x - 1.5:.1f} {y:.1f} h3" for x, y in places)
    begins = {change.at for change in row.changes}
    bars = "".join(
        f"M{x - step / 2:.1f} 0 V{_HEIGHT}"
        for (x, _), point in zip(places, row.points, strict=True)
        if point.result in begins
    )
    path = '<path fill="none" stroke="currentColor" {} d="{}"/>'
    return (
        f'<svg role="img" width="{_WIDTH}" height="{_HEIGHT}">'
        + path.format("", line)
        + path.format('stroke-width="4"', dots)
        + (path.format('stroke-dasharray="3 3"', bars) if bars else "")
        + "</svg>"
    )


def _points(row: SeriesHistory) -> Table:
    scale, unit, _ = unit_of([point.seconds for point in row.points])
    columns = [Column("result"), Column(unit, right=True), Column("torch"), Column("commit"), Column("host")]
    return Table(
        columns,
        [
            [point.result, number(point.seconds / scale), point.torch, point.source or "-", point.host]
            for point in row.points
        ],
    )
