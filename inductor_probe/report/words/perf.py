"""Words for tables over cases: why a column is not compared, what is unusual about one, and what all say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.errors import signal_name
from inductor_probe.model.comparison import Verdict
from inductor_probe.model.perf import (
    CALL,
    EAGER,
    KERNEL,
    ChangeCause,
    ChangePoint,
    ColumnFacts,
    ColumnProblem,
    CompareRow,
    HistoryPoint,
    OutputStrides,
    ResultEntry,
    RowFailure,
    RowResult,
    SeriesHistory,
    Unpaired,
)
from inductor_probe.report.units import counted, duration

PROBLEM_WORDS: dict[ColumnProblem, str] = {
    "ran-eager": "ran eagerly",
    "shares-code": "shares code",
    "compiled-while-timed": "recompiled",
    "other-code": "other code",
    "wrong": "WRONG",
    "failed": "failed",
    "several-graphs": "no single graph",
    "not-timed": "not timed",
}
"""What is in the place of a time."""
PROBLEM_SENTENCES: dict[ColumnProblem, str] = {
    "ran-eager": "no generated code ran in a call of it{limits}: its time would be eager's",
    "shares-code": "it compiled nothing, and ran code that another column had compiled",
    "compiled-while-timed": "torch compiled while it was timed ({detail})",
    "other-code": "it ran other generated code in another process, or after it was timed: {detail}",
    "wrong": "{detail}",
    "failed": "{detail}",
    "several-graphs": "a call runs several generated graphs, or none{detail}",
    "not-timed": "{detail}",
}
VERDICT_WORDS: dict[Verdict, str] = {
    "FASTER": "faster",
    "SLOWER": "slower",
    "SAME": "same",
    "UNDECIDED": "undecided",
    "INVALID": "invalid",
}
CAUSE_WORDS: dict[ChangeCause, str] = {
    "code": "the code is another",
    "method": "it was measured otherwise",
    "machine": "the machine is another, or was slower or faster",
    "noise": "noise: nothing that is recorded explains it",
}
_STYLES: dict[Verdict, str] = {"FASTER": "green", "SLOWER": "red"}
_MOST_OPERATORS = 2


def verdict_style(verdict: Verdict) -> str:
    """Return the style of a ratio."""
    return _STYLES.get(verdict, "")


def problem_sentence(facts: ColumnFacts) -> str:
    """Return why a column is not compared."""
    assert facts.problem is not None  # noqa: S101 - else there is nothing to say
    limits = ""
    if facts.limit_hits:
        limits = f" (torch reached its recompile limit after {counted(facts.compiles, 'compile')})"
    elif facts.graph_breaks:
        limits = f" ({counted(facts.graph_breaks, 'graph break')})"
    detail = f": {facts.detail}" if facts.problem == "several-graphs" and facts.detail else facts.detail
    return PROBLEM_SENTENCES[facts.problem].format(limits=limits, detail=detail)


def column_notes(facts: ColumnFacts) -> Iterator[str]:
    """Yield what is unusual about a column that is compared: `2 graph breaks`, `fallback aten.sort`."""
    for number, noun in (
        (facts.recompiles, "recompile"),
        (facts.graph_breaks, "graph break"),
        (facts.limit_hits, "recompile limit"),
    ):
        if number:
            yield counted(number, noun)
    operators = list(dict.fromkeys(name for code in facts.codes for name in code.fallbacks))
    if operators:
        more = f" and {len(operators) - _MOST_OPERATORS} more" if len(operators) > _MOST_OPERATORS else ""
        yield f"fallback {', '.join(operators[:_MOST_OPERATORS])}{more}"
    if len(facts.codes) > 1:
        yield f"{len(facts.codes)} graphs"
    yield from map(strides_words, facts.strides)


def row_failure_sentence(failure: RowFailure | None) -> str:
    """Say why nothing is known of a row."""
    if failure is None:
        return "its reason is not known"
    if failure.code == "killed":
        doing = f" while {failure.phase}" if failure.phase else ""
        return f"was killed by {signal_name(failure.signal or 0)}{doing}"
    if failure.code == "workers-died":
        where = " and ".join(dict.fromkeys(failure.hosts))
        return f"the process that had it died {len(failure.hosts)} times, on {where}"
    if failure.code == "no-node-left":
        return f"no node of the Ray cluster is left: {failure.message}"
    return failure.message


def strides_words(strides: OutputStrides) -> str:
    """Say how an output lies: `output 0 is contiguous, eager's is channels_last`; of others the strides."""
    words = [
        f"{name} {stride}" if name == "strided" or strides.format == strides.eager_format else name
        for name, stride in (
            (strides.format, list(strides.stride)),
            (strides.eager_format, list(strides.eager)),
        )
    ]
    return f"output {strides.output} is {words[0]}, eager's is {words[1]}"


def row_notes(row: RowResult) -> list[str]:
    """Return what is unusual about a row's columns, and which of them ran the same generated code."""
    notes, codes = list[str](), dict[tuple[str, ...], str]()
    compiled = [
        column.facts
        for column in row.columns
        if (column.facts.codes or column.facts.strides) and column.facts.name not in (CALL, KERNEL)
    ]
    for facts in compiled:
        notes += [f"{facts.name}: {note}" for note in column_notes(facts)]
        if not facts.codes:
            continue
        first = codes.setdefault(tuple(code.sha256 for code in facts.codes), facts.name)
        if first != facts.name:
            notes.append(f"{facts.name}: the same code as {first}")
    return notes


def perf_sentence(rows: Sequence[RowResult]) -> str:
    """Return what all rows say: `compiled against eager: faster in 3 of 12 rows, slower in 8, same in 1`."""
    clauses = []
    pairs = dict.fromkeys(
        (column.comparison.candidate, column.comparison.baseline)
        for row in rows
        for column in row.columns
        if column.comparison
    )
    for candidate, baseline in pairs:
        verdicts = [
            column.comparison.verdict
            for row in rows
            for column in row.columns
            if column.comparison
            and (column.comparison.candidate, column.comparison.baseline) == (candidate, baseline)
        ]
        counts = [(VERDICT_WORDS[verdict], verdicts.count(verdict)) for verdict in VERDICT_WORDS]
        words = [f"{word} in {count}" for word, count in counts if count]
        words[0] += f" of {counted(len(verdicts), 'row')}"
        clauses.append(f"{candidate} against {baseline}: {', '.join(words)}")
    checks: dict[str, list[bool]] = {}
    for column in (column for row in rows for column in row.columns):
        if column.facts.check is not None and column.time is None and column.facts.name != EAGER:
            checks.setdefault(column.facts.name, []).append(column.facts.problem is None)
    if not pairs:
        clauses = [
            f"{name} is right in {sum(right)} of {counted(len(right), 'row')}"
            for name, right in checks.items()
        ]
    problems = [column.facts.problem for row in rows for column in row.columns if column.facts.problem]
    for problem in dict.fromkeys(problems):
        number = problems.count(problem)
        clauses.append(f"{counted(number, 'cell')} not compared ({PROBLEM_WORDS[problem]})")
    if failed := sum(bool(row.failure) for row in rows):
        clauses.append(f"{counted(failed, 'row')} failed")
    return "; ".join(clauses) or "nothing was compared"


def state_words(entry: ResultEntry) -> str:
    """Return how far a run is: `12 rows`, `5 of 12 rows`."""
    if entry.problem:
        return "not readable"
    if entry.finished:
        return counted(entry.rows, "row")
    return f"{entry.rows} of {counted(entry.planned, 'row')}"


def compare_sentence(rows: Sequence[CompareRow], unpaired: Sequence[Unpaired]) -> str:
    """Return what all rows say: `B against A: slower in 2 of 12 rows (up to 1.10), same in 10`."""
    if not rows:
        return "nothing was compared: the two have no column of a row in common"
    clauses = []
    for verdict, word in VERDICT_WORDS.items():
        several = [row.ratio for row in rows if row.verdict == verdict]
        if several:
            extreme = {"SLOWER": max, "FASTER": min}.get(verdict)
            most = f" (up to {extreme(several):.3g})" if extreme else ""
            clauses.append(f"{word} in {len(several)}{most}")
    clauses[0] = f"B against A, {counted(len(rows), 'cell')}: {clauses[0]}"
    if unpaired:
        clauses.append(f"{len(unpaired)} not compared")
    return ", ".join(clauses)


def compared_sentence(row: CompareRow) -> str:
    """Return a row in a line: `check_flip.py rows, compiled: 1.23x (1.21 to 1.25), 4.1 us and 5.0 us`."""
    where = f"{row.key.scenario} {row.key.case}, {row.column}"
    ratio = f"{row.ratio:.2f}x ({row.low:.2f} to {row.high:.2f})"
    return f"{where}: {ratio}, {duration(row.a)} and {duration(row.b)}"


def unpaired_sentence(one: Unpaired) -> str:
    """Return why something was not compared."""
    what = f"{one.key.case} {one.column}".strip()
    if one.problem == "absent":
        return f"{what}: only {one.side} has it"
    if one.problem == "row-failed":
        return f"{what}: failed in {one.side}: {row_failure_sentence(one.failure)}"
    return f"{what}: {PROBLEM_WORDS[one.problem]} in {one.side}"


def change_sentence(change: ChangePoint, at: HistoryPoint) -> str:
    """` (1.21 to 1.3) from 20261128-... on (torch 2.13): the code is another: torch 2.12, then 2.13`."""
    commit = f", commit {at.source}" if at.source else ""
    where = f" ({change.low:.3f} to {change.high:.3f}) from {at.result} on (torch {at.torch}{commit}): "
    reasons = [f"{name} {a or 'not known'}, then {b or 'not known'}" for name, (a, b) in change.differences]
    if change.control is not None:
        reasons.append(f"eager, the same code, {change.control:.3g}")
    text = f"{CAUSE_WORDS[change.cause]}{': ' if reasons else ''}{'; '.join(reasons)}"
    return f"{where}{text}"


def history_sentence(series: Sequence[SeriesHistory]) -> str:
    """`2 changes in 4 histories: 1 by code, 1 noise`."""
    if not series:
        return "no case was measured twice"
    causes = [change.cause for row in series for change in row.changes]
    counts = [f"{causes.count(cause)} {cause}" for cause in CAUSE_WORDS if cause in causes]
    histories = counted(len(series), "history", "histories")
    return f"{counted(len(causes), 'change')} in {histories}{': ' if counts else ''}{', '.join(counts)}"
