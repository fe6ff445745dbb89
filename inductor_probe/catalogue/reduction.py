"""Reductions: torch/_inductor/ir.py, `Reduction.create` and `num_splits`; choices.py for those of Triton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source, Turn, alike
from inductor_probe.catalogue.shared import KNOWN_SIZES, ended, number, unless, where
from inductor_probe.model.decision import Decision

_NO_READER = "the C++ backend does not read the hint"


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    is_of_buffer = "parts" in operands  # a kernel's hint is Triton's
    return {"note": _NO_READER} if operands.get("device") == "cpu" and is_of_buffer else {}


def _fits_sixteenfold(decision: Decision) -> bool:
    """Whether all elements fit the limit of a multi-kernel, which is 16 times that of others."""
    elements, limit = decision.operand("elements"), decision.operand("limit")
    return isinstance(elements, int) and isinstance(limit, int) and elements <= 16 * limit


_WELFORD = "takes Welford's algorithm or not; rounding differs"


def _two_step(change: int) -> tuple[By, ...]:
    """Return the settings of which one holds the threshold that was compared with."""
    names = ("cpp.use_two_step_variance_threshold", "triton.use_two_step_variance_threshold")
    return tuple(
        By(name, number("elements", change), _WELFORD, present="threshold", applies=where("setting", name))
        for name in names
    )


_on_gpu = unless("device", "cpu")
"""Something reads the hint: the C++ backend does not."""
_COOPERATIVE = "lets blocks work together, or splits it into two kernels; time it"
_SPLIT = "splits reductions of few outputs, or does not; time it"
_PERSISTENT = "turns persistent reductions on or off; time it"
_MORE = "reduce more dimensions at once"
_MORE_ELEMENTS = Source("more-elements", _MORE, applies=_on_gpu)

_CREATE = "ir.py:Reduction.create"
_NUM_SPLITS = "ir.py:Reduction.num_splits"
_SHOULD_USE_PERSISTENT_REDUCTION = "choices.py:InductorChoices.should_use_persistent_reduction"
_HAS_PERSISTENT_RBLOCK = "codegen/triton.py:TritonKernel.has_persistent_RBLOCK"
_REDUCTION_SPLIT_FACTOR = "choices.py:InductorChoices.reduction_split_factor"
_USE_TWO_STEP_VARIANCE = "lowering.py:use_two_step_variance"
_SHOULD_USE_COOPERATIVE_REDUCTION = "choices.py:InductorChoices.should_use_cooperative_reduction"
_GET_REDUCTION_HINT = "codegen/simd_kernel_features.py:SIMDKernelFeatures.get_reduction_hint"

OPERANDS = (
    Operand("elements", "size", "that are reduced or scanned", "elements"),
    Operand("outputs", "size", "of the reduction"),
    Operand("device", "text", "where it runs"),
    Operand("hint", "text", "INNER, OUTER, OUTER_TINY or DEFAULT"),
    Operand("parts", "size", "into which it is split"),
    Operand("threshold", "number", "torch compares the elements with it", "elements"),
    Operand("minimum", "number", "of elements of 16 bits", "elements"),
    Operand("setting", "text", "that holds the threshold"),
    Operand("elements_limit", "number", "torch compares the elements with it", "elements"),
    Operand("outputs_limit", "number", "torch compares the outputs with it"),
    Operand("processors", "int", "of the device"),
    Operand("reads", "int", "whose strides were looked at", "reads"),
    Operand("inner", "number", "of those, the ones that are contiguous along the reduction", "reads"),
    Operand("strides", "names", "of each read along the reduced dimensions"),
    Operand("limit", "number", "of one tile", "elements"),
    Operand("type", "text", "argmax, ..."),
    Operand("values", "int", "of each element"),
    Operand("hints", "names", "of the reductions in the kernel"),
    *alike("score_x score_r0_", "number", "of the tiling, for the outputs and for what is reduced"),
)  # fmt: skip

OUTCOMES = (
    Outcome("unrolled", "the reduction of {subject} is unrolled"),
    Outcome("split", "the reduction of {subject} is split into {parts}", "passed"),
    Outcome("not-split", "the reduction of {subject} is in one piece"),
    Outcome("two-passes", "{subject} takes two passes, for the mean and for the variance"),
    Outcome("one-pass", "{subject} takes one pass, by Welford's algorithm"),
    Outcome("persistent", "{subject} {n:?is a/are a} persistent reduction", "passed"),
    Outcome("cooperative", "the blocks of {subject} work on {n:?its/their} reduction together"),
    Outcome("not-cooperative", "each block of {subject} has reductions of its own"),
    Outcome("split-scan",
        "{subject} is scanned by several blocks a row, each of which waits for those before"),
    Outcome("whole-scan", "{subject} is scanned by one block a row"),
    Outcome("looped", "{subject} {n:?loops/loop} over {n:?its/their} reduction"),
    Outcome("INNER", "{subject} {n:?has/have} the reduction hint INNER"),
    Outcome("OUTER", "{subject} {n:?has/have} the reduction hint OUTER"),
    Outcome("OUTER_TINY", "{subject} {n:?has/have} the reduction hint OUTER_TINY"),
    Outcome("DEFAULT", "{subject} {n:?has/have} the reduction hint DEFAULT"),
)  # fmt: skip

CAUSES = (
    Cause("single-element", "unrolled", _CREATE, "", "it reduces a single element", "one element",
        example="values.sum(-1), values: float32 (16, 1)"),
    Cause("below-unroll-threshold", "unrolled", _CREATE, "threshold",
        "{elements:# element}, fewer than unroll_reductions_threshold ({threshold})",
        "{elements} elements < {threshold}", changes=(By("unroll_reductions_threshold", number("elements"),
        "keeps a reduction of that size as a loop", present="threshold"),),
        example="values.sum(-1), values: float32 (16, 4)"),
    Cause("sizes-not-known", "DEFAULT not-split", _NUM_SPLITS, "",
        "only the data decides how many elements there are ({elements} into {outputs}), so that strides "
        "and processors are not looked at", "{elements} elements, known when it runs",
        test=("not V.graph.sizevars.all_unbacked_explicitly_hinted(?", "not (_is_static(?"),
        example="values.nonzero().sum(0), values: float32 (8, 8)"),
    Cause("single-output", "INNER DEFAULT one-pass", _NUM_SPLITS, "",
        "it reduces all {elements} elements to one[; {note}]",
        "one output", test="numel_hint == ?", example="values.sum(), values: float32 (16, 64)"),
    Cause("few-elements", "DEFAULT not-split", _NUM_SPLITS, "elements_limit",
        "it has {elements:# element}, at most {elements_limit}: strides are not looked at[; {note}]",
        "{elements} elements <= {elements_limit}", changes=(_MORE_ELEMENTS,),
        example="values.sum(-1), values: float32 (16, 32)"),
    Cause("many-outputs", "DEFAULT not-split", _NUM_SPLITS, "outputs_limit processors",
        "{outputs} outputs are at least {outputs_limit}, 64 for each of {processors} processors: strides "
        "are not looked at[; {note}]", "{outputs} outputs >= {outputs_limit}",
        example="values.sum(-1), values: float32 (65536, 64)"),
    Cause("contiguous-reads", "INNER", _NUM_SPLITS, "reads inner strides",
        "{inner} of {reads:# read} {inner:?is/are} contiguous along the reduction (strides {strides})[; "
        "{note}]", "{inner} of {reads:# read} contiguous", changes=(Source("strided-along-reduction",
        "let another dimension than the reduced one be contiguous in what is read", applies=_on_gpu),),
        example="values.sum(-1), values: float32 (16, 64)"),
    Cause("strided-reads", "OUTER", _NUM_SPLITS, "reads inner strides",
        "only {inner} of {reads:# read} {inner:?is/are} contiguous along it, and more than half would "
        "have to be (strides {strides})[; {note}]", "{inner} of {reads:# read} contiguous",
        changes=(Source("contiguous-along-reduction",
        "let the reduced dimension be contiguous in what is read", applies=_on_gpu),),
        example="values.sum(0), values: float32 (64, 16)"),
    Cause("no-strided-read", "DEFAULT", _NUM_SPLITS, "",
        "no read depends on all of its loops, so that there is no stride to look at[; {note}]",
        "no stride to look at", test="len(indices) == ?",
        example="torch.ones(16, 64, device=values.device).sum(-1) + values, values: float32 (16,)"),
    Cause("persistent-reductions-off", "looped", _SHOULD_USE_PERSISTENT_REDUCTION, "",
        "triton.persistent_reductions is off", "persistent_reductions off",
        changes=(By("triton.persistent_reductions", "True", _PERSISTENT, is_default=True),
        Turn("persistent")), test="not config.triton.persistent_reductions",
        example="values.sum(-1), values: float32 (64, 512), with triton.persistent_reductions = False"),
    Cause("elements-fit-a-tile", "persistent", _SHOULD_USE_PERSISTENT_REDUCTION, "limit",
        "its {elements} elements are at most {limit}, the limit for the hint {hint}",
        "{elements} elements <= {limit}", changes=(By("triton.persistent_reductions", "False", _PERSISTENT),
        Turn("looped")), example="values.sum(-1), values: float32 (64, 512)"),
    Cause("elements-exceed-a-tile", "looped", _SHOULD_USE_PERSISTENT_REDUCTION, "limit",
        "its {elements} elements are more than {limit}, the limit for the hint {hint}",
        "{elements} elements > {limit}", changes=(By("triton.multi_kernel", "1",
        "generates both kinds and takes the faster at run time; its limit is 16 times as high",
        applies=_fits_sixteenfold), Turn("persistent")),
        example="values.sum(-1), values: float32 (64, 4096)"),
    Cause("symbolic-elements", "looped", _HAS_PERSISTENT_RBLOCK, "",
        "torch cannot prove that {elements} elements are few", "{elements} elements, not bounded",
        changes=(Source("known-elements", KNOWN_SIZES),),
        example="values.sum(-1), values: float32 (64, 512)"),
    Cause("cpu-backend", "not-split", _NUM_SPLITS, "",
        "the C++ backend splits none (BackendFeature.REDUCE_TO_SINGLE_ELEMENT)", "C++ splits none",
        remark="passed", example="values.sum(-1), values: float32 (2, 65536)"),
    Cause("split-reductions-off", "not-split whole-scan", _NUM_SPLITS, "", "split_reductions is off",
        "split_reductions off", changes=(By("split_reductions", "True", _SPLIT, is_default=True),),
        example="values.amax(-1), values: float32 (4, 65536), with split_reductions = False"),
    Cause("index-reduction", "not-split", _NUM_SPLITS, "type",
        "torch splits no {type}, since each part would need its index", "{type} is not split",
        example="values.argmax(-1), values: float32 (4, 65536)"),
    Cause("cooperative-reduction", "not-split whole-scan", _NUM_SPLITS, "elements_limit",
        "the blocks of its kernel reduce it together (triton.cooperative_reductions[: {elements} elements "
        "are at least {elements_limit}])", "cooperative reduction",
        changes=(By("triton.cooperative_reductions", "False", _COOPERATIVE, is_default=True),),
        example="values.amax(-1), values: float32 (4, 262144), with triton.cooperative_reductions = True"),
    Cause("enough-outputs", "not-split whole-scan", _REDUCTION_SPLIT_FACTOR, "outputs_limit processors",
        "{outputs} outputs are at least {outputs_limit}, 2 for each of {processors} processors",
        "{outputs} outputs >= {outputs_limit}", example="values.amax(-1), values: float32 (512, 65536)"),
    Cause("short-reduction", "not-split whole-scan", _REDUCTION_SPLIT_FACTOR, "elements_limit",
        "{elements} elements are at most {elements_limit}", "{elements} elements <= {elements_limit}",
        example="values.amax(-1), values: float32 (4, 8192)"),
    Cause("sort", "persistent", _HAS_PERSISTENT_RBLOCK, "",
        "a kernel that sorts holds all elements in a tile", "it sorts",
        example="values.sort(-1).values, values: float32 (64, 256)"),
    Cause("work-for-processors", "split not-split split-scan whole-scan", _REDUCTION_SPLIT_FACTOR,
        "processors",
        "that many parts for {outputs} outputs of {elements} elements on {processors} processors "
        "(InductorChoices.reduction_split_factor)",
        "{outputs} outputs of {elements} elements, {processors} processors", changes=(By("split_reductions",
        "False", _SPLIT, applies=ended("split")),), example="values.amax(-1), values: float32 (4, 65536)"),
    Cause("several-values", "whole-scan", _NUM_SPLITS, "values",
        "each element is {values} values, and several blocks scan a row of one value alone (Scan.create)",
        "{values} values an element",
        example="the states of a linear recurrence along each row: a scan of two values"),
    Cause("ranges-of-its-input", "split", _REDUCTION_SPLIT_FACTOR, "",
        "what it reads is reduced, too: its first part has the same loops, with which it can be fused",
        "loops of its input", outcome_words={"split": "the reduction of {subject} is split"},
        example="the sum of what is made of sums of rows"),
    Cause("matrix-product", "DEFAULT not-split", _NUM_SPLITS, "", "it is a matrix product of Triton's own",
        "matrix product", test="reduction_type == ?",
        example="first @ second, with triton.native_matmul = True"),
    Cause("elements-within-threshold", "two-passes", _USE_TWO_STEP_VARIANCE, "threshold setting",
        "{elements:# element} {elements:?is/are} at most {threshold}[ ({setting})]",
        "{elements} elements <= {threshold}", changes=_two_step(-1),
        example="values.var(-1), values: float32 (16, 6)"),
    Cause("elements-above-threshold", "one-pass", _USE_TWO_STEP_VARIANCE, "threshold setting",
        "{elements:# element} {elements:?is/are} more than {threshold}[ ({setting})]",
        "{elements} elements > {threshold}", changes=_two_step(0),
        example="values.var(-1), values: float32 (16, 2048)"),
    Cause("elements-below-minimum", "one-pass", _USE_TWO_STEP_VARIANCE, "threshold minimum setting",
        "{elements} elements of float16 or bfloat16 are fewer than {minimum} ({setting})",
        "{elements} elements < {minimum}", changes=(By("triton.use_two_step_variance_min_numel",
        number("elements"), _WELFORD, present="minimum"),),
        example="values.var(-1), values: bfloat16 (64, 512)"),
    Cause("sum-would-be-split", "one-pass", _USE_TWO_STEP_VARIANCE, "threshold setting",
        "a sum of {elements} elements would be split, and each pass would read them again",
        "its sum would be split", example="values.var(-1), values: bfloat16 (4, 16384)"),
    Cause("work-for-blocks", "cooperative", _SHOULD_USE_COOPERATIVE_REDUCTION, "elements_limit",
        "{elements} elements are at least {elements_limit}, which holds for {outputs:# output}",
        "{elements} elements >= {elements_limit}", changes=(By("triton.cooperative_reductions", "False",
        _COOPERATIVE, is_default=True),),
        example="values.amax(-1), values: float32 (4, 262144), with triton.cooperative_reductions = True"),
    Cause("cooperation-forced", "cooperative", _SHOULD_USE_COOPERATIVE_REDUCTION, "",
        "triton.force_cooperative_reductions asks for it", "force_cooperative_reductions",
        changes=(By("triton.force_cooperative_reductions", "False", "lets sizes decide", is_default=True),),
        test="config.triton.force_cooperative_reductions",
        example="values.amax(-1), with triton.cooperative_reductions = True, "
        "triton.force_cooperative_reductions = True"),
    Cause("cooperative-reductions-off", "not-cooperative", _SHOULD_USE_COOPERATIVE_REDUCTION,
        "elements_limit",
        "triton.cooperative_reductions is off; on, its {elements} elements would be enough for {outputs:# "
        "output} (at least {elements_limit})", "cooperative_reductions off",
        changes=(By("triton.cooperative_reductions", "True", _COOPERATIVE),),
        test="not config.triton.cooperative_reductions or ?",
        example="values.argmax(-1), values: float32 (4, 262144)"),
    Cause("outputs-above-limit", "not-cooperative", _SHOULD_USE_COOPERATIVE_REDUCTION, "outputs_limit",
        "its {outputs} outputs are more than {outputs_limit}: they keep blocks busy one by one",
        "{outputs} outputs > {outputs_limit}", changes=(Source("fewer-outputs", _MORE),),
        example="values.amax(-1), with triton.cooperative_reductions = True, split_reductions = False"),
    Cause("elements-below-limit", "not-cooperative", _SHOULD_USE_COOPERATIVE_REDUCTION, "elements_limit",
        "{elements} elements are fewer than {elements_limit}, which holds for {outputs:# output}",
        "{elements} elements < {elements_limit}", changes=(Source("more-elements", _MORE),),
        example="values.amax(-1), values: float32 (4, 8192), with triton.cooperative_reductions = True"),
    Cause("hint-of-its-reductions", "INNER OUTER OUTER_TINY DEFAULT", _GET_REDUCTION_HINT, "hints",
        "all of its reductions have that hint", "hint of its reductions",
        example="values.sum(-1), values: float32 (64, 4096)"),
    Cause("contiguous-nodes", "INNER", _GET_REDUCTION_HINT, "hints",
        "its reductions have the hint {hints}, but all that they read and write is contiguous",
        "contiguous nodes", example="values.sum(-1), values: float32 (262144, 64)"),
    Cause("hints-differ", "DEFAULT", _GET_REDUCTION_HINT, "hints",
        "its reductions have several hints: {hints}", "hints {hints}",
        example="rows.sum(-1) + columns.t().sum(-1), rows: float32 (4096, 64), columns: float32 (64, 4096)"),
    Cause("non-contiguous-pointwise", "DEFAULT", _GET_REDUCTION_HINT, "hints",
        "its reductions have the hint {hints}, but a pointwise node in it reads or writes all elements "
        "non-contiguously", "non-contiguous pointwise node", changes=(Source("contiguous-pointwise",
        "let what is fused with the reduction access memory as the reduction does"),),
        example="the same, written by columns"),
    Cause("coalesced-along-reduction", "INNER", _GET_REDUCTION_HINT, "hints score_x score_r0_",
        "its reductions have the hint {hints}, but accesses coalesce better along the reduction (score "
        "{score_r0_}) than along the outputs ({score_x})", "coalesced along the reduction",
        example="values[:, :64].sum(-1), values: float32 (262144, 100)"),
)  # fmt: skip

KIND = Kind(
    "reduction", "how reductions and scans are divided, and how a Triton kernel loops over them",
    OUTCOMES, OPERANDS, CAUSES, common="elements outputs device hint parts", derived=_derived,
    derives="note",
)  # fmt: skip
