"""Copies into other strides: torch/_inductor/ir.py, `ExternKernel.require_strides`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source
from inductor_probe.catalogue.shared import (
    ASKED,
    COMMON_OF_ASKED,
    CONVOLUTIONS,
    FLEXIBLE,
    POINTWISE_CAT,
    REQUIRED,
    constraint_of,
    function_of,
    required_of,
    unless,
    where,
)
from inductor_probe.model.decision import Decision

_ASKERS = {
    "output": "the graph returns it in {required}",
    "as-strided-input": "an as_strided or resize counts on {required}",
    "channels-last-preferred": "it is near a convolution, which torch keeps in {required}",
    "operator-constraint": "{operator} has {constraint}: {required}",
    "view": "{operator} makes a view of it, and counts on {required}",
    "concatenation": "{operator} writes each operand into a part of its result",
}
_FIXED_BY = {
    "reads": "when it followed the strides of what it reads",
    "no-reads": "when nobody had required an order",
    "output": "since the graph returns it",
    "as-strided-input": "for an as_strided or resize",
    "concatenation": "since it is a concatenation",
}


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    strides = operands.get("exact_strides") or operands.get("stride_order")
    required, constraint = required_of(operands, "any strides"), constraint_of(operands)
    words: dict[str, Any] = {"required": required, "constraint": constraint}
    takes = "{operator} takes it in {required}" if strides else "{operator} takes a buffer"
    template = _ASKERS.get(str(operands.get("asker")), takes)
    function = function_of(operands)
    values = {"operator": function, **operands, **words, "function": function}
    words["asks"] = template.format_map(values)
    fixed_by = str(operands.get("fixed_by"))
    if fixed_by in _FIXED_BY or operands.get("fixed_for"):
        words["fixed"] = _FIXED_BY.get(fixed_by, f"for {operands.get('fixed_for')}")
    source = operands.get("source", "?")
    words["viewed"] = f"that view of {source}" if operands.get("view") else source
    words["seen"] = f"it is a view of {source}, which" if operands.get("view") else source
    if stride := operands.get("stride"):
        words["lies"] = f"strides ({', '.join(stride)})"
        if (had := operands.get("had")) and had != stride:
            words["lies"] += f" instead of ({', '.join(had)})"
    fused = operands.get("not_stored", ())
    words["unstored"] = "the copy" if "copy" in fused else operands.get("source")
    return words


def _can_lie_so(decision: Decision) -> bool:
    """Whether a caller could give what is required: strides matter, and it is not expanded."""
    had = decision.operand("had")
    required = decision.operand("stride_order") or decision.operand("exact_strides")
    return bool(required) and isinstance(had, tuple) and "0" not in had


def _is_of_convolution(decision: Decision) -> bool:
    """Whether a convolution asks for channels-last, or returns it."""
    size = decision.operand("size")
    is_returned = (
        decision.operand("asker") == "output"
        and "convolution" in str(decision.operand("kernel"))
        and isinstance(size, tuple)
        and len(size) == _IMAGE
    )
    is_asked = decision.operand("asker") == "convolution" and decision.operand("stride_order") == _LAST
    return is_returned or is_asked or decision.operand("asker") == "channels-last-preferred"


_LAST = ("3", "0", "2", "1")
_IMAGE = 4
"""A 2-D convolution under layout optimisation asks for this order of 4 dimensions."""
_NO_CHANNELS_LAST = By("layout_optimization", "False", CONVOLUTIONS, applies=_is_of_convolution)
_POINTWISE_CAT = By("force_pointwise_cat", "True", POINTWISE_CAT, applies=where("asker", "concatenation"))
_RETURNED = Source(
    "eager-strides",
    "return it in the strides that it has, without a change of memory format",
    applies=where("asker", "output"),
)
_FLEXIBLE = Source("flexible-layout", FLEXIBLE, applies=unless("tag", None, "flexible_layout"))

_REQUIRE_STRIDES = "ir.py:ExternKernel.require_strides"
_REQUIRE_STRIDE1 = "ir.py:ExternKernel.require_stride1"
_REALIZE_INTO = "ir.py:ConcatKernel.realize_into"
_CLONE = "lowering.py:clone"

OPERANDS = (
    *ASKED,
    *REQUIRED,
    Operand("source", "text", "the buffer that was asked for"),
    Operand("size", "names", "of what was asked for"),
    Operand("had", "names", "its strides; with `view`, those of that view of it"),
    Operand("view", "flag", "a view of it was asked for"),
    Operand("stride", "names", "of the copy"),
    Operand("bytes", "int", "of the values once, as compiled", "bytes"),
    Operand("times_copied", "int", "where the same copy is made more than once"),
    Operand("not_stored", "names",
        "which of `copy` and `source` has no memory, since it is fused with all that reads it"),
    Operand("kernel", "text", "that returns it so"),
    Operand("fixed_by", "text", "who asked first: a cause of `layout`"),
    Operand("fixed_for", "text", "the operator that asked first"),
    Operand("clone", "text", "the FX node"),
    Operand("clone_operator", "text", "what that calls"),
    Operand("memory_format", "text", "that it asks for"),
)  # fmt: skip

OUTCOMES = (
    Outcome("copied",
        "{subject} is a copy of {source}[, {bytes}][, in {lies}][, one of {times_copied} like it]",
        "missed"),
    Outcome("fused",
        "{subject} has the values of {source}[ in {lies}], and nothing is copied, since {unstored} is "
        "fused with all that reads it", "passed"),
    Outcome("not-copied", "{subject} is not copied", "passed"),
)  # fmt: skip

CAUSES = (
    Cause("given-strides", "copied fused", _REQUIRE_STRIDES, "",
        "{asks}, and {seen} is given to the graph as it is", "strides that the graph is given",
        changes=(_NO_CHANNELS_LAST, _POINTWISE_CAT, Source("input-strides",
        "give the graph {source} in {required}", applies=_can_lie_so), _FLEXIBLE),
        example="value = functional.conv2d(image * 2, weight); value * value"),
    Cause("extern-result", "copied fused", _REQUIRE_STRIDES, "kernel",
        "{asks}, and {seen} is what {kernel} returns", "returned so by {kernel}",
        changes=(_NO_CHANNELS_LAST, _POINTWISE_CAT, _RETURNED, _FLEXIBLE),
        example="functional.conv2d(image + 1, weight)"),
    Cause("fixed-before", "copied fused", _REQUIRE_STRIDES, "fixed_by fixed_for",
        "{asks}, and {seen} had a fixed layout before[, {fixed}]", "its layout was fixed before",
        changes=(_NO_CHANNELS_LAST, _POINTWISE_CAT, Source("one-order",
        "let all that reads {source} take the same strides, or compute it once for each"), _FLEXIBLE),
        example="value = image + image.flip(3); (value, functional.conv2d(value, weight))"),
    Cause("fixed-for-view", "copied fused", _REQUIRE_STRIDES, "",
        "{asks}; that is a view of {source}, and torch fixed {source} as it was when it made the view",
        "fixed as it was for a view", changes=(Source("view-later",
        "compute what it is a view of in the order that the view is to have"),),
        example="means of a sum, and a convolution of a view of it"),
    Cause("no-unit-stride", "copied fused", _REQUIRE_STRIDE1, "",
        "{operator|function} needs stride 1 along one dimension of its operand, and {viewed} has the "
        "strides ({had})", "stride 1 nowhere: ({had})", changes=(Source("unit-stride",
        "give it a value that is contiguous along one dimension"),), example="values[:, ::2] @ matrix"),
    Cause("view-not-strided", "copied fused", "ir.py:ExternKernel.convert_to_reinterpret_view", "",
        "{asks}, and no strides express that view of {source}", "a view without strides",
        changes=(Source("strided-view",
        "take the view of a value in which its dimensions lie next to each other"),),
        example="a convolution of a sum, and a product of the same sum as a matrix of rows"),
    Cause("inside-another", "copied fused", _REALIZE_INTO, "",
        "{asks}, and {source} is a part of another buffer, or written in place", "a part of another buffer",
        changes=(_POINTWISE_CAT,), example="an exponential in two concatenations"),
    Cause("part-of-a-view", "copied fused", _REALIZE_INTO, "",
        "{asks}, and a view of {source} cannot be computed there", "a view, to be concatenated",
        changes=(_POINTWISE_CAT,), example="a transposed exponential beside a sum"),
    Cause("mutation", "copied fused", "ir.py:MutationLayoutSHOULDREMOVE.realize_into", "",
        "[{operator} ]writes a value in place that was a buffer already", "written in place",
        remark="analysis", changes=(Source("out-of-place",
        "return the value in place of writing it into an input"),),
        example="left.copy_(left @ right); left + 1, left: float32 (8, 8), right: float32 (8, 8)"),
    Cause("clone", "copied fused", _CLONE, "clone clone_operator memory_format",
        "the FX graph has {clone}, an {clone_operator}[ with {memory_format}]", "{clone} of the FX graph",
        changes=(Source("no-clone", "leave out the clone, `contiguous()` or `reshape` that it comes from",
        applies="copy-unchanged"),), example="left.t().contiguous()"),
    Cause("strides-taken", "not-copied", _REQUIRE_STRIDES, "",
        "{asks}, and its layout was not fixed yet: it took them", "took {required}",
        example="the maxima of a sum of two images, and a convolution of that sum"),
    Cause("strides-fit", "not-copied", _REQUIRE_STRIDES, "", "{asks}, and it lies so", "has {required}",
        example="functional.conv2d(image, weight)"),
    Cause("clone-inlined", "not-copied", _CLONE, "clone clone_operator memory_format",
        "{clone} asks for {memory_format}, and its lowering does not look at that: it was computed within "
        "its users, and nothing lies so", "{memory_format} of {clone} is not kept", remark="analysis",
        outcome_words={"not-copied": "{source|subject} is not copied into another memory format"},
        changes=(Source("realised-clone",
        "return the clone, or give it to an operator that takes a buffer in that order"),),
        example="sums of an exponential, one of it in another memory format"),
    Cause("view-as-strides", "not-copied", _REQUIRE_STRIDE1, "",
        "{operator|function} takes a buffer, and is passed a view of it by its strides ({had})",
        "passed as strides", example="left.t() @ right, left: float32 (8, 8), right: float32 (8, 8)"),
)  # fmt: skip

KIND = Kind(
    "copy", "whether the values of a buffer are copied into other strides",
    OUTCOMES, OPERANDS, CAUSES,
    common=f"{COMMON_OF_ASKED} source size had view stride_order exact_strides stride bytes times_copied "
    "not_stored", derived=_derived, derives="required constraint asks fixed viewed seen lies unstored",
)  # fmt: skip
