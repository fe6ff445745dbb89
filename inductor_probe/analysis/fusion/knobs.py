"""Settings of torch that change what is fused, as of torch 2.13."""

from __future__ import annotations

from inductor_probe.model.fusion import Knob

_CONFIG = "torch._inductor.config"

# Name -> its default, and what it does; `gpu` where only code for GPUs asks it.
_KNOBS: dict[str, tuple[object, str, bool]] = {
    "aggressive_fusion": (
        False,
        "True weighs pairs without shared data too, if neither is a reduction",
        False,
    ),
    "benchmark_fusion": (False, "True compiles and times fusions before it decides", True),
    "combo_kernels": (False, "True puts independent nodes of any size into one launch", True),
    "cutlass.cutlass_epilogue_fusion_enabled": (
        False,
        "True lets CUTLASS kernels take in what uses their result",
        True,
    ),
    "epilogue_fusion": (True, "False keeps what uses a template's result out of the template", False),
    "epilogue_fusion_user_defined_triton_kernel": (
        False,
        "True lets Triton kernels of yours take in what uses their result",
        True,
    ),
    "loop_index_inversion_in_fusion": (True, "also looks for an index that undoes the other's", False),
    "loop_ordering_after_fusion": (
        True,
        "reorders the loops of one so that its accesses become those of the other",
        True,
    ),
    "max_fusion_size": (64, "most unfused nodes in a fused one", False),
    "max_fusion_unique_io_buffers": (None, "most buffers that a fused node reads and writes", False),
    "prologue_fusion": (True, "False keeps what computes a template's inputs out of the template", False),
    "score_fusion_memory_threshold": (10, "fewest bytes that two independent nodes must share", False),
    "split_reductions": (True, "False leaves a long reduction in one piece, with its own size", False),
    "triton.mix_order_reduction": (
        True,
        "fuses a reduction over rows with one over columns of the same data",
        True,
    ),
    "triton.native_matmul": (False, "False leaves matmuls to templates and libraries", True),
    "triton.tiling_prevents_pointwise_fusion": (
        True,
        "False fuses although a grid of two dimensions is lost",
        True,
    ),
    "triton.tiling_prevents_reduction_fusion": (
        True,
        "False fuses although a grid of two dimensions is lost",
        True,
    ),
}

KNOBS = {
    name: Knob(f"{_CONFIG}.{name}", effect, repr(default), gpu)
    for name, (default, effect, gpu) in _KNOBS.items()
}
