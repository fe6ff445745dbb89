"""What came of PyTorch's samples of operators (`probe check-op`): a row for each case, then each failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from inductor_probe.model.op_check import SAMPLE_KINDS, OpCase, OpChecks, OpFailure, OpRow
from inductor_probe.report.document import Block, Cell, Column, Facts, Heading, Line, Name, RemarkLine, Table
from inductor_probe.report.units import counted, duration
from inductor_probe.report.words.op_check import KIND_WORDS, failure_sentence
from inductor_probe.report.words.perf import row_failure_sentence

_FORMS = {
    "given": "",
    "channels_last": "channels_last",
    "noncontiguous": "non-contiguous",
    "varied": "varied",
}


def op_check_page(checks: OpChecks) -> Iterator[Block]:
    """Yield the verdict, a row for each operator and dtype, and the failures with their smallest samples."""
    rows = checks.rows
    yield Line([_verdict(checks), f": {_summary(checks)}"])
    if checks.decomposition:
        names, calls = ", ".join(checks.decomposition.operators), checks.decomposition.calls
        times = counted(calls, "time")
        yield Line(f"{checks.decomposition.function} stood for {names}; torch called it {times}")
    yield Line()
    yield Table(_columns(rows), list(_rows(rows)))
    left = sum(row.not_run for row in rows)
    if left:
        yield RemarkLine(
            "hazard", f"the budget ended before {counted(left, 'sample')}: --budget 30m runs more"
        )
    if sum(row.not_compiled for row in rows):
        number = counted(sum(row.not_compiled for row in rows), "sample")
        yield RemarkLine(
            "analysis", f"of {number} inductor compiled nothing: views, or what dynamo runs eagerly"
        )
    if any(row.samples for row in rows):
        without = [kind for kind in SAMPLE_KINDS if all(kind in row.without for row in rows)]
        if without:
            advice = "" if any(row.case.form == "varied" for row in rows) else ": --vary makes some"
            yield RemarkLine("analysis", f"no sample {', or '.join(without)}{advice}")
    if checks.interrupted:
        yield RemarkLine(
            "hazard", f"interrupted: {counted(checks.interrupted, 'case')} did not run to the end"
        )
    for lost in checks.lost:
        case = f"{lost.case.operator} {lost.case.dtype} {lost.case.mode} {lost.case.form}"
        yield RemarkLine("hazard", f"{case} was not run to its end: {row_failure_sentence(lost.failure)}")
    for failure in checks.failures:
        yield Line()
        yield from _failure(failure)


def _verdict(checks: OpChecks) -> tuple[str, str]:
    if checks.failures:
        return f"{counted(len(checks.failures), 'kind')} of failure", "bold red"
    if not any(row.samples for row in checks.rows):
        return "nothing was compared", "bold yellow"
    return ("all the same", "bold green") if checks.complete else ("nothing wrong so far", "bold green")


def _summary(checks: OpChecks) -> str:
    operators = len({row.case.operator for row in checks.rows})
    samples = sum(row.samples for row in checks.rows)
    failed = sum(row.failed for row in checks.rows)
    words = f"{counted(samples, 'sample')} of {counted(operators, 'operator')} eager and compiled"
    words += f", {failed} failed" if failed else ""
    return f"{words}, on {checks.device}, torch {checks.torch}, {duration(checks.spent)}"


def _columns(rows: Sequence[OpRow]) -> list[Column]:
    columns = [Column("operator", fold="middle", least=24), Column("dtype", fold="never"), Column("with")]
    columns += [Column(title, right=True, fold="never") for title in ("samples", "right", "failed")]
    columns += [Column(title, right=True, fold="never", rank=2) for title, _ in _shown_counts(rows)]
    return columns


def _shown_counts(rows: Iterable[OpRow]) -> list[tuple[str, str]]:
    """Return the title and the field of the counts that are not 0 everywhere."""
    counts = {
        "refused": "refused",
        "eager": "not_compiled",
        "breaks": "graph_breaks",
        "random": "random",
        "not run": "not_run",
    }
    rows = list(rows)
    return [(title, name) for title, name in counts.items() if any(getattr(row, name) for row in rows)]


def _rows(rows: Sequence[OpRow]) -> Iterator[list[Cell]]:
    above = None
    for row in rows:
        case = row.case
        first = (case.operator, case.dtype)
        names: list[Cell] = ["", ""] if first == above else [Name(case.operator), case.dtype]
        above = first
        failed: Cell = (str(row.failed), "red") if row.failed else ""
        counts = [str(getattr(row, name) or "") for _, name in _shown_counts(rows)]
        yield [*names, _conditions(case), str(row.samples), str(row.right), failed, *counts]


def _conditions(case: OpCase) -> str:
    """`dynamic, channels_last, decomposition`."""
    way = "decomposition" if case.way == "decomposition" else ""
    return ", ".join(filter(None, [case.mode, _FORMS[case.form], way]))


def _failure(failure: OpFailure) -> Iterator[Block]:
    way = " with the decomposition" if failure.way == "decomposition" else ""
    yield Heading([(failure.operator, "bold"), f"{way}: ", (KIND_WORDS[failure.kind], "red")], 2)
    yield Line(failure_sentence(failure), 2)
    where = "; ".join(dict.fromkeys(f"{case.dtype} {_conditions(case)}" for case in failure.cases))
    rows = [
        ("seen in", f"{counted(failure.count, 'sample')}: {where}"),
        ("smallest", failure.sample),
    ]
    if failure.script is not None:
        rows.append(("script", f"{failure.script}{_alone(failure)}"))
    yield Facts(rows)


def _alone(failure: OpFailure) -> str:
    if failure.alone is None:
        return " (it did not end)"
    return "" if failure.alone else " (alone it passes: it takes what was compiled before, or chance)"
