"""Rows of real cases: what each column ran, and that no known trap is compared as if it were none."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.api.perf import PerfTable, perf
from inductor_probe.errors import NotFoundError
from inductor_probe.measuring.compare import compare_runs
from inductor_probe.model.perf import ColumnResult, RowResult
from inductor_probe.options.cases import PerfOptions

SCENARIO = Path(__file__).with_name("scenario_of_traps.py")
BRIEF = PerfOptions(SCENARIO, budget=0.05, processes=1)

pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> PerfTable:
    """All small CPU cases, in one process each."""
    folder = tmp_path_factory.mktemp("results")
    return perf(replace(BRIEF, matrix="small", device="cpu", folder=folder))


def row(table: PerfTable, case: str) -> RowResult:
    (found,) = [row for row in table.rows if row.key.case == case]
    return found


def column(table: PerfTable, case: str, name: str) -> ColumnResult:
    found = row(table, case).column(name)
    assert found is not None
    return found


def test_a_plain_case_is_checked_and_compared(table: PerfTable) -> None:
    eager, compiled = column(table, "plain", "eager"), column(table, "plain", "compiled")
    assert eager.time is not None
    assert compiled.time is not None
    assert compiled.comparison is not None
    assert (compiled.comparison.baseline, compiled.comparison.candidate) == ("eager", "compiled")
    assert compiled.facts.check is not None
    assert compiled.facts.check.correct
    assert (compiled.facts.compiles, compiled.facts.recompiles, compiled.facts.graph_breaks) == (1, 0, 0)
    (code,) = compiled.facts.codes
    assert "cpp_fused" in code.path.read_text()
    assert eager.facts.codes == ()


def test_a_compiled_column_that_ran_eagerly_after_a_recompile_limit_is_not_compared(table: PerfTable) -> None:
    compiled = column(table, "limit", "compiled").facts
    assert compiled.problem == "ran-eager"
    assert compiled.limit_hits == 1
    assert (compiled.compiles, compiled.recompiles) == (2, 1)
    assert column(table, "limit", "compiled").comparison is None
    assert column(table, "limit", "compiled").time is None
    assert "its time would be eager's" in table.markdown


def test_two_columns_that_share_code_in_dynamos_cache_are_not_compared(table: PerfTable) -> None:
    compiled, again = (column(table, "shared", name) for name in ("compiled", "again"))
    assert compiled.facts.problem is None
    assert compiled.facts.graph_breaks >= 1
    assert again.facts.problem == "shares-code"
    assert again.facts.codes == compiled.facts.codes
    assert again.comparison is None


def test_a_wrong_variant_is_not_timed_and_others_are(table: PerfTable) -> None:
    assert column(table, "wrong", "wrong").facts.problem == "wrong"
    assert column(table, "wrong", "wrong").time is None
    assert "of 2048 elements" in column(table, "wrong", "wrong").facts.detail
    assert column(table, "wrong", "fails").facts.problem == "failed"
    assert "this variant fails" in column(table, "wrong", "fails").facts.detail
    assert column(table, "wrong", "by_sum").comparison is not None
    assert not table.correct


def test_automatic_dynamic_shapes_recompile_once(table: PerfTable) -> None:
    facts = column(table, "automatic", "compiled").facts
    assert (facts.compiles, facts.recompiles, facts.problem) == (2, 1, None)
    assert "1 recompile" in table.markdown


def test_a_fallback_is_counted(table: PerfTable) -> None:
    facts = column(table, "fallback", "compiled").facts
    assert "aten.linalg_inv_ex.default" in [name for code in facts.codes for name in code.fallbacks]
    assert "fallback aten.linalg_inv_ex.default" in table.markdown


def test_a_crash_costs_its_row_only(table: PerfTable) -> None:
    failure = row(table, "crash").failure
    assert failure is not None
    assert (failure.code, failure.signal) == ("killed", signal.SIGABRT)
    assert "(SIGABRT)" in table.markdown
    assert [row.key.case for row in table.rows][-2:] == ["crash", "fallback"]
    assert not table.correct
    rest = tuple(row for row in table.run.rows if row.key.case == "fallback")
    assert replace(table, run=replace(table.run, rows=rest)).correct


def test_a_row_whose_process_was_killed_from_outside_is_left_for_another_time(table: PerfTable) -> None:
    failure = row(table, "killed").failure
    assert failure is not None
    assert (failure.code, failure.signal) == ("killed", signal.SIGKILL)
    assert "was killed by signal 9 (SIGKILL)" in table.markdown
    assert [row.key.case for row in table.run.rows if row.lost] == ["killed"]
    assert not table.run.finished
    assert f"not finished: 1 row of {len(table.rows)} left" in table.markdown


def test_columns_with_settings_run_other_code(tmp_path: Path) -> None:
    columns = ("compiled", "compiled@max_fusion_size=1@cpp.simdlen=1", "call", "kernel")
    table = perf(replace(BRIEF, cases=["plain"], columns=columns, folder=tmp_path))
    compiled, other, call, kernel = table.rows[0].columns
    assert kernel.facts.codes == compiled.facts.codes
    assert kernel.comparison is not None
    assert compiled.facts.codes != other.facts.codes
    assert call.facts.codes == compiled.facts.codes
    assert other.comparison is not None
    assert call.comparison is not None
    assert other.comparison.baseline == call.comparison.baseline == "compiled"


def test_mistakes_in_names_are_sentences(tmp_path: Path) -> None:
    for columns, case, words in (
        (("eager", "nope"), "plain", "no column 'nope'"),
        ((), "nope*", "no case matches 'nope"),
        (("compiled@cpp.simdlenn=4",), "plain", "inductor has no setting cpp.simdlenn"),
    ):
        with pytest.raises(NotFoundError, match=words) as caught:
            perf(SCENARIO, cases=[case], columns=columns, folder=tmp_path)
        assert caught.value.hint
    assert list(tmp_path.glob("*.json")) == []


def test_outputs_that_lie_otherwise_than_eagers_are_marked_and_compared(tmp_path: Path) -> None:
    table = perf(replace(BRIEF, cases=["strides"], folder=tmp_path))
    compiled, contiguous = (column(table, "strides", name) for name in ("compiled", "contiguous"))
    assert compiled.facts.strides == ()
    (strides,) = contiguous.facts.strides
    assert (strides.output, strides.format, strides.eager_format) == (0, "contiguous", "channels_last")
    assert (strides.size, strides.stride, strides.eager) == ((1, 3, 8, 8), (192, 64, 8, 1), (192, 1, 24, 3))
    assert contiguous.facts.problem is None
    assert contiguous.comparison is not None
    assert "contiguous: output 0 is contiguous, eager's is channels" in table.markdown.replace("\\", "")
    compared = compare_runs(table.run, table.run, 0.01)
    assert {row.column: row.strides for row in compared.rows}["contiguous"] == ((strides,), (strides,))


def test_a_check_compiles_and_checks_and_times_nothing(tmp_path: Path) -> None:
    table = perf(SCENARIO, cases=["plain", "wrong"], check_only=True, folder=tmp_path)
    assert table.run.finished
    assert table.run.rooflines == ()
    assert [len(row.processes) for row in table.run.rows] == [1, 1]
    assert all(column.time is None for row in table.rows for column in row.columns)
    assert "compiled is right in 2 of 2 rows" in table.markdown
    assert "checked, not timed" in table.markdown
    assert "+-" not in table.markdown, "nothing was timed, and so nothing spreads"
    assert not table.correct
