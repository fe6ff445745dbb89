"""Why values are copied only to lie differently, or why not: a program for each cause, with its flip."""

from __future__ import annotations

import torch
from torch.nn import functional

from inductor_probe.scenario import Scenario
from tests.proving_ground.layout import (
    NO_LAYOUT_OPTIMISATION,
    convolved,
    convolved_product,
    image_and_weight,
    squares,
    trained,
    with_gradients,
)
from tests.proving_ground.programs import Program, scenario_of

Tensors = tuple[torch.Tensor, ...]


def channels_last() -> Tensors:
    """Return an image and a weight, channels-last."""
    image, weight = image_and_weight()
    return image.to(memory_format=torch.channels_last), weight.to(memory_format=torch.channels_last)


def convolved_input(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return a convolution of an input."""
    return functional.conv2d(image, weight)


def convolved_sorted(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return a convolution of sorted rows: torch's own kernel sorts."""
    return functional.conv2d(image.sort(-1).values, weight)


def pooled_and_convolved(image: torch.Tensor, weight: torch.Tensor) -> Tensors:
    """Return the maxima of a sum of two images, and a convolution of that sum."""
    value = image + image.flip(3)
    return functional.max_pool2d(value, 3), functional.conv2d(value, weight)


def returned_and_convolved(image: torch.Tensor, weight: torch.Tensor) -> Tensors:
    """Return a sum of two images as it is, and convolved."""
    value = image + image.flip(3)
    return value, functional.conv2d(value, weight)


def pooled_and_turned(image: torch.Tensor, weight: torch.Tensor) -> Tensors:
    """Return means of a sum, and a convolution of a view of it."""
    value = image + image.flip(3)
    turned = value.transpose(2, 3)
    return functional.adaptive_avg_pool2d(value, 4), functional.conv2d(turned, weight)


def convolved_and_multiplied(image: torch.Tensor, weight: torch.Tensor) -> Tensors:
    """Return a convolution of a sum, and a product of the same sum as a matrix of rows."""
    value = image + 1
    rows = value.view(12, 27)
    return functional.conv2d(value, weight), rows.t() @ rows


def beside_input(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return an input beside a sum."""
    return torch.cat([left, right + 1])


def twice_beside(left: torch.Tensor, right: torch.Tensor) -> Tensors:
    """Return an exponential in two concatenations."""
    value = (left + 1).exp()
    return torch.cat([value, right + 1]), torch.cat([right + 2, value])


def transposed_beside(left: torch.Tensor, right: torch.Tensor) -> Tensors:
    """Return a transposed exponential beside a sum."""
    value = (left + right).exp()
    return torch.cat([value.t(), right + 1]), value.sum(0)


def product_written_back(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a product that has been written into an input."""
    left.copy_(left @ right)
    return left + 1


def sum_written_back(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a sum that has been written into an input."""
    left.copy_(left + right)
    return left + 1


def product_and_one(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a product, plus one."""
    return left @ right + 1


def transposed_clone(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return an input, transposed, contiguous."""
    return left.t().contiguous()


def transposed_sum(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a transposed sum, contiguous."""
    return (left + 1).t().contiguous()


def sums_of_clone(image: torch.Tensor) -> Tensors:
    """Return sums of an exponential, one of it in another memory format."""
    value = image.exp()
    return value.sum(1), value.contiguous(memory_format=torch.channels_last).sum(2)


def clone_of_exp(image: torch.Tensor) -> Tensors:
    """Return sums of an exponential, and it in another memory format."""
    value = image.exp()
    return value.sum(1), value.contiguous(memory_format=torch.channels_last)


def product_of_transposed(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a product of a transposed input."""
    return left.t() @ right


def product_of_both(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a product of two inputs."""
    return left @ right


POINTWISE = {"force_pointwise_cat": True}


def every_second_column(values: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Return a product of every second column: strides (32, 2)."""
    return values[:, ::2] @ matrix


def first_columns(values: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Return the same of as many columns that lie side by side: strides (32, 1)."""
    return values[:, :16] @ matrix


PROGRAMS = {
    "every_second_column": Program(
        code="no-unit-stride",
        function=every_second_column,
        inputs=lambda: (torch.ones(8, 32), torch.ones(16, 4)),
        about=("buf0",),
        operands={"source": "arg0_1", "view": True, "had": ("32", "2"), "bytes": 512},
        flipped_function=first_columns,
        flipped_about=("arg0_1",),
        turned=("not-copied", "view-as-strides"),
    ),
    "saved_for_backward": Program(
        code="given-strides",
        function=convolved_product,
        inputs=trained(4, 8),
        about=("buf0",),
        among=("copied",),
        operands={"asker": "channels-last-preferred", "source": "primals_2"},
        step=with_gradients,
        flip=NO_LAYOUT_OPTIMISATION,
        flipped_step=with_gradients,
        turned=None,
    ),
    "given_strides": Program(
        code="given-strides",
        function=convolved_input,
        inputs=image_and_weight,
        about=("buf0",),
        operands={
            "source": "arg0_1",
            "had": ("324", "81", "9", "1"),
            "stride": ("324", "1", "36", "4"),
            "stride_order": ("3", "0", "2", "1"),
            "asker": "convolution",
            "bytes": 1296,
            "not_stored": (),
        },
        flipped_inputs=channels_last,
        flipped_about=("arg0_1",),
        turned=("not-copied", "strides-fit"),
    ),
    "given_to_concatenation": Program(
        code="given-strides",
        function=beside_input,
        inputs=squares,
        about=("buf0",),
        operands={"source": "arg1_1", "asker": "concatenation", "bytes": 256},
        flip=POINTWISE,
        turned=None,
    ),
    "extern_result": Program(
        code="extern-result",
        function=convolved,
        inputs=image_and_weight,
        about=("buf3",),
        operands={"source": "buf2", "asker": "output", "exact_strides": ("392", "49", "7", "1")},
        flip=NO_LAYOUT_OPTIMISATION,
        turned=None,
    ),
    "extern_operand": Program(
        code="extern-result",
        function=convolved_sorted,
        inputs=image_and_weight,
        about=("buf3",),
        operands={"asker": "convolution", "kernel": "torch.ops.aten.sort.stable"},
        flip=NO_LAYOUT_OPTIMISATION,
        turned=None,
    ),
    "fixed_before": Program(
        code="fixed-before",
        function=returned_and_convolved,
        inputs=image_and_weight,
        about=("buf1",),
        operands={"source": "buf0", "fixed_by": "output", "asker": "convolution"},
        flipped_function=pooled_and_convolved,
        flipped_about=("buf0",),
        turned=("not-copied", "strides-taken"),
    ),
    "strides_taken": Program(
        code="strides-taken",
        function=pooled_and_convolved,
        inputs=image_and_weight,
        about=("buf0",),
        operands={"asker": "convolution", "had": ("324", "1", "36", "4")},
        flipped_function=returned_and_convolved,
        flipped_about=("buf1",),
        turned=("copied", "fixed-before"),
    ),
    "fixed_for_view": Program(
        code="fixed-for-view",
        function=pooled_and_turned,
        inputs=image_and_weight,
        about=("buf2",),
        operands={"source": "buf0", "asker": "convolution"},
        flipped_function=pooled_and_convolved,
        flipped_about=("buf0",),
        turned=("not-copied", "strides-taken"),
    ),
    "view_not_strided": Program(
        code="view-not-strided",
        function=convolved_and_multiplied,
        inputs=image_and_weight,
        about=("buf4",),
        among=("copied",),
        operands={"source": "buf0"},
        flip=NO_LAYOUT_OPTIMISATION,
        turned=None,
    ),
    "inside_another": Program(
        code="inside-another",
        function=twice_beside,
        inputs=squares,
        about=("buf4",),
        operands={"source": "buf0", "asker": "concatenation"},
        flip=POINTWISE,
        turned=None,
    ),
    "part_of_a_view": Program(
        code="part-of-a-view",
        function=transposed_beside,
        inputs=squares,
        about=("buf1",),
        operands={"source": "buf0", "had": ("1", "8"), "stride": ("8", "1")},
        flip=POINTWISE,
        turned=None,
    ),
    "mutation": Program(
        code="mutation",
        function=product_written_back,
        inputs=squares,
        about=("buf2",),
        operands={"source": "buf0", "bytes": 256, "asker": "mutation", "not_stored": ()},
        flipped_function=product_and_one,
        turned=None,
    ),
    "mutation_fused": Program(
        code="mutation",
        function=sum_written_back,
        inputs=squares,
        about=("buf2",),
        operands={"source": "buf1", "not_stored": ("source",)},
        flipped_function=product_written_back,
        turned=("copied", "mutation"),
    ),
    "clone": Program(
        code="clone",
        function=transposed_clone,
        inputs=squares,
        about=("buf0",),
        operands={"source": "arg0_1", "clone_operator": "aten.clone.default"},
        flipped_function=transposed_sum,
        turned=None,
    ),
    "clone_inlined": Program(
        code="clone-inlined",
        function=sums_of_clone,
        inputs=lambda: image_and_weight()[:1],
        about=("buf0",),
        operands={"clone": "clone", "memory_format": "torch.channels_last", "had": ("324", "81", "9", "1")},
        flipped_function=clone_of_exp,
        turned=None,
    ),
    "strides_fit": Program(
        code="strides-fit",
        function=convolved_input,
        inputs=channels_last,
        about=("arg0_1",),
        operands={"had": ("324", "1", "36", "4")},
        flipped_inputs=image_and_weight,
        flipped_about=("buf0",),
        turned=("copied", "given-strides"),
    ),
    "view_as_strides": Program(
        code="view-as-strides",
        function=product_of_transposed,
        inputs=squares,
        about=("arg0_1",),
        operands={"had": ("1", "8"), "operator": "aten.mm.default"},
        flipped_function=product_of_both,
        turned=None,
    ),
}
scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
