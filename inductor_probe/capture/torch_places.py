"""The one table of torch's private places: what each decides or makes known, and who asks for it.

Torch's private API changes with each release. Every function of torch that we wrap while a script runs, or
stop at under a debugger, is named here and nowhere else, as `module:Qualified.name`, with what it decides. A
place that the installed torch does not have is a note (`not available on torch X`), never a failure.

`topics` say what a place is for. `record` places are wrapped in every `probe dump` (`capture/hooks.py`), and
`decision` places unless `--no-record` is given (`capture/recorders/`). `target` places are replaced where a
GPU is simulated (`capture/targets/`), `own` places wrapped where the user's callables are timed
(`capture/own_calls.py`), `accuracy` places where they are judged (`accuracy_checks/stages.py`), `reduce`
places where a graph is taken that is reduced (`reduction/traced.py`). The other topics are named after a
question and are the sets of `probe debug --break TOPIC`, in the order in which a compile reaches them.
To follow a new decision, add a row here; `tests/debugging/test_places.py` says which rows the installed torch
lacks.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

from msgspec import Struct

from inductor_probe.capture import branches

RECORD = "record"
DECISION = "decision"
TARGET = "target"
OWN = "own"
ACCURACY = "accuracy"
REDUCE = "reduce"


class TorchPlace(Struct, frozen=True):
    """A function or method of torch.

    `name` is its qualified name in `module`, `decides` what it decides or makes known; for `topics` see the
    module's docstring: most places are of decisions alone.
    """

    module: str
    name: str
    decides: str
    topics: tuple[str, ...] = (DECISION,)

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


_SCHEDULER = "torch._inductor.scheduler"
_CPP = "torch._inductor.codegen.cpp"
_SIMD = "torch._inductor.codegen.simd"
_FEATURES = "torch._inductor.codegen.simd_kernel_features"
_TRITON = "torch._inductor.codegen.triton"
_COMBO = "torch._inductor.codegen.triton_combo_kernel"
_PRINTERS = "torch.utils._sympy.printers"
_GRAPH = "torch._inductor.graph"
_IR = "torch._inductor.ir"
_SIZES = "torch._inductor.sizevars"
_HEURISTICS = "torch._inductor.choices"
_LOWERING = "torch._inductor.lowering"
_FRAME = "torch._dynamo.convert_frame"
_DEBUG = "torch._inductor.debug"
_OUTPUT_CODE = "torch._inductor.output_code"
_CODECACHE = "torch._inductor.codecache"
_FOLDING = "torch._inductor.constant_folding"
_CHOICES = "torch._inductor.select_algorithm"
_TRACING = "torch.fx.experimental.proxy_tensor"
_COMPILE_FX = "torch._inductor.compile_fx"
_FREEZING = "torch._inductor.freezing"
_REINPLACE = "torch._inductor.fx_passes.reinplace"
_OBSERVER = "torch.fx.passes.graph_transform_observer"
_PATTERNS = "torch._inductor.pattern_matcher"
_PADDING = "torch._inductor.fx_passes.pad_mm"
_COMPILE = "torch._inductor.async_compile"
_COMBINED = "torch._inductor.codegen.cuda_combined_scheduling"
_HELPERS = "torch._inductor.runtime.triton_helpers"
_TIMING = "torch._inductor.runtime.benchmarking"
_CONFIGS = "torch._inductor.runtime.triton_heuristics"
_CODEGEN = "torch._inductor.heuristics.triton_codegen"
_UTILS = "torch._inductor.utils"
_CONVOLUTIONS = "torch._inductor.kernel.conv"

_CALLING = (
    "_adaptive_avg_pool2d", "_avg_poolnd", "adaptive_max_pool2d", "avg_pool2d_backward",
    "avg_pool3d_backward", "bucketize", "cat", "cummax", "cummin", "cumprod", "cumsum", "index_put_impl_",
    "kthvalue", "logcumsumexp", "max_pool2d_with_indices_backward", "median_default", "median_dim",
    "mode_default", "native_dropout", "pow", "rand", "randn", "scatter_fallback", "searchsorted",
    "sort_stable", "topk",
)  # fmt: skip

_CUDA: dict[str, tuple[str, ...]] = {
    "whether there is a GPU": ("is_available", "is_initialized", "_lazy_init", "device_count"),
    "which GPU is in use": ("current_device", "set_device", "_exchange_device", "_maybe_exchange_device"),
    "what a GPU is": (
        "get_device_properties", "get_device_capability", "get_device_name", "get_arch_list",
        "is_bf16_supported",
    ),
    "its memory": (
        "mem_get_info", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
        "reset_peak_memory_stats", "empty_cache",
    ),
    "its streams": (
        "synchronize", "current_stream", "default_stream", "set_stream", "_set_stream_by_id", "stream",
        "is_current_stream_capturing",
    ),
    "its random numbers": ("get_rng_state", "set_rng_state"),
}  # fmt: skip

PLACES: tuple[TorchPlace, ...] = (
    TorchPlace("torch._logging._internal", "configure_artifact_log", "which logs are kept", (RECORD,)),
    TorchPlace("torch._dynamo.guards", "is_recompiles_enabled", "whether dynamo logs recompiles", (RECORD,)),
    TorchPlace("torch._dynamo.utils", "reset_frame_count", "when counts of compiles are cleared", (RECORD,)),
    TorchPlace(_FRAME, "_compile", "a compile that fails, also where torch goes on eagerly", (RECORD,)),
    TorchPlace("torch._dynamo.eval_frame", "_TorchDynamoContext.__call__", "what the script calls", (OWN,)),
    TorchPlace("torch._dynamo.repro.after_aot", "run_repro", "what torch's program runs", (RECORD,)),
    TorchPlace(_COMPILE_FX, "_compile_fx_inner", "the code of one graph", (ACCURACY,)),
    TorchPlace(_COMPILE_FX, "_recursive_pre_grad_passes", "passes over what dynamo traced", (ACCURACY,)),
    TorchPlace(_COMPILE_FX, "_recursive_joint_graph_passes", "passes before the graph is cut", (ACCURACY,)),
    TorchPlace(_COMPILE_FX, "_recursive_post_grad_passes", "passes over what is lowered", (ACCURACY,)),
    TorchPlace(_GRAPH, "GraphLowering.__init__", "the graph that is lowered", (ACCURACY,)),
    TorchPlace(_GRAPH, "GraphLowering.compile_to_module", "the module of generated code", (ACCURACY,)),
    TorchPlace(_FRAME, "CatchErrorsWrapper.__call__", "a full graph that dynamo cannot trace", (RECORD,)),
    TorchPlace(_DEBUG, "DebugContext.__enter__", "the folder of a graph", (RECORD,)),
    TorchPlace(_DEBUG, "DebugContext.__exit__", "that a graph's folder is complete", (RECORD,)),
    TorchPlace(_DEBUG, "DebugFormatter.fx_graph", "constants of the FX graph, what it was", (RECORD,)),
    TorchPlace(_FOLDING, "ConstantFolder.run_node", "how a constant is packed", (RECORD,)),
    TorchPlace("torch._inductor.fx_passes.joint_graph", "joint_graph_passes",
        "FX nodes that are gone", (RECORD,)),
    TorchPlace(_DEBUG, "DebugFormatter.ir_post_fusion", "scheduler nodes after fusion", (RECORD,)),
    TorchPlace(_SCHEDULER, "BaseSchedulerNode._debug_str_for_device",
        "a node's device code in the IR", (RECORD,)),
    TorchPlace(_DEBUG, "DebugContext.fopen", "where the IR of a subgraph goes", (RECORD,)),
    TorchPlace(_OUTPUT_CODE, "CompiledFxGraph.__init__", "names of a graph's inputs", (RECORD,)),
    TorchPlace(_OUTPUT_CODE, "CompiledFxGraph.__call__", "a graph's real inputs", (RECORD, ACCURACY)),
    TorchPlace(_CODECACHE, "_precompile_header", "the folder of a header that is preprocessed", (RECORD,)),
    TorchPlace(_CODECACHE, "AotCodeCompiler.compile", "inputs of what AOTInductor compiles", (RECORD,)),
    TorchPlace("torch._inductor.cpp_builder", "run_compile_cmd", "a run of the C++ compiler", (RECORD,)),
    TorchPlace(_CHOICES, "get_algorithm_selector_cache", "autotuning choices with times", (RECORD,)),
    TorchPlace("torch.distributed.distributed_c10d", "init_process_group",
        "which rank a process is", (RECORD,)),
    TorchPlace(_TRACING, "maybe_handle_decomp", "whether an operator is decomposed"),
    TorchPlace(_COMPILE_FX, "compile_fx", "whether a graph is frozen", (DECISION, ACCURACY, REDUCE)),
    TorchPlace(_FREEZING, "freeze", "parameters become constants", (RECORD, DECISION)),
    TorchPlace(_FREEZING, "replace_params_with_constants", "which parameters stay inputs"),
    TorchPlace(_FOLDING, "replace_node_with_constant", "a value becomes a constant"),
    TorchPlace(_OUTPUT_CODE, "CompiledFxGraph.post_compile", "whether CUDA graphs replay it"),
    TorchPlace(_UTILS, "get_first_incompatible_cudagraph_node", "what CUDA graphs lack"),
    *(TorchPlace("torch._inductor.cudagraph_utils", name, "whether they replay a graph")
        for name in (
            "check_multiple_devices_or_any_cpu_nodes",
            "check_for_mutation_ignore_cuda_graph_managed_tensor",
        )),
    TorchPlace(_SCHEDULER, "Scheduler.should_partition", "what CUDA graphs leave out"),
    TorchPlace(_CHOICES, "AlgorithmSelectorCache.__call__", "a library's kernel or a template"),
    TorchPlace(_REINPLACE, "should_reinplace_scatter", "whether a scatter is worth it"),
    TorchPlace(_REINPLACE, "reinplace_inplaceable_ops_core", "what is written in place"),
    TorchPlace(_OBSERVER, "GraphTransformObserver.__enter__",
        "a pass over the FX graph begins", (DECISION, ACCURACY)),
    TorchPlace(_OBSERVER, "GraphTransformObserver.__exit__",
        "a pass over the FX graph ends", (DECISION, ACCURACY)),
    TorchPlace(_PATTERNS, "ReplacementPatternEntry.apply", "a pattern is replaced by a graph"),
    TorchPlace(_PATTERNS, "LoweringPatternEntry.apply", "a pattern is replaced by a lowering"),
    TorchPlace(_PATTERNS, "GraphPatternEntry.apply", "a pattern changes the graph itself"),
    TorchPlace(_PATTERNS, "FailedMatch.__init__", "which part of a pattern did not match"),
    TorchPlace(_PATTERNS, "PatternExpr.match", "whether a pattern matches"),
    TorchPlace(_PATTERNS, "MultiOutputPattern.match", "whether one of several results does"),
    TorchPlace(_PATTERNS, "is_match", "that a pattern matched, before its check"),
    TorchPlace(_PATTERNS, "PatternMatcherPass.apply", "the patterns of a pass"),
    TorchPlace(_PATTERNS, "guard_or_false", "whether a pattern's check allows a rewrite"),
    TorchPlace(_PADDING, "should_pad", "whether a matrix product is padded"),
    TorchPlace(_PADDING, "can_pad", "whether it may be padded"),
    TorchPlace(_PADDING, "_should_pad", "whether padding is worth it"),
    TorchPlace(_PADDING, "is_mm_compute_bound", "whether arithmetic bounds it"),
    TorchPlace(_PADDING, "is_padded_faster", "whether it was faster padded"),
    TorchPlace(_GRAPH, "GraphLowering.decide_layout_opt",
        "channels-last for the whole graph", ("layout", DECISION)),
    TorchPlace(_GRAPH, "fallback_node_due_to_unsupported_type", "dtypes that are not compiled"),
    TorchPlace(_GRAPH, "make_fallback", "an operator without a lowering"),
    *(TorchPlace(_CPP, name, "a cast, and the one back")
        for name in ("CppOverrides.to_dtype", "CppVecOverrides.to_dtype", "CppKernel.cache_dtype_convert")),
    TorchPlace(_GRAPH, "GraphLowering.has_feature", "whether the backend has scans, sorts, ..."),
    TorchPlace(_LOWERING, "use_scatter_fallback", "whether a scatter is compiled"),
    *(TorchPlace(_UTILS, name, "whether there is a template")
        for name in (
            "use_cpp_gemm_template", "use_triton_template", "_use_autotune_backend",
            "_use_conv_autotune_backend", "_use_template_for_cpu", "_use_template_for_gpu",
        )),
    TorchPlace(_HEURISTICS, "InductorChoices._need_to_fix_layout", "choices beside ATEN"),
    TorchPlace(_LOWERING, "unsupported_input_tensor", "a value that is not compiled"),
    *(TorchPlace(_LOWERING, name, "a lowering that may call torch") for name in _CALLING),
    TorchPlace(_CONVOLUTIONS, "convolution_backward_lowering", "the same"),
    TorchPlace(_IR, "FallbackKernel.create", "a call of torch's own kernel"),
    TorchPlace(_LOWERING, "use_two_step_variance", "variance in one pass or two"),
    TorchPlace(_IR, "ScatterFallback.__init__", "a call of torch's scatter"),
    TorchPlace(_IR, "IndexPutFallback.__init__", "a call of torch's index_put"),
    TorchPlace(_GRAPH, "GraphLowering.run_node", "the lowering of an FX node, its users too"),
    TorchPlace(_GRAPH, "GraphLowering.finalize", "the end of lowering"),
    TorchPlace(_IR, "Reduction.create", "a reduction, or a sum of few elements"),
    TorchPlace(_IR, "WelfordReduction.create", "mean and variance in one pass"),
    TorchPlace(_IR, "ArgReduction.create", "the index of an extreme, and its value"),
    TorchPlace(_IR, "OnlineSoftmaxReduction.create", "maximum and sum in one pass"),
    TorchPlace(_IR, "Scan.create", "a scan by one block or by several"),
    TorchPlace(_IR, "Reduction.num_splits", "the hint of a reduction, and its parts"),
    TorchPlace(_IR, "Sort.create", "a sort by one block"),
    TorchPlace(_SIZES, "SizeVarAllocator.stride_hints", "strides of an access"),
    TorchPlace(_GRAPH, "GraphLowering.call_function", "the lowering of an FX node", ("lowering", DECISION)),
    TorchPlace(_IR, "StorageBox.should_realize_on_reuse",
        "realise or inline, by users", ("lowering", DECISION)),
    TorchPlace(_IR, "Loops.has_large_inner_fn", "whether an expression is long"),
    TorchPlace(_IR, "StorageBox.realize", "a value becomes a buffer", ("lowering", DECISION)),
    TorchPlace(_IR, "StorageBox.realize_hint", "a value may become a buffer"),
    TorchPlace(_GRAPH, "GraphLowering.register_buffer", "the name of a buffer", ("lowering",)),
    TorchPlace(_IR, "ComputedBuffer.decide_layout", "the layout of a computed buffer", ("layout",)),
    TorchPlace(_IR, "ComputedBuffer.get_fill_order",
        "the stride order that reads suggest", ("layout", DECISION)),
    TorchPlace(_IR, "StorageBox.has_exceeded_max_reads",
        "realise or inline, by reads", ("lowering", DECISION)),
    TorchPlace(_IR, "ComputedBuffer.simplify_and_reorder", "the loops of a buffer"),
    TorchPlace(_IR, "ComputedBuffer._apply_loop_reordering", "the order of its loops"),
    TorchPlace(_SIZES, "SizeVarAllocator._simplify_loops_impl", "whether two loops are merged"),
    TorchPlace(_SIZES, "SizeVarAllocator.make_simplify_loops_cache", "which loops are merged"),
    TorchPlace(_SCHEDULER, "SchedulerNode.apply_new_loop_order", "loops ordered for a fusion"),
    TorchPlace(_SCHEDULER, "SchedulerNode.merge_loops", "loops merged after fusion"),
    TorchPlace(_SCHEDULER, "SchedulerNode.restore_loop_state", "loops as before a trial"),
    TorchPlace(_IR, "ComputedBuffer.get_read_writes", "what a buffer reads"),
    TorchPlace(_SCHEDULER, "pick_loop_order", "an order of dimensions, by strides"),
    TorchPlace(_IR, "Buffer.freeze_layout", "a layout, as it is", ("layout", DECISION)),
    TorchPlace(_IR, "Buffer.freeze_layout_with_stride_order",
        "a layout, by stride order", ("layout", DECISION)),
    TorchPlace(_IR, "Buffer.freeze_layout_with_fill_order", "a layout, by fill order", ("layout", DECISION)),
    TorchPlace(_IR, "Buffer.freeze_layout_with_same_order",
        "a layout, as another's strides", ("layout", DECISION)),
    TorchPlace(_IR, "Buffer.freeze_layout_with_exact_strides",
        "a layout, by exact strides", ("layout", DECISION)),
    TorchPlace(_IR, "ExternKernel.require_strides",
        "the strides that a consumer requires", ("layout", DECISION)),
    TorchPlace(_IR, "ExternKernel.require_stride1", "a dimension of stride 1"),
    TorchPlace(_IR, "ExternKernel.realize_input", "an operand of an extern kernel"),
    TorchPlace(_IR, "ExternKernel.copy_input", "a copy with other strides", ("layout", DECISION)),
    TorchPlace(_IR, "ConcatKernel.realize_into", "an operand of a concatenation"),
    TorchPlace(_IR, "MutationLayoutSHOULDREMOVE.realize_into", "a value written in place"),
    TorchPlace(_SCHEDULER, "Scheduler.can_fuse", "whether a pair is legal to fuse", ("fusion", DECISION)),
    TorchPlace(_SCHEDULER, "WhyNoFuse.__call__", "a refusal, with torch's reason", ("fusion", DECISION)),
    TorchPlace(_SCHEDULER, "Scheduler.finalize_multi_template_buffers", "a template or a library's kernel"),
    TorchPlace(_SCHEDULER, "Scheduler.fuse_nodes", "all rounds of fusion"),
    TorchPlace(_SCHEDULER, "Scheduler.fuse_nodes_once", "a round of fusion"),
    TorchPlace(_SCHEDULER, "Scheduler.get_possible_fusions", "which pairs are tried"),
    TorchPlace(_SCHEDULER, "Scheduler.get_possible_fusions_with_highest_priority", "which come first"),
    TorchPlace(_SCHEDULER, "Scheduler.unfusable_node", "nodes that are in no pair"),
    TorchPlace(_SCHEDULER, "Scheduler.will_fusion_create_cycle", "a cycle by other fusions"),
    TorchPlace(_SCHEDULER, "Scheduler.score_fusion_memory", "bytes that a pair shares"),
    TorchPlace(_SCHEDULER, "Scheduler.score_fusion_key", "the order of possible fusions"),
    TorchPlace(_SCHEDULER, "Scheduler.speedup_by_fusion", "whether to time a fusion"),
    TorchPlace(_SCHEDULER, "Scheduler.benchmark_codegened_module", "the time of a kernel"),
    TorchPlace(_SCHEDULER, "Scheduler.create_combo_kernel_nodes", "independent nodes in a kernel"),
    TorchPlace(_SCHEDULER, "Scheduler.can_fuse_vertical", "producer and consumer in one node", ("fusion",)),
    TorchPlace(_SCHEDULER, "Scheduler._can_fuse", "the same as can_fuse, without undoing"),
    TorchPlace(_SCHEDULER, "Scheduler.are_long_distant_nodes", "nodes too far apart"),
    TorchPlace(_SCHEDULER, "Scheduler.can_fusion_increase_peak_memory", "memory of a pair"),
    TorchPlace(_SCHEDULER, "MixOrderReduction.can_fuse", "reductions in two orders"),
    TorchPlace(_SCHEDULER, "Scheduler.fuse_two_nodes", "two nodes become one", ("fusion", DECISION)),
    TorchPlace(_CPP, "CppScheduling._can_fuse_horizontal_impl",
        "C++: loop ranges of a pair", ("fusion", DECISION)),
    TorchPlace(_CPP, "CppScheduling._can_fuse_nodes_with_compatible_ranges", "C++: loops of one size"),
    TorchPlace(_CPP, "CppScheduling.can_fuse_vertical_outer_loop", "C++: common outer loops"),
    TorchPlace(_CPP, "CppScheduling._get_outer_loop_fusion_depth", "C++: how many these are"),
    TorchPlace(_SCHEDULER, "BaseScheduling.fuse", "two nodes become one"),
    TorchPlace(_CPP, "CppScheduling.fuse", "C++: two nodes become one"),
    TorchPlace(_CPP, "CppScheduling.can_fuse_horizontal", "C++: independent nodes"),
    TorchPlace(_CPP, "CppScheduling.can_fuse_vertical", "C++: producer and consumer", ("fusion", DECISION)),
    TorchPlace(_CPP, "OuterLoopFusedSchedulerNode.check_outer_fusion_loop_level_attr",
        "C++: whether fused outer loops stay so"),
    TorchPlace(_CPP, "CppScheduling.codegen_outer_loop_node", "C++ code of fused outer loops"),
    TorchPlace(_SIMD, "SIMDScheduling.can_fuse", "Triton: numel and tiling of a pair", ("fusion",)),
    TorchPlace(_GRAPH, "GraphLowering.codegen", "code of the whole graph", ("codegen", DECISION)),
    TorchPlace(_CPP, "CppScheduling.codegen_node", "C++ code of a node", ("codegen", DECISION)),
    TorchPlace(_COMBO, "ComboKernel._update_partition", "a node in this combo kernel"),
    *(TorchPlace(_PRINTERS, name, "the text of a division of indices")
        for name in (
            "CppPrinter._print_FloorDiv", "CppPrinter._print_ModularIndexing",
            "PythonPrinter._print_ModularIndexing",
        )),
    TorchPlace(_TRITON, "TritonPrinter._print_FloorDiv", "Triton: the same"),
    TorchPlace(_CPP, "CppKernelProxy.codegen_functions", "C++: a scalar and a vector kernel"),
    TorchPlace(_CPP, "TilingSelect.select_tiling",
        "C++: vector loops", ("vectorisation", "tiling", DECISION)),
    TorchPlace(_CPP, "TilingSelect._select_tiling_indices", "C++: candidate loops", ("tiling", DECISION)),
    TorchPlace(_CPP, "CppVecKernel.load", "a vector load", ("vectorisation",)),
    TorchPlace(_CPP, "CppVecKernel.store", "a vector store", ("vectorisation", DECISION)),
    TorchPlace(_CPP, "CppVecKernel._load_or_store_non_contiguous",
        "lane by lane", ("vectorisation", DECISION)),
    TorchPlace(_CPP, "CppTile2DKernel.load", "a load of a 2-D tile", ("vectorisation",)),
    TorchPlace(_CPP, "CppTile2DKernel.store", "a store of a 2-D tile", ("vectorisation",)),
    TorchPlace(_CPP, "CppTile2DKernel.gen_transposed_tile_load_store", "a transposed tile"),
    TorchPlace(_CPP, "CppScheduling.codegen_template", "C++ code of a template"),
    TorchPlace(_CPP, "LoopLevel.tile", "a loop divided by a factor", ("vectorisation", "tiling")),
    TorchPlace(_CPP, "LoopLevel.lines", "the text of a C++ loop", ("vectorisation",)),
    TorchPlace(_CPP, "CppKernel.decide_parallel_depth", "C++: loops for threads"),
    TorchPlace(_CPP, "OuterLoopFusedKernel.decide_parallel_depth", "the same, of a fused loop"),
    TorchPlace(_CPP, "LoopNest.max_parallel_depth", "C++: which loops threads may share"),
    TorchPlace(_CPP, "KernelGroup.finalize_kernel", "C++ code of a loop nest"),
    TorchPlace(_CPP, "CppScheduling.define_kernel", "the text of a C++ kernel", ("codegen",)),
    TorchPlace(_SIMD, "SIMDScheduling.codegen_node_schedule", "Triton code of nodes in order", ("codegen",)),
    TorchPlace(_SIMD, "SIMDScheduling.get_tiling_and_scores",
        "Triton: tiling and its score", ("tiling", DECISION)),
    TorchPlace(_SIMD, "SIMDScheduling.select_tiling_with_memory", "the same, since 2.14"),
    TorchPlace(_SIMD, "SIMDScheduling.compute_tiling_strategy", "Triton: the best tiling"),
    TorchPlace(_SIMD, "SIMDScheduling.get_nd_tilings", "Triton: of most dimensions"),
    TorchPlace(_SIMD, "SIMDScheduling.tiling_is_compatible", "Triton: a candidate"),
    TorchPlace(_SIMD, "SIMDScheduling.candidate_tilings", "Triton: candidate tilings", ("tiling",)),
    TorchPlace(_HEURISTICS, "InductorChoices.should_use_persistent_reduction", "Triton: no loop"),
    TorchPlace(_HEURISTICS, "InductorChoices.should_use_cooperative_reduction", "Triton: blocks together"),
    TorchPlace(_TRITON, "TritonKernel.should_use_cooperative_reduction", "Triton: blocks together"),
    TorchPlace(_TRITON, "TritonKernel.has_persistent_RBLOCK", "Triton: a tile for all elements"),
    TorchPlace(_HEURISTICS, "InductorChoices.reduction_split_factor", "parts of a reduction"),
    TorchPlace(_HEURISTICS, "InductorChoices.can_fuse", "whether a fusion is worth it"),
    TorchPlace(_HEURISTICS, "InductorChoices.can_fuse_vertical", "the same, in a row"),
    TorchPlace(_HEURISTICS, "InductorChoices.can_fuse_horizontal", "the same, side by side"),
    TorchPlace(_FEATURES, "SIMDKernelFeatures.select_index_dtype", "Triton: int32 or int64"),
    TorchPlace(_SIMD, "SIMDScheduling.can_use_32bit_indexing", "whether int32 is enough"),
    TorchPlace(_UTILS, "expr_fits_within_32bit", "the same of one size"),
    TorchPlace(_FEATURES, "SIMDKernelFeatures.get_reduction_hint",
        "Triton: INNER or OUTER", ("tiling", DECISION)),
    TorchPlace(_TRITON, "TritonKernel.load", "a Triton load", ("tiling",)),
    TorchPlace(_TRITON, "TritonScheduling.define_kernel",
        "the text of a Triton kernel", ("codegen", DECISION)),
    TorchPlace(_CONFIGS, "pointwise", "the configs of a pointwise kernel"),
    TorchPlace(_CONFIGS, "foreach", "those of a kernel of lists"),
    TorchPlace(_CONFIGS, "_reduction_configs", "those of a reduction in a loop"),
    TorchPlace(_CONFIGS, "_persistent_reduction_configs", "those of one in a tile"),
    TorchPlace(_CONFIGS, "filter_reduction_configs_for_determinism", "one of several"),
    *(TorchPlace(f"{_CODEGEN}.pointwise", f"PointwiseHeuristic._configs_{count}d", "since 2.14")
        for count in (1, 2, 3)
    ),
    *(TorchPlace(f"{_CODEGEN}.reduction", f"ReductionHeuristic.{name}", "since 2.14")
        for name in ("get_configs", "get_persistent_configs")),
    TorchPlace(_CONFIGS, "CachingAutotuner.precompile", "the configs of a Triton kernel"),
    *(TorchPlace("torch.cuda", name, what, (TARGET,)) for what, names in _CUDA.items() for name in names),
    TorchPlace(_COMPILE_FX, "_check_triton_bf16_support", "a dtype refused", (TARGET,)),
    TorchPlace("torch._utils_internal", "max_clock_rate", "the clock of a GPU", (TARGET,)),
    TorchPlace(_COMPILE, "AsyncCompile.triton", "the compile of a Triton kernel", (TARGET, DECISION, REDUCE)),
    TorchPlace(_COMPILE, "AsyncCompile.multi_kernel", "a kernel of several to choose from", (TARGET, REDUCE)),
    TorchPlace(_COMPILE, "AsyncCompile.cpp", "the compile of a C++ kernel", (REDUCE,)),
    TorchPlace(_COMPILE, "AsyncCompile.cpp_pybinding", "the same, with what calls it", (REDUCE,)),
    TorchPlace(_CODECACHE, "CppPythonBindingsCodeCache.load_pybinding", "the same, at once", (REDUCE,)),
    TorchPlace(_COMPILE, "AsyncCompile.use_process_pool", "whether compile workers are there", (TARGET,)),
    TorchPlace(_TIMING, "TritonBenchmarker.benchmark_gpu", "the time of a candidate", (TARGET,)),
    TorchPlace(_TIMING, "InductorBenchmarker.benchmark_gpu", "the same", (TARGET,)),
    TorchPlace(_SCHEDULER, "Scheduler.compile_kernel", "kernels to time before a fusion", (TARGET,)),
    TorchPlace(_COMBINED, "CUDACombinedScheduling.benchmark_fused_nodes", "the time of nodes", (TARGET,)),
    TorchPlace(_COMBINED, "CUDACombinedScheduling.benchmark_codegened_module", "of a kernel", (TARGET,)),
    TorchPlace(_HELPERS, "set_driver_to_gpu", "triton's driver", (TARGET,)),
    TorchPlace(_CHOICES, "AlgorithmSelectorCache.make_precompile_fn", "compiles of candidates", (TARGET,)),
    TorchPlace(_CHOICES, "AlgorithmSelectorCache.benchmark_choices", "times of candidates", (TARGET,)),
    TorchPlace(_CHOICES, "AlgorithmSelectorCache.benchmark_in_current_process", "the same", (TARGET,)),
    TorchPlace(_CHOICES, "AlgorithmSelectorCache.benchmark_in_sub_process", "the same", (TARGET,)),
)  # fmt: skip

TOPICS: tuple[str, ...] = ("fusion", "vectorisation", "tiling", "layout", "lowering", "codegen")
"""Sets of places to stop at."""


def places_of(topic: str) -> tuple[TorchPlace, ...]:
    """Return the places of a topic, in the order of the table."""
    return tuple(place for place in PLACES if topic in place.topics)


def _check_listed(module: ModuleType, name: str) -> None:
    if not any(place.module == module.__name__ and place.name == name for place in PLACES):
        raise AttributeError(f"{module.__name__}:{name} is not in the table of torch's places")


def wrap(module: ModuleType, name: str, around: Callable[[Any], Any]) -> None:
    """Put `around(original)` where `name`, a place of the table, stands in `module`.

    For example `wrap(debug, "DebugContext.__enter__", around)` sets `DebugContext.__enter__` to
    `around(DebugContext.__enter__)`, which looks like the original to whoever inspects it. What replaces a
    class method takes the class as its first argument.

    Raises:
        AttributeError: this torch has no such function. TypeError: it is there, and cannot be called.
    """
    _check_listed(module, name)
    *owners, last = name.split(".")
    owner = functools.reduce(getattr, owners, module)
    original: Any = inspect.getattr_static(owner, last)
    # A class or static method is wrapped below its decorator, so that it is called as before from subclasses.
    method = type(original) if isinstance(original, (classmethod, staticmethod)) else None
    function = original.__func__ if method else original
    if not callable(function):
        raise TypeError(f"{name} is not a function")
    wrapped = functools.wraps(function)(around(function))
    _set(owner, last, method(wrapped) if method else wrapped)


def watch(module: ModuleType, name: str, *nested: str) -> None:
    """Let a place of the table report which way it goes (`branches`), if it does not do so already.

    Args:
        nested: functions that are defined in it, which report, too.

    Raises:
        AttributeError: this torch has no such function.
        CannotWatchError: its source is not at hand.
    """
    _check_listed(module, name)
    function: Any = module
    for part in name.split("."):
        function = getattr(function, part)
    plain = inspect.unwrap(getattr(function, "__func__", function))
    if plain not in _watched:
        _watched[plain] = branches.watch(plain, *nested)


def watch_function(function: FunctionType) -> None:
    """Let a function report that torch holds by no name, as the check of a pattern, and those in its closure.

    What is not torch's own is left alone.

    Raises:
        CannotWatchError: its source is not at hand, or it is a lambda.
    """
    inside = [cell.cell_contents for cell in function.__closure__ or ()]
    for one in (function, *(value for value in inside if isinstance(value, FunctionType))):
        if one not in _watched and one.__module__.startswith("torch."):
            _watched[one] = branches.watch(one)


def watched_copy(module: ModuleType, name: str) -> branches.WatchedCopy:
    """Return a watched copy of a place of the table, for what torch asks too often to watch it there.

    Raises:
        AttributeError, CannotWatchError: as `watch`.
    """
    _check_listed(module, name)
    return branches.WatchedCopy(functools.reduce(getattr, name.split("."), module))


_watched: dict[Any, branches.Watched] = {}
_replaced: list[tuple[Any, str, Any, bool]] | None = None
"""What `wraps_undone` is to put back: owner, attribute, what it was, and whether the owner had it itself."""


def _set(owner: Any, name: str, value: Any) -> None:
    if _replaced is not None:
        _replaced.append((owner, name, inspect.getattr_static(owner, name), name in vars(owner)))
    setattr(owner, name, value)


@contextmanager
def wraps_undone() -> Iterator[Callable[[], None]]:
    """Put back all that `wrap` and `watch` replace in the block, when it ends.

    Yields what is to be called after the last `wrap`: modules of torch that were imported before have
    functions of other modules by name, which it replaces there, too.
    """
    global _replaced  # noqa: PLW0603 - a process has one torch
    replaced: list[tuple[Any, str, Any, bool]] = []
    _replaced = replaced

    def replace_imported() -> None:
        wrapped = {
            id(was): getattr(owner, name) for owner, name, was, _ in replaced if isinstance(owner, ModuleType)
        }
        modules = [module for name, module in sys.modules.items() if name.startswith("torch.") and module]
        for module in modules:
            for name, value in list(vars(module).items()):
                if id(value) in wrapped:
                    _set(module, name, wrapped[id(value)])

    try:
        yield replace_imported
    finally:
        _replaced = None
        while _watched:
            _watched.popitem()[1].undo()
        for owner, name, was, is_own in reversed(replaced):
            if is_own:
                setattr(owner, name, was)
            else:
                delattr(owner, name)
