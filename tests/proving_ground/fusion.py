"""Why two nodes are fused, or not: a program for each cause, with its flip.

Those about templates are in `fusion_templates.py`.
"""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground import fusion_templates
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import Tensors, floats, on_gpu, timed_as


def square() -> Tensors:
    """Return a matrix whose rows and columns can be exchanged."""
    return floats(64, 64)


def two_squares() -> Tensors:
    """Return two such matrices."""
    return torch.ones(64, 64), torch.full((64, 64), 2.0)


def square_and_bias() -> Tensors:
    """Return a matrix and what is added to its columns."""
    return torch.ones(64, 64), torch.ones(64)


def two_readers(x: torch.Tensor) -> Tensors:
    return x + 1, x * 2


def three_readers(x: torch.Tensor) -> Tensors:
    return x + 1, x * 2, x * 3


def reader_and_mirror(x: torch.Tensor) -> Tensors:
    return x + 1, x.flip(0) * 2


def reader_and_mirrors(x: torch.Tensor) -> Tensors:
    return x + 1, x.flip(0) * 2, x.flip(1) * 3


def realised_and_read(x: torch.Tensor) -> Tensors:
    """`exp` is dear: with two users, its values are kept in a buffer, which the second node reads."""
    exponential = x.exp()
    return exponential, exponential + x


def realised_and_mirrored(x: torch.Tensor) -> Tensors:
    exponential = x.exp()
    return exponential, x + exponential.flip(0)


def realised_and_transposed(x: torch.Tensor) -> Tensors:
    exponential = x.exp()
    return exponential, (exponential.t() + 1).contiguous()


def added_by_index(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return x.exp().index_add_(0, indices, x)


def added_to(x: torch.Tensor, _: torch.Tensor) -> Tensors:
    return realised_and_read(x)


def two_separate(x: torch.Tensor, y: torch.Tensor) -> Tensors:
    return x + 1, y + 1


def two_separate_sums(x: torch.Tensor, y: torch.Tensor) -> Tensors:
    return x.sum(-1), y.sum(-1)


def few_in_common(x: torch.Tensor, y: torch.Tensor, scalar: torch.Tensor) -> Tensors:
    return x + scalar, y * scalar


def two_products(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor) -> Tensors:
    """Return two matrix products, each with what is added to it: both are last used there."""
    return torch.mm(x, y) * bias, torch.mm(y, x) * bias


def distant(x: torch.Tensor, count: int) -> Tensors:
    product = torch.mm(x, x)
    for _ in range(count - 1):
        product = torch.mm(product, x)
    return x + 1, x * product


def distant_70(x: torch.Tensor) -> Tensors:
    return distant(x, 70)


def distant_3(x: torch.Tensor) -> Tensors:
    return distant(x, 3)


def mutated_and_mirrored(x: torch.Tensor) -> torch.Tensor:
    before = x.flip(0) + x
    x.add_(1)
    return before


def mutated_and_read(x: torch.Tensor) -> torch.Tensor:
    before = x * 2
    x.add_(1)
    return before


def product_between(x: torch.Tensor) -> Tensors:
    exponential = x.exp()
    return exponential, torch.mm(exponential, x) * exponential


def product_beside(x: torch.Tensor) -> Tensors:
    exponential = x.exp()
    return exponential, torch.mm(x, x) * exponential


def cyclic(x: torch.Tensor, y: torch.Tensor) -> Tensors:
    """Return what can be fused by x, or by y, but not by both: each pair has a product between."""
    one, other = x + 1, y + 1
    return torch.mm(one, one) * y, torch.mm(other, other) * x


def acyclic(x: torch.Tensor, y: torch.Tensor) -> Tensors:
    one = x + 1
    return torch.mm(one, one) * y, torch.mm(y, y) * x


def pointwise_and_rows(x: torch.Tensor) -> Tensors:
    """Return one loop over all elements, and one over rows with a reduction in it."""
    return x + 1, x.sum(-1)


def flat_flat_rows(x: torch.Tensor, bias: torch.Tensor) -> Tensors:
    return x + 1, x * 2, x + bias


def flat_rows_flat(x: torch.Tensor, bias: torch.Tensor) -> Tensors:
    return x + 1, x + bias, x * 2


def less_row_sum(x: torch.Tensor) -> torch.Tensor:
    return x - x.sum(-1, keepdim=True)


def less_sum(x: torch.Tensor) -> torch.Tensor:
    return x - x.sum()


def sum_of_less_sum(x: torch.Tensor) -> torch.Tensor:
    return (x - x.sum()).abs().sum()


def rows_of_less_row_sum(x: torch.Tensor) -> torch.Tensor:
    return (x - x.sum(-1, keepdim=True)).abs().sum(-1)


def less_row_sum_and_sum(x: torch.Tensor) -> Tensors:
    return x - x.sum(-1, keepdim=True), x.sum()


def row_sum_reader_and_sum(x: torch.Tensor) -> Tensors:
    return x.sum(-1), x - 1, x.sum()


def rows_and_weight() -> Tensors:
    return *floats(64, 32), *floats(32, 4)


def deeper(x: torch.Tensor, weight: torch.Tensor) -> Tensors:
    """Return rows that fuse with their sum in one loop, and with what follows in two."""
    exponential = (x - x.sum(-1, keepdim=True)).exp()
    return exponential, exponential[..., None] * weight


def less_deep(x: torch.Tensor, weight: torch.Tensor) -> Tensors:
    exponential = (x - x.sum(-1, keepdim=True)).exp()
    return exponential, exponential * weight[0, 0]


def two_of_row_sum(x: torch.Tensor) -> Tensors:
    total = x.sum(-1, keepdim=True)
    return x - total, x * total


def product_and_more(x: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, x) * 2


def concatenated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat((x.exp(), y.sum(-1, keepdim=True).expand(64, 64)))


ONE_NUMBER = {"score_fusion_memory_threshold": 4}
"""One number in common is enough: nodes of which nothing else fits get to the backend."""
NO_FUSION = {"max_fusion_size": 1}
SIZE_LIMIT = ("refused", "fusion-size-limit")
BY_COMMON = ("fused", "common-buffer")
BY_DATA = ("fused", "producer-and-consumer")
BY_OUTER_LOOPS = ("fused", "outer-loops")


def two_sums(x: torch.Tensor) -> Tensors:
    return x.sum(-1), x.sum()


def two_row_sums(x: torch.Tensor) -> Tensors:
    return x.sum(-1), (x * 2).sum(-1)


def small_and_large(small: torch.Tensor, x: torch.Tensor, scale: torch.Tensor) -> Tensors:
    return small + scale, x * scale


def two_small(small: torch.Tensor, _: torch.Tensor, scale: torch.Tensor) -> Tensors:
    return small + scale, small * scale


def transposed_twice(
    x: torch.Tensor, y: torch.Tensor, v: torch.Tensor, w: torch.Tensor, scale: torch.Tensor
) -> Tensors:
    """Return what is best tiled by (1024, 1024), and by (4096, 256)."""
    return x * scale + y.t(), v * scale + w.t()


def transposed_and_reduced(x: torch.Tensor, y: torch.Tensor, v: torch.Tensor, scale: torch.Tensor) -> Tensors:
    return x * scale + y.t(), (v * scale).sum(-1)


def scaled_and_rows(x: torch.Tensor, rows: torch.Tensor, scale: torch.Tensor) -> Tensors:
    return x * scale, (rows * scale).sum(-1)


def small_and_sum(small: torch.Tensor, x: torch.Tensor, scale: torch.Tensor) -> Tensors:
    return small + scale, (x * scale).sum()


def small_and_row_sums(small: torch.Tensor, x: torch.Tensor, scale: torch.Tensor) -> Tensors:
    return small + scale, (x * scale).sum(-1)


def rows_and_other_rows(x: torch.Tensor) -> Tensors:
    """Return what loops over (6, 10), and sums of (4, 15)."""
    return x + 1, x.view(4, 15).sum(-1)


def listed_and_more(x: torch.Tensor, y: torch.Tensor) -> Tensors:
    one, other = torch._foreach_add([x, y], 1)
    return one, other, x * 2


def listed(x: torch.Tensor, y: torch.Tensor) -> Tensors:
    one, other = torch._foreach_add([x, y], 1)
    return one, other


def unlisted_and_more(x: torch.Tensor, y: torch.Tensor) -> Tensors:
    return x + 1, y + 1, x * 2


def resize_by_passes(x: torch.Tensor, columns: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Two passes, as in an antialiased resize: the second gathers rows of what the first writes."""
    narrow = x[..., columns].sum(-1)
    return narrow[..., rows, :].sum(-2)


def one_pass(x: torch.Tensor, columns: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return x[..., columns].sum(-1) + columns[:, 0]


def image_and_taps() -> Tensors:
    """Return an image, and which of its columns and rows make each of the result."""
    return torch.ones(3, 48, 64), torch.arange(64).reshape(4, 16), torch.arange(48).reshape(3, 16)


def rows_and_planes(
    x: torch.Tensor, row: torch.Tensor, plane: torch.Tensor, image: torch.Tensor, channel: torch.Tensor
) -> Tensors:
    """Return what loops over (4, 3, 271, 456), as it needs each index, and over (4, 3, 123576)."""
    columns = x + row[:, None, None, :] * plane.t()[None, :, :, None]
    return columns, x * (image[:, None] + channel)[..., None, None]


def same_rows(x: torch.Tensor, row: torch.Tensor, plane: torch.Tensor, *_: torch.Tensor) -> Tensors:
    columns = x + row[:, None, None, :] * plane.t()[None, :, :, None]
    return columns, x * (row[:, None, None, :] - plane.t()[None, :, :, None])


def images_of_the_origin() -> Tensors:
    return (
        torch.ones(4, 3, 271, 456), torch.ones(4, 456), torch.ones(271, 3), torch.ones(4), torch.ones(3),
    )  # fmt: skip


def host_and_gpu() -> Tensors:
    """Return a scalar in host memory, and what it is multiplied with on the GPU."""
    return torch.ones(64, 64, device="cuda"), torch.tensor(2.0)


both_on_gpu = on_gpu(lambda: (*square(), torch.tensor(2.0)))


def scaled_and_scale(x: torch.Tensor, scale: torch.Tensor) -> Tensors:
    return scale + 1, x * scale


def flat_and_rows(x: torch.Tensor, bias: torch.Tensor) -> Tensors:
    """Return what has one dimension in the program, and what has two."""
    return x.view(-1) * 2, x + bias


def square_and_rows(x: torch.Tensor, bias: torch.Tensor) -> Tensors:
    """Return what has two dimensions in the program, one of which in a single loop."""
    return x * 2, x + bias


def rows_and_columns(x: torch.Tensor) -> Tensors:
    return x.sum(-1), x.sum(0)


def pair(first: str, second: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the subject of a decision about two nodes."""
    return (first,), (second,)


OP01, OP02, OP12 = pair("op0", "op1"), pair("op0", "op2"), pair("op1", "op2")

PROGRAMS = {
    **fusion_templates.PROGRAMS,
    "producer_and_consumer": Program(
        code="producer-and-consumer", function=realised_and_read, inputs=square, about=OP01,
        operands={"round": 1, "step": 1, "buffers": ("buf0", "arg0_1"), "shared_bytes": 32768},
        flip=NO_FUSION, turned=SIZE_LIMIT,
    ),
    "common_buffer": Program(
        code="common-buffer", function=two_readers, inputs=square, about=OP01,
        operands={"round": 1, "step": 1, "buffers": ("arg0_1",), "shared_bytes": 16384},
        flip={"score_fusion_memory_threshold": 10**6}, turned=("refused", "few-shared-bytes"),
    ),
    "outer_loops": Program(
        code="outer-loops", function=less_row_sum, inputs=square, about=OP01, operands={"depth": 1},
        flipped_function=less_sum, turned=("refused", "no-common-outer-loop"),
    ),
    "accesses_differ": Program(
        code="accesses-differ", function=reader_and_mirror, inputs=square, about=OP01,
        operands={
            "buffer": "arg0_1", "first_does": "reads", "second_does": "reads",
            "first_index": "c0", "first_ranges": "c0: 4096",
        },
        flipped_function=two_readers, turned=BY_COMMON,
    ),
    "passes_of_a_resize": Program(
        code="accesses-differ", function=resize_by_passes, inputs=image_and_taps, about=OP01,
        operands={
            "buffer": "buf0", "first_does": "writes", "second_does": "reads", "first_index": "c0",
            "first_ranges": "c0: 576",
        },
        flipped_function=one_pass, turned=BY_OUTER_LOOPS,
    ),
    "loop_order_differs": Program(
        code="loop-order-differs", function=realised_and_transposed, inputs=square, about=OP01,
        operands={"buffer": "buf0", "first_does": "writes", "second_does": "reads", "cpu": True},
        flipped_function=realised_and_read, turned=BY_DATA,
    ),
    "updated_elsewhere": Program(
        code="dependency-differs", function=added_by_index, about=OP01,
        inputs=lambda: (torch.ones(100, 32), torch.arange(100) // 2),
        operands={"buffer": "buf0", "first_index": "c0", "second_does": "updates"},
        flipped_function=added_to, turned=BY_DATA,
    ),
    "no_common_data": Program(
        code="no-common-data", function=two_separate_sums, inputs=two_squares, about=OP01,
        settings={"aggressive_fusion": True}, flip={"aggressive_fusion": False},
        turned=("not-tried", "no-common-buffer"),
    ),
    "few_shared_bytes": Program(
        code="few-shared-bytes", function=few_in_common, about=OP01,
        inputs=lambda: (*two_squares(), *floats(1)), operands={"shared_bytes": 4, "threshold": 10},
        flip={"score_fusion_memory_threshold": 4}, turned=BY_COMMON,
    ),
    "fusion_size_limit": Program(
        code="fusion-size-limit", function=two_readers, inputs=square, about=OP01,
        settings=NO_FUSION, operands={"nodes": 2, "limit": 1}, flip={"max_fusion_size": 2}, turned=BY_COMMON,
    ),
    "peak_memory": Program(
        code="peak-memory", function=two_products, about=pair("op1", "op3"),
        inputs=lambda: (*floats(256, 256), *floats(256, 256), *floats(256)),
        operands={"shared_bytes": 1024, "reusable_elements": 65536, "factor": 32},
        flipped_inputs=lambda: (*two_squares(), *square()), turned=BY_COMMON,
    ),
    "too_many_buffers": Program(
        code="too-many-buffers", function=two_readers, inputs=square, about=OP01,
        settings={"max_fusion_unique_io_buffers": 2}, operands={"limit": 2},
        flip={"max_fusion_unique_io_buffers": 3}, turned=BY_COMMON,
    ),
    "distant_nodes": Program(
        code="distant-nodes", function=distant_70, inputs=lambda: floats(2, 2), about=pair("op0", "op71"),
        operands={"distance": 71, "limit": 64}, flipped_function=distant_3,
        flipped_about=pair("op0", "op4"), turned=BY_COMMON,
    ),
    "dependency_differs": Program(
        code="dependency-differs", function=realised_and_mirrored, inputs=square, about=OP01,
        operands={"buffer": "buf0", "first_index": "c0", "shared_bytes": 16384},
        flipped_function=realised_and_read, turned=BY_DATA,
    ),
    "in_place_write": Program(
        code="in-place-write", function=mutated_and_mirrored, inputs=square,
        about=pair("op0", "op3"), operands={"buffer": "arg0_1"}, flipped_function=mutated_and_read,
        flipped_about=OP02, turned=BY_DATA,
    ),
    "intermediate_node": Program(
        code="intermediate-node", function=product_between, inputs=square, about=OP02,
        operands={"node": "op1", "buffer": "buf1"}, flipped_function=product_beside,
        flipped_about=OP12, turned=BY_DATA,
    ),
    "cycle": Program(
        code="cycle", function=cyclic, inputs=two_squares, about=pair("op0", "op5"),
        operands={"through": ("op2", "op3")}, flipped_function=acyclic, flipped_about=pair("op0", "op4"),
        turned=BY_COMMON,
    ),
    "loop_ranges_differ": Program(
        code="loop-ranges-differ", function=pointwise_and_rows, inputs=square, about=OP01,
        operands={
            "first_ranges": "(4096)", "first_reduction": "()", "second_ranges": "(64)",
            "second_reduction": "(64)", "vertical": False, "shared_bytes": 16384,
        },
        flipped_function=two_readers, turned=BY_COMMON,
    ),
    "groups_of_the_origin": Program(
        code="loop-ranges-differ", function=rows_and_planes, inputs=images_of_the_origin, about=OP01,
        operands={"first_ranges": "(4, 3, 271, 456)", "second_ranges": "(4, 3, 123576)", "vertical": False},
        flipped_function=same_rows, turned=BY_COMMON,
    ),
    "fused_ranges": Program(
        code="fused-ranges", function=flat_flat_rows, inputs=square_and_bias, about=OP02,
        operands={"first_ranges": "(4096)", "second_ranges": "(64, 64)"},
        flipped_function=flat_rows_flat, turned=BY_COMMON,
    ),
    "sizes_differ": Program(
        code="sizes-differ", function=flat_and_rows, inputs=square_and_bias, about=OP01,
        operands={"first_size": "(4096)", "second_size": "(64, 64)", "first_ranges": "(4096)"},
        flipped_function=square_and_rows, turned=BY_COMMON,
    ),
    "horizontal_size_limit": Program(
        code="horizontal-size-limit", function=two_readers, inputs=square, about=OP01,
        settings={"cpp.max_horizontal_fusion_size": 1}, operands={"nodes": 2, "limit": 1},
        flip={"cpp.max_horizontal_fusion_size": 16}, turned=BY_COMMON,
    ),
    "no_common_outer_loop": Program(
        code="no-common-outer-loop", function=less_sum, inputs=square, about=OP01,
        operands={
            "first_ranges": "()", "first_reduction": "(4096)", "second_ranges": "(4096)", "outer_depth": 0,
        },
        flipped_function=less_row_sum, turned=BY_OUTER_LOOPS,
    ),
    "complete_reductions": Program(
        code="complete-reductions", function=sum_of_less_sum, inputs=square, about=OP01,
        operands={"first_reduction": "(4096)", "second_reduction": "(4096)"},
        flipped_function=rows_of_less_row_sum, turned=BY_OUTER_LOOPS,
    ),
    "outer_loop_depth": Program(
        code="outer-loop-depth", function=deeper, inputs=rows_and_weight, about=OP01,
        operands={"first_depth": 1, "second_depth": 2}, flipped_function=less_deep, turned=BY_OUTER_LOOPS,
    ),
    "outer_loop_node": Program(
        code="outer-loop-node", function=less_row_sum_and_sum, inputs=square, about=OP12,
        flipped_function=row_sum_reader_and_sum, turned=BY_COMMON,
    ),
    "fused_with_another": Program(
        code="fused-with-another", function=three_readers, inputs=square, about=OP02, exact=True,
        operands={"group": ("op0", "op1", "op2")}, flip=NO_FUSION, turned=SIZE_LIMIT,
    ),
    "lower_priority": Program(
        code="lower-priority", function=two_of_row_sum, inputs=square, about=OP01, exact=True,
        operands={"candidates": 3, "kept": 1}, flipped_function=less_row_sum, turned=BY_OUTER_LOOPS,
    ),
    "extern_kernel": Program(
        code="extern-kernel", function=product_and_more, inputs=square, about=OP01,
        operands={"kernel": "extern_kernels.mm"}, flipped_function=less_row_sum, turned=BY_OUTER_LOOPS,
    ),
    "no_kernel": Program(
        code="no-kernel", function=concatenated, inputs=two_squares, about=pair("op0", "op3"),
        flipped_function=realised_and_read, flipped_inputs=square, flipped_about=OP01, turned=BY_DATA,
    ),
    "no_common_buffer": Program(
        code="no-common-buffer", function=two_separate, inputs=two_squares, about=OP01,
        flip={"aggressive_fusion": True}, turned=("refused", "few-shared-bytes"),
    ),
    "pair_limit": Program(
        code="pair-limit", function=reader_and_mirrors, inputs=square, about=OP02,
        settings={"max_fusion_buffer_group_pairwise_attempts": 1},
        operands={"buffer": "arg0_1", "distance": 2, "limit": 1},
        flip={"max_fusion_buffer_group_pairwise_attempts": 64}, turned=("refused", "accesses-differ"),
    ),
    "loop_tiles_differ": Program(
        code="loop-tiles-differ", function=deeper, inputs=rows_and_weight, about=OP12,
        operands={"loop": "x1", "first_range": 32}, flipped_function=less_deep, turned=BY_DATA,
    ),
    "inner_range_dominates": Program(
        code="inner-range-dominates", function=less_row_sum, inputs=lambda: floats(2, 1000), about=OP01,
        operands={"inner_range": 1000, "outer_range": 2, "factor": 300},
        flipped_inputs=square, turned=BY_OUTER_LOOPS,
    ),
    "devices_differ": Program(
        code="devices-differ", function=scaled_and_scale, inputs=host_and_gpu, about=OP01, device="cuda",
        operands={"first_device": "cuda:0", "second_device": "cpu"}, flipped_inputs=both_on_gpu,
        turned=("refused", "few-shared-bytes"),
    ),
    "groups_of_the_origin_triton": Program(
        code="common-buffer", function=rows_and_planes, inputs=on_gpu(images_of_the_origin), about=OP01,
        device="cuda", flip=NO_FUSION, turned=SIZE_LIMIT,
    ),
    "reductions_differ": Program(
        code="reductions-differ", function=two_sums, inputs=on_gpu(square), about=OP01, device="cuda",
        operands={"first_numel": 64, "second_numel": 1, "first_rnumel": 64, "second_rnumel": 4096},
        flipped_function=two_row_sums, turned=BY_COMMON,
    ),
    "loop_sizes_differ": Program(
        code="loop-sizes-differ", function=rows_and_other_rows, inputs=on_gpu(lambda: floats(6, 10)),
        about=OP01, device="cuda", operands={"buffer": "arg0_1", "cpu": False},
        flipped_function=pointwise_and_rows, turned=BY_COMMON,
    ),
    "numels_differ": Program(
        code="numels-differ", function=small_and_large, settings=ONE_NUMBER, about=OP01, device="cuda",
        inputs=on_gpu(lambda: (*floats(64), *floats(64, 64), torch.tensor(2.0))),
        operands={"first_numel": 64, "second_numel": 4096}, flipped_function=two_small, turned=BY_COMMON,
    ),
    "tilings_differ": Program(
        code="tilings-differ", function=transposed_twice, settings=ONE_NUMBER, about=OP01, device="cuda",
        inputs=on_gpu(
            lambda: (
                *floats(1024, 1024), *floats(1024, 1024), *floats(4096, 256), *floats(256, 4096),
                torch.tensor(2.0),
            )
        ),
        flip={"triton.tiling_prevents_pointwise_fusion": False}, turned=BY_COMMON,
    ),
    "tiling_not_of_reduction": Program(
        code="tiling-not-of-reduction", function=transposed_and_reduced, settings=ONE_NUMBER, about=OP01,
        inputs=on_gpu(
            lambda: (*floats(1024, 1024), *floats(1024, 1024), *floats(256, 4096), torch.tensor(2.0))
        ),
        device="cuda", flip={"triton.tiling_prevents_reduction_fusion": False}, turned=BY_COMMON,
    ),
    "ranges_do_not_split": Program(
        code="ranges-do-not-split", function=scaled_and_rows, settings=ONE_NUMBER, about=OP01,
        inputs=on_gpu(lambda: (*floats(6, 10), *floats(4, 15), torch.tensor(2.0))), device="cuda",
        flipped_inputs=on_gpu(lambda: (*floats(60), *floats(4, 15), torch.tensor(2.0))), turned=BY_COMMON,
    ),
    "numel_of_neither": Program(
        code="numel-of-neither", function=small_and_sum, settings=ONE_NUMBER, about=OP01, device="cuda",
        inputs=on_gpu(lambda: (*floats(64), *floats(64, 64), torch.tensor(2.0))),
        flipped_function=small_and_row_sums, turned=BY_COMMON,
    ),
    "mix_order_reductions": Program(
        code="mix-order-reductions", function=rows_and_columns, inputs=on_gpu(lambda: floats(8192, 1024)),
        about=OP01, device="cuda", settings={"triton.mix_order_reduction": True},
        flip={"triton.mix_order_reduction": False}, turned=("refused", "loop-order-differs"),
    ),
    "mix_order_limit": Program(
        code="mix-order-limit", function=rows_and_columns, inputs=on_gpu(lambda: floats(1024, 512)),
        about=OP01, device="cuda", settings={"triton.mix_order_reduction": True},
        operands={
            "check": "elements", "value": 524288, "limit": 5242880, "rows": 1024, "columns": 512,
            "buffers": ("arg0_1",),
        },
        flipped_inputs=on_gpu(lambda: floats(8192, 1024)), turned=("fused", "mix-order-reductions"),
    ),
    "foreach_list": Program(
        code="foreach-list", function=listed, inputs=on_gpu(two_squares), about=OP01, device="cuda",
        operands={"parts": 2}, flipped_function=two_separate, turned=("not-tried", "no-common-buffer"),
    ),
    "combo_kernel": Program(
        code="combo-kernel", function=two_separate, inputs=on_gpu(two_squares), about=OP01, device="cuda",
        settings={"combo_kernels": True}, operands={"parts": 2}, flip={"combo_kernels": False},
        turned=("not-tried", "no-common-buffer"),
    ),
    "slower_when_timed": Program(
        code="slower-when-timed", function=two_readers, inputs=timed_as(1.0, 1.0, 3.0)(on_gpu(square)),
        about=OP01, device="cuda", settings={"benchmark_fusion": True}, flip={"benchmark_fusion": False},
        operands={"first_ms": 1.0, "second_ms": 1.0, "fused_ms": 3.0}, turned=BY_COMMON,
    ),
    "other": Program(
        code="other", function=listed_and_more, inputs=on_gpu(two_squares), about=OP02, device="cuda",
        operands={"text": "candidate consumer has no dep in any foreach producer"},
        flipped_function=unlisted_and_more, turned=BY_COMMON,
    ),
}  # fmt: skip

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
