"""Divisions of indices by symbols: a program for the cause, with its flip, for C++ and for Triton."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import floats, floats_on_gpu


def turned(values: torch.Tensor) -> torch.Tensor:
    """Return the elements by columns, in one dimension."""
    return values.t().reshape(-1) + 1


PROGRAMS = {
    "symbolic_divisor": Program(
        code="symbolic-divisor",
        function=turned,
        inputs=lambda: floats(37, 53),
        operands={"loops": ("x0",)},
        dynamic=True,
        turned=None,
    ),
    "symbolic_divisor_on_gpu": Program(
        code="symbolic-divisor",
        function=turned,
        inputs=lambda: floats_on_gpu(37, 53),
        dynamic=True,
        turned=None,
        device="cuda",
    ),
}
scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
