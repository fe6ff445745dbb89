"""How much times depend on what they were measured with: inputs, threads."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from inductor_probe.model.bench import BenchResult
from inductor_probe.report.columns import Cell, Column, Columns
from inductor_probe.report.units import duration

_TELLS = 1.1
"""A time that is so many times another one depends on the setting."""


class SettingsTable:
    """One row for each thing timed, a column for each setting: medians, as multiples of the first one's."""

    def __init__(self, results: Sequence[BenchResult]) -> None:
        self.results = results

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        times = [_medians(result) for result in self.results]
        titles = [f"{result.values}, {result.threads} thr" for result in self.results]
        rows: list[list[Cell]] = []
        largest: tuple[float, str, str] = (1.0, "", "")
        for name, first in times[0].items():
            row: list[Cell] = [name, duration(first)]
            for title, found in zip(titles[1:], times[1:], strict=True):
                median = found.get(name)
                row.append("-" if median is None else f"{duration(median)} {median / first:.2f}x")
                if median is not None:
                    largest = max(largest, (max(median / first, first / median), name, title))
            rows.append(row)
        columns = [Column(""), *(Column(title, right=True, folds=False) for title in titles)]
        yield Text("depending on the setting", style="bold")
        yield Columns(columns, rows)
        off, name, title = largest
        if off >= _TELLS:
            yield Text(
                f"{name} takes {off:.2f} times as long, or as short, with {title}: state it with a time."
            )


def _medians(result: BenchResult) -> dict[str, float]:
    found = {}
    for comparison in result.comparisons:
        found[comparison.baseline.name] = comparison.baseline.median
        found[comparison.candidate.name] = comparison.candidate.median
    return {**found, **{each.name: each.median for each in result.alone}}
