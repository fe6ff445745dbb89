"""Whether parameters became constants: a program for each cause, with its flip."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import floats, frozen, without_gradients

LINEAR = torch.nn.Linear(16, 16)


def linear(values: torch.Tensor) -> torch.Tensor:
    """Return what a module with parameters of its own computes."""
    return LINEAR(values)


def scaled_linear(values: torch.Tensor) -> torch.Tensor:
    """Return the same with a weight that is computed of a parameter, and transposed: one constant."""
    return torch.nn.functional.linear(values, LINEAR.weight * 2, LINEAR.bias)


class Marked(torch.nn.Module):
    """Writes into a buffer of its own that it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(16))
        self.scale = torch.nn.Parameter(torch.ones(16))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the values scaled, and moved by that."""
        self.calls.fill_(1)
        return values * self.scale + self.calls


MARKED = Marked()


def marked(values: torch.Tensor) -> torch.Tensor:
    """Return what a module with a buffer that it changes computes."""
    return MARKED(values)


def not_marked(values: torch.Tensor) -> torch.Tensor:
    """Return the same, and leave the buffer as it is."""
    return values * MARKED.scale + MARKED.calls


def with_gradients(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Call a function where gradients are recorded."""
    return function(*inputs).detach()


def exported(function: Callable[..., torch.Tensor], values: torch.Tensor) -> torch.Tensor:
    """Compile an exported module ahead of time; its C++ is written, and not compiled."""
    inductor: Any = importlib.import_module("torch._inductor")
    if function is linear:  # eager, to compare with
        return function(values)
    with torch.no_grad():
        program = torch.export.export(LINEAR, (values,))
        options = {"freezing": True, "aot_inductor.package": True, "aot_inductor.package_cpp_only": True}
        inductor.aot_compile(program.module(), (values,), options=options)
        return LINEAR(values)


PROGRAMS = {
    "linear": Program(
        code="parameters",
        function=linear,
        inputs=lambda: floats(16, 16),
        among=("frozen",),
        operands={"constants": 2, "inputs": 1},
        step=frozen,
        flipped_step=without_gradients,
    ),
    "changed_buffer": Program(
        code="kept-parameter",
        function=marked,
        inputs=lambda: floats(16, 16),
        about=("arg1_1",),
        operands={"changed": True},
        step=frozen,
        flipped_function=not_marked,
        flipped_step=frozen,
    ),
    "option": Program(
        code="no-parameters",
        function=linear,
        inputs=lambda: floats(16, 16),
        among=("frozen", "not-frozen"),
        operands={"inputs": 3},
        step=without_gradients,
        settings={"freezing": True},
        flipped_step=frozen,
        turned=("frozen", "parameters"),
    ),
    "gradients": Program(
        code="gradients-enabled",
        function=linear,
        inputs=lambda: floats(16, 16),
        among=("frozen", "not-frozen"),
        step=with_gradients,
        settings={"freezing": True},
        flipped_step=frozen,
        turned=("frozen", "parameters"),
    ),
    "exported": Program(
        code="attributes",
        function=linear,
        inputs=lambda: floats(16, 16),
        among=("frozen", "not-frozen"),
        operands={"attributes": 2, "inputs": 1},
        step=exported,
        flipped_step=without_gradients,
    ),
    "scaled_weight": Program(
        code="frozen-inputs",
        function=scaled_linear,
        inputs=lambda: floats(16, 16),
        about=("permute",),
        operands={"operators": ("aten.permute.default",)},
        step=frozen,
        flipped_step=without_gradients,
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
