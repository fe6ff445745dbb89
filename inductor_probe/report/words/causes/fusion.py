"""Words for fusion: torch/_inductor/scheduler.py, choices.py, codegen/cpp.py and codegen/simd.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords

_ACCESSES = "{first} {first_does} {buffer} {first_at}, {second} {second_does} it {second_at}"
_LOADED = re.compile(r"\b(?:tmp|indirect)\d+")
"""A value in an index, which is itself loaded."""
_NO_SIZES = {"value": "?", "limit": "?", "rows": "?", "columns": "?"}
_UNMET: Mapping[object, tuple[str, str]] = {  # why, and in short
    "off": ("it is off", "off"),
    "not-contiguous": ("neither reads its data in the order in which it lies", "neither is contiguous"),
    "elements": (
        "only from {limit:,} elements on, and these are {value:,}", "{value:,} elements < {limit:,}"
    ),
    "rows-per-column": (
        "only where there are at least {limit} rows for each column, and there are {rows:,} for {columns:,}",
        "{rows:,} rows < {limit} x {columns:,} columns",
    ),
    "rows": ("only from {limit:,} rows on, and there are {value:,}", "{value:,} rows < {limit:,}"),
    "hint": ("only where the contiguous one has hint INNER or DEFAULT, and it has {value}", "hint {value}"),
    "columns": ("only up to {limit:,} columns, and there are {value:,}", "{value:,} columns > {limit:,}"),
    "split": ("only where the contiguous one is not divided into parts", "a reduction in parts"),
    "operation": ("only where the other one is a sum or a product, and it is {value}", "reduces by {value}"),
}  # fmt: skip
"""What of `MixOrderReduction.can_fuse` was not met."""
_TIMED = "[; {reordered}][; timed: {fused_ms:.4f} ms, and {first_ms:.4f} + {second_ms:.4f} apart]"
_RANGES = "the loops of {first_nest|first} are {first_loops}, those of {second_nest|second} {second_loops}"


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    loops = {}
    for which in ("first", "second"):
        ranges, reduction = operands.get(f"{which}_ranges"), operands.get(f"{which}_reduction")
        if reduction is not None:
            loops[f"{which}_loops"] = f"{ranges} reducing {reduction}" if reduction != "()" else ranges
    reorders = "reorders no loops of CPU code" if operands.get("cpu") else "did not reorder them"
    if operands.get("both_reduce") and not operands.get("cpu"):
        reorders = "reorders loops that do not reduce, and both nodes reduce"
    is_gather = any(_LOADED.search(str(operands.get(f"{which}_index"))) for which in ("first", "second"))
    gather = (
        "an index is itself loaded (tmp), so which elements these are is not known here"
        if is_gather
        else None
    )
    is_same = operands.get("first_index") == operands.get("second_index")
    for which in ("first", "second"):
        index, ranges = operands.get(f"{which}_index"), operands.get(f"{which}_ranges")
        if index is not None:
            over = f" over {ranges}" if ranges else ""
            loops[f"{which}_at"] = "as a whole" if index == "all" else f"at {index}{over}"
            loops[f"{which}_short"] = "all of it" if index == "all" else f"{index}{over if is_same else ''}"
    loops["would"] = "update" if operands.get("second_does") == "updates" else "read"
    nests = [nest for which in ("first", "second") if (nest := operands.get(f"{which}_nest"))]
    loops["outer_why"] = "fused outer loops" if nests else "reduction"
    loops |= {"nests": "one of them"} if nests else {"complete": "complete only after"}
    pairs = operands.get("pairs")
    check = operands.get("check")
    if check in _UNMET:
        loops["unmet"], loops["unmet_short"] = (
            text.format(**{**_NO_SIZES, **operands}) for text in _UNMET[check]
        )
    whole: dict[str, Any] = {}
    if operands.get("reordered"):
        whole["reordered"] = "in the round that may give them another order of loops"
    if pairs is not None:  # of all its groups, not of one and the others
        is_one = pairs == 1 and "limit" not in operands
        whole = {"pairs": None} if is_one else {"others": None}
    distance = operands.get("distance")
    far = "far apart" if distance is None else f"{distance} nodes apart, more than {operands.get('limit')}"
    if operands.get("slowdown") == "inf":
        whole |= {"slowdown": None, "unbuilt": "a kernel for both could not be built"}
    return {**loops, **whole, "reorders": reorders, "gather": gather, "far": far}


WORDS = KindWords(
    outcomes={
        "fused": "{first} and {second} are fused",
        "refused": "{first} and {second} are not fused",
        "postponed": "{first} and {second} could be fused, and were not",
        "not-tried": "[{pairs:# pair} of {subject} {pairs:?was/were} not tried]"
        "[{first} was not tried with {others}]",
        "undone": "{subject} were fused, and have a loop nest each in the code",
        ("fused", "foreach-list"): "{subject} are in one kernel",
        ("fused", "combo-kernel"): "{subject} are in one kernel",
        ("not-tried", "extern-kernel"): "{subject} {n:?is/are} in no pair",
        ("not-tried", "no-kernel"): "{subject} {n:?is/are} in no pair",
    },
    causes={
        "producer-and-consumer": CauseWords(
            "[step {step} of round {round}; ]{second} reads what {first} writes ({buffers:4})"
            f"[; torch counts {{shared_bytes}} as shared]{_TIMED}",
            "[step {step}, ]{second} reads {first}",
        ),
        "common-buffer": CauseWords(
            "[step {step} of round {round}; ]both use {buffers:4}[; torch counts {shared_bytes} as shared]"
            f"{_TIMED}",
            "[step {step}, ]both use {buffers:2}",
        ),
        "outer-loops": CauseWords(
            "[step {step} of round {round}; ]they have their {depth:# outermost loop} in common, and inner "
            "loops each[; torch counts {shared_bytes} as shared]",
            "[step {step}, ]{depth:# outer loop} in common",
        ),
        "template-epilogue": CauseWords(
            "[step {step} of round {round}; ]the template {first} computes {second} of its result, before it "
            f"writes it[; torch counts {{shared_bytes}} as shared]{_TIMED}",
            "[step {step}, ]in the template {first}",
        ),
        "template-prologue": CauseWords(
            "[step {step} of round {round}; ]the template {second} computes {first} as it reads its operand"
            f"{_TIMED}",
            "[step {step}, ]in the template {second}",
        ),
        "mix-order-reductions": CauseWords(
            "[step {step} of round {round}; ]they reduce {buffers:4} over different dimensions, and one "
            "kernel reads it once for both",
            "[step {step}, ]two reductions of {buffers:2}",
        ),
        "foreach-list": CauseWords(
            "an operator on a list of tensors computes all of them, each in a loop of its own",
            "{parts:# part}, of a list of tensors",
        ),
        "combo-kernel": CauseWords(
            "they are independent, and each keeps a loop of its own", "{parts:# independent part}"
        ),
        "accesses-differ": CauseWords(
            f"{_ACCESSES}[; {{gather}}]; torch counts a buffer as shared only where both use it at the same "
            "index in the same loops, so it counts 0 bytes",
            "{buffer} at {first_short} and {second_short}",
        ),
        "loop-order-differs": CauseWords(
            f"{_ACCESSES}; these would be equal in another order of loops, and torch[ {{reorders}}], "
            "so it counts 0 bytes as shared",
            "{buffer} in another order of loops",
        ),
        "loop-sizes-differ": CauseWords(
            f"{_ACCESSES}: the same elements in the same order, but in loops of other sizes, so torch counts "
            "0 bytes as shared",
            "{buffer} in loops of other sizes",
        ),
        "no-common-data": CauseWords("they use no common buffer, and one reduces", "no common buffer"),
        "few-shared-bytes": CauseWords(
            "neither reads what the other writes, and what both read is {shared_bytes}, fewer than the "
            "[{threshold} ]bytes from which torch fuses such nodes",
            "{shared_bytes} shared[ < {threshold} B]",
        ),
        "fusion-size-limit": CauseWords(
            "fused, they would be {nodes:# node}[, and a fused node has at most {limit}]",
            "{nodes:# node}[ > {limit}]",
        ),
        "peak-memory": CauseWords(
            "each is the last reader of buffers of the same size[ ({reusable_elements:# element})]: run one "
            "after the other, the second could reuse that memory, and it is more than[ {factor} times] the "
            "{shared_bytes|'traffic'} that fusing them would save",
            "peak memory[: {reusable_elements} reusable > {factor} x {shared_bytes}]",
        ),
        "too-many-buffers": CauseWords(
            "fused, they would read and write more buffers than the setting allows[, which is {limit}]",
            "too many buffers[, more than {limit}]",
        ),
        "distant-nodes": CauseWords(
            "neither reads what the other writes, and they are {far}: "
            "fused, what they share would stay in memory for as long",
            "{far}",
        ),
        "devices-differ": CauseWords(
            "{first} runs on {first_device}, {second} on {second_device}",
            "{first_device} and {second_device}",
        ),
        "dependency-differs": CauseWords(
            "{first} writes[ {buffer} {first_at}], {second} {second_does|'reads'} it[ {second_at}]: in one "
            "loop, it would {would} what is not written yet",
            "{buffer|'a buffer'} at another index",
        ),
        "in-place-write": CauseWords(
            "{second} overwrites {buffer}[ {second_at}], which {first} reads[ {first_at}]: in one loop, it "
            "would overwrite what is still needed",
            "overwrites {buffer} in place",
        ),
        "intermediate-node": CauseWords(
            "{node} has to run between them: it needs {first}, and {second} reads its {buffer}",
            "{node} runs between",
        ),
        "cycle": CauseWords(
            "nodes that are fused already[ ({through:4})] need one of them, and the other needs those",
            "a cycle[ through {through:2}]",
        ),
        "loop-ranges-differ": CauseWords(
            f"{_RANGES}; C++ code has one loop nest for both only if these are equal, one runs over all "
            "that the other reduces, or one is a single loop over as many elements"
            "[, and not even outer loops agree ({outer_depth} do)]",
            "loops {first_loops} and {second_loops}",
        ),
        "fused-ranges": CauseWords(
            f"{_RANGES}; as many elements, but the one with a single loop is fused already, and torch "
            "divides the loop of an unfused node only",
            "loops {first_loops} and {second_loops}, one fused already",
        ),
        "sizes-differ": CauseWords(
            f"{_RANGES}; as many elements, but torch divides the single loop of one only where both have the "
            "same size in the program, and these have {first_size} and {second_size}",
            "sizes {first_size} and {second_size}",
        ),
        "template-sibling": CauseWords(
            "one of them is a template, and the C++ backend fuses into it only what reads its result",
            "a template, which the other does not read",
        ),
        "epilogue-index-differs": CauseWords(
            "{first} is a template, and a C++ template computes with its result only what reads it and "
            "writes at one index: {node} reads {buffers:3} at {reads_at:3} and writes at {writes_at:3}",
            "reads at {reads_at:1}, writes at {writes_at:1}",
        ),
        "epilogue-reduces": CauseWords(
            "{first} is a template, and {second} reduces: a template computes with its result only what is "
            "pointwise",
            "a reduction after a template",
        ),
        "epilogue-mutates": CauseWords(
            "{first} is a template, and {second} writes into a buffer that is not its own (an input, or a "
            "part of another): a template computes with its result only what has a buffer of its own",
            "a template, and a write into another buffer",
        ),
        "epilogue-fusion-off": CauseWords(
            "{first} is a template, whose epilogues are off", "epilogue fusion is off"
        ),
        "prologue-fusion-off": CauseWords(
            "{second} is a template, whose prologues are off", "prologue fusion is off"
        ),
        "prologue-not-pointwise": CauseWords(
            "{second} is a template, and {first} a reduction or a template: only what is pointwise is "
            "computed as a template reads it",
            "not pointwise, before a template",
        ),
        "no-prologue-inputs": CauseWords(
            "{second} is a template that takes its operands from memory only: nothing is computed as it "
            "reads them",
            "a template without prologues",
        ),
        "slower-when-timed": CauseWords(
            "[one kernel for both took {fused_ms:.4f} ms when torch timed it, and two {first_ms:.4f} and "
            "{second_ms:.4f}][torch timed it {slowdown} times as slow][{unbuilt}]",
            "[timed: {fused_ms:.4f} ms > {first_ms:.4f} + {second_ms:.4f}][timed {slowdown}x as slow]"
            "[{unbuilt}]",
        ),
        "horizontal-size-limit": CauseWords(
            "neither needs the other, and fused they would be {nodes:# node}: the C++ backend fuses at most "
            "{limit} that way",
            "{nodes:# node} > {limit}",
        ),
        "no-common-outer-loop": CauseWords(
            "[{nests} is made of loop nests with common outer loops]"
            "[{first} is a reduction, whose result is {complete} its loop], so only outer loops could be "
            f"common; {_RANGES}: {{outer_depth}} of them agree",
            "{outer_why}; loops {first_loops} and {second_loops}",
        ),
        "complete-reductions": CauseWords(
            "both reduce to one value, and {second} needs that of {first}: there is no outer loop that they "
            "could have in common",
            "both reduce to one value",
        ),
        "outer-loop-depth": CauseWords(
            "the outer loops that nests have in common are {first_depth} in {first} and {second_depth} in "
            "{second}, and one fused node has one depth",
            "outer loops: {first_depth} and {second_depth}",
        ),
        "outer-loop-node": CauseWords(
            "one is made of loop nests with common outer loops, and the C++ backend adds to those only what "
            "they depend on or what depends on them",
            "a node of fused outer loops",
        ),
        "reductions-differ": CauseWords(
            "both reduce: {first} {first_rnumel} elements each to {first_numel}, {second} {second_rnumel} "
            "to {second_numel}; a Triton kernel has one size of both",
            "reductions {first_rnumel} to {first_numel}, {second_rnumel} to {second_numel}",
        ),
        "mix-order-limit": CauseWords(
            "they reduce {buffers:3} over different dimensions; torch has one kernel for two such reductions"
            ", but {unmet}",
            "mix-order: {unmet_short}",
        ),
        "numels-differ": CauseWords(
            "{first} computes {first_numel} elements, {second} {second_numel}: a Triton kernel has one size",
            "{first_numel} and {second_numel} elements",
        ),
        "tilings-differ": CauseWords(
            "{first} is best tiled by ({first_tiling}), {second} by ({second_tiling}), and both by "
            "({fused_tiling}): fused, one would lose its tiling",
            "tilings ({first_tiling}) and ({second_tiling})",
        ),
        "tiling-not-of-reduction": CauseWords(
            "one reduces, and the best tiling of the other is not possible in its kernel",
            "a tiling that the reduction does not allow",
        ),
        "ranges-do-not-split": CauseWords(
            "as many elements ({first_numel} x {first_rnumel} and {second_numel} x {second_rnumel}), but the "
            "loops of the one that does not reduce cannot be divided into rows and what is reduced of them",
            "ranges that do not split",
        ),
        "numel-of-neither": CauseWords(
            "{first} has {first_numel} x {first_rnumel} elements, {second} {second_numel} x {second_rnumel}: "
            "a node beside a reduction has to have one for each that is reduced, or one for each result",
            "{first_numel} x {first_rnumel} and {second_numel} x {second_rnumel} elements",
        ),
        "lower-priority": CauseWords(
            "{kept} of the {candidates} possible pairs of that round came first: the C++ backend fuses outer "
            "loops only in a round in which nothing else can be fused",
            "after {kept} of {candidates} pairs",
        ),
        "fused-with-another": CauseWords(
            "{group:4} became one node before their turn", "{group:3} came first"
        ),
        "extern-kernel": CauseWords(
            "[{kernel} is called][it is one of the results of {result_of}], which has no generated loop to "
            "fuse with",
            "[calls {kernel}][a result of {result_of}]",
        ),
        "no-kernel": CauseWords(
            "it runs nothing (its parts write where its result is): there is no loop to fuse with",
            "runs nothing",
        ),
        "no-common-buffer": CauseWords(
            "torch tries only nodes that use a common buffer, and they use none",
            "no common buffer[ ({pairs:# pair})]",
        ),
        "pair-limit": CauseWords(
            "all use {buffer}, and torch tries a node with the next {limit} that use the same buffer"
            "[: this one is number {distance}]",
            "[{distance} users apart > {limit}][{pairs:# pair}, more than {limit} users apart]",
        ),
        "loop-tiles-differ": CauseWords(
            "the vectorised code of {first_nest} advances by {first_steps} along {loop}, which they were to "
            "have in common, and that of {second_nest} by {second_steps}",
            "along {loop} by {first_steps} and by {second_steps}",
        ),
        "inner-range-dominates": CauseWords(
            "an inner loop of {nest} has {inner_range} steps, more than {factor} times the {outer_range} of "
            "the common outer loops: apart, inner loops can be run in parallel",
            "inner range {inner_range} > {factor} x {outer_range}",
        ),
        "other": CauseWords(
            "in torch's words: {text|'(it says nothing)'}", "{text|'torch does not say why'}"
        ),
    },
    changes={
        "equal-access": "both use the same elements of {buffer}: let what writes or copies it have the order "
        "in which it is read",
        "loop_ordering_after_fusion": "reorders the loops of one to make its accesses those of the other",
        "out-of-place": "write a new tensor instead of {buffer}, and fusion has no order to keep",
        "score_fusion_memory_threshold": "fuses independent nodes that share as little",
        "max_fusion_size": "lets a fused node have as many nodes",
        "max_fusion_unique_io_buffers": "removes the limit",
        "cpp.max_horizontal_fusion_size": "lets the C++ backend fuse as many independent nodes",
        "max_fusion_buffer_group_pairwise_attempts": "tries nodes that are as far apart",
        "triton.mix_order_reduction": "computes reductions over different dimensions in one kernel",
        "triton.mix_order_reduction_non_strict_mode": "does so for other sizes, too; time it",
        "epilogue_fusion": "lets templates compute what follows them",
        "prologue_fusion": "lets templates compute what they read",
        "benchmark_fusion": "fuses without timing it, though it was slower",
        "equal-size": "give both the same dimensions: `view` one as the other before it is computed",
        "equal-ranges": "let both have the same dimensions, or keep dimensions apart that one of them has "
        "merged",
        "common-outer-dimension": "reduce along the inner dimensions only, with those that {second} has kept",
        "triton.tiling_prevents_pointwise_fusion": "fuses although a tiling is lost; time it",
        "triton.tiling_prevents_reduction_fusion": "fuses although a tiling is lost; time it",
    },
    derived=_derived,
)
