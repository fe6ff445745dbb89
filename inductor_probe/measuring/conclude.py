"""From the samples of a row to times, ratios with intervals, and the share of what the machine reaches."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from inductor_probe.bench.times import times_of
from inductor_probe.bench.verdict import conclude
from inductor_probe.machine.roofline import roofline_row
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.perf import ColumnFacts, ColumnResult, PerfRow, PerfRun, RowResult
from inductor_probe.model.timing import KernelWork, Roofline, Series


def results_of(run: PerfRun) -> tuple[RowResult, ...]:
    """Return what each row of a file came to."""
    return tuple(row_result(row, run.settings.margin, run.node_of(row).rooflines) for row in run.rows)


def facts_of(row: PerfRow) -> dict[str, ColumnFacts]:
    """Return each column as the first process saw it, with the first problem that any process had."""
    facts: dict[str, ColumnFacts] = {}
    for process in row.processes:
        for column in process.columns:
            first = facts.setdefault(column.name, column)
            if first.problem is None and column.problem is not None:
                facts[column.name] = replace(first, problem=column.problem, detail=column.detail)
            elif first.problem is None and _other_code(first, column):
                detail = ", ".join(str(code.path) for code in column.codes)
                facts[column.name] = replace(first, problem="other-code", detail=detail)
    return facts


def _other_code(one: ColumnFacts, other: ColumnFacts) -> bool:
    """Whether two processes ran other generated code under the same name."""
    return [code.sha256 for code in one.codes] != [code.sha256 for code in other.codes]


def comparisons_of(row: PerfRow, margin: float) -> dict[str, Comparison]:
    """Return the comparison of each column with the first, without those that have a problem."""
    facts = facts_of(row)
    good = {name for name, column in facts.items() if column.problem is None}
    pairs: dict[tuple[str, str], list[Series]] = {}
    for process in row.processes:
        for series in process.series:
            if series.candidate is not None and {series.baseline, series.candidate} <= good:
                pairs.setdefault((series.baseline, series.candidate), []).append(series)
    return {candidate: conclude(several, margin, len(pairs)) for (_, candidate), several in pairs.items()}


def row_result(row: PerfRow, margin: float, rooflines: Sequence[Roofline] = ()) -> RowResult:
    """Return what a row came to."""
    facts, comparisons = facts_of(row), comparisons_of(row, margin)
    series = [
        one
        for process in row.processes
        for one in process.series
        if all(name is None or facts[name].problem is None for name in (one.baseline, one.candidate))
    ]
    times = {time.name: time for time in times_of(series, comparisons.values(), {})}
    roofline = roofline_for(row, rooflines)
    columns = []
    for name, column in facts.items():
        result = ColumnResult(column, times.get(name), comparisons.get(name))
        if roofline is not None and result.time is not None and row.moved is not None:
            work = KernelWork(name, row.moved, row.flops, row.dtype)
            cold = row.key.data == "cold"
            shares = roofline_row(work, result.time.seconds, 1, roofline, cold=cold)
            copy, product = shares.share or 0.0, shares.flop_share or 0.0
            result = replace(result, share=max(copy, product) or None)
            if result.share is not None:
                result = replace(result, share_of="copy" if copy >= product else "matmul")
        columns.append(result)
    return RowResult(row.key, row.inputs, tuple(columns), row.failure, row.node)


def roofline_for(row: PerfRow, rooflines: Sequence[Roofline]) -> Roofline | None:
    """Return what was measured of the row's device with its number of threads."""
    on_cpu = row.key.device == "cpu"
    return next(
        (
            one
            for one in rooflines
            if (one.device == "cpu") == on_cpu and (not on_cpu or one.threads == row.key.threads)
        ),
        None,
    )
