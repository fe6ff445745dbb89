"""Words for copies that only lie differently: torch/_inductor/ir.py, `ExternKernel.require_strides`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import POINTWISE_CAT, CauseWords, KindWords

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
    kind = "strides" if operands.get("exact_strides") else "the order of strides"
    required = f"{kind} {_listed(strides)}" if strides else "any strides"
    words: dict[str, Any] = {"required": required}
    words["constraint"] = (
        f"the tag {operands['tag']}" if operands.get("tag") else f"a layout constraint, {_function(operands)}"
    )
    takes = "{operator} takes it in {required}" if strides else "{operator} takes a buffer"
    template = _ASKERS.get(str(operands.get("asker")), takes)
    function = _function(operands)
    values = {"operator": function, **operands, **words, "function": function}
    words["asks"] = template.format_map(values)
    fixed_by = str(operands.get("fixed_by"))
    if fixed_by in _FIXED_BY or operands.get("fixed_for"):
        words["fixed"] = _FIXED_BY.get(fixed_by, f"for {operands.get('fixed_for')}")
    source = operands.get("source", "?")
    words["viewed"] = f"that view of {source}" if operands.get("view") else source
    words["seen"] = f"it is a view of {source}, which" if operands.get("view") else source
    if stride := operands.get("stride"):
        words["lies"] = f"strides {_listed(stride)}"
        if (had := operands.get("had")) and had != stride:
            words["lies"] += f" instead of {_listed(had)}"
    fused = operands.get("not_stored", ())
    words["unstored"] = "the copy" if "copy" in fused else operands.get("source")
    return words


def _function(operands: Mapping[str, Any]) -> str:
    """Return the function that asked, without the functions that are defined in it."""
    return str(operands.get("function", "torch")).partition(".<locals>")[0]


def _listed(values: tuple[str, ...]) -> str:
    return f"({', '.join(values)})"


WORDS = KindWords(
    outcomes={
        "copied": "{subject} is a copy of {source}[, {bytes}][, in {lies}][, one of {times_copied} like it]",
        "fused": "{subject} has the values of {source}[ in {lies}], and nothing is copied, since {unstored} "
        "is fused with all that reads it",
        "not-copied": "{subject} is not copied",
        ("not-copied", "clone-inlined"): "{source|subject} is not copied into another memory format",
    },
    causes={
        "given-strides": CauseWords(
            "{asks}, and {seen} is given to the graph as it is", "strides that the graph is given"
        ),
        "extern-result": CauseWords("{asks}, and {seen} is what {kernel} returns", "returned so by {kernel}"),
        "fixed-before": CauseWords(
            "{asks}, and {seen} had a fixed layout before[, {fixed}]", "its layout was fixed before"
        ),
        "fixed-for-view": CauseWords(
            "{asks}; that is a view of {source}, and torch fixed {source} as it was when it made the view",
            "fixed as it was for a view",
        ),
        "no-unit-stride": CauseWords(
            "{operator|function} needs stride 1 along one dimension of its operand, and {viewed} has the "
            "strides ({had})",
            "stride 1 nowhere: ({had})",
        ),
        "view-not-strided": CauseWords(
            "{asks}, and no strides express that view of {source}", "a view without strides"
        ),
        "inside-another": CauseWords(
            "{asks}, and {source} is a part of another buffer, or written in place",
            "a part of another buffer",
        ),
        "part-of-a-view": CauseWords(
            "{asks}, and a view of {source} cannot be computed there", "a view, to be concatenated"
        ),
        "mutation": CauseWords(
            "[{operator} ]writes a value in place that was a buffer already", "written in place"
        ),
        "clone": CauseWords(
            "the FX graph has {clone}, an {clone_operator}[ with {memory_format}]", "{clone} of the FX graph"
        ),
        "strides-taken": CauseWords(
            "{asks}, and its layout was not fixed yet: it took them", "took {required}"
        ),
        "strides-fit": CauseWords("{asks}, and it lies so", "has {required}"),
        "clone-inlined": CauseWords(
            "{clone} asks for {memory_format}, and its lowering does not look at that: it was computed "
            "within its users, and nothing lies so",
            "{memory_format} of {clone} is not kept",
        ),
        "view-as-strides": CauseWords(
            "{operator|function} takes a buffer, and is passed a view of it by its strides ({had})",
            "passed as strides",
        ),
    },
    changes={
        "input-strides": "give the graph {source} in {required}",
        "eager-strides": "return it in the strides that it has, without a change of memory format",
        "view-later": "compute what it is a view of in the order that the view is to have",
        "one-order": "let all that reads {source} take the same strides, or compute it once for each",
        "strided-view": "take the view of a value in which its dimensions lie next to each other",
        "unit-stride": "give it a value that is contiguous along one dimension",
        "no-clone": "leave out the clone, `contiguous()` or `reshape` that it comes from",
        "realised-clone": "return the clone, or give it to an operator that takes a buffer in that order",
        "out-of-place": "return the value in place of writing it into an input",
        "flexible-layout": "give {operator} the tag flexible_layout, if its kernel takes any strides",
        "layout_optimization": "decides whether inductor makes convolutions channels-last",
        "force_pointwise_cat": POINTWISE_CAT,
    },
    derived=_derived,
)
