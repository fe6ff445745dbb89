"""How reductions are generated, and why: a program for each cause, with its flip.

Those about scans are in `scans.py`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch._dynamo
from torch._inductor import config

from inductor_probe.scenario import Scenario
from tests.proving_ground import scans
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import floats, floats_on_gpu

LIMIT_OF_COOPERATION = {} if torch.__version__.startswith("2.11.") else {"elements_limit": 131072}
"""Torch 2.11 splits no reduction where blocks may work together, and compares nothing for that."""
TWO_PASSES = getattr(config.cpp, "use_two_step_variance_threshold", config.unroll_reductions_threshold - 1)
"""Most elements that mean and variance take two passes over, on a CPU: torch 2.11 has no setting for it."""


def sum_last(values: torch.Tensor) -> torch.Tensor:
    """Return sums over the last dimension."""
    return values.sum(-1)


def sum_first(values: torch.Tensor) -> torch.Tensor:
    """Return sums over the first dimension."""
    return values.sum(0)


def sum_all(values: torch.Tensor) -> torch.Tensor:
    """Return one sum."""
    return values.sum()


def sum_rows_of_ones(values: torch.Tensor) -> torch.Tensor:
    """Return sums of what does not depend on any input."""
    return torch.ones(16, 64, device=values.device).sum(-1) + values


def sum_of_indices(values: torch.Tensor) -> torch.Tensor:
    """Return a sum over as many rows as there are values that are not zero."""
    return values.nonzero().sum(0)


def with_unknown_sizes(compiled: Any, *inputs: torch.Tensor) -> torch.Tensor:
    """Call what is compiled in one graph though only the data decides a size in it."""
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        result: torch.Tensor = compiled(*inputs)
    return result


def sum_both(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return two sums in a kernel: one reads along the reduced dimension, one across."""
    return rows.sum(-1) + columns.t().sum(-1)


def rows_and_columns() -> tuple[torch.Tensor, ...]:
    """Return what `sum_both` takes."""
    return (torch.ones(4096, 64, device="cuda"), torch.ones(64, 4096, device="cuda"))


def normalised(values: torch.Tensor) -> torch.Tensor:
    """Return values by the sum of their row, in rows."""
    return values / values.sum(-1, keepdim=True)


def normalised_transposed(values: torch.Tensor) -> torch.Tensor:
    """Return the same, written by columns."""
    return normalised(values).t().contiguous()


def sum_part(values: torch.Tensor) -> torch.Tensor:
    """Return sums of the first 64 columns: rows that do not follow each other in memory."""
    return values[:, :64].sum(-1)


def sum_of_normalised(values: torch.Tensor) -> torch.Tensor:
    """Return the sum of what is made of sums of rows."""
    return normalised(values).sum()


def largest(values: torch.Tensor) -> torch.Tensor:
    """Return the largest value of each row."""
    return values.amax(-1)


def index_of_largest(values: torch.Tensor) -> torch.Tensor:
    """Return where the largest value of each row is."""
    return values.argmax(-1)


def variance(values: torch.Tensor) -> torch.Tensor:
    """Return the variance of each row."""
    return values.var(-1)


def variance_of_all(values: torch.Tensor) -> torch.Tensor:
    """Return the variance of all values."""
    return values.var()


def in_order(values: torch.Tensor) -> torch.Tensor:
    """Return the values of each row in order."""
    return values.sort(-1).values


def product(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return a matrix product."""
    return first @ second


def softmax(values: torch.Tensor) -> torch.Tensor:
    """Return a softmax of each row."""
    return values.softmax(-1)


def halves(*size: int) -> tuple[torch.Tensor, ...]:
    """Return a tensor of half precision on a GPU."""
    return (torch.ones(size, device="cuda", dtype=torch.bfloat16),)


UNROLLED = ("unrolled", "split", "not-split")
PARTS = ("split", "not-split")
VARIANCE = ("two-passes", "one-pass")
COOPERATES = ("cooperative", "not-cooperative")
LOOP = ("persistent", "looped")
HINT = ("INNER", "OUTER", "OUTER_TINY", "DEFAULT")

PROGRAMS = {
    "one_element": Program(
        code="single-element",
        function=sum_last,
        inputs=lambda: floats(16, 1),
        among=UNROLLED,
        operands={"elements": 1, "outputs": 16},
        flipped_inputs=lambda: floats(16, 64),
        turned=("not-split", "cpu-backend"),
    ),
    "unrolled": Program(
        code="below-unroll-threshold",
        function=sum_last,
        inputs=lambda: floats(16, 4),
        among=UNROLLED,
        operands={"elements": 4, "outputs": 16, "threshold": 8},
        flip={"unroll_reductions_threshold": 4},
        turned=("not-split", "cpu-backend"),
    ),
    "unknown_sizes": Program(
        code="sizes-not-known",
        function=sum_of_indices,
        inputs=lambda: floats(8, 8),
        step=with_unknown_sizes,
        among=PARTS,
        operands={"outputs": 2},
        flipped_function=sum_first,
        turned=("not-split", "cpu-backend"),
    ),
    "single_output": Program(
        code="single-output",
        function=sum_all,
        inputs=lambda: floats(16, 64),
        among=HINT,
        operands={"elements": 1024, "outputs": 1, "hint": "INNER", "parts": 1},
        flipped_function=sum_last,
        turned=("INNER", "contiguous-reads"),
    ),
    "variance_of_all": Program(
        code="single-output",
        function=variance_of_all,
        inputs=lambda: floats(16, 16),
        among=VARIANCE,
        flipped_function=variance,
        turned=("two-passes", "elements-within-threshold"),
    ),
    "few_elements": Program(
        code="few-elements",
        function=sum_last,
        inputs=lambda: floats(16, 32),
        among=HINT,
        operands={"elements": 32, "elements_limit": 32},
        flipped_inputs=lambda: floats(16, 33),
        turned=("INNER", "contiguous-reads"),
    ),
    "many_outputs": Program(
        code="many-outputs",
        function=sum_last,
        inputs=lambda: floats(65536, 64),
        among=HINT,
        operands={"outputs": 65536},
        flipped_inputs=lambda: floats(16, 64),
        turned=("INNER", "contiguous-reads"),
    ),
    "contiguous": Program(
        code="contiguous-reads",
        function=sum_last,
        inputs=lambda: floats(16, 64),
        among=HINT,
        operands={"strides": ("1",), "inner": 1, "reads": 1},
        flipped_function=sum_first,
        flipped_inputs=lambda: floats(64, 16),
        turned=("OUTER", "strided-reads"),
    ),
    "strided": Program(
        code="strided-reads",
        function=sum_first,
        inputs=lambda: floats(64, 16),
        among=HINT,
        operands={"strides": ("16",), "inner": 0, "reads": 1},
        flipped_function=sum_last,
        flipped_inputs=lambda: floats(16, 64),
        turned=("INNER", "contiguous-reads"),
    ),
    "broadcast": Program(
        code="no-strided-read",
        function=sum_rows_of_ones,
        inputs=lambda: floats(16),
        among=HINT,
        flipped_function=sum_last,
        flipped_inputs=lambda: floats(16, 64),
        turned=("INNER", "contiguous-reads"),
    ),
    "cpu": Program(
        code="cpu-backend",
        function=sum_last,
        inputs=lambda: floats(2, 65536),
        among=PARTS,
        flipped_inputs=lambda: floats(2, 4),
        turned=None,
    ),
    "two_passes": Program(
        code="elements-within-threshold",
        function=variance,
        inputs=lambda: floats(16, 6),
        among=VARIANCE,
        operands={"elements": 6, "threshold": TWO_PASSES},
        flipped_inputs=lambda: floats(16, 2048),
        turned=("one-pass", "elements-above-threshold"),
    ),
    "welford": Program(
        code="elements-above-threshold",
        function=variance,
        inputs=lambda: floats(16, 2048),
        among=VARIANCE,
        operands={"elements": 2048, "threshold": TWO_PASSES},
        flipped_inputs=lambda: floats(16, 6),
        turned=("two-passes", "elements-within-threshold"),
    ),
    "split": Program(
        code="work-for-processors",
        function=largest,
        inputs=lambda: floats_on_gpu(4, 65536),
        about=("buf1",),
        among=PARTS,
        operands={"elements": 65536, "outputs": 4},
        flip={"split_reductions": False},
        flipped_about=("buf0",),
        turned=("not-split", "split-reductions-off"),
        device="cuda",
    ),
    "split_off": Program(
        code="split-reductions-off",
        function=largest,
        inputs=lambda: floats_on_gpu(4, 65536),
        about=("buf0",),
        among=PARTS,
        settings={"split_reductions": False},
        flip={"split_reductions": True},
        flipped_about=("buf1",),
        turned=("split", "work-for-processors"),
        device="cuda",
    ),
    "enough_outputs": Program(
        code="enough-outputs",
        function=largest,
        inputs=lambda: floats_on_gpu(512, 65536),
        about=("buf0",),
        among=PARTS,
        operands={"outputs": 512},
        flipped_inputs=lambda: floats_on_gpu(4, 65536),
        flipped_about=("buf1",),
        turned=("split", "work-for-processors"),
        device="cuda",
    ),
    "short": Program(
        code="short-reduction",
        function=largest,
        inputs=lambda: floats_on_gpu(4, 8192),
        about=("buf0",),
        among=PARTS,
        operands={"elements": 8192, "elements_limit": 8192},
        flipped_inputs=lambda: floats_on_gpu(4, 65536),
        flipped_about=("buf1",),
        turned=("split", "work-for-processors"),
        device="cuda",
    ),
    "sort": Program(
        code="sort",
        function=in_order,
        inputs=lambda: floats_on_gpu(64, 256),
        among=LOOP,
        flipped_function=sum_last,
        turned=("persistent", "elements-fit-a-tile"),
        device="cuda",
    ),
    "indices": Program(
        code="index-reduction",
        function=index_of_largest,
        inputs=lambda: floats_on_gpu(4, 65536),
        about=("buf0",),
        among=PARTS,
        operands={"type": "argmax"},
        flipped_function=largest,
        flipped_about=("buf1",),
        turned=("split", "work-for-processors"),
        device="cuda",
    ),
    "cooperative": Program(
        code="cooperative-reduction",
        function=largest,
        inputs=lambda: floats_on_gpu(4, 262144),
        about=("buf0",),
        among=PARTS,
        operands={"elements": 262144, **LIMIT_OF_COOPERATION},
        settings={"triton.cooperative_reductions": True},
        flip={"triton.cooperative_reductions": False},
        flipped_about=("buf1",),
        turned=("split", "work-for-processors"),
        device="cuda",
    ),
    "cooperates": Program(
        code="work-for-blocks",
        function=largest,
        inputs=lambda: floats_on_gpu(4, 262144),
        among=COOPERATES,
        operands={"elements": 262144, "outputs": 4, "elements_limit": 131072},
        settings={"triton.cooperative_reductions": True},
        flipped_inputs=lambda: floats_on_gpu(4, 8192),
        turned=("not-cooperative", "elements-below-limit"),
        device="cuda",
    ),
    "cooperates_forced": Program(
        code="cooperation-forced",
        function=largest,
        inputs=lambda: floats_on_gpu(64, 4096),
        among=COOPERATES,
        settings={"triton.cooperative_reductions": True, "triton.force_cooperative_reductions": True},
        flip={"triton.force_cooperative_reductions": False},
        turned=("not-cooperative", "outputs-above-limit"),
        device="cuda",
    ),
    "too_many_outputs": Program(
        code="outputs-above-limit",
        function=largest,
        inputs=lambda: floats_on_gpu(17, 4194304),
        about=("op0",),
        among=COOPERATES,
        operands={"outputs": 17, "outputs_limit": 16},
        settings={"triton.cooperative_reductions": True, "split_reductions": False},
        flipped_inputs=lambda: floats_on_gpu(16, 4194304),
        turned=("cooperative", "work-for-blocks"),
        device="cuda",
    ),
    "too_few_elements": Program(
        code="elements-below-limit",
        function=largest,
        inputs=lambda: floats_on_gpu(4, 8192),
        among=COOPERATES,
        operands={"elements": 8192, "elements_limit": 131072},
        settings={"triton.cooperative_reductions": True},
        flipped_inputs=lambda: floats_on_gpu(4, 262144),
        turned=("cooperative", "work-for-blocks"),
        device="cuda",
    ),
    "cooperative_off": Program(
        code="cooperative-reductions-off",
        function=index_of_largest,
        inputs=lambda: floats_on_gpu(4, 262144),
        about=("op0",),
        among=COOPERATES,
        operands={"elements": 262144, "elements_limit": 131072},
        flip={"triton.cooperative_reductions": True},
        turned=("cooperative", "work-for-blocks"),
        device="cuda",
    ),
    **scans.PROGRAMS,
    "half_variance": Program(
        code="elements-below-minimum",
        function=variance,
        inputs=lambda: halves(64, 512),
        among=VARIANCE,
        operands={"elements": 512, "minimum": 1024},
        flip={"triton.use_two_step_variance_min_numel": 512},
        turned=("two-passes", "elements-within-threshold"),
        since="2.13",
        device="cuda",
    ),
    "long_half_variance": Program(
        code="elements-above-threshold",
        function=variance,
        inputs=lambda: halves(2048, 65536),
        among=VARIANCE,
        operands={"threshold": 32768, "setting": "triton.use_two_step_variance_threshold"},
        flip={"triton.use_two_step_variance_threshold": 65536},
        turned=("two-passes", "elements-within-threshold"),
        since="2.13",
        device="cuda",
    ),
    "split_half_variance": Program(
        code="sum-would-be-split",
        function=variance,
        inputs=lambda: halves(4, 16384),
        among=VARIANCE,
        flipped_inputs=lambda: halves(512, 16384),
        turned=("two-passes", "elements-within-threshold"),
        since="2.13",
        device="cuda",
    ),
    "softmax_sums": Program(
        code="contiguous-reads",
        function=softmax,
        inputs=lambda: floats_on_gpu(64, 4096),
        about=("buf0",),
        among=HINT,
        operands={"elements": 4096, "hint": "INNER"},
        flipped_inputs=lambda: floats_on_gpu(65536, 64),
        turned=("DEFAULT", "many-outputs"),
        device="cuda",
        since="2.12",
    ),
    "ranges_of_input": Program(
        code="ranges-of-its-input",
        function=sum_of_normalised,
        inputs=lambda: floats_on_gpu(512, 512),
        among=("split",),
        flipped_function=sum_all,
        turned=("split", "work-for-processors"),
        device="cuda",
    ),
    "matrix_product": Program(
        code="matrix-product",
        function=product,
        inputs=lambda: (*floats_on_gpu(64, 128), *floats_on_gpu(128, 64)),
        about=("buf0",),
        among=HINT,
        settings={"triton.native_matmul": True},
        flip={"triton.native_matmul": False},
        device="cuda",
    ),
    "persistent_off": Program(
        code="persistent-reductions-off",
        function=sum_last,
        inputs=lambda: floats_on_gpu(64, 512),
        about=("op0",),
        settings={"triton.persistent_reductions": False},
        flip={"triton.persistent_reductions": True},
        turned=("persistent", "elements-fit-a-tile"),
        device="cuda",
    ),
    "persistent": Program(
        code="elements-fit-a-tile",
        function=sum_last,
        inputs=lambda: floats_on_gpu(64, 512),
        about=("op0",),
        operands={"elements": 512, "limit": 1024, "hint": "INNER"},
        flip={"triton.persistent_reductions": False},
        turned=("looped", "persistent-reductions-off"),
        device="cuda",
    ),
    "looped": Program(
        code="elements-exceed-a-tile",
        function=sum_last,
        inputs=lambda: floats_on_gpu(64, 4096),
        about=("op0",),
        operands={"elements": 4096, "limit": 1024, "hint": "INNER"},
        flipped_inputs=lambda: floats_on_gpu(64, 512),
        turned=("persistent", "elements-fit-a-tile"),
        device="cuda",
    ),
    "symbolic": Program(
        code="symbolic-elements",
        function=sum_last,
        inputs=lambda: floats_on_gpu(64, 512),
        about=("op0",),
        dynamic=True,
        turned=("persistent", "elements-fit-a-tile"),
        device="cuda",
    ),
    "hint": Program(
        code="hint-of-its-reductions",
        function=sum_last,
        inputs=lambda: floats_on_gpu(64, 4096),
        about=("op0",),
        among=HINT,
        operands={"hints": ("INNER",)},
        flipped_function=sum_first,
        flipped_inputs=lambda: floats_on_gpu(64, 65536),
        turned=("DEFAULT", "hint-of-its-reductions"),
        device="cuda",
    ),
    "hints_differ": Program(
        code="hints-differ",
        function=sum_both,
        inputs=rows_and_columns,
        about=("op0", "op1", "op2"),
        among=HINT,
        operands={"hints": ("INNER", "OUTER")},
        flipped_function=sum_last,
        flipped_inputs=lambda: floats_on_gpu(64, 4096),
        flipped_about=("op0",),
        turned=("INNER", "hint-of-its-reductions"),
        device="cuda",
    ),
    "pointwise": Program(
        code="non-contiguous-pointwise",
        function=normalised_transposed,
        inputs=lambda: floats_on_gpu(64, 4096),
        about=("op0", "op1"),
        among=HINT,
        operands={"hints": ("INNER",)},
        flipped_function=normalised,
        turned=("INNER", "hint-of-its-reductions"),
        device="cuda",
    ),
    "contiguous_nodes": Program(
        code="contiguous-nodes",
        function=sum_last,
        inputs=lambda: floats_on_gpu(262144, 64),
        about=("op0",),
        among=HINT,
        operands={"hints": ("DEFAULT",)},
        flipped_function=sum_first,
        flipped_inputs=lambda: floats_on_gpu(64, 262144),
        turned=("DEFAULT", "hint-of-its-reductions"),
        device="cuda",
    ),
    "coalesced": Program(
        code="coalesced-along-reduction",
        function=sum_part,
        inputs=lambda: floats_on_gpu(262144, 100),
        about=("op0",),
        among=HINT,
        operands={"hints": ("DEFAULT",)},
        flipped_function=sum_first,
        flipped_inputs=lambda: floats_on_gpu(64, 262144),
        turned=("DEFAULT", "hint-of-its-reductions"),
        device="cuda",
    ),
    "looped_of_two_kernels": Program(
        code="elements-exceed-a-tile",
        function=sum_last,
        inputs=lambda: floats_on_gpu(64, 4096),
        among=LOOP,
        flip={"triton.multi_kernel": 1},
        turned=("persistent", "elements-fit-a-tile"),
        device="cuda",
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
