"""Every cause that is recorded, on a program that shows it, and turned by its flip.

Of programs `examined-...`, which are as people write them, the cause is one among others.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
import torch

from inductor_probe.analysis.causes.pairs import decision_of_pair
from inductor_probe.catalogue import KINDS, causes_of
from inductor_probe.model.decision import Decision, DecisionKind
from tests.proving_ground.dumped import Decided, decided_by, programs_of
from tests.proving_ground.every_program import OF_KINDS, PROGRAMS
from tests.proving_ground.examined import EXAMINED
from tests.proving_ground.programs import FLIPPED, Program

KIND_OF: dict[str, DecisionKind] = {
    **{f"{kind}-{name}": kind for kind, programs in OF_KINDS.items() for name in programs},
    **{f"examined-{name}": kind for name, (kind, _) in EXAMINED.items()},
}


def of_device(device: str) -> list[Any]:
    """Return the programs of a device as parameters of a test: skipped where torch lacks the rule."""
    return [
        pytest.param(
            name, marks=pytest.mark.skipif(not one.is_here, reason=f"only {one.releases} have this rule")
        )
        for name, one in PROGRAMS.items()
        if one.device == device and not (one.simulated and torch.cuda.is_available())
    ]


@pytest.fixture(scope="session")
def decided(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Decided:
    """Return a function from a case and a kind to the decisions of that kind that its graphs hold."""
    return decided_by(tmp_path_factory, programs_of(request.session.items))


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


def check(name: str, decided: Decided) -> None:
    """Check the cause that a program shows, and that its flip turns the decision."""
    program, kind = PROGRAMS[name], KIND_OF[name]
    before = decision_of(program, decided(name, kind))
    assert before is not None
    assert before.cause == program.code
    assert before.outcome in causes_of(kind)[program.code].outcomes.split()
    operands = dict(before.operands)
    assert {key: operands.get(key) for key in program.operands} == dict(program.operands)
    assert before.place.file.startswith("torch/_inductor/")
    after = decision_of(program, decided(name + FLIPPED, kind), before.question)
    turned = (after.outcome, after.cause) if after is not None else None
    assert turned == program.turned
    assert turned != (before.outcome, before.cause)


@pytest.mark.compiles
@pytest.mark.parametrize("program", of_device("cpu"))
def test_a_cause_is_recorded_and_its_flip_turns_the_decision(program: str, decided: Decided) -> None:
    check(program, decided)


@pytest.mark.compiles
@pytest.mark.parametrize("program", of_device("cuda"))
def test_a_cause_of_a_gpu_is_recorded_and_its_flip_turns_it(program: str, decided: Decided) -> None:
    check(program, decided)


def test_every_cause_has_a_program() -> None:
    """Those of any kind are in tests/capture: test_flips.py, test_changed_torch.py."""
    shown = {(kind, one.code) for kind, programs in OF_KINDS.items() for one in programs.values()}
    assert shown == {(kind, code) for kind in KINDS for code in causes_of(kind)}
