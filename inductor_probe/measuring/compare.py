"""Two files of results: the rows that both have, joined on all that a row is, with a ratio for each.

The two were measured in two sessions, so no quads pair them. What there is of a column is a time for each
process, and processes are what was sampled (`bench/intervals.py`): the ratio's interval is Welch's (1947),
for two samples with variances of their own. It is widened by two things:

1. Three medians can lie close together by chance. No interval is narrower than what the scatter between the
   processes of all rows gives, pooled, for as many comparisons as there are rows (Bonferroni).
2. The machine was slower or faster in one session than in the other. Where both sides are the same torch,
   eager is the same code on both: by as much as its ratio differs from 1, nothing can be known.

    compiled  A 10.0 10.1 10.0 us   B 11.0 11.1 11.0 us      ratio 1.10, interval 1.09 to 1.11
    eager     A 20.0 20.0 20.1 us   B 21.2 21.0 21.1 us      ratio 1.05: the interval becomes 1.04 to 1.17

`probe perf --interleave` has neither: there both sides take turns within a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median, variance

from msgspec import Struct

from inductor_probe.bench.intervals import t_quantile
from inductor_probe.bench.times import blocks_of
from inductor_probe.measuring.conclude import facts_of
from inductor_probe.model.comparison import Verdict
from inductor_probe.model.perf import (
    EAGER,
    CaseKey,
    ColumnFacts,
    CompareRow,
    PerfNode,
    PerfRow,
    PerfRun,
    Unpaired,
)

_TAIL = 0.025
_FACTS = ("host", "cpu", "cores", "gpu", "memory_gib", "system")


class Cell(Struct, frozen=True):
    """A column of a row on one side: log-seconds of each process, and the machine that measured it."""

    facts: ColumnFacts
    logs: tuple[float, ...]
    node: PerfNode

    @property
    def seconds(self) -> float:
        """Seconds a call: the mean of the logs."""
        return math.exp(fmean(self.logs))

    @property
    def build(self) -> tuple[str, str]:
        """The torch that it was measured with: where it is the same, eager is the same code."""
        return self.node.interpreter.torch, self.node.interpreter.git


_Cells = dict[tuple[CaseKey, str], Cell]


class Compared(Struct, frozen=True):
    """What two files have in common, and what not."""

    rows: tuple[CompareRow, ...]
    unpaired: tuple[Unpaired, ...]
    differences: tuple[tuple[str, tuple[str, str]], ...]


def compare_runs(a: PerfRun, b: PerfRun, margin: float) -> Compared:
    """Compare the rows of two files, regressions first."""
    cells_a, cells_b = cells_of(a), cells_of(b)
    unpaired = [*_unpaired(a, b, cells_a, cells_b)]
    keys = [
        key
        for key in cells_a
        if key in cells_b and not (cells_a[key].facts.problem or cells_b[key].facts.problem)
        and cells_a[key].logs and cells_b[key].logs
    ]  # fmt: skip
    pooled = pooled_variance([cells[key].logs for cells in (cells_a, cells_b) for key in keys])
    rows = []
    for key in keys:
        control = None
        eager = (key[0], EAGER)
        if cells_a[key].build == cells_b[key].build and key[1] != EAGER and eager in keys:
            control = cells_b[eager].seconds / cells_a[eager].seconds
        rows.append(_row(key, cells_a[key], cells_b[key], margin, control, pooled, len(keys)))
    rows.sort(key=_rank)
    return Compared(tuple(rows), tuple(unpaired), differences_of(a, b))


def differences_of(a: PerfRun, b: PerfRun) -> tuple[tuple[str, tuple[str, str]], ...]:
    """Return the facts of machine, torch and settings that differ."""
    facts_a, facts_b = _facts(a), _facts(b)
    return tuple(
        (name, (facts_a.get(name, ""), facts_b.get(name, "")))
        for name in dict.fromkeys([*facts_a, *facts_b])
        if facts_a.get(name, "") != facts_b.get(name, "")
    )


def _facts(run: PerfRun) -> dict[str, str]:
    """Return the facts of all machines that measured a row: `a, b` where two differ."""
    values: dict[str, dict[str, None]] = {}
    for node in run.machines:
        machine = {name: value for name, value in node.machine if name in _FACTS}
        torch = {"torch": node.interpreter.torch, "commit": node.interpreter.git}
        for name, value in {**machine, **torch, "python": node.interpreter.python}.items():
            values.setdefault(name, {})[value] = None
    return {name: ", ".join(sorted(several)) for name, several in values.items()}


def _hosts(a: Cell, b: Cell) -> tuple[str, str] | None:
    """Return the names of both machines, None where they are one."""
    both = [{name: value for name, value in cell.node.machine if name in _FACTS} for cell in (a, b)]
    return None if both[0] == both[1] else (a.node.name, b.node.name)


def cells_of(run: PerfRun) -> _Cells:
    """Return the columns of all rows of a file."""
    cells: _Cells = {}
    for row in run.rows:
        for name, facts in facts_of(row).items():
            cells[row.key, name] = Cell(facts, _logs(row, name), run.node_of(row))
    return cells


def _logs(row: PerfRow, column: str) -> tuple[float, ...]:
    """Return the log-seconds of a column in each process: of the median quad's fastest block."""
    times = [blocks_of(column, process.series) for process in row.processes]
    return tuple(math.log(median(blocks)) for blocks in times if blocks)


def pooled_variance(samples: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Return the variance between processes, pooled over all cells, and its degrees of freedom."""
    several = [logs for logs in samples if len(logs) > 1]
    freedom = sum(len(logs) - 1 for logs in several)
    if not freedom:
        return 0.0, 0
    return sum(variance(logs) * (len(logs) - 1) for logs in several) / freedom, freedom


def _row(  # noqa: PLR0917 - what is known of a row
    key: tuple[CaseKey, str],
    a: Cell,
    b: Cell,
    margin: float,
    control: float | None,
    pooled: tuple[float, int],
    comparisons: int,
) -> CompareRow:
    middle, reach = fmean(b.logs) - fmean(a.logs), math.inf
    if min(len(a.logs), len(b.logs)) > 1:
        reach = max(welch_reach(a.logs, b.logs), _from_pool(pooled, (len(a.logs), len(b.logs)), comparisons))
        reach += abs(math.log(control)) if control is not None else 0.0
    low, high = _exp(middle - reach), _exp(middle + reach)
    return CompareRow(
        key=key[0],
        column=key[1],
        a=a.seconds,
        b=b.seconds,
        ratio=math.exp(middle),
        low=low,
        high=high,
        verdict=verdict_of(low, high, margin),
        control=control,
        processes=(len(a.logs), len(b.logs)),
        hosts=_hosts(a, b),
        strides=(a.facts.strides, b.facts.strides),
    )


def verdict_of(low: float, high: float, margin: float) -> Verdict:
    """Return what an interval of a ratio says against a margin: see `bench/verdict.py`."""
    if low > 1 + margin:
        return "SLOWER"
    if high < 1 / (1 + margin):
        return "FASTER"
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return "SAME"
    return "UNDECIDED"


def welch_reach(a: Sequence[float], b: Sequence[float]) -> float:
    """Return half the width of Welch's 95 % interval for the difference of two means."""
    parts = [variance(logs) / len(logs) for logs in (a, b)]
    total = sum(parts)
    if not total:
        return 0.0
    denominator = sum(part**2 / (len(logs) - 1) for part, logs in zip(parts, (a, b), strict=True))
    freedom = max(1, math.floor(total**2 / denominator)) if denominator else len(a) + len(b) - 2
    return t_quantile(1 - _TAIL, freedom) * math.sqrt(total)


def _from_pool(pooled: tuple[float, int], counts: tuple[int, int], comparisons: int) -> float:
    spread, freedom = pooled
    if not freedom:
        return 0.0
    error = math.sqrt(spread * sum(1 / count for count in counts))
    return t_quantile(1 - _TAIL / max(comparisons, 1), freedom) * error


def _exp(value: float) -> float:
    return math.inf if value > 700 else math.exp(value) if value > -700 else 0.0


def _rank(row: CompareRow) -> tuple[int, float]:
    """Regressions come first, the largest ahead, then gains, then what is open, then what is the same."""
    order = {"SLOWER": 0, "FASTER": 1, "UNDECIDED": 2, "INVALID": 2, "SAME": 3}
    return order[row.verdict], -row.ratio if row.verdict != "FASTER" else row.ratio


def _unpaired(a: PerfRun, b: PerfRun, cells_a: _Cells, cells_b: _Cells) -> Iterator[Unpaired]:
    """Yield what only one side has, and what is not to be compared, and why."""
    rows: dict[str, Mapping[CaseKey, PerfRow]] = {
        "A": {row.key: row for row in a.rows},
        "B": {row.key: row for row in b.rows},
    }
    for side, other in (("A", "B"), ("B", "A")):
        for key, row in rows[side].items():
            if row.failure:
                yield Unpaired(key, "", side, "row-failed", failure=row.failure)  # type: ignore[arg-type] # A or B
            elif key not in rows[other]:
                yield Unpaired(key, "", side)  # type: ignore[arg-type]
    for side, cells, others in (("A", cells_a, cells_b), ("B", cells_b, cells_a)):
        partners = rows["B" if side == "A" else "A"]
        for (key, column), cell in cells.items():
            if cell.facts.problem is not None:
                detail = cell.facts.detail
                yield Unpaired(key, column, side, cell.facts.problem, detail)  # type: ignore[arg-type]
            elif not cell.logs:  # the process that would have timed it ended before
                yield Unpaired(key, column, side, "not-timed")  # type: ignore[arg-type]
            elif key in partners and not partners[key].failure and (key, column) not in others:
                yield Unpaired(key, column, side)  # type: ignore[arg-type]


def regressions_of(rows: Sequence[CompareRow], allowed: float) -> tuple[CompareRow, ...]:
    """Return the rows that are slower by more than was allowed, with their whole interval."""
    return tuple(row for row in rows if row.low > 1 + allowed)
