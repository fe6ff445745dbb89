"""The loops of nodes: torch/_inductor/ir.py, `ComputedBuffer.simplify_and_reorder`; sizevars.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source, alike
from inductor_probe.catalogue.shared import unless
from inductor_probe.model.decision import Decision


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


def _reads_apart(decision: Decision) -> bool:
    """Whether a read has gaps or another order, which a copy mends: no reversed and no repeated one.

    An index with quotients and remainders is a view that mixes dimensions of what may well be contiguous.
    """
    if any(mixing in str(decision.operand("index")) for mixing in ("//", "ModularIndexing")):
        return False
    strides = (decision.operand("outer_stride"), decision.operand("inner_stride"))
    positive = all(not isinstance(stride, int) or stride > 0 for stride in strides)
    return decision.operand("does") == "read of" and None not in strides and positive


_VOTES = (
    "of {count:# access/accesses}, {votes_to_swap} {votes_to_swap:?is/are} for {first_loop} as the inner "
    "loop and {votes_to_keep} for {second_loop}"
)
_STRIDES = "the smaller stride, or none along the other loop: {accesses}"
_ORDERS = "lets loops follow the strides of accesses, or not"
_OTHER_STRIDES = Source(
    "other-strides", "let most of what is read and written be contiguous along another dimension"
)

_SIMPLIFY_AND_REORDER = "ir.py:ComputedBuffer.simplify_and_reorder"

OPERANDS = (
    Operand("sizes", "names", "of the dimensions that have more than one element"),
    Operand("loops", "names", "sizes of the loops that are left"),
    Operand("order", "names", "dimensions from the outermost loop to the innermost"),
    Operand("reduced", "flag", "these are the loops that it reduces"),
    Operand("accesses", "names", "each with its stride along each dimension"),
    Operand("count", "int", "of all accesses", "accesses"),
    Operand("dimensions", "names", "the pair that shows it"),
    *alike("votes_to_swap votes_to_keep", "int", "for the first, and the second of the pair", "accesses"),
    Operand("buffer", "text", "that is accessed"),
    Operand("partner", "text", "the node that it is to be fused with"),
    Operand("outer", "text", "a loop that stays apart"),
    Operand("inner", "text", "from this one"),
    Operand("inner_range", "size", "of the inner loop", "steps"),
    Operand("index", "text", "that keeps them apart"),
    Operand("does", "text", "read of, write of, ..."),
    *alike("outer_stride inner_stride", "size", "of that index", "elements"),
    Operand("needed_stride", "size", "that one loop would need", "elements"),
    Operand("loop", "text", "that is divided"),
    Operand("range", "size", "of that loop", "steps"),
    Operand("divisor", "size", "in an index"),
)  # fmt: skip

OUTCOMES = (
    Outcome("reordered", "the {which} of {subject} are in the order {order} ({nest})", "passed"),
    Outcome("in-order", "the {which} of {subject} are in the order of its dimensions ({nest})", "passed"),
    Outcome("merged", "the {which} of {subject} are merged into one of {nest}", "passed"),
    Outcome("separate", "the {which} of {subject} are {nest}"),
    Outcome("divided", "the loop {loop} of {subject} is divided by {divisor}, into {nest}"),
)  # fmt: skip

CAUSES = (
    Cause("strides-favour-order", "reordered", _SIMPLIFY_AND_REORDER,
        "accesses count dimensions votes_to_swap votes_to_keep", f"{_VOTES} ({_STRIDES})",
        "{votes_to_swap} of {count:# access/accesses} for this loop order, {votes_to_keep} against",
        changes=(By("pick_loop_orders", "False", _ORDERS), _OTHER_STRIDES),
        example="values.t() + 1, values: float32 (64, 128)"),
    Cause("strides-in-order", "in-order", _SIMPLIFY_AND_REORDER,
        "accesses count dimensions votes_to_swap votes_to_keep", f"{_VOTES} ({_STRIDES})",
        "{votes_to_keep} of {count:# access/accesses} for this loop order, {votes_to_swap} against",
        changes=(_OTHER_STRIDES,), example="values + 1, values: float32 (64, 128)"),
    Cause("strides-tied", "in-order", _SIMPLIFY_AND_REORDER,
        "accesses count dimensions votes_to_swap votes_to_keep",
        f"{_VOTES}, and where votes are even loops stay as they are ({_STRIDES})",
        "{votes_to_keep} of {count:# access/accesses} for each loop order", changes=(_OTHER_STRIDES,),
        example="values.t().contiguous(), values: float32 (64, 128)"),
    Cause("loop-orders-off", "in-order", _SIMPLIFY_AND_REORDER,
        "accesses count dimensions votes_to_swap votes_to_keep", f"pick_loop_orders is off[; {_VOTES}]",
        "pick_loop_orders off", remark="missed", changes=(By("pick_loop_orders", "True", _ORDERS,
        is_default=True, applies=unless("votes_to_swap", None)),),
        example="values.t() + 1, values: float32 (64, 128), with pick_loop_orders = False"),
    Cause("order-of-partner", "reordered", "scheduler.py:SchedulerNode.reorder_loops_by_dep_pair",
        "buffer partner",
        "then it accesses {buffer} in the order in which {partner|'the other node'} does, with which it "
        "is fused", "loop order of {partner|'the other node'}", changes=(By("loop_ordering_after_fusion",
        "False", "leaves loops in the order of strides; then the pair is not fused"),),
        example="(values + 1, values.t().contiguous() * 2), values: float32 (64, 128)"),
    Cause("contiguous-loops", "merged", _SIMPLIFY_AND_REORDER, "",
        "every index goes on from one step of an outer loop to the next ({shape})",
        "all accesses contiguous over {shape}", example="values + 1, values: float32 (64, 128)"),
    Cause("loops-not-contiguous", "separate", _SIMPLIFY_AND_REORDER,
        "buffer outer inner inner_range index does outer_stride inner_stride needed_stride",
        "[of {shape}, ]{outer} and {inner} stay apart: {access}[ has the stride {outer_stride} along "
        "{outer}, and one loop would need {inner_range} times that along {inner}: {needed_stride}]",
        "loops kept apart by {access}",
        test=("self.simplify(strides[k][a] * sizes[a]) == ?", "self.simplify(expr1) == ?"),
        values="needed_stride outer_stride", changes=(Source("contiguous-across",
        "let {buffer|'what is read'} be contiguous over both loops where it is made",
        applies=_reads_apart),), example="values[:, :100] + 1, values: float32 (64, 128)"),
    Cause("loops-of-partner", "separate", _SIMPLIFY_AND_REORDER,
        "partner outer inner inner_range index outer_stride inner_stride needed_stride",
        "they would be merged alone, but are as those of {partner|'the other node'}, to be fused with it, "
        "whose index {index} keeps {outer} and {inner} apart",
        "loops as {partner|'the other node'} has them",
        example="(values + 1, values + rows[:, None]), values: float32 (64, 4096), rows: float32 (64,)"),
    Cause("divided-index", "divided", _SIMPLIFY_AND_REORDER, "loop range divisor",
        "its {range} steps are divided by {divisor} in an index, which has no division when they are two "
        "loops", "an index divided by {divisor}",
        example="values + groups[:, :, None].expand(2, 32, 30).reshape(2, 1, 960)"),
)  # fmt: skip

KIND = Kind(
    "loops", "in which order a node has its loops, and which of them are merged or divided",
    OUTCOMES, OPERANDS, CAUSES, common="sizes loops order reduced", derived=_derived,
    derives="which nest shape first_loop second_loop access",
)  # fmt: skip
