"""A program that shows a cause, and its flip; a script's programs as a scenario with two cases each."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from inductor_probe.scenario import Case, Check, Scenario
from tests.proving_ground.tensors import put_back

if TYPE_CHECKING:
    from types import FunctionType

FLIPPED = "_flipped"
"""Ends the name of the case in which the decision must turn."""


@dataclass(frozen=True)
class Program:
    """What shows a cause.

    Attributes:
        code: of the cause. function, inputs: what is compiled; inputs are made when the case runs.
        about: names of the subject that the decision is about (`op0`), or two such groups: a pair of nodes,
            what kept them apart in the end, or fused them. None: the only one of its kind. Where the kind
            has several questions (`Decision.question`), it is the one of the code.
        flipped_about: where the flip numbers nodes anew.
        exact: the decision about just this pair, though nodes that hold it were decided about later.
        among: outcomes of the question that is meant, where code and `Decision.question` do not say it.
        operands: what must be recorded, as far as it is the same on every machine.
        settings: of inductor, in both cases. flip: settings that turn the decision.
        flipped_function, flipped_inputs: changes of source that do, in place of `function` and `inputs`.
        turned: the outcome and the cause afterwards; None where there is nothing to decide any more.
        dynamic, flipped_dynamic: whether sizes are symbolic.
        step, flipped_step: how the function is called, if not plainly; see `Check`.
        device: where it compiles; where there is no GPU, one for `cuda` compiles for a simulated one.
        simulated: it needs a GPU that is simulated: a real one would decide by its times.
        since: the version of torch that has the rule, where the oldest that is supported has it not.
        until: the last one that has it, where newer ones have another.
    """

    code: str
    function: FunctionType
    inputs: Callable[[], tuple[torch.Tensor, ...]]
    about: tuple[str, ...] | tuple[tuple[str, ...], tuple[str, ...]] | None = None
    turned: tuple[str, str] | None = None
    among: tuple[str, ...] = ()
    operands: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    flip: Mapping[str, Any] = field(default_factory=dict)
    flipped_function: FunctionType | None = None
    flipped_inputs: Callable[[], tuple[torch.Tensor, ...]] | None = None
    dynamic: bool = False
    flipped_dynamic: bool = False
    step: Callable[..., torch.Tensor] | None = None
    flipped_step: Callable[..., torch.Tensor] | None = None
    device: str = "cpu"
    since: str = "2.11"
    until: str | None = None
    simulated: bool = False
    flipped_about: tuple[str, ...] | tuple[tuple[str, ...], tuple[str, ...]] | None = None
    exact: bool = False

    @property
    def is_here(self) -> bool:
        """Whether the installed torch has the rule."""
        here = _release(torch.__version__)
        return _release(self.since) <= here and (self.until is None or here <= _release(self.until))

    @property
    def releases(self) -> str:
        """Which releases of torch have the rule: `torch 2.13 to 2.14`."""
        return f"torch {self.since} to {self.until}" if self.until else f"torch {self.since} and later"


def _release(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version: (2, 11) of 2.11.0+cpu."""
    return tuple(int(number) for number in version.split(".")[:2])


def scenario_of(programs: Mapping[str, Program]) -> Scenario:
    """Return a scenario with two cases a program, if the installed torch has the rule: as is, and flipped."""

    def build(case: Case) -> Check:
        put_back()
        is_flipped = case.name.endswith(FLIPPED)
        program = programs[case.name.removesuffix(FLIPPED)]
        function = program.flipped_function if is_flipped else None
        inputs = program.flipped_inputs if is_flipped else None
        settings = {**program.settings, **(program.flip if is_flipped else {})}
        return Check(
            function or program.function,
            (inputs or program.inputs)(),
            tolerance=1e-3,
            options={
                "dynamic": program.flipped_dynamic if is_flipped else program.dynamic,
                **({"options": settings} if settings else {}),
            },
            step=(program.flipped_step if is_flipped else None) or program.step,
        )

    cases = {
        f"{name}{end}": {"device": program.device}
        for name, program in programs.items()
        if program.is_here
        for end in ("", FLIPPED)
    }
    return Scenario(build, defaults={"device": "cpu"}, cases=cases)


def leave_out_what_decides_nothing() -> None:
    """Leave out what takes a fifth of compiling hundreds of small programs, and decides nothing.

    That is garbage collection of torch itself, the structured trace of each compile, and the time of its
    guards, for which torch fills the processor's cache with something else first.
    """
    from torch._dynamo import guards  # noqa: PLC0415 - who reads the programs compiles none

    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    logging.getLogger("torch.__trace").handlers.clear()
    guards.profile_guard_manager = lambda *_: 0.0
