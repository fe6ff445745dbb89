"""Why torch's own kernel is called in place of generated code: a program for each cause, with its flip."""

from __future__ import annotations

from collections.abc import Callable

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import frozen, without_gradients


@torch.library.custom_op("proving_ground::doubled", mutates_args=())
def doubled(values: torch.Tensor) -> torch.Tensor:
    """Return twice the values, in an operator that inductor knows nothing of."""
    return values * 2


@doubled.register_fake
def _(values: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(values)


def call_doubled(values: torch.Tensor) -> torch.Tensor:
    """Return what an operator without a lowering makes."""
    return doubled(values)


def twice(values: torch.Tensor) -> torch.Tensor:
    """Return the same in operators that have lowerings."""
    return values * 2


def cosine(values: torch.Tensor) -> torch.Tensor:
    """Return a pointwise operation."""
    return values.cos()


def distances(values: torch.Tensor) -> torch.Tensor:
    """Return distances of rows by the operator that inductor always calls."""
    return torch.cdist(values, values, compute_mode="donot_use_mm_for_euclid_dist")


def distances_by_broadcast(values: torch.Tensor) -> torch.Tensor:
    """Return them by pointwise operations and a sum."""
    return (values[:, None] - values[None]).square().sum(-1).sqrt()


def running_sum(values: torch.Tensor) -> torch.Tensor:
    """Return a scan."""
    return values.cumsum(0)


def running_sum_by_mask(values: torch.Tensor) -> torch.Tensor:
    """Return the same by a masked sum."""
    return torch.where(torch.ones(32, 32).tril() > 0, values, 0.0).sum(-1)


def scatter_product(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return products of what falls on each place."""
    return torch.ones_like(values).scatter_reduce(0, index, values, "prod")


def scatter_sum(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return sums of what falls on each place."""
    return torch.zeros_like(values).scatter_reduce(0, index, values, "sum")


def put_sum(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return sums of what falls on each place, by an index."""
    return torch.zeros_like(values).index_put((index,), values, accumulate=True)


def put_where(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return the values with some replaced, by a mask."""
    return values.index_put((index < 7,), torch.arange(7, dtype=values.dtype))


def put_at(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return the values with some replaced, by their places."""
    return values.index_put((index[:7],), torch.arange(7, dtype=values.dtype))


def deterministically(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Call a function while torch is asked for deterministic algorithms."""
    torch.use_deterministic_algorithms(True)
    try:
        return function(*inputs)
    finally:
        torch.use_deterministic_algorithms(False)


def plainly(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Call a function."""
    return function(*inputs)


def joined(values: torch.Tensor) -> torch.Tensor:
    """Return two copies, one after the other."""
    return torch.cat([values, values + 1])


def random(values: torch.Tensor) -> torch.Tensor:
    """Return no random numbers, but calls what makes them."""
    return values + 0 * torch.rand(values.shape)


def add_rows(values: torch.Tensor, index: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
    """Return the values with some rows added to."""
    return values.index_add(0, index, added)


def rows(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Return eight rows, the numbers of two of them, and what is added."""
    return (torch.ones(8, 16, dtype=dtype), torch.tensor([0, 2]), torch.ones(2, 16, dtype=dtype))


def repeat_bytes(values: torch.Tensor) -> torch.Tensor:
    """Return the bytes of floats, as integers of half their size."""
    return values.view(torch.int16)


def pooled(values: torch.Tensor) -> torch.Tensor:
    """Return averages of windows of 7 by 7."""
    return torch.nn.functional.adaptive_avg_pool2d(values, (3, 3))


def pooled_finer(values: torch.Tensor) -> torch.Tensor:
    """Return averages of windows of 4 by 4."""
    return torch.nn.functional.adaptive_avg_pool2d(values, (5, 5))


def power(values: torch.Tensor) -> torch.Tensor:
    """Return powers whose exponents are computed."""
    return values**values


def squared(values: torch.Tensor) -> torch.Tensor:
    """Return powers whose exponent is a constant."""
    return values**2


def largest(values: torch.Tensor) -> torch.Tensor:
    """Return the three largest values."""
    return values.topk(3).values


def in_order(values: torch.Tensor) -> torch.Tensor:
    """Return rows in order."""
    return values.sort(-1).values


def running_maximum(values: torch.Tensor) -> torch.Tensor:
    """Return the largest value so far, of a scan of values and their indices."""
    return values.cummax(-1).values


def magnitude(values: torch.Tensor) -> torch.Tensor:
    """Return what is real of complex values."""
    return values.abs()


def product(values: torch.Tensor) -> torch.Tensor:
    """Return a product of matrices."""
    return values @ (values + 1)


def product_of(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return a product of matrices that nothing is computed for."""
    return first @ second


def batched_product(values: torch.Tensor) -> torch.Tensor:
    """Return products of matrices."""
    return torch.bmm(values, values + 1)


def convolved(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return a convolution."""
    return torch.nn.functional.conv2d(values, weight)


def windowed(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the same by unfolding: sums of products."""
    windows = values.unfold(2, 3, 1).unfold(3, 3, 1)
    return (windows[:, None] * weight[None, :, :, None, None]).sum((2, 5, 6))


def transposed_product(values: torch.Tensor) -> torch.Tensor:
    """Return products of matrices, the first of which is read by columns."""
    return torch.bmm(values.transpose(1, 2), values)


WEIGHT = torch.nn.Linear(32, 32, bias=False)


def weighted(values: torch.Tensor) -> torch.Tensor:
    """Return a product with the weight of a module."""
    return WEIGHT(values)


def numbers(dtype: torch.dtype, *size: int) -> tuple[torch.Tensor, ...]:
    """Return a tensor of ones."""
    return (torch.ones(size, dtype=dtype),)


def indexed(dtype: torch.dtype, device: str = "cpu") -> tuple[torch.Tensor, ...]:
    """Return 32 values, and the order 0 to 31 as indices."""
    return (torch.ones(32, dtype=dtype, device=device), torch.arange(32, device=device))


PROGRAMS = {
    "complex": Program(
        code="unsupported-type",
        function=cosine,
        inputs=lambda: numbers(torch.complex64, 32),
        operands={"operator": "aten.cos.default", "types": ("complex64",)},
        flipped_inputs=lambda: numbers(torch.float32, 32),
    ),
    "complex_to_real": Program(
        code="unsupported-type",
        function=magnitude,
        inputs=lambda: numbers(torch.complex64, 32),
        operands={"operator": "aten.abs.default", "types": ("complex64",)},
        flipped_inputs=lambda: numbers(torch.float32, 32),
    ),
    "custom_operator": Program(
        code="no-lowering",
        function=call_doubled,
        inputs=lambda: numbers(torch.float32, 32),
        operands={"operator": "proving_ground.doubled.default"},
        flipped_function=twice,
    ),
    "cdist": Program(
        code="registered-fallback",
        function=distances,
        inputs=lambda: numbers(torch.float32, 8, 4),
        operands={"operator": "aten._cdist_forward.default"},
        flipped_function=distances_by_broadcast,
    ),
    "scan": Program(
        code="no-backend-feature",
        function=running_sum,
        inputs=lambda: numbers(torch.float32, 32),
        operands={"operator": "aten.cumsum.default", "feature": "SCAN", "device": "cpu"},
        flipped_function=running_sum_by_mask,
    ),
    "scatter_product": Program(
        code="scatter-reduction",
        function=scatter_product,
        inputs=lambda: indexed(torch.float32),
        operands={"reduction": "prod"},
        flipped_function=scatter_sum,
        flip={"cpp.fallback_scatter_reduce_sum": False},
    ),
    "scatter_sum": Program(
        code="scatter-sum-threads",
        function=scatter_sum,
        inputs=lambda: indexed(torch.float32),
        settings={"cpp.threads": 2},
        flip={"cpp.fallback_scatter_reduce_sum": False},
    ),
    "put_int64": Program(
        code="atomic-add-dtype",
        function=put_sum,
        inputs=lambda: indexed(torch.int64),
        operands={"dtype": "int64"},
        flipped_inputs=lambda: indexed(torch.float32),
        until="2.13",
    ),
    "put_int64_on_gpu": Program(
        code="atomic-add-dtype",
        function=put_sum,
        inputs=lambda: indexed(torch.int64, "cuda"),
        operands={"dtype": "int64"},
        flipped_inputs=lambda: indexed(torch.float32, "cuda"),
        device="cuda",
    ),
    "put_by_mask": Program(
        code="boolean-index",
        function=put_where,
        inputs=lambda: indexed(torch.float32),
        operands={"dtypes": ("bool",)},
        flipped_function=put_at,
    ),
    "deterministic": Program(
        code="deterministic-algorithms",
        function=put_at,
        inputs=lambda: indexed(torch.float32),
        step=deterministically,
        flipped_step=plainly,
    ),
    "bfloat16_index_add": Program(
        code="decomposition-declined",
        function=add_rows,
        inputs=lambda: rows(torch.bfloat16),
        operands={"operator": "aten.index_add.default", "types": ("bfloat16",)},
        flipped_inputs=lambda: rows(torch.float32),
    ),
    "other_size": Program(
        code="in-lowering",
        function=repeat_bytes,
        inputs=lambda: numbers(torch.float32, 32),
        operands={"operator": "aten.view.dtype"},
        flipped_inputs=lambda: numbers(torch.float16, 32),
    ),
    "large_window": Program(
        code="pooling-window",
        function=pooled,
        inputs=lambda: numbers(torch.float32, 1, 2, 20, 20),
        operands={"window": 64, "window_limit": 25},
        flipped_function=pooled_finer,
    ),
    "integer_power": Program(
        code="integer-power",
        function=power,
        inputs=lambda: numbers(torch.int64, 32),
        operands={"dtype": "int64"},
        flipped_function=squared,
    ),
    "largest": Program(
        code="sort-decomposition-off",
        function=largest,
        inputs=lambda: numbers(torch.float32, 32),
        operands={"device": "cpu"},
        flip={"triton.decompose_sort_ops": True},
        turned=("extern", "no-backend-feature"),
        since="2.13",
    ),
    "long_sort": Program(
        code="sort-too-long",
        function=in_order,
        inputs=lambda: (torch.arange(5000.0, device="cuda").expand(4, 5000),),
        operands={"elements": 5000, "elements_limit": 512},
        flipped_inputs=lambda: (torch.arange(500.0, device="cuda").expand(4, 500),),
        device="cuda",
    ),
    "long_scan_of_pairs": Program(
        code="tuple-scan-split",
        function=running_maximum,
        inputs=lambda: (torch.ones(1 << 20, device="cuda"),),
        operands={"elements": 1 << 20, "outputs": 1, "values": 2},
        flipped_inputs=lambda: (torch.ones(512, 64, device="cuda"),),
        device="cuda",
    ),
    "product": Program(
        code="max-autotune-off",
        function=product,
        inputs=lambda: numbers(torch.float32, 32, 32),
        operands={"device": "cpu", "constant_weight": False},
        flip={"max_autotune": True},
        turned=("extern", "weight-not-constant"),
    ),
    "batched_product": Program(
        code="template-backend-off",
        function=batched_product,
        inputs=lambda: numbers(torch.float32, 4, 32, 32),
        operands={"backend": "CPP", "backends": "ATEN"},
        settings={"max_autotune": True, "max_autotune_gemm_backends": "ATEN"},
        flip={"max_autotune_gemm_backends": "CPP"},
    ),
    "float64_product": Program(
        code="template-dtype",
        function=batched_product,
        inputs=lambda: numbers(torch.float64, 4, 32, 32),
        operands={"dtype": "float64"},
        settings={"max_autotune": True, "max_autotune_gemm_backends": "ATEN,CPP"},
        flip={"max_autotune_gemm_backends": "CPP"},
        flipped_inputs=lambda: numbers(torch.float32, 4, 32, 32),
    ),
    "input_weight": Program(
        code="weight-not-constant",
        function=weighted,
        inputs=lambda: numbers(torch.float32, 32, 32),
        step=without_gradients,
        settings={"max_autotune": True, "max_autotune_gemm_backends": "ATEN,CPP"},
        flip={"max_autotune_gemm_backends": "CPP"},
        flipped_step=frozen,
    ),
    "scalar_template": Program(
        code="templates-slower",
        function=batched_product,
        inputs=lambda: numbers(torch.float32, 4, 512, 512),
        operands={"templates": 1},
        settings={"max_autotune": True, "max_autotune_gemm_backends": "ATEN,CPP", "cpp.simdlen": 1},
        flip={"max_autotune_gemm_backends": "CPP"},
    ),
    "simulated_times": Program(
        code="times-simulated",
        function=product_of,
        inputs=lambda: (torch.ones(64, 64, device="cuda"), torch.ones(64, 64, device="cuda")),
        settings={"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"},
        flip={"max_autotune_gemm_backends": "TRITON"},
        device="cuda",
        simulated=True,
    ),
    "transposed_product": Program(
        code="template-refused",
        function=transposed_product,
        inputs=lambda: numbers(torch.float32, 4, 32, 32),
        settings={"max_autotune": True, "max_autotune_gemm_backends": "ATEN,CPP"},
        flip={"max_autotune_gemm_backends": "CPP"},
        flipped_function=batched_product,
    ),
    "convolution": Program(
        code="no-template",
        function=convolved,
        inputs=lambda: (torch.ones(1, 2, 8, 8), torch.ones(3, 2, 3, 3)),
        operands={"device": "cpu"},
        flipped_function=windowed,
    ),
    "joined_uint8": Program(
        code="byte-concatenation",
        function=joined,
        inputs=lambda: numbers(torch.uint8, 32),
        operands={"operator": "aten.cat.default", "dtypes": ("uint8",)},
        flipped_inputs=lambda: numbers(torch.float32, 32),
    ),
    "random": Program(
        code="fallback-random",
        function=random,
        inputs=lambda: numbers(torch.float32, 32),
        operands={"operator": "aten.rand.default"},
        settings={"fallback_random": True},
        flip={"fallback_random": False},
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
