"""`probe_decisions.jsonl`: written and read back, cut short, and from a newer probe."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.errors import UnreadableError
from inductor_probe.model.decision import Decisions, TorchFrame, TorchTest
from inductor_probe.store.decisions import parse_decisions, read_decisions, write_decisions
from tests.builders import PLACE, decision

SCALAR = decision(
    "vectorisation", "op0 op1", "scalar", "too-short",
    operands={"loop": "x2", "range": 3, "range_limit": 4.0}, stack=(PLACE,),
)  # fmt: skip
VECTOR = decision(
    "vectorisation", "op2", "vectorised", "two-contiguous-loops", number=2, operands={"loops": ("x0", "x1")}
)
DECISIONS = Decisions("2.13.0", ("vectorisation",), (SCALAR, VECTOR))
SEEN = tuple(TorchTest(PLACE, text, True, values) for text, values in (("a < 4", (3, 4.0)), ("b", ("[x0]",))))
PATH = Path("graph/probe_decisions.jsonl")


@pytest.fixture
def text(tmp_path: Path) -> str:
    write_decisions(tmp_path / "decisions.jsonl", DECISIONS)
    assert read_decisions(tmp_path / "decisions.jsonl") == DECISIONS
    return (tmp_path / "decisions.jsonl").read_text()


def test_the_tests_that_decided_are_read_back(tmp_path: Path) -> None:
    tested = (replace(SCALAR, tests=SEEN), replace(SCALAR, number=2, times=3, tests=SEEN[:1]), VECTOR)
    decisions = Decisions("2.13.0", ("vectorisation",), tested)
    write_decisions(tmp_path / "decisions.jsonl", decisions)
    assert read_decisions(tmp_path / "decisions.jsonl") == decisions
    damaged = (tmp_path / "decisions.jsonl").read_text().replace('[[3, 4.0], ["[x0]"]]', "[[3, 4.0]]")
    assert "1 tests, not 2" in parse_decisions(damaged, PATH).problems[0].message


def test_a_file_that_was_cut_short_is_read_up_to_there_and_known_as_cut(text: str) -> None:
    header = text.index("\n") + 1
    for length in range(header, len(text) - 1):
        cut = parse_decisions(text[:length], PATH)
        assert cut.decisions == DECISIONS.decisions[: len(cut.decisions)]
        assert not cut.complete or len(cut.decisions) == 2


def test_a_damaged_line_hides_no_other(text: str) -> None:
    header, frames, form, _, *rest = text.splitlines()
    damaged = parse_decisions("\n".join([header, frames, form, "{", *rest]), PATH)
    assert damaged.decisions == (VECTOR,)
    assert not damaged.complete
    too_long = parse_decisions("\n".join([header, frames, f'{{"x": "{" " * (1 << 20)}"}}', *rest]), PATH)
    assert too_long.decisions == (VECTOR,)
    assert "longer than" in too_long.problems[0].message


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("[0, 1, [[1]], ['x2', 3, 4.0]]", "names are not a list of strings"),
        ("[0, 1, ['op0'], ['x2', 3, 4.0]]", "names are not a list of strings"),
        ("[0, 1, [['op0']], ['x2', 3]]", "2 operands, not 3"),
        ("[0, 1, [['op0']], ['x2', 3, None]]", "value is None, not"),
        ("[0, 1, [['op0']], ['x2', 1e400, 4.0]]", "value is inf, not true or false"),
        ("[0, 1, [['op0']], ['x2', 9223372036854775808, 4.0]]", "is not between"),
        ("[0, 1, [['op0']], ['x2', [3], 4.0]]", "names are not a list of strings"),
        ("[0, True, [['op0']], ['x2', 3, 4.0]]", "is no [form, number, subjects, operands, times, tests]"),
        ("[[0], 1, [['op0']], ['x2', 3, 4.0]]", "is no [form, number, subjects, operands, times, tests]"),
        ("[0, 1]", "is no [form, number, subjects, operands, times, tests]"),
        ("[9, 1, [['op0']], ['x2', 3, 4.0]]", "form 9 is missing"),
    ],
)
def test_a_line_that_is_no_decision_is_left_out(text: str, row: str, message: str) -> None:
    header, frames, form, _, *rest = text.splitlines()
    row = row.replace("'", '"').replace("True", "true").replace("None", "null")
    damaged = parse_decisions("\n".join([header, frames, form, row, *rest]), PATH)
    assert damaged.decisions == (VECTOR,)
    assert message in damaged.problems[0].message


def test_a_decision_whose_frame_is_not_there_is_left_out(text: str) -> None:
    damaged = parse_decisions(text.replace('"place": 0', '"place": 7'), PATH)
    assert damaged.decisions == ()
    assert not damaged.complete
    assert "a frame is missing" in damaged.problems[0].message


def test_a_thousand_decisions_take_less_than_a_tenth_of_a_kilobyte_each(tmp_path: Path) -> None:
    stack = tuple(TorchFrame("torch/_inductor/scheduler.py", f"Scheduler.{name}", 1) for name in "abcdef")
    tries = tuple(
        replace(SCALAR, number=number, subjects=((f"op{number}",), ("op7",)), stack=stack, speculative=True)
        for number in range(1, 1001)
    )
    write_decisions(tmp_path / "decisions.jsonl", Decisions("2.13.0", ("vectorisation",), tries))
    assert (tmp_path / "decisions.jsonl").stat().st_size < 100 * 1000
    assert read_decisions(tmp_path / "decisions.jsonl").decisions == tries


def test_a_cause_of_a_newer_probe_is_read_as_it_is(text: str) -> None:
    """Decisions with a cause that this version had no code for were left out."""
    newer = parse_decisions(text.replace(SCALAR.cause, "another-cause"), PATH)
    assert newer.decisions == (replace(SCALAR, cause="another-cause"), VECTOR)
    assert newer.complete


def test_an_outcome_of_a_newer_probe_is_left_out_and_counted(text: str) -> None:
    newer = parse_decisions(text.replace('"scalar"', '"melted"'), PATH)
    assert newer.decisions == (VECTOR,)
    assert not newer.complete
    [problem] = newer.problems
    assert problem.message == (
        "a decision has the outcome melted, which this version does not know: another version of probe "
        "wrote it"
    )
    assert problem.span is not None
    assert problem.span.first == 4


def test_kinds_of_another_version_hide_no_others(text: str) -> None:
    header, frames, form, row, *second, _ = text.splitlines()
    form = form.replace('"kind": "vectorisation"', '"kind": "colour"')
    header = header.replace('["vectorisation"]', '["vectorisation", "colour"]')
    lines = [header, frames, form, *[row] * 300, *second, '{"end": 301}', ""]
    mixed = parse_decisions("\n".join(lines), PATH)
    assert mixed.recorders == ("vectorisation",)
    assert mixed.decisions == (VECTOR,)
    assert [problem.message[:40] for problem in mixed.problems] == [
        "300 decisions have the kind colour, whic"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 5}', "was written by a newer probe \\(format 5\\)"),
        ("{", "decisions.jsonl:1: not JSON"),
        ('{"format": 2}', "was written by an older probe \\(format 2\\)"),
        ('{"format": 4}', "decisions.jsonl:1: no header of decisions: .*torch"),
        ("", "decisions.jsonl:1: not JSON"),
    ],
)
def test_a_file_without_a_header_that_this_version_reads_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        parse_decisions(text, PATH)
