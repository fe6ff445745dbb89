"""Calls of torch's own kernels and of libraries: torch/_inductor/lowering.py, graph.py, kernel/."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source
from inductor_probe.catalogue.shared import unless, where
from inductor_probe.model.decision import Decision

_TORCHS = (
    "aten", "prims", "quantized", "mkldnn", "onednn", "mkl", "inductor", "rngprims", "_c10d_functional",
)  # fmt: skip
"""Namespaces of operators that come with torch."""


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    is_torchs = str(operands.get("operator")).partition(".")[0] in _TORCHS
    sorts = {"without_sorts": "a CPU"} if operands.get("device") == "cpu" else {}
    return {**sorts, "own": "torch's own " if is_torchs else ""}


def _with_backend(decision: Decision) -> str:
    return repr(f"{decision.operand('backends')},{decision.operand('backend')}")


_LIBRARY = {"extern": "{subject} calls {operator}"}
"""A library's kernel is called in place of a template."""
_OTHER_OPERATORS = Source(
    "other-operators", "write it in operators that are compiled, if the sizes allow for it; time it"
)

_CALL_FUNCTION = "graph.py:GraphLowering.call_function"
_USE_SCATTER_FALLBACK = "utils.py:use_scatter_fallback"
_INDEX_PUT_IMPL = "lowering.py:index_put_impl_"
_USE_CPP_GEMM_TEMPLATE = "utils.py:use_cpp_gemm_template"

OPERANDS = (
    Operand("operator", "text", "that is called"),
    Operand("fx", "text", "the FX node"),
    Operand("types", "names", "of its values, of which inductor computes nothing here"),
    Operand("feature", "text", "of a backend: SCAN, SORT, ..."),
    Operand("device", "text", "where it runs"),
    Operand("reduction", "text", "of what is scattered"),
    Operand("threads", "int", "of the process", "threads"),
    Operand("dtype", "text", "that decided"),
    Operand("dtypes", "names", "of the indices, or of the operands"),
    Operand("window", "size", "of the pooling", "elements"),
    Operand("window_limit", "int", "of generated code", "elements"),
    Operand("elements", "size", "that are sorted or scanned", "elements"),
    Operand("elements_limit", "int", "one block sorts no more", "elements"),
    Operand("outputs", "size", "of the scan"),
    Operand("parts", "size", "into which the scan would be split"),
    Operand("values", "int", "of each element"),
    Operand("templates", "int", "that were timed, or would be"),
    Operand("choices", "int", "templates and libraries in all"),
    Operand("backend", "text", "of the template that there is"),
    Operand("backends", "text", "that `max_autotune_gemm_backends` allows"),
    Operand("constant_weight", "flag",
        "whether the second operand is a constant, as a C++ template needs it"),
)  # fmt: skip

OUTCOMES = (
    Outcome("extern", "{subject} calls {own}{operator}", "missed"),
)  # fmt: skip

CAUSES = (
    Cause("unsupported-type", "extern", "lowering.py:fallback_node_due_to_unsupported_type", "types",
        "inductor generates no code for {types}, which the node takes or makes", "no code for {types}",
        changes=(Source("compiled-type",
        "compute in another dtype, or on real and imaginary parts (torch.view_as_real) one by one"),),
        example="values.cos(), values: complex64 (32,)"),
    Cause("no-lowering", "extern", _CALL_FUNCTION, "",
        "inductor has neither a lowering nor a decomposition of the operator", "no lowering of {operator}",
        changes=(Source("lowering-or-decomposition",
        "register a decomposition (torch.library.custom_op: write it in operators that inductor knows), or a "
        "lowering"),), example="what an operator without a lowering makes"),
    Cause("decomposition-declined", "extern", _CALL_FUNCTION, "types",
        "inductor has no lowering of the operator, and its decomposition, {function}, returned "
        "NotImplemented for {types}", "not decomposed for {types}", changes=(Source("decomposed-type",
        "compute in another dtype, for which the operator is decomposed"),),
        example="values.index_add(0, index, added)"),
    Cause("registered-fallback", "extern", _CALL_FUNCTION, "",
        "inductor has no lowering for it, and registers it as an operator that it always calls",
        "registered fallback {operator}", changes=(_OTHER_OPERATORS,),
        example="torch.cdist(values, values, compute_mode='donot_use_mm_for_euclid_dist'), values: "
        "float32 (8, 4)"),
    Cause("no-backend-feature", "extern", "graph.py:GraphLowering.has_feature", "feature device",
        "the lowering needs {feature}, which inductor's backend for {device} does not have",
        "no {feature} on {device}", changes=(_OTHER_OPERATORS,),
        test=("V.graph.has_feature(?", "validate_bucketize(?"),
        example="values.cumsum(0), values: float32 (32,)"),
    Cause("scatter-reduction", "extern", _USE_SCATTER_FALLBACK, "reduction",
        "only sums are scattered by generated code, and this reduction is {reduction}",
        "scatter with {reduction}", changes=(Source("scatter-sum",
        "use a sum, where the result allows for it"),),
        test="reduction_type not in ?", values="reduction",
        example="torch.ones_like(values).scatter_reduce(0, index, values, 'prod')"),
    Cause("scatter-sum-threads", "extern", _USE_SCATTER_FALLBACK, "threads",
        "with {threads:# thread}, cpp.fallback_scatter_reduce_sum leaves scattered sums to torch",
        "sum of scattered values by {threads:# thread}", changes=(By("cpp.fallback_scatter_reduce_sum",
        "False", "generates atomic additions; time it"),),
        test=("config.cpp.dynamic_threads", "parallel_num_threads() != ?"),
        example="torch.zeros_like(values).scatter_reduce(0, index, values, 'sum'), with cpp.threads = 2"),
    Cause("atomic-add-dtype", "extern", _INDEX_PUT_IMPL, "dtype",
        "equal indices need an atomic addition, which inductor does not generate for {dtype}",
        "no atomic addition of {dtype}", changes=(Source("atomic-dtype",
        "scatter float32 or int32 values"),),
        test=("needs_fallback_due_to_atomic_add_limitations(?", "self_dtype in ?"), values="dtype",
        example="torch.zeros_like(values).index_put((index,), values, accumulate=True)"),
    Cause("boolean-index", "extern", _INDEX_PUT_IMPL, "dtypes",
        "a mask is among the indices ({dtypes}), and the number of its true elements is not known",
        "indexed by a mask", changes=(Source("integer-index",
        "give the indices as integers, or use torch.where with the mask"),),
        test="index.get_dtype() in ?",
        example="values.index_put((index < 7,), torch.arange(7, dtype=values.dtype))"),
    Cause("deterministic-algorithms", "extern", _INDEX_PUT_IMPL, "",
        "torch was asked for deterministic algorithms (torch.use_deterministic_algorithms)",
        "deterministic algorithms", changes=(Source("no-deterministic-algorithms",
        "let torch use algorithms that are not deterministic; sums of floats then differ from run to run",
        differs=True),), test="torch.are_deterministic_algorithms_enabled()",
        example="values.index_put((index[:7],), torch.arange(7, dtype=values.dtype))"),
    Cause("fallback-random", "extern", "lowering.py:rand", "",
        "fallback_random asks for the random numbers of eager mode", "fallback_random",
        changes=(By("fallback_random", "False",
        "generates the random numbers, which are then others than in eager mode", is_default=True,
        differs=True),),
        test="config.fallback_random",
        example="values + 0 * torch.rand(values.shape), values: float32 (32,), with fallback_random = True"),
    Cause("pooling-window", "extern", "lowering.py:_adaptive_avg_pool2d", "window window_limit",
        "its window has {window} elements, and inductor generates code up to {window_limit}",
        "window of {window} > {window_limit}", changes=(Source("smaller-window",
        "pool in two steps, or with a window of at most {window_limit} elements"),),
        test="window_size > ?", values="window window_limit",
        example="torch.nn.functional.adaptive_avg_pool2d(values, (3, 3)), values: float32 (1, 2, 20, 20)"),
    Cause("integer-power", "extern", "lowering.py:pow", "dtype",
        "powers of {dtype} are generated for small constant exponents only", "power of {dtype}",
        changes=(Source("constant-power", "multiply, or give the exponent as a constant"),),
        test="is_integer_pow", example="values ** values, values: int64 (32,)"),
    Cause("byte-concatenation", "extern", "lowering.py:cat", "dtypes",
        "on a CPU it leaves a concatenation to torch if all operands are int8 or uint8 (here {dtypes})",
        "concatenation of {dtypes}", changes=(Source("other-dtype", "concatenate another dtype"),),
        test="all((input.get_dtype() in ?", example="torch.cat([values, values + 1]), values: uint8 (32,)"),
    Cause("sort-too-long", "extern", "lowering.py:sort_stable", "elements elements_limit",
        "it sorts {elements} elements, and inductor generates sorts of {elements_limit} or fewer",
        "sort of {elements} > {elements_limit}", changes=(By("triton.decompose_sort_ops", "True",
        "sorts all of the dimension in generated code; time it"),),
        test=("sizevars.statically_known_true(sympy.Le(?", "V.graph.sizevars.guard_or_false(?",
        "V.graph.sizevars.statically_known_lt(?"), values="elements elements_limit",
        example="values.sort(-1).values, values: float32 (4, 5000)"),
    Cause("tuple-scan-split", "extern", "ir.py:Scan.create", "elements outputs parts values",
        "a scan of {elements} elements for {outputs:# output} is split into {parts} parts, and inductor "
        "splits only scans of one value (this one has {values})",
        "a scan of {values} values in {parts} parts", changes=(Source("shorter-scan",
        "scan fewer elements at a time, or more rows at once: then it is not split"),),
        test="len(dtypes) == ?", example="values.cummax(-1).values, values: float32 (1048576,)"),
    Cause("sort-decomposition-off", "extern", "lowering.py:sort_stable", "device",
        "it is generated as a sort only if triton.decompose_sort_ops asks for it, and that is off[; for "
        "{without_sorts} inductor generates no sorts in any case]", "decompose_sort_ops is off",
        changes=(By("triton.decompose_sort_ops", "True",
        "sorts all of the dimension in generated code; time it", applies=unless("device", "cpu")),),
        test="config.triton.decompose_sort_ops", example="values.topk(3).values, values: float32 (32,)"),
    Cause("max-autotune-off", "extern", _USE_CPP_GEMM_TEMPLATE, "device constant_weight",
        "max_autotune is off, so no template was tried", "max_autotune is off", remark="analysis",
        outcome_words=_LIBRARY, changes=(By("max_autotune", "True",
        "times templates against the library's kernel; compiling takes much longer",
        applies=unless("constant_weight", False)), Source("constant-weight-and-autotune",
        "make the second operand a parameter of the module, compile without gradients with "
        "torch._inductor.config.freezing = True, and set max_autotune",
        applies=where("constant_weight", False))), test="config.max_autotune",
        example="values @ (values + 1), values: float32 (32, 32)"),
    Cause("template-backend-off", "extern", "utils.py:_use_autotune_backend", "device backend backends",
        "{backend} is not among the backends of autotuning: {backends}", "no {backend} in the backends",
        outcome_words=_LIBRARY, changes=(By("max_autotune_gemm_backends", _with_backend,
        "offers its templates, too", present="backends"),),
        test="backend.upper() in ?", values="backend",
        example="torch.bmm(values, values + 1), with max_autotune = True, max_autotune_gemm_backends = "
        "'ATEN'"),
    Cause("template-dtype", "extern", _USE_CPP_GEMM_TEMPLATE, "device dtype",
        "there is no template for {dtype}", "no template for {dtype}", outcome_words=_LIBRARY,
        changes=(Source("template-dtype", "use float32, bfloat16 or float16"),),
        test="layout.dtype in ?", values="dtype",
        example="torch.bmm(values, values + 1), with max_autotune = True, max_autotune_gemm_backends = "
        "'ATEN,CPP'"),
    Cause("weight-not-constant", "extern", _USE_CPP_GEMM_TEMPLATE, "device",
        "a C++ template packs its second operand ahead of time, which is not a constant of the graph",
        "second operand not constant", outcome_words=_LIBRARY, changes=(Source("constant-weight",
        "make it a parameter of the module, and compile without gradients with "
        "torch._inductor.config.freezing = True"),),
        test="mat2.is_module_buffer()",
        example="a product with the weight of a module, with max_autotune = True, "
        "max_autotune_gemm_backends = 'ATEN,CPP'"),
    Cause("templates-slower", "extern", "select_algorithm.py:AlgorithmSelectorCache.__call__",
        "templates choices", "it was faster than {templates:# template} when they were timed",
        "faster than {templates:# template}", remark="passed", outcome_words=_LIBRARY,
        example="torch.bmm(values, values + 1), with max_autotune = True, max_autotune_gemm_backends = "
        "'ATEN,CPP', cpp.simdlen = 1"),
    Cause("times-simulated", "extern", "scheduler.py:Scheduler.finalize_multi_template_buffers",
        "templates choices",
        "of {choices:# choice} the first was taken, as none can be timed where the GPU is simulated; on a "
        "real one {templates:# template} would be timed", "not timed: simulated GPU", remark="analysis",
        outcome_words=_LIBRARY,
        example="first @ second, with max_autotune = True, max_autotune_gemm_backends = 'ATEN,TRITON'"),
    Cause("template-refused", "extern", _USE_CPP_GEMM_TEMPLATE, "device",
        "{function} found no template that fits; use_cpp_gemm_template or use_triton_template says when",
        "no template fits", outcome_words=_LIBRARY,
        example="torch.bmm(values.transpose(1, 2), values), with max_autotune = True, "
        "max_autotune_gemm_backends = 'ATEN,CPP'"),
    Cause("no-template", "extern", "kernel/conv.py:convolution", "device",
        "inductor has no template for it on {device}", "no template on {device}", remark="analysis",
        outcome_words=_LIBRARY, test="has_triton_dx_choices",
        example="torch.nn.functional.conv2d(values, weight)"),
    Cause("in-lowering", "extern", "lowering.py:fallback_handler", "",
        "the lowering itself calls it ({function}); torch's source at that line says when",
        "called by its lowering", example="values.view(torch.int16), values: float32 (32,)"),
)  # fmt: skip

KIND = Kind(
    "fallback", "whether torch's own kernel, or a library's, is called for a node",
    OUTCOMES, OPERANDS, CAUSES, common="operator fx", derived=_derived, derives="without_sorts own",
)  # fmt: skip
