"""Words for layouts of buffers: torch/_inductor/ir.py, `FlexibleLayout`; graph.py, `decide_layout_opt`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import POINTWISE_CAT, CauseWords, KindWords

_ASKERS = {
    "end-of-lowering": "nobody required an order",
    "reduction-strides": "nobody required an order; it was fixed when torch asked for its strides to decide "
    "about splitting {operator}",
    "view": "nobody required an order; it was fixed when a view was made of it",
    "extern-operand": "{operator} required a fixed layout, in any order",
    "template": "{operator} required a fixed layout, in any order",
}


def _even(votes: str) -> bool:
    """Whether `5 to 5` is as many on both sides."""
    inner, _, outer = votes.partition(" to ")
    return inner == outer


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    template = _ASKERS.get(str(operands.get("asker")), "{function} required a fixed layout, in any order")
    function = str(operands.get("function", "torch")).partition(".<locals>")[0]
    asked = template.format_map({"operator": "an operator", **operands, "function": function})
    strides = operands.get("exact_strides") or operands.get("stride_order")
    kind = "strides" if operands.get("exact_strides") else "the order of strides"
    words: dict[str, Any] = {
        "different_reads": tuple(dict.fromkeys(operands.get("reads", ()))),
        "nobody": asked,
        "lies": f"({', '.join(operands.get('stride', ()))})",
        "constraint": f"the tag {operands['tag']}"
        if operands.get("tag")
        else f"a layout constraint, {function}",
        "required": f"{kind} ({', '.join(strides)})" if strides else "an order that it has",
    }
    even = [
        pair
        for pair, _, votes in (vote.partition(": ") for vote in operands.get("votes", ()))
        if _even(votes)
    ]
    if even:
        pairs = ", ".join(pair.replace(" inside ", " and ") for pair in even)
        words["even"] = (
            f"they are even about the dimensions {pairs}, where the later one gets the smaller stride"
        )
    return {**words, "function": function} if "function" in operands else words


WORDS = KindWords(
    outcomes={
        "contiguous": "{subject} is contiguous, strides {lies}",
        "channels-last": "{subject} is channels-last, strides {lies}",
        "permuted": "{subject} has permuted strides {lies}",
        "padded": "{subject} is padded, strides {lies}[ (those above {padding_limit} are rounded up to "
        "multiples of {padding_bytes})]",
        "inside-another": "{subject} is a part of {into}",
        "in-place": "{subject} is written into {into}",
        "unchanged": "no layout is changed for convolutions",
        ("channels-last", "mkldnn-convolutions"): "convolutions are channels-last",
        ("channels-last", "layout-optimisation-forced"): "convolutions are channels-last",
        ("channels-last", "convolution-flops"): "convolutions are channels-last",
        ("channels-last", "convolution-channels"): "convolutions are channels-last",
    },
    causes={
        "reads": CauseWords(
            "{nobody}, so torch followed the strides of what it reads[: {different_reads:6}][; {even}]",
            "follows its reads",
        ),
        "loop-orders-off": CauseWords(
            "{nobody}, and pick_loop_orders is off, so that it is laid out in the order of its dimensions",
            "pick_loop_orders is off",
        ),
        "no-reads": CauseWords("{nobody}, and it reads nothing whose order it could follow", "reads nothing"),
        "view": CauseWords(
            "{operator|function} reads a view of it by strides, so torch fixed it as it was", "read as a view"
        ),
        "output": CauseWords(
            "the graph returns it, and eager mode has {required}", "returned, with strides of eager mode"
        ),
        "as-strided-input": CauseWords(
            "an as_strided or resize reads it, and counts on {required} of eager mode", "read by as_strided"
        ),
        "convolution": CauseWords(
            "{operator} takes it in {required} under layout optimisation", "taken so by {operator}"
        ),
        "channels-last-preferred": CauseWords(
            "layout optimisation is on, and a convolution is near: {required}", "near a convolution"
        ),
        "operator-constraint": CauseWords(
            "{operator} has {constraint}: {required}", "constraint of {operator}"
        ),
        "extern-operand": CauseWords(
            "{operator|function} calls a kernel that takes it in {required}", "operand[ of {operator}]"
        ),
        "lowering": CauseWords(
            "{function} required it when it lowered {operator|function}: {required}", "required by {function}"
        ),
        "concatenation": CauseWords(
            "a concatenation has no kernel of its own, its operands are written to their places",
            "a concatenation",
        ),
        "mutation": CauseWords("an operation changes {into} in place", "in place"),
        "extern-kernel": CauseWords("{kernel} returns it so", "returned by {kernel}"),
        "mkldnn-convolutions": CauseWords(
            "{convolutions:?the only convolution of the graph is/all convolutions of the graph are} on a CPU "
            "with mkldnn",
            "mkldnn convolutions",
        ),
        "layout-optimisation-off": CauseWords("layout_optimization is off", "layout_optimization is off"),
        "layout-optimisation-forced": CauseWords(
            "force_layout_optimization is on", "force_layout_optimization is on"
        ),
        "only-backward-convolutions": CauseWords(
            "torch asks for channels-last of aten.convolution only, and the graph has none of it, but "
            "{convolutions:# operator} that {convolutions:?computes/compute} gradients",
            "no aten.convolution",
        ),
        "few-convolutions": CauseWords(
            "the graph has {nodes} nodes for {convolutions:# convolution}, and torch changes layouts of "
            "graphs with fewer than {nodes_limit} only",
            "{nodes} nodes >= {nodes_limit}",
        ),
        "symbolic-convolution": CauseWords(
            "a convolution has a symbolic size, for which torch saw slower results", "a symbolic size"
        ),
        "convolution-flops": CauseWords(
            "torch expects {weighted_flops:,} in place of {flops:,} of their flops, by how fast each sort of "
            "convolution was when it was measured ({sorts})",
            "{weighted_flops:,} for {flops:,} flops",
        ),
        "grouped-convolution": CauseWords(
            "groups of several channels are slower so, as those of {nodes_of_fx:3}",
            "groups of several channels",
        ),
        "narrowing-convolution": CauseWords(
            "a convolution of at most half as many output channels as input channels is slower so, as "
            "{nodes_of_fx:3}",
            "half as many output channels",
        ),
        "small-convolutions": CauseWords(
            "{convolutions:?the only convolution of the graph has/all convolutions of the graph have} at "
            "most {channels_limit} channels",
            "at most {channels_limit} channels",
        ),
        "convolution-channels": CauseWords(
            "the graph is one for training, and its {convolutions:?convolution has/convolutions have} "
            "neither groups of several channels, nor half as many outputs as inputs, nor all few channels",
            "channels of {convolutions:# convolution}",
        ),
    },
    changes={
        "comprehensive_padding": "does not pad strides",
        "pick_loop_orders": "decides whether strides of reads make the order of loops, and of strides that "
        "nobody asks for; without it, both have the order of dimensions",
        "order-of-reads": "give what it reads the strides that it is to have (another memory format, "
        "`contiguous()`), or return it",
        "eager-strides": "let the result have other strides in eager mode, too: "
        "`contiguous(memory_format=...)`",
        "slice": "take a slice or a view in place of as_strided",
        "flexible-layout": "give {operator} the tag flexible_layout, if its kernel takes any strides",
        "layout_optimization": "decides whether inductor makes convolutions channels-last",
        "force_layout_optimization": "decides whether convolutions are channels-last whatever their shapes",
        "force_pointwise_cat": POINTWISE_CAT,
    },
    derived=_derived,
)
