"""What entries of several kinds have in common: who asked, conditions, and values to try."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inductor_probe.catalogue.entries import Condition, Operand
from inductor_probe.model.decision import Decision

ASKED = (
    Operand(
        "asker",
        "text",
        "who required a buffer, or fixed strides: `output`, `as-strided-input` (it is returned, or read by "
        "`as_strided` or `resize`), `channels-last-preferred` (near a convolution under layout "
        "optimisation), `convolution`, `operator-constraint` (a tag of the operator, or a "
        "constraint registered for it), "
        "`extern-operand`, `template`, `view`, `concatenation`, `mutation`, `reduction-strides` "
        "(`Reduction.num_splits` reads strides), `reduction-layers`, `lowering` (another function that "
        "lowers an operator), `end-of-lowering` (no one did)",
    ),
    Operand("function", "text", "of torch that required it"),
    Operand("lowering", "text", "the FX node that torch lowered at that time"),
    Operand("operator", "text", "that this node calls"),
    Operand("tag", "text", "of the operator, where that is what asks"),
)
"""Of decisions about buffers: `capture/recorders/askers.py`."""
COMMON_OF_ASKED = "asker function lowering operator tag"
REQUIRED = (
    Operand("stride_order", "names", "that was required: the dimensions by their strides"),
    Operand("exact_strides", "names", "that were required", "elements"),
)
POINTWISE_CAT = (
    "computes the concatenation element by element, with its operands inlined; time it: each element "
    "evaluates every operand, under a mask, and torch leaves it off on CPUs, where it was slower"
)
"""What `force_pointwise_cat` does: `cat` in torch/_inductor/lowering.py."""
KNOWN_SIZES = (
    "compile with sizes that are known (dynamic=False), or mark an upper bound of the dimension "
    "(torch._dynamo.mark_dynamic with max)"
)
FLEXIBLE = "give {operator} the tag flexible_layout, if its kernel takes any strides"
CONVOLUTIONS = "decides whether inductor makes convolutions channels-last"


def where(operand: str, *values: object) -> Condition:
    """Return the condition that an operand has one of some values."""
    return lambda decision: decision.operand(operand) in values


def unless(operand: str, *values: object) -> Condition:
    """Return the condition that it has none of them."""
    return lambda decision: decision.operand(operand) not in values


def ended(*outcomes: str) -> Condition:
    """Return the condition that torch chose one of some outcomes."""
    return lambda decision: decision.outcome in outcomes


def number(operand: str, change: int = 0) -> Callable[[Decision], str | None]:
    """Return what offers the number in an operand, changed by as much: the least that torch lets pass."""

    def value(decision: Decision) -> str | None:
        compared = decision.operand(operand)
        return str(compared + change) if isinstance(compared, int) else None

    return value


def function_of(operands: Mapping[str, Any]) -> str:
    """Return the function that asked, without the functions that are defined in it."""
    return str(operands.get("function", "torch")).partition(".<locals>")[0]


def required_of(operands: Mapping[str, Any], otherwise: str) -> str:
    """`strides (64, 1)`, `the order of strides (1, 0)`: what was asked for."""
    strides = operands.get("exact_strides") or operands.get("stride_order")
    kind = "strides" if operands.get("exact_strides") else "the order of strides"
    return f"{kind} ({', '.join(strides)})" if strides else otherwise


def constraint_of(operands: Mapping[str, Any]) -> str:
    """`the tag needs_fixed_stride_order`: what of an operator constrains its operands."""
    return (
        f"the tag {operands['tag']}"
        if operands.get("tag")
        else f"a layout constraint, {function_of(operands)}"
    )
