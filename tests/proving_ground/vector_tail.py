"""Which lanes of a vectorised C++ loop are filled: a program for each cause, with its flip.

The sizes leave the same tails with 16 lanes as with 8.
"""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_one, floats


def select(values: torch.Tensor) -> torch.Tensor:
    """Return a pointwise operation with a mask."""
    return torch.where(values > 0, values, values * 2)


MASKED = ("masked-tail", "partial-vector")

PROGRAMS = {
    "whole_vectors": Program(
        code="whole-vectors",
        function=add_one,
        inputs=lambda: floats(256),
        about=("op0",),
        operands={"loops": ("x0",), "ranges": ("256",), "tails": ("0",)},
        flipped_inputs=lambda: floats(258),
        turned=MASKED,
    ),
    "partial_vector": Program(
        code="partial-vector",
        function=add_one,
        inputs=lambda: floats(258),
        about=("op0",),
        operands={"tails": ("2",)},
        flipped_inputs=lambda: floats(256),
        turned=("no-tail", "whole-vectors"),
    ),
    "range_below_vector": Program(
        code="range-below-vector",
        function=add_one,
        inputs=lambda: floats(6),
        about=("op0",),
        operands={"full_vectors": ("0",), "tails": ("6",)},
        flipped_inputs=lambda: floats(256),
        turned=("no-tail", "whole-vectors"),
    ),
    "not_worthwhile": Program(
        code="tail-not-worthwhile",
        function=select,
        inputs=lambda: floats(258),
        about=("op0",),
        operands={"masks": 1, "operations": 7, "share": 0.1429, "share_limit": 0.12, "tail": 2},
        flipped_inputs=lambda: floats(271),
        turned=MASKED,
    ),
    "vectorisation_off": Program(
        code="tail-vectorisation-off",
        function=add_one,
        inputs=lambda: floats(258),
        about=("op0",),
        settings={"cpp.enable_loop_tail_vec": False},
        flip={"cpp.enable_loop_tail_vec": True},
        turned=MASKED,
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
