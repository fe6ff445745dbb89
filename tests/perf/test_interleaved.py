"""Two interpreters in one session: each measures its own columns, and their laps take turns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.api.perf import perf
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.options.cases import PerfOptions
from inductor_probe.store.results import read_run_file, write_run

pytestmark = pytest.mark.usefixtures("warm")

SCENARIO = Path(__file__).with_name("scenario_of_traps.py")


@pytest.mark.compiles
def test_columns_of_two_interpreters_are_compared_with_each_other(tmp_path: Path) -> None:
    python = Path(sys.executable)
    table = perf(
        SCENARIO, cases=["plain"], columns=("compiled",), budget=0.05, processes=1,
        interleave=(python, python), folder=tmp_path,
    )  # fmt: skip
    (row,) = table.rows
    first, second = row.columns
    assert (first.facts.name, second.facts.name) == ("compiled", "compiled (B)")
    assert first.facts.codes == second.facts.codes != ()
    assert second.comparison is not None
    assert second.comparison.baseline == "compiled"
    assert second.facts.check is not None
    assert second.facts.check.correct
    (process,) = table.run.rows[0].processes
    (series,) = process.series
    assert any(quad.guard for quad in series.quads)
    assert {quad.order for quad in series.quads} <= {"ABBA", "BAAB"}
    assert table.run.other is not None


@pytest.mark.compiles
def test_an_interrupted_comparison_of_two_interpreters_is_resumed(tmp_path: Path) -> None:
    """Its rows stay; an unfinished run with one interpreter is another one, and is left alone."""
    python = Path(sys.executable)
    both = PerfOptions(
        SCENARIO, cases=["plain", "wrong"], columns=("eager",), budget=0.05, processes=1,
        interleave=(python, python), folder=tmp_path,
    )  # fmt: skip

    def interrupted(text: str) -> None:
        if "wrong: " in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perf(both, progress=interrupted)
    (two,) = tmp_path.glob("*.json")
    before = read_run_file(two)
    one = write_run(tmp_path, replace(before, name="later", other=None))
    alone = one.read_bytes()
    assert [row.key.case for row in before.rows] == ["plain"]
    table = perf(replace(both, resume=True))
    assert table.path == two
    assert table.run.rows[0] == before.rows[0]
    assert [row.key.case for row in table.run.rows] == ["plain", "wrong"]
    assert table.run.finished
    assert one.read_bytes() == alone


def test_an_interpreter_without_torch_is_a_sentence(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    with pytest.raises(RunFailedError, match="No module named 'torch'") as caught:
        perf(SCENARIO, python=tmp_path / "env" / "bin" / "python", folder=tmp_path)
    assert caught.value.hint == "install torch there, or name another interpreter"
    with pytest.raises(ProbeError, match="is not a Python interpreter"):
        perf(SCENARIO, python=Path("/bin/false"), folder=tmp_path)
    assert list(tmp_path.glob("*.json")) == []
