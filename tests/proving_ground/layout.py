"""Why a buffer lies in memory as it does: a program for each cause, with its flip."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.realization import (
    added_in_place,
    concatenated,
    product,
    strided_sum,
    sum_one_more,
)

Tensors = tuple[torch.Tensor, ...]


def by_rows() -> Tensors:
    """Return two matrices, contiguous."""
    return torch.ones(8, 16), torch.ones(8, 16)


def by_columns() -> Tensors:
    """Return the same, stored by columns."""
    return torch.ones(16, 8).t(), torch.ones(16, 8).t()


def squares() -> Tensors:
    """Return two square matrices."""
    return torch.ones(8, 8), torch.ones(8, 8)


def square_columns() -> Tensors:
    """Return two square matrices, the first stored by columns."""
    return torch.ones(8, 8).t(), torch.ones(8, 8)


def exp_twice(left: torch.Tensor, right: torch.Tensor) -> Tensors:
    """Return what uses an exponential twice."""
    value = (left + right).exp()
    return value.sum(0), (value * left).sum(1)


def exp_in_two(left: torch.Tensor, right: torch.Tensor) -> Tensors:
    """Return what uses an exponential in two sums, and asks for no strides of it."""
    value = (left + right).exp()
    return value + 1, value * 2


def ones_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a product of a matrix that is made without reading one."""
    return torch.full((8, 8), 2.0) @ right


def transposed_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a product of a transposed sum."""
    return (left + 1).t() @ right


def sum_of_two(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the sum."""
    return left + right


def product_and_sum(left: torch.Tensor, right: torch.Tensor) -> Tensors:
    """Return a product of a sum, and the sum of that over rows."""
    value = left + right
    return value @ right, value.sum(1)


def distances(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the distances of rows: a kernel that takes contiguous rows only."""
    return torch.pdist((left + right).exp())


def ordered(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the sum of a value that is asked for by columns."""
    return torch.ops.prims.copy_strided((left + right).exp(), (1, 8)).sum()


def convolved(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return a convolution of a sum."""
    return functional.conv2d(image + 1, weight)


def convolved_and_summed(image: torch.Tensor, weight: torch.Tensor) -> Tensors:
    """Return a convolution of an exponential, and its sum."""
    value = image.exp()
    return functional.conv2d(value, weight), value.sum(1)


def image_and_weight() -> Tensors:
    """Return an image of 4 channels, and a weight."""
    return torch.ones(1, 4, 9, 9), torch.ones(8, 4, 3, 3)


def grouped(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return a convolution in two groups."""
    return functional.conv2d(image + 1, weight, groups=2)


def convolved_in_chain(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return a convolution of the result of more than three hundred operations."""
    for step in range(101):
        image = ((image + step) / 128).sin()  # each value is read once, so that kernels stay short
    return functional.conv2d(image, weight)


def convolved_product(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return a product of a convolution, whose gradient needs the convolution's result."""
    value = functional.conv2d(image * 2, weight)
    return value * value


def channels(inputs: int, outputs: int, of_weight: int | None = None) -> Callable[[], Tensors]:
    """Return what makes an image, and a weight of so many channels."""
    return lambda: (torch.ones(2, inputs, 9, 9), torch.ones(outputs, of_weight or inputs, 3, 3))


def trained(inputs: int, outputs: int, of_weight: int | None = None) -> Callable[[], Tensors]:
    """Return the same, of which gradients are asked."""
    made = channels(inputs, outputs, of_weight)
    return lambda: tuple(tensor.requires_grad_() for tensor in made())


def without_mkldnn(compiled: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Call it while torch has no mkldnn, as on a device of another kind."""
    with torch.backends.mkldnn.flags(enabled=False):
        return compiled(*inputs)


def with_gradients(compiled: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Call it, and its gradient."""
    result = compiled(*inputs)
    result.sum().backward()
    return result.detach()


def saving_for_gradients(compiled: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Call it where gradients are recorded, and compile no backward graph."""
    return compiled(*inputs).detach()


NO_LAYOUT_OPTIMISATION = {"layout_optimization": False}
READS = ("permuted", "reads")

PROGRAMS = {
    "reads": Program(
        code="reads",
        function=exp_twice,
        inputs=by_columns,
        about=("buf0",),
        operands={
            "reads": ("arg0_1 (1, 8)", "arg1_1 (1, 8)"),
            "fill_order": ("0", "1"),
            "stride": ("1", "8"),
        },
        flipped_inputs=by_rows,
        turned=("contiguous", "reads"),
    ),
    "reads_padded": Program(
        code="reads",
        function=exp_in_two,
        inputs=lambda: (torch.zeros(8, 1030), torch.zeros(8, 1030)),
        about=("buf0",),
        operands={
            "stride": ("1056", "1"),
            "asker": "end-of-lowering",
            "padding_limit": 1024,
            "padding_bytes": 128,
        },
        settings={"disable_padding_cpu": False, "comprehensive_padding": True},
        flip={"disable_padding_cpu": True},
        turned=("contiguous", "reads"),
    ),
    "loop_orders_off": Program(
        code="loop-orders-off",
        function=exp_twice,
        inputs=by_columns,
        about=("buf0",),
        operands={"stride": ("16", "1")},
        settings={"pick_loop_orders": False},
        flip={"pick_loop_orders": True},
        turned=READS,
    ),
    "no_reads": Program(
        code="no-reads",
        function=ones_product,
        inputs=squares,
        about=("buf0",),
        flipped_function=product,
        flipped_inputs=square_columns,
        turned=READS,
    ),
    "view": Program(
        code="view",
        function=transposed_product,
        inputs=square_columns,
        about=("buf0",),
        operands={"operator": "aten.mm.default", "stride": ("8", "1")},
        flipped_function=product,
        turned=READS,
    ),
    "output": Program(
        code="output",
        function=sum_of_two,
        inputs=by_columns,
        about=("buf0",),
        operands={"exact_strides": ("1", "8")},
        flipped_inputs=by_rows,
        turned=("contiguous", "output"),
    ),
    "as_strided_input": Program(
        code="as-strided-input",
        function=strided_sum,
        inputs=lambda: by_columns()[:1],
        about=("buf0",),
        operands={"exact_strides": ("1", "8")},
        flipped_inputs=lambda: by_rows()[:1],
        turned=("contiguous", "as-strided-input"),
    ),
    "convolution": Program(
        code="convolution",
        function=convolved,
        inputs=image_and_weight,
        about=("buf0",),
        operands={
            "layout_opt": True,
            "stride_order": ("3", "0", "2", "1"),
            "stride": ("324", "1", "36", "4"),
        },
        flip=NO_LAYOUT_OPTIMISATION,
        turned=("contiguous", "operator-constraint"),
    ),
    "channels_last_preferred": Program(
        code="channels-last-preferred",
        function=convolved_and_summed,
        inputs=image_and_weight,
        about=("buf0",),
        flip=NO_LAYOUT_OPTIMISATION,
        turned=("contiguous", "extern-operand"),
    ),
    "operator_constraint": Program(
        code="operator-constraint",
        function=distances,
        inputs=by_columns,
        about=("buf0",),
        operands={"function": "require_contiguous", "operator": "aten._pdist_forward.default"},
        flipped_function=exp_twice,
        turned=READS,
    ),
    "extern_operand": Program(
        code="extern-operand",
        function=product_and_sum,
        inputs=square_columns,
        about=("buf0",),
        operands={"operator": "aten.mm.default"},
        flipped_function=exp_twice,
        turned=("contiguous", "reads"),
    ),
    "lowering": Program(
        code="lowering",
        function=ordered,
        inputs=by_rows,
        about=("buf0",),
        operands={"function": "copy_strided", "stride": ("1", "8")},
        flipped_function=exp_twice,
        turned=("contiguous", "reads"),
    ),
    "concatenation": Program(
        code="concatenation",
        function=concatenated,
        inputs=squares,
        about=("buf0",),
        operands={"into": "buf2"},
        flip={"force_pointwise_cat": True},
        turned=("contiguous", "output"),
    ),
    "mutation": Program(
        code="mutation",
        function=added_in_place,
        inputs=lambda: squares()[:1],
        about=("buf2",),
        operands={"into": "arg0_1"},
        flipped_function=sum_one_more,
        turned=None,
    ),
    "extern_kernel": Program(
        code="extern-kernel",
        function=convolved,
        inputs=image_and_weight,
        about=("buf2",),
        operands={"kernel": "extern_kernels.convolution"},
        flip=NO_LAYOUT_OPTIMISATION,
        turned=None,
    ),
    "mkldnn_convolutions": Program(
        code="mkldnn-convolutions",
        function=convolved,
        inputs=image_and_weight,
        about=(),
        operands={"convolutions": 1, "device": "cpu"},
        flip=NO_LAYOUT_OPTIMISATION,
        turned=("unchanged", "layout-optimisation-off"),
    ),
    "layout_optimisation_off": Program(
        code="layout-optimisation-off",
        function=convolved,
        inputs=image_and_weight,
        about=(),
        settings=NO_LAYOUT_OPTIMISATION,
        flip={"layout_optimization": True},
        turned=("channels-last", "mkldnn-convolutions"),
    ),
    "layout_optimisation_forced": Program(
        code="layout-optimisation-forced",
        function=convolved,
        inputs=image_and_weight,
        about=(),
        settings={"force_layout_optimization": True},
        flip={"force_layout_optimization": False},
        turned=("channels-last", "mkldnn-convolutions"),
    ),
    "only_backward_convolutions": Program(
        code="only-backward-convolutions",
        function=convolved_product,
        inputs=trained(4, 8),
        about=(),
        among=("unchanged",),
        operands={"convolutions": 1, "device": "cpu"},
        step=with_gradients,
        flip={"force_layout_optimization": True},
        flipped_step=with_gradients,
        turned=None,
        until="2.14",
    ),
    "few_convolutions": Program(
        code="few-convolutions",
        function=convolved_in_chain,
        inputs=image_and_weight,
        about=(),
        operands={"nodes_limit": 300},
        step=without_mkldnn,
        flipped_function=convolved,
        flipped_step=without_mkldnn,
        turned=("channels-last", "convolution-flops"),
    ),
    "symbolic_convolution": Program(
        code="symbolic-convolution",
        function=convolved,
        inputs=image_and_weight,
        about=(),
        dynamic=True,
        step=without_mkldnn,
        flipped_step=without_mkldnn,
        turned=("channels-last", "convolution-flops"),
    ),
    "convolution_flops": Program(
        code="convolution-flops",
        function=grouped,
        inputs=channels(8, 8, 4),
        about=(),
        operands={
            "flops": 56448,
            "weighted_flops": 76656,
            "sorts": ("1 grouped",),
        },
        step=without_mkldnn,
        flipped_function=convolved,
        flipped_inputs=channels(8, 8),
        flipped_step=without_mkldnn,
        turned=("channels-last", "convolution-flops"),
    ),
    "grouped_convolution": Program(
        code="grouped-convolution",
        function=grouped,
        inputs=trained(8, 8, 4),
        about=(),
        operands={"nodes_of_fx": ("convolution",)},
        step=without_mkldnn,
        flipped_function=convolved,
        flipped_inputs=trained(8, 8),
        flipped_step=without_mkldnn,
        turned=("unchanged", "small-convolutions"),
    ),
    "narrowing_convolution": Program(
        code="narrowing-convolution",
        function=convolved,
        inputs=trained(96, 8),
        about=(),
        operands={"nodes_of_fx": ("convolution",)},
        step=without_mkldnn,
        flipped_inputs=trained(96, 96),
        flipped_step=without_mkldnn,
        turned=("channels-last", "convolution-channels"),
    ),
    "small_convolutions": Program(
        code="small-convolutions",
        function=convolved,
        inputs=trained(8, 8),
        about=(),
        operands={"channels_limit": 64},
        step=without_mkldnn,
        flipped_inputs=trained(96, 96),
        flipped_step=without_mkldnn,
        turned=("channels-last", "convolution-channels"),
    ),
    "convolution_channels": Program(
        code="convolution-channels",
        function=convolved,
        inputs=trained(96, 96),
        about=(),
        step=without_mkldnn,
        flipped_inputs=trained(8, 8),
        flipped_step=without_mkldnn,
        turned=("unchanged", "small-convolutions"),
    ),
    "saved_for_backward": Program(
        code="channels-last-preferred",
        function=convolved_product,
        inputs=trained(4, 8),
        about=("buf0",),
        among=("channels-last",),
        operands={"asker": "output", "stride": ("36", "1", "12", "4")},
        step=saving_for_gradients,
        flip=NO_LAYOUT_OPTIMISATION,
        flipped_step=saving_for_gradients,
        turned=None,
    ),
}
scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
