"""Places for a question: where a developer stops to see a decision being made."""

from __future__ import annotations

_SCHEDULER = "torch._inductor.scheduler"
_CPP = "torch._inductor.codegen.cpp"
_SIMD = "torch._inductor.codegen.simd"
_TRITON = "torch._inductor.codegen.triton"
_GRAPH = "torch._inductor.graph"
_IR = "torch._inductor.ir"

NAMED_SETS: dict[str, tuple[str, ...]] = {
    "fusion": (
        f"{_SCHEDULER}:Scheduler.can_fuse",
        f"{_SCHEDULER}:WhyNoFuse.__call__",  # each refusal, with its reason
        f"{_SCHEDULER}:Scheduler.can_fuse_vertical",
        f"{_SCHEDULER}:Scheduler.fuse_two_nodes",
        f"{_CPP}:CppScheduling._can_fuse_horizontal_impl",
        f"{_CPP}:CppScheduling.can_fuse_vertical",
        f"{_SIMD}:SIMDScheduling.can_fuse",
    ),
    "vectorisation": (
        f"{_CPP}:TilingSelect.select_tiling",  # which loops are vectorised, and whether any
        f"{_CPP}:CppVecKernel.load",
        f"{_CPP}:CppVecKernel.store",
        f"{_CPP}:CppVecKernel._load_or_store_non_contiguous",
        f"{_CPP}:CppTile2DKernel.load",
        f"{_CPP}:CppTile2DKernel.store",
        f"{_CPP}:LoopLevel.tile",
        f"{_CPP}:LoopLevel.lines",
    ),
    "tiling": (
        f"{_CPP}:TilingSelect.select_tiling",
        f"{_CPP}:TilingSelect._select_tiling_indices",
        f"{_CPP}:LoopLevel.tile",
        f"{_SIMD}:SIMDScheduling.get_tiling_and_scores",
        f"{_SIMD}:SIMDScheduling.candidate_tilings",
        "torch._inductor.codegen.simd_kernel_features:SIMDKernelFeatures.get_reduction_hint",
        f"{_TRITON}:TritonKernel.load",
    ),
    "layout": (
        f"{_GRAPH}:GraphLowering.decide_layout_opt",  # channels-last for the whole graph, or not
        f"{_IR}:ComputedBuffer.decide_layout",
        f"{_IR}:ComputedBuffer.get_fill_order",  # the order that reads suggest
        f"{_IR}:Buffer.freeze_layout_with_stride_order",
        f"{_IR}:Buffer.freeze_layout_with_fill_order",
        f"{_IR}:Buffer.freeze_layout_with_same_order",
        f"{_IR}:Buffer.freeze_layout_with_exact_strides",
        f"{_IR}:ExternKernel.require_strides",  # what a consumer demands
    ),
    "lowering": (
        f"{_GRAPH}:GraphLowering.call_function",
        f"{_IR}:StorageBox.should_realize_on_reuse",
        f"{_IR}:StorageBox.realize",
        f"{_GRAPH}:GraphLowering.register_buffer",
    ),
    "codegen": (
        f"{_GRAPH}:GraphLowering.codegen",
        f"{_CPP}:CppScheduling.codegen_node",
        f"{_CPP}:CppScheduling.define_kernel",
        f"{_SIMD}:SIMDScheduling.codegen_node_schedule",
        f"{_TRITON}:TritonScheduling.define_kernel",
    ),
}
"""Name -> functions, in the order in which a compile reaches them."""
