"""Words for calls of torch's own kernels: torch/_inductor/graph.py, `GraphLowering.run_node`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords

_TEMPLATES = (
    "max-autotune-off", "template-backend-off", "template-dtype", "weight-not-constant", "templates-slower",
    "template-refused", "no-template", "times-simulated",
)  # fmt: skip
"""Causes of a library's kernel in place of a template."""

_TORCHS = (
    "aten",
    "prims",
    "quantized",
    "mkldnn",
    "onednn",
    "mkl",
    "inductor",
    "rngprims",
    "_c10d_functional",
)
"""Namespaces of operators that come with torch."""


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    is_torchs = str(operands.get("operator")).partition(".")[0] in _TORCHS
    sorts = {"without_sorts": "a CPU"} if operands.get("device") == "cpu" else {}
    return {**sorts, "own": "torch's own " if is_torchs else ""}


WORDS = KindWords(
    outcomes={
        "extern": "{subject} calls {own}{operator}",
        **{("extern", code): "{subject} calls {operator}" for code in _TEMPLATES},
    },
    causes={
        "unsupported-type": CauseWords(
            "inductor generates no code for {types}, which the node takes or makes", "no code for {types}"
        ),
        "no-lowering": CauseWords(
            "inductor has neither a lowering nor a decomposition of the operator", "no lowering of {operator}"
        ),
        "decomposition-declined": CauseWords(
            "inductor has no lowering of the operator, and its decomposition, {function}, returned "
            "NotImplemented for {types}",
            "not decomposed for {types}",
        ),
        "registered-fallback": CauseWords(
            "inductor has no lowering for it, and registers it as an operator that it always calls",
            "registered fallback {operator}",
        ),
        "no-backend-feature": CauseWords(
            "the lowering needs {feature}, which inductor's backend for {device} does not have",
            "no {feature} on {device}",
        ),
        "scatter-reduction": CauseWords(
            "only sums are scattered by generated code, and this reduction is {reduction}",
            "scatter with {reduction}",
        ),
        "scatter-sum-threads": CauseWords(
            "with {threads:# thread}, cpp.fallback_scatter_reduce_sum leaves scattered sums to torch",
            "sum of scattered values by {threads:# thread}",
        ),
        "atomic-add-dtype": CauseWords(
            "equal indices need an atomic addition, which inductor does not generate for {dtype}",
            "no atomic addition of {dtype}",
        ),
        "boolean-index": CauseWords(
            "a mask is among the indices ({dtypes}), and the number of its true elements is not known",
            "indexed by a mask",
        ),
        "deterministic-algorithms": CauseWords(
            "torch was asked for deterministic algorithms (torch.use_deterministic_algorithms)",
            "deterministic algorithms",
        ),
        "fallback-random": CauseWords(
            "fallback_random asks for the random numbers of eager mode", "fallback_random"
        ),
        "pooling-window": CauseWords(
            "its window has {window} elements, and inductor generates code up to {window_limit}",
            "window of {window} > {window_limit}",
        ),
        "integer-power": CauseWords(
            "powers of {dtype} are generated for small constant exponents only", "power of {dtype}"
        ),
        "byte-concatenation": CauseWords(
            "on a CPU it leaves a concatenation to torch if all operands are int8 or uint8 (here {dtypes})",
            "concatenation of {dtypes}",
        ),
        "sort-too-long": CauseWords(
            "it sorts {elements} elements, and inductor generates sorts of {elements_limit} or fewer",
            "sort of {elements} > {elements_limit}",
        ),
        "tuple-scan-split": CauseWords(
            "a scan of {elements} elements for {outputs:# output} is split into {parts} parts, and inductor "
            "splits only scans of one value (this one has {values})",
            "a scan of {values} values in {parts} parts",
        ),
        "sort-decomposition-off": CauseWords(
            "it is generated as a sort only if triton.decompose_sort_ops asks for it, and that is off"
            "[; for {without_sorts} inductor generates no sorts in any case]",
            "decompose_sort_ops is off",
        ),
        "max-autotune-off": CauseWords(
            "max_autotune is off, so no template was tried", "max_autotune is off"
        ),
        "template-backend-off": CauseWords(
            "{backend} is not among the backends of autotuning: {backends}", "no {backend} in the backends"
        ),
        "template-dtype": CauseWords("there is no template for {dtype}", "no template for {dtype}"),
        "weight-not-constant": CauseWords(
            "a C++ template packs its second operand ahead of time, which is not a constant of the graph",
            "second operand not constant",
        ),
        "templates-slower": CauseWords(
            "it was faster than {templates:# template} when they were timed",
            "faster than {templates:# template}",
        ),
        "times-simulated": CauseWords(
            "of {choices:# choice} the first was taken, as none can be timed where the GPU is simulated; on "
            "a real one {templates:# template} would be timed",
            "not timed: simulated GPU",
        ),
        "template-refused": CauseWords(
            "{function} found no template that fits; use_cpp_gemm_template or use_triton_template says when",
            "no template fits",
        ),
        "no-template": CauseWords("inductor has no template for it on {device}", "no template on {device}"),
        "in-lowering": CauseWords(
            "the lowering itself calls it ({function}); torch's source at that line says when",
            "called by its lowering",
        ),
    },
    changes={
        "compiled-type": "compute in another dtype, or on real and imaginary parts "
        "(torch.view_as_real) one by one",
        "decomposed-type": "compute in another dtype, for which the operator is decomposed",
        "shorter-scan": "scan fewer elements at a time, or more rows at once: then it is not split",
        "lowering-or-decomposition": "register a decomposition (torch.library.custom_op: write it in "
        "operators that inductor knows), or a lowering",
        "other-operators": "write it in operators that are compiled, if the sizes allow for it; time it",
        "scatter-sum": "use a sum, where the result allows for it",
        "cpp.fallback_scatter_reduce_sum": "generates atomic additions; time it",
        "atomic-dtype": "scatter float32 or int32 values",
        "integer-index": "give the indices as integers, or use torch.where with the mask",
        "no-deterministic-algorithms": "let torch use algorithms that are not deterministic; sums of floats "
        "then differ from run to run",
        "fallback_random": "generates the random numbers, which are then others than in eager mode",
        "smaller-window": "pool in two steps, or with a window of at most {window_limit} elements",
        "constant-power": "multiply, or give the exponent as a constant",
        "other-dtype": "concatenate another dtype",
        "triton.decompose_sort_ops": "sorts all of the dimension in generated code; time it",
        "max_autotune": "times templates against the library's kernel; compiling takes much longer",
        "constant-weight-and-autotune": "make the second operand a parameter of the module, compile without "
        "gradients with torch._inductor.config.freezing = True, and set max_autotune",
        "max_autotune_gemm_backends": "offers its templates, too",
        "template-dtype": "use float32, bfloat16 or float16",
        "constant-weight": "make it a parameter of the module, and compile without gradients with "
        "torch._inductor.config.freezing = True",
    },
    derived=_derived,
)
