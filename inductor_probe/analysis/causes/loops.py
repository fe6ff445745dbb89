"""Loops of nodes: what turns their order and merging (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def _would_reorder(decision: Decision, _: CompiledGraph) -> bool:
    """Whether a pair of loops has more votes to be swapped."""
    return decision.operand("votes_to_swap") is not None


def _reads_apart(decision: Decision, _: CompiledGraph) -> bool:
    """Whether a read has gaps or another order, which a copy mends: no reversed and no repeated one.

    An index with quotients and remainders is a view that mixes dimensions of what may well be contiguous.
    """
    if any(mixing in str(decision.operand("index")) for mixing in ("//", "ModularIndexing")):
        return False
    strides = (decision.operand("outer_stride"), decision.operand("inner_stride"))
    positive = all(not isinstance(stride, int) or stride > 0 for stride in strides)
    return decision.operand("does") == "read of" and None not in strides and positive


_OTHER_STRIDES = Source("other-strides", safe=True)

RULES = Rules(
    kinds={"reordered": "passed", "merged": "passed", "in-order": "passed", "loop-orders-off": "missed"},
    changes={
        "strides-favour-order": (By("pick_loop_orders", "False", safe=True), _OTHER_STRIDES),
        "strides-in-order": (_OTHER_STRIDES,),
        "strides-tied": (_OTHER_STRIDES,),
        "loop-orders-off": (
            By("pick_loop_orders", "True", is_default=True, safe=True, applies=_would_reorder),
        ),
        "order-of-partner": (By("loop_ordering_after_fusion", "False", safe=True),),
        "loops-not-contiguous": (Source("contiguous-across", safe=True, applies=_reads_apart),),
    },
)
