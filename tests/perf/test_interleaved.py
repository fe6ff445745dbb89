"""Two interpreters in one session: each measures its own columns, and their laps take turns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.api.perf import perf
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.model.perf import PerfSettings

SCENARIO = Path(__file__).with_name("scenario_of_traps.py")


@pytest.mark.compiles
def test_columns_of_two_interpreters_are_compared_with_each_other(tmp_path: Path) -> None:
    python = Path(sys.executable)
    settings = PerfSettings(columns=("compiled",), budget=0.05, processes=1)
    table = perf(SCENARIO, cases=["plain"], settings=settings, python=python, second=python, folder=tmp_path)
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


def test_an_interpreter_without_torch_is_a_sentence(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    with pytest.raises(RunFailedError, match="No module named 'torch'") as caught:
        perf(SCENARIO, python=tmp_path / "env" / "bin" / "python", folder=tmp_path)
    assert caught.value.hint == "install torch there, or name another interpreter"
    with pytest.raises(ProbeError, match="is not a Python interpreter"):
        perf(SCENARIO, python=Path("/bin/false"), folder=tmp_path)
    assert list(tmp_path.glob("*.json")) == []
