"""Tiles of Triton kernels: what turns them (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def _has_several_tiles(decision: Decision, _: CompiledGraph) -> bool:
    """Whether there is more than one tile beside those of a reduction."""
    tiles = str(decision.operand("tiling")).split(", ")
    return sum(not tile.startswith("r") for tile in tiles) > 1


_ONE_TILE = By("triton.max_tiles", "1", safe=True, applies=_has_several_tiles)

RULES = Rules(
    changes={
        "coalescing": (_ONE_TILE,),
        "strides": (_ONE_TILE,),
        "loops-do-not-divide": (
            By("triton.tiling_prevents_pointwise_fusion", "True", is_default=True, safe=True),
        ),
        "tile-limit": (By("triton.max_tiles", "None", is_default=True, safe=True),),
        "reductions-not-tiled": (
            By(
                "triton.tile_reductions", "True", safe=True,
                applies=lambda decision, _: decision.operand("prefer_nd_tiling") is True,
            ),
        ),
        "n-d-tiles-preferred": (By("triton.prefer_nd_tiling", "False", is_default=True, safe=True),),
    },
)  # fmt: skip
