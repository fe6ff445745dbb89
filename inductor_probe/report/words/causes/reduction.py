"""Words for reductions: torch/_inductor/ir.py, `Reduction.create` and `num_splits`, and those of Triton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords

_NO_READER = "the C++ backend neither reads the hint nor splits reductions"


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"note": _NO_READER} if operands.get("device") == "cpu" and "hint" in operands else {}


WORDS = KindWords(
    outcomes={
        "unrolled": "the reduction of {subject} is unrolled",
        "split": "the reduction of {subject} is split into {parts}, with the hint {hint}",
        "not-split": "the reduction of {subject} is in one piece, with the hint {hint}",
        "persistent": "{subject} {n:?is a/are a} persistent reduction",
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
            "torch cannot prove that {elements} elements are at most {limit}",
            "{elements} elements, not bounded",
        ),
        "hint-of-its-reductions": CauseWords(
            "all of its reductions have that hint", "hint of its reductions"
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
        "contiguous-pointwise": "let what is fused with the reduction access memory as the reduction does",
        "triton.persistent_reductions": "turns persistent reductions on or off; time it",
        "triton.multi_kernel": "generates both kinds and takes the faster at run time; its limit is 16 times "
        "as high",
    },
    derived=_derived,
)
