"""Why what surrounds a template is fused into it, or not: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from tests.proving_ground.programs import Program
from tests.proving_ground.tensors import Tensors, floats, on_gpu, timed_as

BY_TEMPLATE = ("fused", "template-epilogue")
OP01, OP12 = (("op0",), ("op1",)), (("op1",), ("op2",))


def matrices() -> Tensors:
    """Return two batches of matrices."""
    return torch.ones(2, 64, 64), torch.full((2, 64, 64), 2.0)


def product_then_more(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.bmm(x, y) * 2


def product_then_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.bmm(x, y).sum(-1)


def product_added_in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.add_(torch.bmm(x, y))


def product_with_gaps(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return what lies in memory with gaps between its rows."""
    return torch.empty_strided((2, 64, 64), (8192, 128, 1)).copy_(torch.bmm(x, y) * 2)


def product_and_sibling(x: torch.Tensor, y: torch.Tensor) -> Tensors:
    return torch.bmm(x, y), x * 2


def more_then_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.bmm(x.exp(), y)


def sums_then_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.bmm(x[..., None].expand(2, 64, 64, 16).sum(-1), y)


TEMPLATES = {"max_autotune": True, "max_autotune_gemm_backends": "CPP"}
"""Matrix products are made from inductor's own C++ templates, not from calls of a library."""
LIBRARY = {"max_autotune": False}


def widened_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.mm(x.to(torch.float32), y)


PROGRAMS = {
    "template_epilogue": Program(
        code="template-epilogue", function=product_then_more, inputs=matrices, about=OP01,
        settings=TEMPLATES, flip={"epilogue_fusion": False}, turned=("refused", "epilogue-fusion-off"),
    ),
    "epilogue_fusion_off": Program(
        code="epilogue-fusion-off", function=product_then_more, inputs=matrices, about=OP01,
        settings={**TEMPLATES, "epilogue_fusion": False}, operands={"template_setting": False},
        flip={"epilogue_fusion": True}, turned=BY_TEMPLATE,
    ),
    "epilogue_reduces": Program(
        code="epilogue-reduces", function=product_then_sum, inputs=matrices, about=OP01,
        settings=TEMPLATES, flipped_function=product_then_more, turned=BY_TEMPLATE,
    ),
    "epilogue_mutates": Program(
        code="epilogue-mutates", function=product_added_in_place, inputs=matrices, about=OP01,
        settings=TEMPLATES, flipped_function=product_then_more, turned=BY_TEMPLATE,
    ),
    "epilogue_index_differs": Program(
        code="epilogue-index-differs", function=product_with_gaps, inputs=matrices, about=OP12,
        settings=TEMPLATES,
        operands={
            "node": "op2", "buffers": ("buf1",), "reads_at": ("4096*d0 + 64*d1 + d2",),
            "writes_at": ("8192*d0 + 128*d1 + d2",),
        },
        flipped_function=product_then_more, flipped_about=OP01, turned=BY_TEMPLATE,
    ),
    "template_sibling": Program(
        code="template-sibling", function=product_and_sibling, inputs=matrices, about=OP01,
        settings=TEMPLATES, flip=LIBRARY, turned=("not-tried", "extern-kernel"),
    ),
    "prologue_fusion_off": Program(
        code="prologue-fusion-off", function=more_then_product, inputs=matrices, about=OP01,
        settings={**TEMPLATES, "prologue_fusion": False}, flip={"prologue_fusion": True},
        turned=("refused", "no-prologue-inputs"),
    ),
    "no_prologue_inputs": Program(
        code="no-prologue-inputs", function=more_then_product, inputs=matrices, about=OP01,
        settings=TEMPLATES, flip=LIBRARY, turned=("not-tried", "extern-kernel"),
    ),
    "prologue_not_pointwise": Program(
        code="prologue-not-pointwise", function=sums_then_product, inputs=matrices, about=OP01,
        settings=TEMPLATES, flipped_function=more_then_product, turned=("refused", "no-prologue-inputs"),
    ),
    "template_prologue": Program(
        code="template-prologue", function=widened_product, about=OP01, device="cuda",
        inputs=timed_as(1.0)(on_gpu(lambda: (torch.ones(256, 256, dtype=torch.int8), *floats(256, 256)))),
        settings={**TEMPLATES, "max_autotune_gemm_backends": "TRITON", "prologue_fusion": True,
                  "benchmark_epilogue_fusion": True},
        flip={"prologue_fusion": False}, turned=("refused", "prologue-fusion-off"),
    ),
}  # fmt: skip
