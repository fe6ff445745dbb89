"""Tables over cases: a row each, a column each for eager, compiled and variants; lists of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.perf import (
    ColumnResult,
    CompareOutput,
    CompareRow,
    Interpreter,
    PerfRun,
    ResultEntry,
    RowResult,
)
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Table
from inductor_probe.report.units import bytes_text, counted
from inductor_probe.report.words.perf import (
    PROBLEM_WORDS,
    VERDICT_WORDS,
    perf_sentence,
    problem_sentence,
    row_failure_sentence,
    row_notes,
    state_words,
    strides_words,
    unpaired_sentence,
    verdict_style,
)

_UNITS = ((1.0, "s", "seconds"), (1e-3, "ms", "milliseconds"), (1e-6, "us", "microseconds"))
_DIGITS = 4
_MOST_CASES = 6
_INFINITE = 1e100
_OTHER_MACHINE = ("host", "cpu", "cores", "gpu")


def perf_page(run: PerfRun, rows: Sequence[RowResult]) -> Iterator[Block]:
    """Yield the table of a run, what is wrong with some of its cells, and one sentence.

    The layout is that of `torch.utils.benchmark.Compare`: a label, rows with sub-labels, a column for each
    way to run a case, one unit for all, and the spread behind each time.
    """
    threads = sorted({row.key.threads for row in rows})
    scale, unit, name = _unit(rows)
    timed = not run.settings.check_only
    facts = [
        f"times in {unit} ({name}) a call, +- median deviation" if timed else "checked, not timed",
        f"{counted(threads[0], 'thread')}" if len(threads) == 1 else "",
        " or ".join(dict.fromkeys(_interpreter(node.interpreter) for node in run.machines)),
        *([f"(B): {_interpreter(run.other)}"] if run.other else []),
    ]
    yield Heading([(run.scenario, "bold"), f"  {', '.join(filter(None, facts))}"], 2)
    names = list(dict.fromkeys(column.facts.name for row in rows for column in row.columns))
    shared = {column.facts.name for row in rows for column in row.columns if column.share is not None}
    columns = [Column("case", fold="middle", least=20)]
    columns += [Column("threads", right=True)] if len(threads) > 1 else []
    for name in names:
        columns += [Column(name, right=True, fold="never")]
        columns += [Column("+-", right=True, fold="never", rank=3)] if timed else []
        if any(_compared(row, name) for row in rows):
            baseline = next(filter(None, (_compared(row, name) for row in rows)))
            columns += [
                Column(f"/ {baseline}", right=True, fold="never", rank=1),
                Column("interval", fold="never", rank=2),
            ]
        columns += [Column("roofline", right=True, fold="never", rank=4)] if name in shared else []
    table = []
    for row in rows:
        cells: list[Cell] = [(row.key.case, "bold")]
        cells += [str(row.key.threads)] if len(threads) > 1 else []
        for name in names:
            compared = any(_compared(one, name) for one in rows)
            cells += _cells(row.column(name), scale, compared=compared)[: None if timed else 1]
            cells += [_roofline(row.column(name))] if name in shared else []
        table.append(cells)
    yield Table(columns, table, indent=2)
    yield from _nodes(run)
    yield from _notes(rows)
    yield from _problems(rows)
    if not run.finished:
        left = max(0, run.planned - len(run.measured))
        rest = f"{counted(left, 'row')} of {run.planned} left"
        yield Line((f"not finished: {rest}; probe perf ... --resume goes on", "yellow"))
    yield Line()
    yield Line((perf_sentence(rows), "bold"))


def _unit(rows: Sequence[RowResult]) -> tuple[float, str, str]:
    """Return the unit in which the shortest time is 1 or more, as seconds, short and in words."""
    return unit_of([column.time.seconds for row in rows for column in row.columns if column.time])


def unit_of(times: Sequence[float]) -> tuple[float, str, str]:
    """Return the unit in which the shortest of some times is 1 or more: see `_unit`."""
    least = min(times, default=1e-6)
    return next((unit for unit in _UNITS if least >= unit[0]), _UNITS[-1])


def _interpreter(interpreter: Interpreter) -> str:
    commit = f" ({interpreter.git[:9]})" if interpreter.git else ""
    return f"torch {interpreter.torch}{commit}"


def _compared(row: RowResult, name: str) -> str | None:
    column = row.column(name)
    return column.comparison.baseline if column and column.comparison else None


def _cells(column: ColumnResult | None, scale: float, *, compared: bool) -> list[Cell]:
    """Return time and spread of a cell, and its ratio with the interval where others of it have one."""
    rest: list[Cell] = ["", ""] if compared else []
    if column is None:
        return ["", "", *rest]
    if column.facts.problem is not None:
        return [(PROBLEM_WORDS[column.facts.problem], "bold red"), "", *rest]
    if column.time is None:
        right = column.facts.check is not None and column.facts.check.correct
        return ["right" if right else "-", "", *rest]
    cells: list[Cell] = [number(column.time.seconds / scale), number(column.time.mad / scale, 2)]
    if column.comparison is not None:
        pair = column.comparison
        words = f"{number(pair.ratio, 3)} {VERDICT_WORDS[pair.verdict]}"
        return [
            *cells,
            (words, verdict_style(pair.verdict)),
            f"{number(pair.low, 3)} to {number(pair.high, 3)}",
        ]
    return [*cells, *rest]


def number(value: float, digits: int = _DIGITS) -> str:
    """Return a number with so many digits, and no exponent: `0.04321`, `17.06`, `2851`."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124
        return "-"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(0, digits - whole)}f}" if whole else f"{value:.{digits}g}"


def _roofline(column: ColumnResult | None) -> str:
    """Return what a column reaches of the machine's rate: `59 %`; with a `*` where that is more than all."""
    if column is None or column.share is None:
        return ""
    return f"{100 * column.share:.0f} %" + ("*" if column.share > 1 else "")


def _cases(cases: Sequence[str], rows: Sequence[object]) -> str:
    """Return the names of some rows: `every row`, or the first of them."""
    if len(cases) == len(rows) > 1:
        return "every row"
    more = f" and {len(cases) - _MOST_CASES} more" if len(cases) > _MOST_CASES else ""
    return ", ".join(cases[:_MOST_CASES]) + more


def _nodes(run: PerfRun) -> Iterator[Block]:
    """Yield which machines measured which rows, and by what they differ."""
    cases: dict[str, list[str]] = {}
    for row in run.measured:
        cases.setdefault(row.node, []).append(row.key.case)
    nodes = [node for node in run.nodes if node.name in cases]
    for node in nodes:
        facts = dict(node.machine)
        what = ", ".join(filter(None, (facts.get("cpu"), facts.get("gpu"))))
        names = _cases(cases[node.name], run.measured)
        yield Line([(f"{names}: ", "bold"), f"measured on {node.name} ({what})"], 2)
    if len(nodes) > 1:
        yield Line(
            ("several machines: compare the columns of a row, not the times of different rows", "yellow"), 2
        )
    builds = {node.name: _interpreter(node.interpreter) for node in nodes}
    if len({*builds.values()}) > 1:
        words = ", ".join(f"{name} has {build}" for name, build in builds.items())
        yield Line((f"the nodes have different builds of torch: {words}", "yellow"), 2)


def _notes(rows: Sequence[RowResult]) -> Iterator[Block]:
    """Yield what is unusual, each once with the rows that it is true of."""
    notes: dict[str, list[str]] = {}
    for row in rows:
        for note in row_notes(row):
            notes.setdefault(note, []).append(row.key.case)
    for note, cases in notes.items():
        yield Line([(f"{_cases(cases, rows)}: ", "bold"), note], 2)


def _problems(rows: Sequence[RowResult]) -> Iterator[Block]:
    """Yield why cells are not compared, each reason once with the rows that it is true of."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.failure:
            reasons.setdefault(("failed", row_failure_sentence(row.failure)), []).append(row.key.case)
        for column in row.columns:
            if column.facts.problem is not None:
                key = (
                    f"{column.facts.name} {PROBLEM_WORDS[column.facts.problem]}",
                    problem_sentence(column.facts),
                )
                reasons.setdefault(key, []).append(row.key.case)
    for (what, why), cases in reasons.items():
        yield Line([(f"{_cases(cases, rows)}: ", "bold"), (what, "red"), f": {why}"], 2)
    reasons_of = [column.comparison.reason for row in rows for column in row.columns if column.comparison]
    if any(reason is not None and reason.code == "one-process" for reason in reasons_of):
        yield Line(("one process has no verdict: leave --processes out, or ask for three", "yellow"), 2)
    if any((column.share or 0) > 1 for row in rows for column in row.columns):
        yield Line(
            ("* over 100 %: its data come from a faster cache, or it does not use all of its inputs", "dim"),
            2,
        )


def results_table(rows: Sequence[ResultEntry]) -> Iterator[Block]:
    """Yield what was measured, the newest first."""
    columns = [
        Column("name", fold="never"),
        Column("rows", right=True),
        Column("torch", fold="words"),
        Column("columns", fold="words", rank=2),
        Column("host", rank=3),
        Column("size", right=True, rank=4),
    ]
    yield Table(
        columns,
        [
            [
                (row.name, "bold"),
                (state_words(row), "" if row.finished else "yellow"),
                row.torch,
                ", ".join(row.columns),
                row.host,
                bytes_text(row.size),
            ]
            for row in rows
        ],
    )
    for row in rows:
        if row.problem:
            yield Line((row.problem, "yellow"))


def compare_page(output: CompareOutput) -> Iterator[Block]:
    """Yield both sides, a row for each column that both have, regressions first, and what is not compared."""
    for side, entry in (("A", output.a), ("B", output.b)):
        yield Line([(f"{side}  ", "bold"), f"{entry.name}  torch {entry.torch}, {entry.host}"])
    for name, (a, b) in output.differences:
        style = "yellow" if name in _OTHER_MACHINE else ""
        what = "they come from different machines: " if name == "host" else "they differ in "
        yield Line((f"{what}{name}: A {a or 'not known'}, B {b or 'not known'}", style))
    yield Line()
    if output.rows:
        threads = {row.key.threads for row in output.rows}
        scale, unit, _ = unit_of([seconds for row in output.rows for seconds in (row.a, row.b)])
        controlled = any(row.control is not None for row in output.rows)
        columns = [
            Column("case", fold="middle", least=20),
            *([Column("threads", right=True)] if len(threads) > 1 else []),
            Column("column", fold="middle"),
            Column(f"A, {unit}", right=True, rank=2),
            Column(f"B, {unit}", right=True, rank=2),
            Column("B/A", right=True),
            Column("interval", fold="never", rank=1),
            Column("", fold="never"),
            *([Column("eager B/A", right=True, rank=3)] if controlled else []),
        ]
        yield Table(
            columns, [_compare_cells(row, scale, threads, controlled) for row in output.rows], indent=2
        )
        undecided = [row for row in output.rows if row.verdict == "UNDECIDED"]
        if any(min(row.processes) < 2 for row in undecided):
            yield Line(("one process has no interval: measure with --processes 3 or more", "yellow"), 2)
        yield from _apart(output.rows)
        yield from _strides(output.rows)
        if controlled:
            text = "eager is the same code on both sides: intervals are widened by as much as it differs"
            yield Line((text, "dim"), 2)
    for one in output.unpaired:
        yield Line(unpaired_sentence(one), 2)
    yield Line()
    yield Line((output.summary, "bold"))


def _apart(rows: Sequence[CompareRow]) -> Iterator[Block]:
    """Yield which rows two machines measured, where it is not true of all: the heading names those."""
    cases: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row.hosts:
            cases.setdefault(row.hosts, {})[row.key.case] = None
    if len(cases) == 1 and all(row.hosts for row in rows):
        return
    for (a, b), names in cases.items():
        text = f"A was measured on {a}, B on another machine, {b}"
        yield Line([(f"{_cases([*names], rows)}: ", "bold"), (text, "yellow")], 2)


def _strides(rows: Sequence[CompareRow]) -> Iterator[Block]:
    """Yield which outputs lie otherwise than eager's, on one side or on both."""
    notes: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        a, b = (tuple(map(strides_words, several)) for several in row.strides)
        for side, words in (("A and B", a),) if a == b else (("A", a), ("B", b)):
            for text in words:
                notes.setdefault((f"{row.column}, {side}", text), []).append(row.key.case)
    for (what, text), cases in notes.items():
        yield Line([(f"{_cases([*dict.fromkeys(cases)], rows)}: ", "bold"), f"{what}: {text}"], 2)


def _compare_cells(row: CompareRow, scale: float, threads: set[int], controlled: bool) -> list[Cell]:
    interval = f"{number(row.low, 3)} to {number(row.high, 3)}" if row.high < _INFINITE else "-"
    return [
        (row.key.case, "bold"),
        *([str(row.key.threads)] if len(threads) > 1 else []),
        row.column,
        number(row.a / scale),
        number(row.b / scale),
        number(row.ratio, 3),
        interval,
        (VERDICT_WORDS[row.verdict], verdict_style(row.verdict)),
        *([number(row.control, 3) if row.control is not None else "-"] if controlled else []),
    ]
