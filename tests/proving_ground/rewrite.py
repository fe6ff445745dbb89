"""Which pass or pattern rewrote FX nodes: a program for each cause, with its flip."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch._inductor import utils
from torch._inductor.runtime import benchmarking

from inductor_probe.scenario import Scenario
from tests.proving_ground.freezing import frozen
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import floats, replaced

FLASH = "aten._scaled_dot_product_flash_attention_for_cpu.default"


def attention(values: torch.Tensor) -> torch.Tensor:
    """Return attention as it is written out: a pattern of fuse_attention.py."""
    return (values @ values.transpose(-2, -1) / 4).softmax(-1) @ values


def attention_of_sums(values: torch.Tensor) -> torch.Tensor:
    """Return the same with weights that are normalised otherwise, which is no pattern."""
    weights = (values @ values.transpose(-2, -1) / 4).exp()
    return (weights / weights.sum(-1, keepdim=True)) @ values


def attention_of_positive(values: torch.Tensor) -> torch.Tensor:
    """Return the same of scores of which negative ones are zero: no pattern has these."""
    return (values @ values.transpose(-2, -1) / 4).relu().softmax(-1) @ values


def product_of(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return a product of matrices."""
    return first @ second


def on_gpu(rows: int, inner: int, columns: int) -> tuple[torch.Tensor, ...]:
    """Return what `product_of` takes."""
    return torch.ones(rows, inner, device="cuda"), torch.ones(inner, columns, device="cuda")


def timed_as(*times: float) -> Callable[[int, int, int], tuple[torch.Tensor, ...]]:
    """Return `on_gpu`, where torch measures given times in turn: what is faster may differ by GPU."""
    clock = itertools.cycle(times)
    replaced(type(benchmarking.benchmarker), "benchmark_gpu", lambda *_, **__: next(clock))
    return on_gpu


def with_peak(tflops: float) -> Callable[[int, int, int], tuple[torch.Tensor, ...]]:
    """Return `on_gpu`, on a GPU of that peak rate: torch does not know that of each."""
    replaced(utils, "get_device_tflops", lambda _: tflops)
    return on_gpu


def copied(values: torch.Tensor) -> torch.Tensor:
    """Return a sum of a copy."""
    return values.clone() + 1


def add_zeros(values: torch.Tensor) -> torch.Tensor:
    """Return the values plus a tensor of zeros."""
    return (values + torch.zeros_like(values)).sin()


def add_ones(values: torch.Tensor) -> torch.Tensor:
    """Return the values plus a tensor of ones."""
    return (values + torch.ones_like(values)).sin()


def scaled_ones(values: torch.Tensor) -> torch.Tensor:
    """Return the values plus a constant that is computed."""
    return values + torch.ones_like(values) * 3


def affine(values: torch.Tensor) -> torch.Tensor:
    """Return a product with a bias: inductor keeps both in one call on a CPU."""
    return torch.addmm(values[0], values, values).relu()


def product(values: torch.Tensor) -> torch.Tensor:
    """Return the same without a bias."""
    return (values @ values).relu()


_SEEDS = 30
"""More than the names that are kept of a rewrite."""


def _numbered(name: str) -> tuple[str, ...]:
    """Return what FX calls so many nodes."""
    return (name, *(f"{name}_{number}" for number in range(1, _SEEDS)))


def noise(values: torch.Tensor) -> torch.Tensor:
    """Return what 30 tensors of random numbers leave of it; their seeds are made in one call."""
    for _ in range(_SEEDS):
        values = values * (torch.rand(values.shape) < 2)
    return values


def put(values: torch.Tensor) -> torch.Tensor:
    """Return a copy with some elements replaced."""
    return values.index_put((torch.arange(3),), torch.zeros(()))


def put_in_place(values: torch.Tensor) -> torch.Tensor:
    """Replace some elements of the input."""
    return values.index_put_((torch.arange(3),), torch.zeros(()))


def put_into_view(values: torch.Tensor) -> torch.Tensor:
    """Return a transposed copy with some elements replaced."""
    return values.t().index_put((torch.arange(3),), torch.zeros(()))


def put_into_flat_input(values: torch.Tensor) -> torch.Tensor:
    """Replace some elements of the input, through a view of all of it."""
    values.view(-1)[torch.arange(3)] = 0.0
    return values.sum()


def put_into_flat_copy(values: torch.Tensor) -> torch.Tensor:
    """Return the sum of such a view with elements replaced, and leave the input as it is."""
    return values.view(-1).index_put((torch.arange(3),), torch.zeros(())).sum()


def put_into_sum(values: torch.Tensor) -> torch.Tensor:
    """Return what is computed, with some elements replaced."""
    return (values + 1).index_put((torch.arange(3),), torch.zeros(()))


def put_and_read(values: torch.Tensor) -> torch.Tensor:
    """Return the same, and read what was computed afterwards."""
    computed = values + 1
    changed = computed.index_put((torch.arange(3),), torch.zeros(()))
    return changed.cumsum(0) + computed.cumsum(0)


def scatter_slice(values: torch.Tensor) -> torch.Tensor:
    """Return what is computed, with a slice replaced."""
    return (values + 1).slice_scatter(values[:3] * 2, 0, 0, 3).sin()


def fill_slice(values: torch.Tensor) -> torch.Tensor:
    """Replace a slice of the input."""
    values[:3] = values[3:6] * 2
    return values


def row_by_column(values: torch.Tensor) -> torch.Tensor:
    """Return a product of a row and a column."""
    return values @ values.t()


LINEAR = torch.nn.Linear(16, 16)
SCALE = torch.nn.Parameter(torch.full((16,), 2.0))


def scaled_linear(values: torch.Tensor) -> torch.Tensor:
    """Return what a layer computes, with each of its outputs scaled."""
    return LINEAR(values) * SCALE


PROGRAMS = {
    "row_by_column": Program(
        code="small-product",
        function=row_by_column,
        inputs=lambda: floats(1, 64),
        among=("replaced",),
        operands={"first_size": "(1, 64)", "second_size": "(64, 1)", "operators": ("aten.mm.default",)},
        flipped_inputs=lambda: floats(2, 64),
    ),
    "kept_input": Program(
        code="input-not-mutated",
        function=put,
        inputs=lambda: floats(16),
        about=("index_put",),
        operands={"argument": "arg0_1"},
        flipped_function=put_in_place,
        turned=("in-place", "copied-back"),
    ),
    "changed_input": Program(
        code="copied-back",
        function=put_in_place,
        inputs=lambda: floats(17),
        about=("index_put",),
        flipped_function=put,
        turned=("copied", "input-not-mutated"),
    ),
    "view": Program(
        code="view-of-input",
        function=put_into_view,
        inputs=lambda: floats(16, 16),
        about=("index_put",),
        operands={"input": "arg0_1"},
        flipped_function=put_into_sum,
        turned=("in-place", "not-read-later"),
    ),
    "view_written_back": Program(
        code="copied-back",
        function=put_into_flat_input,
        inputs=lambda: floats(16, 12),
        about=("index_put",),
        operands={"argument": "view", "input": "arg0_1"},
        flipped_function=put_into_flat_copy,
        turned=("copied", "view-of-input"),
        since="2.13",
    ),
    "read": Program(
        code="read-later",
        function=put_and_read,
        inputs=lambda: floats(18),
        about=("index_put",),
        operands={"argument": "add", "reader": "cumsum_1"},
        flipped_function=put_into_sum,
        turned=("in-place", "not-read-later"),
    ),
    "not_read": Program(
        code="not-read-later",
        function=put_into_sum,
        inputs=lambda: floats(19),
        about=("index_put",),
        operands={"argument": "add"},
        flipped_function=put_and_read,
        turned=("copied", "read-later"),
    ),
    "slice": Program(
        code="scatter-fused",
        function=scatter_slice,
        inputs=lambda: floats(20),
        among=("copied", "in-place"),
        flipped_function=fill_slice,
        turned=("in-place", "copied-back"),
    ),
    "attention": Program(
        code="pattern",
        function=attention,
        inputs=lambda: floats(2, 4, 16, 16),
        operands={"stage": "joint_graph", "by_operators": (FLASH, "getitem")},
        flipped_function=attention_of_sums,
    ),
    "attention_without_patterns": Program(
        code="pattern",
        function=attention,
        inputs=lambda: floats(2, 4, 16, 16),
        flip={"pattern_matcher": False},
    ),
    "attention_of_positive": Program(
        code="nearly-matched",
        function=attention_of_positive,
        inputs=lambda: floats(2, 4, 16, 16),
        about=("view_5",),
        operands={"differs": "relu", "differs_operator": "aten.relu.default", "wanted": ("aten.div.Tensor",)},
        flipped_function=attention,
        turned=None,
    ),
    "attention_without_pass": Program(
        code="pattern",
        function=attention,
        inputs=lambda: floats(2, 4, 16, 16),
        flip={"disabled_passes": "pass_pattern_0,pass_pattern_1"},
    ),
    "copy": Program(
        code="no-op",
        function=copied,
        inputs=lambda: floats(64),
        operands={"nodes": ("clone",), "operators": ("aten.clone.default",)},
        flip={"disabled_passes": "remove_noop_ops"},
    ),
    "zeros": Program(
        code="identity",
        function=add_zeros,
        inputs=lambda: floats(64),
        operands={"nodes": ("add",), "by": ("arg0_1",), "stage": "joint_graph"},
        flipped_function=add_ones,
    ),
    "zeros_kept": Program(
        code="identity",
        function=add_zeros,
        inputs=lambda: floats(64),
        flip={"joint_graph_constant_folding": False},
    ),
    "constant": Program(
        code="uniform-value",
        function=scaled_ones,
        inputs=lambda: floats(64),
        operands={"value": "3.0", "nodes": ("mul",)},
        flip={"joint_graph_constant_folding": False},
    ),
    "padding_off": Program(
        code="shape-padding-off",
        function=product_of,
        inputs=lambda: on_gpu(1023, 1021, 1019),
        settings={"shape_padding": False},
        flip={"shape_padding": True, "force_shape_pad": True},
        device="cuda",
    ),
    "aligned": Program(
        code="sizes-aligned",
        function=product_of,
        inputs=lambda: on_gpu(1024, 1020, 1016),
        operands={"sizes": ("1024", "1020", "1016"), "alignment": 4},
        settings={"force_shape_pad": True},
        flipped_inputs=lambda: on_gpu(1023, 1021, 1018),
        device="cuda",
    ),
    "padded": Program(
        code="padding-forced",
        function=product_of,
        inputs=lambda: on_gpu(63, 1021, 7),
        settings={"force_shape_pad": True},
        flip={"force_shape_pad": False},
        device="cuda",
    ),
    "bound_by_memory": Program(
        code="memory-bound",
        function=product_of,
        inputs=lambda: with_peak(67.0)(62, 1021, 7),
        operands={"sizes": ("62", "1021", "7")},
        flip={"force_shape_pad": True},
        device="cuda",
    ),
    "faster_padded": Program(
        code="padding-faster",
        function=product_of,
        inputs=lambda: timed_as(3.0, 1.0)(1023, 1021, 1019),
        operands={"plain_ms": 3.0, "padded_ms": 1.0},
        flip={"shape_padding": False},
        device="cuda",
    ),
    "slower_padded": Program(
        code="padding-slower",
        function=product_of,
        inputs=lambda: timed_as(1.0, 3.0)(1021, 1023, 1017),
        operands={"plain_ms": 1.0, "padded_ms": 3.0},
        flip={"force_shape_pad": True},
        device="cuda",
    ),
    "not_timed": Program(
        code="times-simulated",
        function=product_of,
        inputs=lambda: timed_as(1.0)(1017, 1019, 1021),
        flip={"force_shape_pad": True},
        device="cuda",
        simulated=True,
    ),
    "bias": Program(
        code="check-refused",
        function=affine,
        inputs=lambda: floats(16, 16),
        operands={"check": "should_prefer_unfused_addmm", "patterns": ("unfuse_bias_add_to_pointwise",)},
        flipped_function=product,
    ),
    "scaled_linear": Program(
        code="check-refused",
        function=scaled_linear,
        inputs=lambda: floats(16, 16),
        about=("addmm", "mul"),
        operands={"check": "_is_foldable_pattern", "setting_off": "enable_linear_binary_folding"},
        step=frozen,
        flip={"enable_linear_binary_folding": True},
        flipped_step=frozen,
    ),
    "seeds": Program(
        code="pass",
        function=noise,
        inputs=lambda: floats(64),
        about=(
            *reversed(_numbered("inductor_seed_default")),
            "inductor_seeds_default",
            *_numbered("inductor_lookup_seed_default"),
        ),
        operands={
            "pass": "fuse_seed_creation_pass",
            "nodes": _numbered("inductor_seed_default")[:-25:-1],
            "nodes_count": _SEEDS,
            "by_count": _SEEDS + 1,
        },
        flip={"fallback_random": True},
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
