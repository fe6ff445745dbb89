"""With how many configs a Triton kernel may run, and why: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.reduction import product, sum_first, sum_last
from tests.proving_ground.tensors import add_one, floats_on_gpu


def copy_transposed(values: torch.Tensor) -> torch.Tensor:
    """Return what is read along one dimension, and written along the other."""
    return values.t().contiguous()


def add_transposed(values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return a sum of what is read along one dimension, and along the other."""
    return values.t() + others


def add_to_part(values: torch.Tensor) -> torch.Tensor:
    """Return an operation on elements that follow each other in no dimension."""
    return values[:, :16, :24] + 1


def sum_and_transpose(values: torch.Tensor) -> torch.Tensor:
    """Return sums that are read along one dimension, and written along another."""
    return values.sum(1).t().contiguous()


def scaled_by_sums(values: torch.Tensor) -> torch.Tensor:
    """Return rows by their sums: each row is read twice, or kept."""
    return values / values.sum(-1, keepdim=True)


def add_lists(values: torch.Tensor, others: torch.Tensor) -> list[torch.Tensor]:
    """Return sums of two lists of tensors."""
    return list(torch._foreach_add([values, values[:5]], [others, others[:5]]))


def add_apart(values: torch.Tensor, others: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two things that have nothing in common."""
    return values + 1, others * 2


ALL = {"max_autotune_pointwise": True}
FEW = {"max_autotune_pointwise": False}
TEMPLATES = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}

PROGRAMS = {
    "pointwise": Program(
        code="pointwise-autotuning",
        function=add_one,
        inputs=lambda: floats_on_gpu(600, 1024),
        operands={"heuristic": "pointwise", "size_hints": ("x=1048576",), "numels": ("x=614400",)},
        flip={"triton.autotune_pointwise": False},
        turned=("one-config", "pointwise-autotuning-off"),
        device="cuda",
    ),
    "pointwise_off": Program(
        code="pointwise-autotuning-off",
        function=add_one,
        inputs=lambda: floats_on_gpu(600, 1024),
        settings={"triton.autotune_pointwise": False},
        flip={"triton.autotune_pointwise": True},
        turned=("several-configs", "pointwise-autotuning"),
        device="cuda",
    ),
    "tiny": Program(
        code="one-fits",
        function=add_one,
        inputs=lambda: floats_on_gpu(4),
        operands={"size_hints": ("x=4",)},
        flipped_inputs=lambda: floats_on_gpu(600, 1024),
        turned=("several-configs", "pointwise-autotuning"),
        device="cuda",
    ),
    "square": Program(
        code="one-input-one-output",
        function=copy_transposed,
        inputs=lambda: floats_on_gpu(256, 512),
        operands={"size_hints": ("y=512", "x=256")},
        flipped_function=add_transposed,
        flipped_inputs=lambda: (*floats_on_gpu(256, 512), *floats_on_gpu(512, 256)),
        turned=("several-configs", "pointwise-autotuning"),
        device="cuda",
    ),
    "cubes": Program(
        code="three-loops",
        function=add_to_part,
        inputs=lambda: floats_on_gpu(64, 32, 32),
        settings={"triton.prefer_nd_tiling": True, "triton.max_tiles": 3},
        flip=ALL,
        turned=("several-configs", "max-autotune"),
        device="cuda",
    ),
    "all": Program(
        code="max-autotune",
        function=copy_transposed,
        inputs=lambda: floats_on_gpu(256, 512),
        settings=ALL,
        flip=FEW,
        turned=("one-config", "one-input-one-output"),
        device="cuda",
    ),
    "hint": Program(
        code="known-hint",
        function=sum_last,
        inputs=lambda: floats_on_gpu(64, 4096),
        operands={"heuristic": "reduction", "hint": "INNER"},
        flip=ALL,
        turned=("several-configs", "max-autotune"),
        device="cuda",
    ),
    "persistent_hint": Program(
        code="known-hint",
        function=sum_last,
        inputs=lambda: floats_on_gpu(64, 512),
        operands={"heuristic": "persistent_reduction", "hint": "INNER", "size_hints": ("x=64", "r0_=512")},
        flip=ALL,
        turned=("several-configs", "max-autotune"),
        device="cuda",
    ),
    "no_hint": Program(
        code="default-hint",
        function=sum_first,
        inputs=lambda: floats_on_gpu(64, 65536),
        operands={"hint": "DEFAULT"},
        flipped_function=sum_last,
        flipped_inputs=lambda: floats_on_gpu(64, 512),
        turned=("one-config", "known-hint"),
        device="cuda",
    ),
    "short": Program(
        code="short-rows",
        function=sum_last,
        inputs=lambda: floats_on_gpu(1024, 128),
        operands={"hint": "INNER"},
        flipped_inputs=lambda: floats_on_gpu(1024, 256),
        turned=("one-config", "known-hint"),
        device="cuda",
    ),
    "whole_rows": Program(
        code="whole-row-config",
        function=scaled_by_sums,
        inputs=lambda: floats_on_gpu(4096, 4096),
        operands={"hint": "INNER"},
        flipped_function=sum_last,
        turned=("one-config", "known-hint"),
        device="cuda",
    ),
    "tiled": Program(
        code="tiled-reduction",
        function=sum_and_transpose,
        inputs=lambda: floats_on_gpu(512, 96, 256),
        operands={"size_hints": ("y=512", "x=256", "r0_=128"), "numels": ("y=512", "x=256", "r0_=96")},
        flip={"triton.max_tiles": 1},
        turned=("several-configs", "default-hint"),
        device="cuda",
    ),
    "deterministic": Program(
        code="deterministic",
        function=sum_first,
        inputs=lambda: floats_on_gpu(64, 65536),
        settings={"deterministic": True},
        flip={"deterministic": False},
        turned=("several-configs", "default-hint"),
        device="cuda",
    ),
    "template": Program(
        code="template-config",
        function=product,
        inputs=lambda: (*floats_on_gpu(256, 256), *floats_on_gpu(256, 256)),
        settings=TEMPLATES,
        flip={"max_autotune": False},
        device="cuda",
    ),
    "lists": Program(
        code="foreach-warps",
        function=add_lists,
        inputs=lambda: (*floats_on_gpu(64, 64), *floats_on_gpu(64, 64)),
        flip=ALL,
        turned=("several-configs", "max-autotune"),
        device="cuda",
    ),
    "combo": Program(
        code="combo-kernel",
        function=add_apart,
        inputs=lambda: (*floats_on_gpu(600, 1024), *floats_on_gpu(300, 500)),
        settings={"combo_kernels": True, "combo_kernel_per_subkernel_blocks": True},
        operands={"parts": 2, "sizes_of_parts": ("x=1048576", "x=262144")},
        flip={"combo_kernels": False},
        since="2.13",
        flipped_about=("op0",),
        turned=("several-configs", "pointwise-autotuning"),
        device="cuda",
    ),
    "product": Program(
        code="matrix-product",
        function=product,
        inputs=lambda: (*floats_on_gpu(64, 128), *floats_on_gpu(128, 64)),
        settings={"triton.native_matmul": True},
        flip={"triton.native_matmul": False},
        device="cuda",
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
