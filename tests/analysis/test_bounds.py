"""The least time of kernels of real CUDA dumps, by bytes and operations counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from torch.utils.flop_counter import conv_flop_count

from inductor_probe.analysis.bounds import _Convolution
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.machine.targets import find_gpu_target
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.gpu_target import GpuTarget
from inductor_probe.model.kernels import KernelBound, KernelRow
from inductor_probe.report.words.bounds import bound_sentence, bound_text
from tests.dumps import folder_of, read_at

H200 = find_gpu_target("h200")
CUDA = "torch-2.11.0-cuda"
LAYER_NORM = "triton_per_fused_gelu_native_layer_norm_0"


def rows(graph: CompiledGraph, gpu: GpuTarget | str = H200) -> dict[str, KernelRow]:
    return {row.name: row for row in kernel_rows(replace(graph, gpu=gpu))}


def bound_of(graph: CompiledGraph, kernel: str, gpu: GpuTarget | str = H200) -> KernelBound:
    (bound,) = (row.bound for name, row in rows(graph, gpu).items() if kernel in name)
    assert bound is not None
    return bound


def test_a_layer_norm_reads_its_input_once_and_writes_what_backward_needs() -> None:
    bound = bound_of(
        read_at(folder_of(f"{CUDA}/layernorm_grad")), "triton_per_fused_gelu_native_layer_norm_0"
    )
    weight_and_bias, statistics, image = 2 * 768 * 4, 2 * 1024 * 4, 1024 * 768 * 4
    assert bound.moved == 2 * image + weight_and_bias + statistics
    assert bound.seconds == pytest.approx(bound.moved / H200.memory_rate)
    assert (bound.limit, bound.flops, bound.gpu) == ("memory", None, "NVIDIA H200")


def test_the_bound_of_a_gpu_with_half_the_bandwidth_is_twice_as_long() -> None:
    graph = read_at(folder_of(f"{CUDA}/layernorm_grad"))
    slow = replace(H200, memory_gb_per_s=H200.memory_rate / 2e9, memory_clock_mhz=1)
    one, other = bound_of(graph, LAYER_NORM), bound_of(graph, LAYER_NORM, slow)
    assert other.seconds == pytest.approx(2 * (one.seconds or 0))


def test_without_figures_of_the_gpu_there_is_no_bound() -> None:
    graph = read_at(folder_of(f"{CUDA}/layernorm_grad"))
    assert graph.gpu is None  # no manifest
    assert {row.bound for row in kernel_rows(graph)} == {None}
    assert {row.bound for row in rows(graph, "AMD Instinct MI300X").values()} == {None}


def test_a_known_device_is_found_by_what_its_driver_calls_it() -> None:
    graph = read_at(folder_of(f"{CUDA}/layernorm_grad"))
    assert {row.bound.gpu for row in rows(graph, "Tesla T4").values() if row.bound} == {"Tesla T4"}


def test_kernels_of_a_cpu_have_no_bound() -> None:
    graph = read_at(folder_of("torch-2.13.0-cpu/mlp_train"))
    assert rows(graph)
    assert {row.bound for row in rows(graph).values()} == {None}


@pytest.mark.parametrize(
    ("case", "kernel", "moved", "flops"),
    [
        # uint8 images of 224 x 224, mirrored: read and written once, in either memory format.
        ("hflip_cl", "triton_poi", 2 * 3 * 224 * 224, None),
        # 16 x 30 x 30 of 37 x 33 are read, the others are masked; a mask of bytes, and the output.
        ("masked_pad_where", "triton_poi", 16 * 900 * 4 + 19536 + 16 + 19536 * 4, None),
        # A window of 2 x 2 reads each of its elements: four accesses with a step of two.
        ("conv_bn_relu", "convolution_max_pool2d", 655360, None),
        # Of a convolution with steps of 1 all it is given; a product for each result and pair of channels.
        (
            "conv_bn_relu", "extern_kernels.convolution",
            4 * (2 * 3 * 4096 + 16 * 27 + 2 * 16 * 4096), 2 * 2 * 3 * 16 * 4096,
        ),
        # In two launches, 32 x 128 by 128 x 256 and 32 x 256 by 256 x 64, with a bias each.
        ("mlp_train", "extern_kernels.addmm", 4 * 45312 + 4 * 26688, 2 * 32 * (128 * 256 + 256 * 64)),
        ("bf16_attention", "torch.ops", 4 * 8 * 64 * 64 * 2, 4 * 8 * 64 * 64 * 64),
        ("mm_epilogue_maxautotune", "triton_tem", 3 * 256 * 256 * 4, 2 * 256**3),
        # Added to with atomics: values, indices, and of the output one row at least.
        ("index_put_accum", "triton_poi_fused_index_put_1", 500 * 32 * 4 + 500 * 8 + 32 * 4, None),
        # 96 rows of 160 are sorted as 256, in 8 * 9 / 2 steps of 128 comparisons, and summed.
        ("multi_output_no_fuse", "sort", 2 * 96 * 160 * 4 + 96 * 4, 96 * 128 * 36),
        # A reduction in 512 parts, of which it writes the sums and the largest elements.
        ("big_split_reduction", "triton_red", 4 * 4096 * 4096 + 2 * 512 * 4, None),
    ],
)  # fmt: skip
def test_bytes_and_operations_counted_by_hand(
    case: str, kernel: str, moved: int, flops: int | None, corpus: Path
) -> None:
    folders = (corpus / CUDA / case).glob("torch_compile_debug/run_*/torchinductor/model*")
    (folder,) = (path for path in folders if "backward" not in path.name)
    bound = bound_of(read_at(folder), kernel)
    assert (bound.moved, bound.flops) == (moved, flops)


def test_float32_is_rounded_only_where_that_is_allowed(corpus: Path) -> None:
    (folder,) = (corpus / CUDA / "mm_epilogue_maxautotune").glob("**/torchinductor/model*")
    bound = bound_of(read_at(folder), "triton_tem")  # which has ALLOW_TF32 = False
    assert bound.product == "float32_simt"
    assert bound.limit == "arithmetic"
    assert bound.arithmetic_seconds == pytest.approx(2 * 256**3 / 66.9e12)
    mlp = next((corpus / CUDA / "mlp_train").glob("**/torchinductor/model*forward*"))
    unknown = bound_of(read_at(mlp), "extern_kernels.addmm")  # nothing says so: the faster way
    assert unknown.product == "tf32"
    on_t4 = bound_of(read_at(mlp), "extern_kernels.addmm", find_gpu_target("t4"))
    assert on_t4.product == "float32_simt"


def test_a_library_function_that_is_not_known_has_no_bound_and_says_so(corpus: Path) -> None:
    mlp = next((corpus / CUDA / "mlp_train").glob("**/torchinductor/model*forward*"))
    bound = bound_of(read_at(mlp), "aten.randint")
    assert (bound.seconds, bound.unbounded) == (None, "library")
    assert bound_text(bound) == "-"
    assert bound_sentence(bound) == "no bound: what it must read and compute is not known"


def test_a_bound_says_what_it_rests_on() -> None:
    bound = bound_of(
        read_at(folder_of(f"{CUDA}/layernorm_grad")), "triton_per_fused_gelu_native_layer_norm_0"
    )
    assert bound_text(bound) == "1.283 us memory"
    assert bound_sentence(bound) == (
        "1.283 us for 6.01 MiB that must move, at 4.92 TB/s (NVIDIA H200, cold L2 cache): a bound, no time"
    )


_dimensions = st.tuples(
    st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(1, 3), st.just(0)
).filter(lambda one: one[0] + 2 * one[3] > one[4] * (one[1] - 1))


@given(_dimensions)
def test_a_convolution_multiplies_where_kernel_and_input_meet(dimension: tuple[int, ...]) -> None:
    size, kernel, step, padding, dilation, _ = dimension
    results = (size + 2 * padding - dilation * (kernel - 1) - 1) // step + 1
    met = [
        place * step - padding + tap * dilation
        for place in range(results)
        for tap in range(kernel)
        if 0 <= place * step - padding + tap * dilation < size
    ]
    call = _Convolution.of(1, [dimension], transposed=False)  # type: ignore[list-item] # six numbers
    fewer = step == dilation == 1
    assert call.multiplications == (min(len(met), results) if fewer else len(met))
    if padding == 0 and not fewer:
        assert 2 * call.multiplications == conv_flop_count([1, 1, size], [1, 1, kernel], [1, 1, results])
    assert not call.reads_all or {*met} == {*range(size)}, "what it is said to read, it reads"
    if dilation == 1 and step <= kernel and (results - 1) * step - padding + kernel >= size:
        assert call.reads_all


def test_a_transposed_convolution_multiplies_each_input_by_each_weight() -> None:
    call = _Convolution.of(2 * 16 * 32, [(32, 3, 2, 0, 1, 0)] * 2, transposed=True)
    assert 2 * call.multiplications == conv_flop_count([2, 16, 32, 32], [16, 32, 3, 3], [2, 32, 65, 65], True)
    assert call.reads_all
    padded = _Convolution.of(1, [(4, 3, 2, 1, 1, 1)], transposed=True)
    assert padded.multiplications == 4 * 3 - 1, "of eight results, the first input reaches two"
