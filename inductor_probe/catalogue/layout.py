"""Layouts of buffers: torch/_inductor/ir.py, `FlexibleLayout`; graph.py, `decide_layout_opt`.

No order of strides is a missed optimisation as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source, Turn
from inductor_probe.catalogue.shared import (
    ASKED,
    COMMON_OF_ASKED,
    CONVOLUTIONS,
    FLEXIBLE,
    POINTWISE_CAT,
    REQUIRED,
    constraint_of,
    ended,
    function_of,
    required_of,
    unless,
)

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
    function = function_of(operands)
    words: dict[str, Any] = {
        "different_reads": tuple(dict.fromkeys(operands.get("reads", ()))),
        "nobody": template.format_map({"operator": "an operator", **operands, "function": function}),
        "lies": f"({', '.join(operands.get('stride', ()))})",
        "constraint": constraint_of(operands),
        "required": required_of(operands, "an order that it has"),
    }
    votes = (vote.partition(": ") for vote in operands.get("votes", ()))
    if even := [pair.replace(" inside ", " and ") for pair, _, counts in votes if _even(counts)]:
        pairs = ", ".join(even)
        words["even"] = (
            f"they are even about the dimensions {pairs}, where the later one gets the smaller stride"
        )
    return {**words, "function": function} if "function" in operands else words


_ORDERS = (
    "decides whether strides of reads make the order of loops, and of strides that nobody asks for; without "
    "it, both have the order of dimensions"
)
_FORCE = "decides whether convolutions are channels-last whatever their shapes"
_NO_CHANNELS_LAST = By("layout_optimization", "False", CONVOLUTIONS, applies=ended("channels-last"))
_NO_PADDING = By(
    "comprehensive_padding", "False", "does not pad strides", applies=unless("padding_limit", None)
)
_FORCED = By("force_layout_optimization", "True", _FORCE, applies=ended("unchanged"))
_FLEXIBLE = Source("flexible-layout", FLEXIBLE, applies=unless("tag", None, "flexible_layout"))
_ANY = "contiguous channels-last permuted padded"
_CHANNELS_LAST = {"channels-last": "convolutions are channels-last"}

_GET_FILL_ORDER = "ir.py:ComputedBuffer.get_fill_order"
_RUN_NODE = "graph.py:GraphLowering.run_node"
_DECIDE_LAYOUT_OPT = "graph.py:GraphLowering.decide_layout_opt"

OPERANDS = (
    *ASKED,
    *REQUIRED,
    Operand("size", "names", "of the buffer"),
    Operand("stride", "names", "of the buffer"),
    Operand("fill_order", "names", "by which torch laid it out: dimensions from the innermost"),
    Operand("same_order", "names", "strides whose order it was given", "elements"),
    Operand("padding_limit", "int", "strides above it are padded", "elements"),
    Operand("padding_bytes", "int", "to multiples of as many", "bytes"),
    Operand("reads", "names", "each with its strides over the dimensions of the buffer"),
    Operand("votes", "names", "how many reads have the smaller stride along which of two dimensions"),
    Operand("layout_opt", "flag", "convolutions are channels-last in this graph"),
    Operand("kernel", "text", "that returns it"),
    Operand("into", "text", "the buffer that it is written into"),
    Operand("convolutions", "int", "of the graph"),
    Operand("device", "text", "where they run"),
    Operand("nodes", "int", "of the FX graph", "nodes"),
    Operand("nodes_limit", "number", "for as many convolutions", "nodes"),
    Operand("flops", "number", "of all convolutions, weighted by none"),
    Operand("weighted_flops", "number", "as torch expects them with channels-last"),
    Operand("sorts", "names", "how many convolutions of each sort"),
    Operand("nodes_of_fx", "names", "the convolutions"),
    Operand("channels_limit", "number", "of a small convolution", "channels"),
)  # fmt: skip

OUTCOMES = (
    Outcome("contiguous", "{subject} is contiguous, strides {lies}"),
    Outcome("channels-last", "{subject} is channels-last, strides {lies}"),
    Outcome("permuted", "{subject} has permuted strides {lies}"),
    Outcome("padded",
        "{subject} is padded, strides {lies}[ (those above {padding_limit} are rounded up to multiples of "
        "{padding_bytes})]"),
    Outcome("inside-another", "{subject} is a part of {into}"),
    Outcome("in-place", "{subject} is written into {into}"),
    Outcome("unchanged", "no layout is changed for convolutions"),
)  # fmt: skip

CAUSES = (
    Cause("reads", _ANY, _GET_FILL_ORDER, "reads votes",
        "{nobody}, so torch followed the strides of what it reads[: {different_reads:6}][; {even}]",
        "follows its reads", changes=(_NO_PADDING, By("pick_loop_orders", "False", _ORDERS,
        applies=ended("permuted", "channels-last")), Source("order-of-reads",
        "give what it reads the strides that it is to have (another memory format, `contiguous()`), or "
        "return it"), Turn("layout")),
        example="value = (left + right).exp(); (value.sum(0), (value * left).sum(1))"),
    Cause("loop-orders-off", _ANY, _GET_FILL_ORDER, "",
        "{nobody}, and pick_loop_orders is off, so that it is laid out in the order of its dimensions",
        "pick_loop_orders is off", changes=(By("pick_loop_orders", "True", _ORDERS, is_default=True),
        _NO_PADDING, Turn("layout")),
        example="value = (left + right).exp(); (value.sum(0), (value * left).sum(1)), with "
        "pick_loop_orders = False"),
    Cause("no-reads", _ANY, "ir.py:ComputedBuffer.decide_layout", "",
        "{nobody}, and it reads nothing whose order it could follow", "reads nothing", changes=(_NO_PADDING,
        Turn("layout")), example="torch.full((8, 8), 2.0) @ right"),
    Cause("view", _ANY, "ir.py:ExternKernel.convert_to_reinterpret_view", "",
        "{operator|function} reads a view of it by strides, so torch fixed it as it was", "read as a view",
        changes=(_NO_PADDING,), example="(left + 1).t() @ right"),
    Cause("output", _ANY, _RUN_NODE, "",
        "the graph returns it, and eager mode has {required}", "returned, with strides of eager mode",
        changes=(Source("eager-strides",
        "let the result have other strides in eager mode, too: `contiguous(memory_format=...)`"),),
        example="left + right, left: float32 (8, 16), right: float32 (8, 16)"),
    Cause("as-strided-input", _ANY, _RUN_NODE, "",
        "an as_strided or resize reads it, and counts on {required} of eager mode", "read by as_strided",
        changes=(Source("slice", "take a slice or a view in place of as_strided"),),
        example="(values + 1).as_strided((4, 4), (1, 8)).sum(), values: float32 (8, 16)"),
    Cause("convolution", "channels-last", "kernel/conv.py:convolution", "layout_opt",
        "{operator} takes it in {required} under layout optimisation", "taken so by {operator}",
        changes=(_NO_CHANNELS_LAST,), example="functional.conv2d(image + 1, weight)"),
    Cause("channels-last-preferred", "channels-last", _RUN_NODE, "",
        "layout optimisation is on, and a convolution is near: {required}", "near a convolution",
        changes=(_NO_CHANNELS_LAST, _NO_PADDING),
        example="value = image.exp(); (functional.conv2d(value, weight), value.sum(1))"),
    Cause("operator-constraint", _ANY, "lowering.py:constrain_to_fx_strides", "",
        "{operator} has {constraint}: {required}", "constraint of {operator}", changes=(_FLEXIBLE,
        _NO_PADDING), example="torch.pdist((left + right).exp())"),
    Cause("extern-operand", _ANY, "ir.py:ExternKernel.require_strides", "",
        "{operator|function} calls a kernel that takes it in {required}", "operand[ of {operator}]",
        changes=(_NO_PADDING,), example="value = left + right; (value @ right, value.sum(1))"),
    Cause("lowering", _ANY, "ir.py:Buffer.freeze_layout_with_stride_order", "",
        "{function} required it when it lowered {operator|function}: {required}", "required by {function}",
        changes=(_NO_PADDING,), example="torch.ops.prims.copy_strided((left + right).exp(), (1, 8)).sum()"),
    Cause("concatenation", f"inside-another {_ANY}", "ir.py:ConcatKernel.create", "kernel into",
        "a concatenation has no kernel of its own, its operands are written to their places",
        "a concatenation", changes=(By("force_pointwise_cat", "True", POINTWISE_CAT,
        applies=ended("inside-another")),), example="torch.cat([left + 1, right + 2])"),
    Cause("mutation", "in-place", "ir.py:MutationLayoutSHOULDREMOVE.realize_into", "into",
        "an operation changes {into} in place", "in place", example="values.add_(1); values.sum()"),
    Cause("extern-kernel", _ANY, "ir.py:Buffer.freeze_layout", "kernel",
        "{kernel} returns it so", "returned by {kernel}", changes=(_NO_PADDING,),
        example="functional.conv2d(image + 1, weight)"),
    Cause("mkldnn-convolutions", "channels-last", _DECIDE_LAYOUT_OPT, "convolutions device",
        "{convolutions:?the only convolution of the graph is/all convolutions of the graph are} on a CPU "
        "with mkldnn", "mkldnn convolutions", outcome_words=_CHANNELS_LAST, changes=(_NO_CHANNELS_LAST,),
        test="torch.backends.mkldnn.enabled and ?", example="functional.conv2d(image + 1, weight)"),
    Cause("layout-optimisation-off", "unchanged", _DECIDE_LAYOUT_OPT, "convolutions device",
        "layout_optimization is off", "layout_optimization is off", changes=(By("layout_optimization",
        "True", CONVOLUTIONS, is_default=True),), test="not config.layout_optimization",
        example="functional.conv2d(image + 1, weight), with layout_optimization = False"),
    Cause("layout-optimisation-forced", "channels-last", _DECIDE_LAYOUT_OPT, "convolutions device",
        "force_layout_optimization is on", "force_layout_optimization is on", outcome_words=_CHANNELS_LAST,
        changes=(By("force_layout_optimization", "False", _FORCE, is_default=True),),
        test="config.force_layout_optimization",
        example="functional.conv2d(image + 1, weight), with force_layout_optimization = True"),
    Cause("only-backward-convolutions", "unchanged", _DECIDE_LAYOUT_OPT, "convolutions device",
        "torch asks for channels-last of aten.convolution only, and the graph has none of it, but "
        "{convolutions:# operator} that {convolutions:?computes/compute} gradients", "no aten.convolution",
        changes=(_FORCED,), test="nconv == ?",
        example="value = functional.conv2d(image * 2, weight); value * value"),
    Cause("few-convolutions", "unchanged", _DECIDE_LAYOUT_OPT, "convolutions device nodes nodes_limit",
        "the graph has {nodes} nodes for {convolutions:# convolution}, and torch changes layouts of "
        "graphs with fewer than {nodes_limit} only", "{nodes} nodes >= {nodes_limit}", changes=(_FORCED,),
        test="len(list(gm.graph.nodes)) >= ?",
        example="a convolution of the result of more than three hundred operations"),
    Cause("symbolic-convolution", "unchanged", _DECIDE_LAYOUT_OPT, "convolutions device",
        "a convolution has a symbolic size, for which torch saw slower results", "a symbolic size",
        changes=(_FORCED,), test="any(?has_free_symbols(?", example="functional.conv2d(image + 1, weight)"),
    Cause("convolution-flops", "channels-last unchanged", _DECIDE_LAYOUT_OPT,
        "convolutions device flops weighted_flops sorts",
        "torch expects {weighted_flops:,} in place of {flops:,} of their flops, by how fast each sort of "
        "convolution was when it was measured ({sorts})", "{weighted_flops:,} for {flops:,} flops",
        outcome_words=_CHANNELS_LAST, changes=(_FORCED, _NO_CHANNELS_LAST), test="is_inference",
        example="functional.conv2d(image + 1, weight, groups=2)"),
    Cause("grouped-convolution", "unchanged", _DECIDE_LAYOUT_OPT, "convolutions device nodes_of_fx",
        "groups of several channels are slower so, as those of {nodes_of_fx:3}",
        "groups of several channels", changes=(_FORCED,), test="any(map(is_grouped, ?",
        example="functional.conv2d(image + 1, weight, groups=2)"),
    Cause("narrowing-convolution", "unchanged", _DECIDE_LAYOUT_OPT, "convolutions device nodes_of_fx",
        "a convolution of at most half as many output channels as input channels is slower so, as "
        "{nodes_of_fx:3}", "half as many output channels", changes=(_FORCED,),
        test="any(map(is_in_out_channel, ?", example="functional.conv2d(image + 1, weight)"),
    Cause("small-convolutions", "unchanged", _DECIDE_LAYOUT_OPT, "convolutions device channels_limit",
        "{convolutions:?the only convolution of the graph has/all convolutions of the graph have} at most "
        "{channels_limit} channels", "at most {channels_limit} channels", changes=(_FORCED,),
        test="all(map(is_small_channel, ?", example="functional.conv2d(image + 1, weight)"),
    Cause("convolution-channels", "channels-last", _DECIDE_LAYOUT_OPT, "convolutions device",
        "the graph is one for training, and its {convolutions:?convolution has/convolutions have} neither "
        "groups of several channels, nor half as many outputs as inputs, nor all few channels",
        "channels of {convolutions:# convolution}", outcome_words=_CHANNELS_LAST,
        changes=(_NO_CHANNELS_LAST,), example="functional.conv2d(image + 1, weight)"),
)  # fmt: skip

KIND = Kind(
    "layout", "which strides a buffer has",
    OUTCOMES, OPERANDS, CAUSES,
    common=f"{COMMON_OF_ASKED} size stride stride_order exact_strides fill_order same_order padding_limit "
    "padding_bytes", derived=_derived, derives="different_reads nobody lies constraint required even",
)  # fmt: skip
