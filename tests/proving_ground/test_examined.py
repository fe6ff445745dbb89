"""Causes in programs as people write them, and their flips."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.model.decision import DECISIONS_NAME, Decision
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.store.decisions import read_decisions
from tests.proving_ground.examined import EXAMINED, PROGRAMS
from tests.proving_ground.programs import FLIPPED
from tests.proving_ground.test_causes import decision_of, marks_of
from tests.shared import made_once

SCRIPT = Path(__file__).with_name("examined.py")


def dump(folder: Path) -> None:
    """Dump all programs, as they are and flipped."""
    ended = subprocess.run(
        [sys.executable, "-m", "inductor_probe", "dump", str(SCRIPT), "--out", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[2])},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture(scope="session")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Decision]]:
    """Return a function from a case to the decisions of the program's kind."""

    def decisions(case: str) -> list[Decision]:
        run = read_run(
            next((made_once(tmp_path_factory, "examined", dump) / "torch_compile_debug").glob("run_*"))
        )
        assert run.manifest is not None
        assert run.manifest.notes == ()
        names = {graph.name for graph in run.manifest.graphs if graph.case == case}
        kind, _ = EXAMINED[case.removesuffix(FLIPPED)]
        read = [read_decisions(graph.path / DECISIONS_NAME) for graph in run.graphs if graph.name in names]
        assert read
        return [one for each in read for one in each.decisions if one.kind == kind]

    return decisions


@pytest.mark.compiles
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks_of(program)) for name, program in PROGRAMS.items()]
)
def test_the_cause_is_found_among_others_and_its_flip_turns_it(
    name: str, decided: Callable[[str], list[Decision]]
) -> None:
    _, program = EXAMINED[name]
    before = decision_of(program, decided(name))
    assert before is not None
    assert before.cause == program.code
    operands = dict(before.operands)
    assert {key: operands.get(key) for key in program.operands} == dict(program.operands)
    after = decision_of(program, decided(name + FLIPPED), before.question)
    turned = (after.outcome, after.cause) if after is not None else None
    assert turned == program.turned
