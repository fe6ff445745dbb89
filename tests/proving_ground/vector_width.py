"""How many elements a vectorised C++ loop computes at once: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_one, floats, numbers

PROGRAMS = {
    "float32": Program(
        code="float-lanes",
        function=add_one,
        inputs=lambda: floats(256),
        about=("op0",),
        operands={"dtypes": ("float32",), "vectors": ("1",)},
        flipped_inputs=lambda: numbers(torch.bfloat16, 256),
        turned=("full-width", "low-precision-lanes"),
    ),
    "bytes_fill_a_quarter": Program(
        code="float-lanes",
        function=add_one,
        inputs=lambda: numbers(torch.uint8, 256),
        about=("op0",),
        operands={"dtypes": ("uint8",), "vectors": ("0.25",)},
        flipped_inputs=lambda: numbers(torch.bfloat16, 256),
        turned=("full-width", "low-precision-lanes"),
    ),
    "bfloat16": Program(
        code="low-precision-lanes",
        function=add_one,
        inputs=lambda: numbers(torch.bfloat16, 256),
        about=("op0",),
        flipped_inputs=lambda: floats(256),
        turned=("full-width", "float-lanes"),
    ),
    "short_bfloat16": Program(
        code="short-low-precision-range",
        function=add_one,
        inputs=lambda: numbers(torch.bfloat16, 12),
        about=("op0",),
        operands={"ranges": ("12",)},
        flipped_inputs=lambda: numbers(torch.bfloat16, 256),
        turned=("full-width", "low-precision-lanes"),
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
