"""Why a C++ loop nest is scalar, or vectorised: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of


def hflip(image: torch.Tensor) -> torch.Tensor:
    """Return the image mirrored left to right."""
    return image.flip(-1)


def add_one(values: torch.Tensor) -> torch.Tensor:
    """Return a pointwise operation of one read and one write."""
    return values + 1


def add_transposed(values: torch.Tensor) -> torch.Tensor:
    """Return what reads one operand by rows, and one by columns."""
    return values + values.t()


def channels_first() -> tuple[torch.Tensor, ...]:
    """Return a uint8 image as the origin of this project has it."""
    return (
        torch.arange(3 * 64 * 64, dtype=torch.int32).remainder(251).to(torch.uint8).reshape(1, 3, 64, 64),
    )


def channels_last() -> tuple[torch.Tensor, ...]:
    """Return the same image, its channels innermost."""
    return (channels_first()[0].contiguous(memory_format=torch.channels_last),)


def wide_channels_last() -> tuple[torch.Tensor, ...]:
    """Return an image of 64 channels, innermost."""
    return (torch.zeros(1, 64, 8, 8, dtype=torch.uint8).contiguous(memory_format=torch.channels_last),)


def numbers(dtype: torch.dtype, *size: int) -> tuple[torch.Tensor, ...]:
    """Return a tensor of ones."""
    return (torch.ones(size, dtype=dtype),)


NO_HEURISTIC = {"cpp.enable_tiling_heuristics": False}
VECTORISED = ("vectorised", "one-dimension")

PROGRAMS = {
    "hflip_channels_first": Program(
        code="non-contiguous-accesses",
        function=hflip,
        inputs=channels_first,
        about=("op0",),
        operands={"operations": 2, "non_contiguous": 1, "loads": 1, "share": 0.5, "share_limit": 0.12},
        flip=NO_HEURISTIC,
        turned=VECTORISED,
    ),
    "hflip_channels_last": Program(
        code="short-inner-range",
        function=hflip,
        inputs=channels_last,
        about=("op0",),
        operands={"range": 3, "operations": 2, "operations_limit": 10},
        flip=NO_HEURISTIC,
        turned=VECTORISED,
    ),
    "hflip_wide_channels_last": Program(
        code="short-inner-range",
        function=hflip,
        inputs=channels_last,
        about=("op0",),
        flipped_inputs=wide_channels_last,
        turned=VECTORISED,
    ),
    "int16": Program(
        code="dtype-not-vectorisable",
        function=add_one,
        inputs=lambda: numbers(torch.int16, 256),
        about=("op0",),
        operands={"dtypes": ("int16",)},
        flipped_inputs=lambda: numbers(torch.int32, 256),
        turned=VECTORISED,
    ),
    "scalar_tensor": Program(
        code="no-loops",
        function=add_one,
        inputs=lambda: numbers(torch.float32),
        about=("op0",),
        flipped_inputs=lambda: numbers(torch.float32, 256),
        turned=VECTORISED,
    ),
    "no_vectors": Program(
        code="no-vector-isa",
        function=add_one,
        inputs=lambda: numbers(torch.float32, 256),
        about=("op0",),
        settings={"cpp.simdlen": 1},
        flip={"cpp.simdlen": None},
        turned=VECTORISED,
    ),
    "one_dimension": Program(
        code="one-dimension",
        function=add_one,
        inputs=lambda: numbers(torch.float32, 256),
        about=("op0",),
        operands={"loop": "x0", "range": 256, "operations": 3, "non_contiguous": 0},
        flip={"cpp.simdlen": 1},
        turned=("scalar", "no-vector-isa"),
    ),
    "two_dimensions": Program(
        code="two-dimensions",
        function=add_transposed,
        inputs=lambda: numbers(torch.float32, 64, 64),
        about=("op0",),
        operands={"loops": ("x0", "x1")},
        flip={"cpp.simdlen": 1},
        turned=("scalar", "no-vector-isa"),
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
