"""Words for the loops of nodes: torch/_inductor/ir.py, `ComputedBuffer.simplify_and_reorder`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    values: dict[str, Any] = {"which": "reduced loops" if operands.get("reduced") else "loops"}
    if loops := operands.get("loops"):
        values["nest"] = " x ".join(loops)
    sizes = operands.get("sizes")
    if sizes and sizes != operands.get("loops"):
        values["shape"] = " x ".join(sizes)
    if dimensions := operands.get("dimensions"):
        values["first_loop"], values["second_loop"] = dimensions
    if index := operands.get("index"):
        values["access"] = (
            f"the {operands['does']} {operands['buffer']}[{index}]"
            if "does" in operands
            else f"the index {index} in a value or condition"
        )
    return values


_VOTES = (
    "of {count:# access/accesses}, {votes_to_swap} {votes_to_swap:?is/are} for {first_loop} as the inner "
    "loop and {votes_to_keep} for {second_loop}"
)
_STRIDES = "the smaller stride, or none along the other loop: {accesses}"

WORDS = KindWords(
    outcomes={
        "reordered": "the {which} of {subject} are in the order {order} ({nest})",
        "in-order": "the {which} of {subject} are in the order of its dimensions ({nest})",
        "merged": "the {which} of {subject} are merged into one of {nest}",
        "separate": "the {which} of {subject} are {nest}",
        "divided": "the loop {loop} of {subject} is divided by {divisor}, into {nest}",
    },
    causes={
        "strides-favour-order": CauseWords(
            f"{_VOTES} ({_STRIDES})",
            "{votes_to_swap} of {count:# access/accesses} for this loop order, {votes_to_keep} against",
        ),
        "strides-in-order": CauseWords(
            f"{_VOTES} ({_STRIDES})",
            "{votes_to_keep} of {count:# access/accesses} for this loop order, {votes_to_swap} against",
        ),
        "strides-tied": CauseWords(
            f"{_VOTES}, and where votes are even loops stay as they are ({_STRIDES})",
            "{votes_to_keep} of {count:# access/accesses} for each loop order",
        ),
        "loop-orders-off": CauseWords(
            f"pick_loop_orders is off[; {_VOTES}]",
            "pick_loop_orders off",
        ),
        "order-of-partner": CauseWords(
            "then it accesses {buffer} in the order in which {partner|'the other node'} does, with which it "
            "is fused",
            "loop order of {partner|'the other node'}",
        ),
        "contiguous-loops": CauseWords(
            "every index goes on from one step of an outer loop to the next ({shape})",
            "all accesses contiguous over {shape}",
        ),
        "loops-not-contiguous": CauseWords(
            "[of {shape}, ]{outer} and {inner} stay apart: {access}[ has the stride {outer_stride} along "
            "{outer}, and one loop would need {inner_range} times that along {inner}: {needed_stride}]",
            "loops kept apart by {access}",
        ),
        "loops-of-partner": CauseWords(
            "they would be merged alone, but are as those of {partner|'the other node'}, to be fused with "
            "it, whose index {index} keeps {outer} and {inner} apart",
            "loops as {partner|'the other node'} has them",
        ),
        "divided-index": CauseWords(
            "its {range} steps are divided by {divisor} in an index, which has no division when they are two "
            "loops",
            "an index divided by {divisor}",
        ),
    },
    changes={
        "pick_loop_orders": "lets loops follow the strides of accesses, or not",
        "loop_ordering_after_fusion": "leaves loops in the order of strides; then the pair is not fused",
        "other-strides": "let most of what is read and written be contiguous along another dimension",
        "contiguous-across": "let {buffer|'what is read'} be contiguous over both loops where it is made",
    },
    derived=_derived,
)
