"""Along which loop a C++ nest would be vectorised: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_transposed, floats


def add_to_rows(values: torch.Tensor) -> torch.Tensor:
    """Return two loops, the inner of which is contiguous in every access."""
    return values + values[:, :1]


def add_rotated(values: torch.Tensor) -> torch.Tensor:
    """Return three loops, each of which is contiguous in some access, and strided in others."""
    return values + values.permute(1, 2, 0) + values.permute(2, 0, 1)


def sum_every_second(values: torch.Tensor) -> torch.Tensor:
    """Return a sum that reads with stride 2, and writes one number."""
    return values[::2].sum()


def sum_all(values: torch.Tensor) -> torch.Tensor:
    """Return the same with stride 1."""
    return values.sum()


ONLY = ("innermost-loop", "contiguous-only-loop")

PROGRAMS = {
    "contiguous_only": Program(
        code="contiguous-only-loop",
        function=add_to_rows,
        inputs=lambda: floats(64, 64),
        about=("op0",),
        operands={
            "chosen": ("x1",), "loops": ("x0", "x1"), "ranges": ("64", "64"), "contiguous": ("0", "2"),
            "constant_stride": ("true", "false"),
        },
        flipped_function=add_transposed,
        turned=("two-loops", "two-contiguous-loops"),
    ),
    "two_contiguous": Program(
        code="two-contiguous-loops",
        function=add_transposed,
        inputs=lambda: floats(64, 64),
        about=("op0",),
        operands={"chosen": ("x0", "x1"), "contiguous": ("1", "2"), "constant_stride": ("true", "true")},
        flipped_function=add_to_rows,
        turned=ONLY,
    ),
    "most_contiguous": Program(
        code="most-contiguous-loop",
        function=add_rotated,
        inputs=lambda: floats(16, 16, 16),
        about=("op0",),
        operands={"chosen": ("x2",), "contiguous": ("1", "1", "2")},
        flipped_function=add_transposed,
        flipped_inputs=lambda: floats(64, 64),
        turned=("two-loops", "two-contiguous-loops"),
    ),
    "no_contiguous": Program(
        code="no-contiguous-loop",
        function=sum_every_second,
        inputs=lambda: floats(4096),
        about=("op0",),
        operands={"chosen": ("x0",), "contiguous": ("0",), "constant_stride": ("true",)},
        flipped_function=sum_all,
        turned=ONLY,
    ),
}  # fmt: skip

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
