"""Words for reductions: torch/_inductor/ir.py, `Reduction.create` and `num_splits`, and those of Triton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords

_NO_READER = "the C++ backend does not read the hint"


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    is_of_buffer = "parts" in operands  # a kernel's hint is Triton's
    return {"note": _NO_READER} if operands.get("device") == "cpu" and is_of_buffer else {}


WORDS = KindWords(
    outcomes={
        "unrolled": "the reduction of {subject} is unrolled",
        "split": "the reduction of {subject} is split into {parts}",
        ("split", "ranges-of-its-input"): "the reduction of {subject} is split",
        "not-split": "the reduction of {subject} is in one piece",
        "two-passes": "{subject} takes two passes, for the mean and for the variance",
        "one-pass": "{subject} takes one pass, by Welford's algorithm",
        "persistent": "{subject} {n:?is a/are a} persistent reduction",
        "cooperative": "the blocks of {subject} work on {n:?its/their} reduction together",
        "not-cooperative": "each block of {subject} has reductions of its own",
        "split-scan": "{subject} is scanned by several blocks a row, each of which waits for those before",
        "whole-scan": "{subject} is scanned by one block a row",
        "looped": "{subject} {n:?loops/loop} over {n:?its/their} reduction",
        "INNER": "{subject} {n:?has/have} the reduction hint INNER",
        "OUTER": "{subject} {n:?has/have} the reduction hint OUTER",
        "OUTER_TINY": "{subject} {n:?has/have} the reduction hint OUTER_TINY",
        "DEFAULT": "{subject} {n:?has/have} the reduction hint DEFAULT",
    },
    causes={
        "single-element": CauseWords("it reduces a single element", "one element"),
        "below-unroll-threshold": CauseWords(
            "{elements:# element}, fewer than unroll_reductions_threshold ({threshold})",
            "{elements} elements < {threshold}",
        ),
        "sizes-not-known": CauseWords(
            "only the data decides how many elements there are ({elements} into {outputs}), so that strides "
            "and processors are not looked at",
            "{elements} elements, known when it runs",
        ),
        "single-output": CauseWords("it reduces all {elements} elements to one[; {note}]", "one output"),
        "few-elements": CauseWords(
            "it has {elements:# element}, at most {elements_limit}: strides are not looked at[; {note}]",
            "{elements} elements <= {elements_limit}",
        ),
        "many-outputs": CauseWords(
            "{outputs} outputs are at least {outputs_limit}, 64 for each of {processors} processors: strides "
            "are not looked at[; {note}]",
            "{outputs} outputs >= {outputs_limit}",
        ),
        "contiguous-reads": CauseWords(
            "{inner} of {reads:# read} {inner:?is/are} contiguous along the reduction (strides {strides})"
            "[; {note}]",
            "{inner} of {reads:# read} contiguous",
        ),
        "strided-reads": CauseWords(
            "only {inner} of {reads:# read} {inner:?is/are} contiguous along it, and more than half would "
            "have to be (strides {strides})[; {note}]",
            "{inner} of {reads:# read} contiguous",
        ),
        "no-strided-read": CauseWords(
            "no read depends on all of its loops, so that there is no stride to look at[; {note}]",
            "no stride to look at",
        ),
        "persistent-reductions-off": CauseWords(
            "triton.persistent_reductions is off", "persistent_reductions off"
        ),
        "elements-fit-a-tile": CauseWords(
            "its {elements} elements are at most {limit}, the limit for the hint {hint}",
            "{elements} elements <= {limit}",
        ),
        "elements-exceed-a-tile": CauseWords(
            "its {elements} elements are more than {limit}, the limit for the hint {hint}",
            "{elements} elements > {limit}",
        ),
        "symbolic-elements": CauseWords(
            "torch cannot prove that {elements} elements are few",
            "{elements} elements, not bounded",
        ),
        "cpu-backend": CauseWords(
            "the C++ backend splits none (BackendFeature.REDUCE_TO_SINGLE_ELEMENT)",
            "C++ splits none",
        ),
        "split-reductions-off": CauseWords("split_reductions is off", "split_reductions off"),
        "index-reduction": CauseWords(
            "torch splits no {type}, since each part would need its index", "{type} is not split"
        ),
        "cooperative-reduction": CauseWords(
            "the blocks of its kernel reduce it together (triton.cooperative_reductions[: {elements} "
            "elements are at least {elements_limit}])",
            "cooperative reduction",
        ),
        "enough-outputs": CauseWords(
            "{outputs} outputs are at least {outputs_limit}, 2 for each of {processors} processors",
            "{outputs} outputs >= {outputs_limit}",
        ),
        "short-reduction": CauseWords(
            "{elements} elements are at most {elements_limit}", "{elements} elements <= {elements_limit}"
        ),
        "sort": CauseWords("a kernel that sorts holds all elements in a tile", "it sorts"),
        "work-for-processors": CauseWords(
            "that many parts for {outputs} outputs of {elements} elements on {processors} processors "
            "(InductorChoices.reduction_split_factor)",
            "{outputs} outputs of {elements} elements, {processors} processors",
        ),
        "several-values": CauseWords(
            "each element is {values} values, and several blocks scan a row of one value alone (Scan.create)",
            "{values} values an element",
        ),
        "ranges-of-its-input": CauseWords(
            "what it reads is reduced, too: its first part has the same loops, with which it can be fused",
            "loops of its input",
        ),
        "matrix-product": CauseWords("it is a matrix product of Triton's own", "matrix product"),
        "elements-within-threshold": CauseWords(
            "{elements:# element} {elements:?is/are} at most {threshold}[ ({setting})]",
            "{elements} elements <= {threshold}",
        ),
        "elements-above-threshold": CauseWords(
            "{elements:# element} {elements:?is/are} more than {threshold}[ ({setting})]",
            "{elements} elements > {threshold}",
        ),
        "elements-below-minimum": CauseWords(
            "{elements} elements of float16 or bfloat16 are fewer than {minimum} ({setting})",
            "{elements} elements < {minimum}",
        ),
        "sum-would-be-split": CauseWords(
            "a sum of {elements} elements would be split, and each pass would read them again",
            "its sum would be split",
        ),
        "work-for-blocks": CauseWords(
            "{elements} elements are at least {elements_limit}, which holds for {outputs:# output}",
            "{elements} elements >= {elements_limit}",
        ),
        "cooperation-forced": CauseWords(
            "triton.force_cooperative_reductions asks for it", "force_cooperative_reductions"
        ),
        "cooperative-reductions-off": CauseWords(
            "triton.cooperative_reductions is off; on, its {elements} elements would be enough for "
            "{outputs:# output} (at least {elements_limit})",
            "cooperative_reductions off",
        ),
        "outputs-above-limit": CauseWords(
            "its {outputs} outputs are more than {outputs_limit}: they keep blocks busy one by one",
            "{outputs} outputs > {outputs_limit}",
        ),
        "elements-below-limit": CauseWords(
            "{elements} elements are fewer than {elements_limit}, which holds for {outputs:# output}",
            "{elements} elements < {elements_limit}",
        ),
        "hint-of-its-reductions": CauseWords(
            "all of its reductions have that hint", "hint of its reductions"
        ),
        "contiguous-nodes": CauseWords(
            "its reductions have the hint {hints}, but all that they read and write is contiguous",
            "contiguous nodes",
        ),
        "hints-differ": CauseWords("its reductions have several hints: {hints}", "hints {hints}"),
        "non-contiguous-pointwise": CauseWords(
            "its reductions have the hint {hints}, but a pointwise node in it reads or writes all elements "
            "non-contiguously",
            "non-contiguous pointwise node",
        ),
        "coalesced-along-reduction": CauseWords(
            "its reductions have the hint {hints}, but accesses coalesce better along the reduction "
            "(score {score_r0_}) than along the outputs ({score_x})",
            "coalesced along the reduction",
        ),
    },
    changes={
        "unroll_reductions_threshold": "keeps a reduction of that size as a loop",
        "contiguous-along-reduction": "let the reduced dimension be contiguous in what is read",
        "strided-along-reduction": "let another dimension than the reduced one be contiguous in what is read",
        "more-elements": "reduce more dimensions at once",
        "known-elements": "compile with sizes that are known (dynamic=False), or mark an upper bound of the "
        "dimension (torch._dynamo.mark_dynamic with max)",
        "split_reductions": "splits reductions of few outputs, or does not; time it",
        "triton.cooperative_reductions": "lets blocks work together, or splits it into two kernels; time it",
        "triton.force_cooperative_reductions": "lets sizes decide",
        "triton.use_two_step_variance_threshold": "takes Welford's algorithm or not; rounding differs",
        "triton.use_two_step_variance_min_numel": "takes Welford's algorithm or not; rounding differs",
        "fewer-outputs": "reduce more dimensions at once",
        "cpp.use_two_step_variance_threshold": "takes Welford's algorithm or not; rounding differs",
        "contiguous-pointwise": "let what is fused with the reduction access memory as the reduction does",
        "triton.persistent_reductions": "turns persistent reductions on or off; time it",
        "triton.multi_kernel": "generates both kinds and takes the faster at run time; its limit is 16 times "
        "as high",
    },
    derived=_derived,
)
