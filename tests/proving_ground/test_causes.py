"""Every cause that is recorded, on a program that shows it, and turned by its flip."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from inductor_probe.analysis.fusion.recorded import decision_of_pair
from inductor_probe.model.decision import DECISIONS_NAME, CauseCode, Decision
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.store.decisions import read_decisions
from tests.proving_ground.programs import FLIPPED, Program
from tests.shared import made_once

GROUND = Path(__file__).parent
FAILED = "failed.txt"
KINDS = (
    "vectorisation",
    "fallback",
    "realization",
    "threads",
    "fusion",
    "reduction",
    "index-width",
    "layout",
    "loops",
    "rewrite",
    "copy",
    "cudagraphs",
    "freezing",
    "tiling",
    "configs",
)


def module(kind: str) -> str:
    """Return the module that holds the programs of a kind; a script called `copy.py` hides Python's own."""
    return "copies" if kind == "copy" else kind.replace("-", "_")


PROGRAMS: Mapping[str, Mapping[str, Program]] = {
    kind: importlib.import_module(f"tests.proving_ground.{module(kind)}").PROGRAMS for kind in KINDS
}
DEVICES = {
    device: [
        (kind, name)
        for kind in KINDS
        for name, one in PROGRAMS[kind].items()
        if one.device == device and not (one.simulated and torch.cuda.is_available())
    ]
    for device in ("cpu", "cuda")
}

About = tuple[str, ...] | tuple[tuple[str, ...], tuple[str, ...]] | None
Decided = Callable[[str, str], list[Decision]]


def dump(kind: str, device: str, folder: Path) -> None:
    """Dump all cases of a kind on a device; what a dump that failed printed is kept for each test of it."""
    names = [name for of, name in DEVICES[device] if of == kind and PROGRAMS[kind][name].is_here]
    cases = [f"--case={name}{end}" for name in names for end in ("", FLIPPED)]
    if device == "cuda" and not has_gpu():
        cases.append("--target=h200")
    command = [sys.executable, "-m", "inductor_probe", "dump", str(GROUND / f"{module(kind)}.py"), *cases]
    environment = {**os.environ, "PYTHONPATH": str(GROUND.parents[1])}
    ended = subprocess.run(
        [*command, "--out", str(folder)], capture_output=True, text=True, check=False, env=environment
    )
    if ended.returncode:
        (folder / FAILED).write_text(ended.stdout + ended.stderr)


def has_gpu() -> bool:
    """Return whether torch can compile for a GPU here."""
    return torch.cuda.is_available()


@pytest.fixture(scope="session")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Decided:
    """Return a function from a kind and a case to the decisions of that kind that its graphs hold."""

    def decisions(kind: str, case: str) -> list[Decision]:
        device = PROGRAMS[kind][case.removesuffix(FLIPPED)].device
        folder = made_once(
            tmp_path_factory, f"causes-{kind}-{device}", lambda folder: dump(kind, device, folder)
        )
        assert not (folder / FAILED).exists(), (folder / FAILED).read_text()
        run = read_run(next((folder / "torch_compile_debug").glob("run_*")))
        assert run.manifest is not None
        assert all(note.code == "graph-not-computed" for note in run.manifest.notes)  # of large inputs
        names = [graph.name for graph in run.manifest.graphs if graph.case == case]
        assert names
        files = [graph.path / DECISIONS_NAME for graph in run.graphs if graph.name in names]
        read = [read_decisions(file) for file in files]
        assert all(each.complete for each in read)
        return [decision for each in read for decision in each.decisions if decision.kind == kind]

    return decisions


def decision_of(
    program: Program, decisions: list[Decision], question: Collection[str] | None = None
) -> Decision | None:
    """Return the decision that a program is about and that was kept, None where there is none.

    Of a pair (two groups): the last one, about nodes that hold it, or with `exact` about just these groups.

    Args:
        question: outcomes of the one that is meant; None: that which has the code of the program. Of the
            flipped program it is known.
    """
    about = (program.flipped_about if question is not None else None) or program.about
    if about and isinstance(about[0], tuple):
        first, second = about
        if not program.exact:
            return decision_of_pair(decisions, first, second)
        return next((one for one in reversed(decisions) if {*one.subjects} == {*about}), None)
    of: dict[Collection[str], Decision] = {}
    for one in decisions:
        if program.among and one.outcome not in program.among:
            continue
        if not one.speculative and (about is None or about in (one.subjects or ((),))):
            assert one.question not in of, (of[one.question], one)
            of[one.question] = one
    if question is None:
        question = next((one.question for one in of.values() if one.cause == program.code), ())
    return of.get(question)


def check(kind: str, name: str, decided: Decided) -> None:
    """Check the cause that a program shows, and that its flip turns the decision."""
    program = PROGRAMS[kind][name]
    before = decision_of(program, decided(kind, name))
    assert before is not None
    assert before.cause == program.code
    operands = dict(before.operands)
    assert {key: operands.get(key) for key in program.operands} == dict(program.operands)
    assert before.place.file.startswith("torch/_inductor/")
    after = decision_of(program, decided(kind, name + FLIPPED), before.question)
    turned = (after.outcome, after.cause) if after is not None else None
    assert turned == program.turned
    assert turned != (before.outcome, before.cause)


def marks_of(program: Program) -> tuple[pytest.MarkDecorator, ...]:
    """Return what a test of a program is marked with: skipped, and why, where torch lacks the rule."""
    reason = f"torch {program.since} has this rule, torch {torch.__version__} does not"
    return () if program.is_here else (pytest.mark.skip(reason=reason),)


def parameters(device: str) -> list[Any]:
    """Return kind and name of each program of a device, as parameters of a test."""
    return [pytest.param(kind, name, marks=marks_of(PROGRAMS[kind][name])) for kind, name in DEVICES[device]]


@pytest.mark.compiles
@pytest.mark.parametrize(("kind", "name"), parameters("cpu"))
def test_a_cause_is_recorded_and_its_flip_turns_the_decision(kind: str, name: str, decided: Decided) -> None:
    check(kind, name, decided)


@pytest.mark.compiles
@pytest.mark.parametrize(("kind", "name"), parameters("cuda"))
def test_a_cause_of_a_gpu_is_recorded_and_its_flip_turns_it(kind: str, name: str, decided: Decided) -> None:
    check(kind, name, decided)


def test_every_cause_has_a_program() -> None:
    shown = {program.code for programs in PROGRAMS.values() for program in programs.values()}
    codes = {code for group in get_args(CauseCode) for code in (get_args(group) or (group,))}
    assert codes - shown == {"turned"}  # by a flip: tests/capture/test_flips.py
    assert shown <= codes
