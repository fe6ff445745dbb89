"""Why a Triton kernel has tiles of one dimension or of several: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_one, floats_on_gpu


def copy_transposed(values: torch.Tensor) -> torch.Tensor:
    """Return what is read along one dimension, and written along the other."""
    return values.t().contiguous()


def add_to_part(values: torch.Tensor) -> torch.Tensor:
    """Return an operation on rows that do not follow each other in memory."""
    return values[:, :128] + 1


def sum_part(values: torch.Tensor) -> torch.Tensor:
    """Return a reduction over two dimensions that are not one."""
    return values[:, :, :8].sum((1, 2))


def product(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return a matrix product."""
    return first @ second


def transposed_and_scaled(
    values: torch.Tensor, outer: torch.Tensor, inner: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what is written across its loops, and what is made of it in loops that do not divide these."""
    transposed = (values.view(6000, 1000) + 1).t().contiguous()
    return transposed, transposed.view(3, 2000, 1000) * outer[:, None, None] * inner[None, :, None]


def scaled_inputs() -> tuple[torch.Tensor, ...]:
    """Return what `transposed_and_scaled` takes."""
    return (*floats_on_gpu(6000000), *floats_on_gpu(3), *floats_on_gpu(2000))


ONE_TILE = {"triton.max_tiles": 1}
BY_STRIDES = {"triton.coalesce_tiling_analysis": False}

PROGRAMS = {
    "coalescing": Program(
        code="coalescing",
        function=copy_transposed,
        inputs=lambda: floats_on_gpu(256, 512),
        operands={"tiling": "y=512, x=256"},
        flip=ONE_TILE,
        turned=("one-d-tiles", "tile-limit"),
        device="cuda",
    ),
    "limit": Program(
        code="tile-limit",
        function=copy_transposed,
        inputs=lambda: floats_on_gpu(256, 512),
        operands={"tiling": "x=131072", "limit": 1},
        settings=ONE_TILE,
        flip={"triton.max_tiles": None},
        turned=("two-d-tiles", "coalescing"),
        device="cuda",
    ),
    "one_candidate": Program(
        code="one-candidate",
        function=add_one,
        inputs=lambda: floats_on_gpu(256, 512),
        operands={"tiling": "x=131072"},
        flipped_function=copy_transposed,
        turned=("two-d-tiles", "coalescing"),
        device="cuda",
    ),
    "strides": Program(
        code="strides",
        function=copy_transposed,
        inputs=lambda: floats_on_gpu(256, 512),
        operands={"tiling": "y=512, x=256"},
        settings=BY_STRIDES,
        flip=ONE_TILE,
        turned=("one-d-tiles", "tile-limit"),
        device="cuda",
    ),
    "reductions": Program(
        code="reductions-not-tiled",
        function=sum_part,
        inputs=lambda: floats_on_gpu(16384, 16, 16),
        operands={"tiling": "x=16384, r0_=128"},
        settings={**BY_STRIDES, "triton.prefer_nd_tiling": True},
        flip={"triton.tile_reductions": True},
        turned=("three-d-tiles", "n-d-tiles-preferred"),
        device="cuda",
    ),
    "n_d_tiles": Program(
        code="n-d-tiles-preferred",
        function=add_to_part,
        inputs=lambda: floats_on_gpu(256, 512),
        operands={"tiling": "y=256, x=128"},
        settings={"triton.prefer_nd_tiling": True},
        flip={"triton.prefer_nd_tiling": False},
        turned=("one-d-tiles", "one-candidate"),
        device="cuda",
    ),
    "other_loops": Program(
        code="loops-do-not-divide",
        function=transposed_and_scaled,
        inputs=scaled_inputs,
        about=("op0", "op1"),
        operands={"tiling": "x=6000000", "better": "y=1000, x=6000"},
        settings={**BY_STRIDES, "triton.tiling_prevents_pointwise_fusion": False},
        flip={"triton.tiling_prevents_pointwise_fusion": True},
        flipped_about=("op0",),
        turned=("two-d-tiles", "strides"),
        device="cuda",
    ),
    "matrix_product": Program(
        code="matrix-product",
        function=product,
        inputs=lambda: (*floats_on_gpu(64, 128), *floats_on_gpu(128, 64)),
        operands={"tiling": "y=64, x=64, r0_=128"},
        settings={"triton.native_matmul": True},
        flip={"triton.native_matmul": False},
        device="cuda",
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
