"""Why a C++ loop nest is scalar, or vectorised: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_one, add_transposed, numbers


def hflip(image: torch.Tensor) -> torch.Tensor:
    """Return the image mirrored left to right."""
    return image.flip(-1)


def add_one_and_hflip(image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two results of one read: they share a loop nest, and one reads backwards."""
    return image + image[..., :1], image + image.flip(-1)


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


NO_HEURISTIC = {"cpp.enable_tiling_heuristics": False}
VECTORISED = ("vectorised", "one-dimension")

PROGRAMS = {
    "hflip_channels_first": Program(
        code="non-contiguous-accesses",
        function=hflip,
        inputs=channels_first,
        about=("op0",),
        operands={
            "operations": 2,
            "non_contiguous": 1,
            "loads": 1,
            "share": 0.5,
            "share_limit": 0.12,
            "nodes": ("op0",),
            "node_operations": ("load",),
            "buffers": ("arg0_1",),
            "strides": ("-1",),
        },
        flip=NO_HEURISTIC,
        turned=VECTORISED,
    ),
    "hflip_spoils_its_partner": Program(
        code="non-contiguous-accesses",
        function=add_one_and_hflip,
        inputs=channels_first,
        about=("op0", "op1"),
        operands={"non_contiguous": 1, "nodes": ("op1",), "contiguous_nodes": ("op0",)},
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
        operands={
            "dtypes": ("int16",),
            "nodes": ("op0",) * 4,
            "node_operations": ("load", "constant", "add", "store"),
        },
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
        operands={"simdlen": "1"},
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
