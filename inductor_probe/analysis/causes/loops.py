"""Loops of nodes, and tiles, configs and index types of Triton kernels: what turns them.

Each is shown in `tests/proving_ground`.
"""

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


_OTHER_STRIDES = Source("other-strides")

LOOPS = Rules(
    kinds={"reordered": "passed", "merged": "passed", "in-order": "passed", "loop-orders-off": "missed"},
    changes={
        "strides-favour-order": (By("pick_loop_orders", "False"), _OTHER_STRIDES),
        "strides-in-order": (_OTHER_STRIDES,),
        "strides-tied": (_OTHER_STRIDES,),
        "loop-orders-off": (By("pick_loop_orders", "True", is_default=True, applies=_would_reorder),),
        "order-of-partner": (By("loop_ordering_after_fusion", "False"),),
        "loops-not-contiguous": (Source("contiguous-across", applies=_reads_apart),),
    },
)


def _has_several_tiles(decision: Decision, _: CompiledGraph) -> bool:
    """Whether there is more than one tile beside those of a reduction."""
    tiles = str(decision.operand("tiling")).split(", ")
    return sum(not tile.startswith("r") for tile in tiles) > 1


_ONE_TILE = By("triton.max_tiles", "1", applies=_has_several_tiles)

TILING = Rules(
    changes={
        "coalescing": (_ONE_TILE,),
        "strides": (_ONE_TILE,),
        "loops-do-not-divide": (
            By("triton.tiling_prevents_pointwise_fusion", "True", is_default=True),
        ),
        "tile-limit": (By("triton.max_tiles", "None", is_default=True),),
        "reductions-not-tiled": (
            By(
                "triton.tile_reductions", "True",
                applies=lambda decision, _: decision.operand("prefer_nd_tiling") is True,
            ),
        ),
        "n-d-tiles-preferred": (By("triton.prefer_nd_tiling", "False", is_default=True),),
    },
)  # fmt: skip


_ALL = By("max_autotune_pointwise", "True")

CONFIGS = Rules(
    changes={
        "pointwise-autotuning": (By("triton.autotune_pointwise", "False"),),
        "pointwise-autotuning-off": (
            By("triton.autotune_pointwise", "True", is_default=True),
            _ALL,
        ),
        "one-input-one-output": (_ALL,),
        "three-loops": (_ALL,),
        "known-hint": (_ALL,),
        "foreach-warps": (_ALL,),
        "max-autotune": (
            By("max_autotune_pointwise", "False", is_default=True),
            By("max_autotune", "False", is_default=True),
        ),
        "deterministic": (By("deterministic", "False", is_default=True),),
        "combo-kernel": (By("combo_kernels", "False", is_default=True),),
    },
)


INDEX_WIDTH = Rules(
    kinds={"int32": "passed", "int64": "missed"},
    changes={
        "numel-exceeds-int32": (Source("smaller-kernel"),),
        "buffer-exceeds-int32": (Source("smaller-buffer"),),
        "symbolic-size": (Source("known-sizes"),),
    },
)
