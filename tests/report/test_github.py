"""What GitHub Actions shows of a result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from inductor_probe.model.accuracy import AccuracyOutput, CodeLine, GraphAccuracy, WrongValue
from inductor_probe.model.expectation import Checked, ExpectOutput, expectation_of
from inductor_probe.model.op_check import OpCase, OpCheckOutput, OpChecks, OpFailure
from inductor_probe.model.perf import (
    CaseKey,
    ColumnFacts,
    ColumnResult,
    CompareOutput,
    CompareRow,
    Interpreter,
    PerfOutput,
    ResultEntry,
    RowFailure,
    RowResult,
)
from inductor_probe.model.span import Problem, Span
from inductor_probe.report.document import Column, Line, Table
from inductor_probe.report.github import Annotation, annotation_lines, annotations_of, summary_text
from tests.conftest import DUMPS, Probe

HFLIP = str(DUMPS / "torch-2.13.0-cpu/hflip_cl")


def test_what_fails_is_an_error_and_what_is_not_known_or_read_a_warning() -> None:
    holds, fails, unknown = (
        Checked(expectation_of("kernels", "1"), "g", standing, "kernels", (("names", ("k", "l")),))
        for standing in ("holds", "fails", "unknown")
    )
    problem = Problem("line 3 is not understood", Span(Path("/repo/d/ir.txt"), 3, 3))
    output = ExpectOutput(path=Path("r"), ok=False, outcomes=(unknown, holds, fails), problems=(problem,))
    assert list(annotation_lines(annotations_of(output), "probe expect", Path("/repo"))) == [
        "::error title=probe expect::g: --kernels 1 FAILS: 2 kernels: k, l",
        "::warning title=probe expect::g: --kernels 1 is not known: 2 kernels: k, l",
        "::warning title=probe expect,file=d/ir.txt,line=3::line 3 is not understood",
    ]


def test_wrong_operators_and_regressions_are_errors_that_name_what_is_wrong() -> None:
    case = OpCase("flip", "uint8", "static", "given", "compiled")
    failure = OpFailure("flip", "compiled", "values", "not-called", (), (case,), 1, "flip(x)", 6)
    checks = OpChecks(torch="2.13.0", device="cpu", rows=(), failures=(failure,))
    assert list(annotations_of(OpCheckOutput(checks=checks))) == [
        Annotation("error", "flip: torch traced the sample without calling it")
    ]
    key = CaseKey("check_flip.py", "rows", (), "cpu", 1)
    slower, other = (
        CompareRow(key, column, 4e-6, 5e-6, 1.25, 1.2, 1.3, "SLOWER") for column in ("compiled", "eager")
    )
    entry = cast("ResultEntry", None)  # nothing of it is shown
    output = CompareOutput(a=entry, b=entry, rows=(slower, other), regressions=1)
    assert [each.message for each in annotations_of(output)] == [
        "check_flip.py rows, compiled: 1.25x (1.20 to 1.30), 4.000 us and 5.000 us"
    ]


def test_a_wrong_value_is_an_error_at_the_users_line() -> None:
    line = CodeLine("/repo/net.py", 8, "x.argmax()")
    value = WrongValue(
        operator="aten.argmax", buffer="buf0", user_line=line, layer="codegen", eager=83, compiled=182,
        reference=83, elements=1, wrong=1,
    )  # fmt: skip
    graph = GraphAccuracy(graph="g", verdict="wrong", wrong=(value,))
    output = AccuracyOutput(run=Path("r"), verdict="wrong", graphs=(graph,))
    assert list(annotation_lines(annotations_of(output), "probe accuracy", Path("/repo"))) == [
        "::error title=probe accuracy,file=net.py,line=8::"
        "g: aten.argmax is wrong: buf0: eager 83, compiled 182, float64 83"
    ]


def test_graphs_that_differ_are_warnings(probe: Probe, tmp_path: Path) -> None:
    first, second = (str(DUMPS / "torch-2.13.0-cpu" / name) for name in ("hflip_cf", "hflip_cl"))
    ran = probe("diff", first, second, "--github", GITHUB_STEP_SUMMARY=str(tmp_path / "summary"))
    assert ran.status == 1
    assert "::warning title=probe diff::the graphs differ" in ran.err
    assert (tmp_path / "summary").read_text().startswith("## probe diff\n")
    same = probe("diff", first, first, "--github", GITHUB_STEP_SUMMARY=str(tmp_path / "summary"))
    assert "::" not in same.err


def test_a_row_that_fails_or_computes_something_else_is_an_error() -> None:
    key = CaseKey("check_flip.py", "rows", (), "cpu", 1)
    wrong = ColumnResult(ColumnFacts("compiled", problem="wrong", detail="2 elements differ"))
    rows = (RowResult(key, "", (wrong,)), RowResult(key, "", failure=RowFailure("error", "no memory")))
    output = PerfOutput(file=Path("f"), name="n", interpreter=cast("Interpreter", None), rows=rows)
    assert list(annotations_of(output)) == [
        Annotation("error", "check_flip.py rows, compiled: 2 elements differ"),
        Annotation("error", "check_flip.py rows: no memory"),
    ]


def test_no_text_ends_a_command_or_begins_one() -> None:
    hostile = Annotation("error", "100 %\n::set-env name=A::b\x1b[31m", Path("a,b:c.py"), 2)
    (line,) = annotation_lines([hostile], "t", Path("/repo"))
    assert line.startswith("::error title=t,file=a%2Cb%3Ac.py,line=2::100 %25")
    assert "\n" not in line
    assert "\x1b" not in line


@pytest.mark.parametrize(("count", "shown", "last"), [(10, 10, "9"), (33, 10, "and 24 more errors")])
def test_github_shows_ten_of_a_kind_and_the_last_says_how_many_more(
    count: int, shown: int, last: str
) -> None:
    lines = list(annotation_lines([Annotation("error", str(at)) for at in range(count)], "t", Path()))
    assert len(lines) == shown
    assert last in lines[-1]


def test_a_summary_keeps_whole_blocks_and_says_how_many_are_left_out() -> None:
    table = Table((Column("name"),), [["x" * 300]])
    document = [Line("first"), table, Line("last")]
    assert summary_text(document, "probe check").count("\n\n") == 4
    short = summary_text(document, "probe check", room=400)
    assert short == "## probe check\n\nfirst\n\n2 blocks left out: GitHub takes 1 MiB of a step.\n\n"


def test_a_failed_expectation_is_annotated_and_added_to_the_summary(probe: Probe, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("## before\n\n")
    ran = probe("expect", HFLIP, "--kernels", "7", "--json", "--github", GITHUB_STEP_SUMMARY=str(summary))
    assert ran.status == 1
    assert json.loads(ran.out)["ok"] is False, "stdout has JSON alone"
    assert "::error title=probe expect::model__0_inference_0.0: --kernels 7 FAILS: 1 kernel" in ran.err
    assert summary.read_text().startswith("## before\n\n## probe expect\n\n")
    assert "--kernels 7" in summary.read_text()


def test_outside_of_github_the_summary_is_left_out_with_a_sentence(probe: Probe, tmp_path: Path) -> None:
    ran = probe("check", HFLIP, "--github")
    assert (ran.status, ran.err) == (
        0, "warning: GITHUB_STEP_SUMMARY is not set, as GitHub Actions does: no summary is written\n",
    )  # fmt: skip
    ran = probe("check", HFLIP, "--github", GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "summary.md"))
    assert ran.status == 2
    assert "error: cannot write the summary of the job to" in ran.err
