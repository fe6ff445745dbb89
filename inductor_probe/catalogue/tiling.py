"""Tiles of Triton kernels: codegen/simd.py, `SIMDScheduling.get_tiling_and_scores`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome
from inductor_probe.catalogue.shared import where
from inductor_probe.model.decision import Decision


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the loop over what is reduced, which is no tile that anything chose."""
    tiles = [tile.partition("=")[0] for tile in str(operands.get("tiling", "")).split(", ")]
    reduced = [tile for tile in tiles if tile.startswith("r")]
    return {"reduced": tuple(reduced), "reduced_n": len(reduced)} if reduced else {}


def _has_several_tiles(decision: Decision) -> bool:
    """Whether there is more than one tile beside those of a reduction."""
    tiles = str(decision.operand("tiling")).split(", ")
    return sum(not tile.startswith("r") for tile in tiles) > 1


_ANY = "one-d-tiles two-d-tiles three-d-tiles four-d-tiles"
_TILES = "limits the dimensions of tiles, or does not; time it"
_ONE_TILE = By("triton.max_tiles", "1", _TILES, applies=_has_several_tiles)

_GET_TILING_AND_SCORES = "codegen/simd.py:SIMDScheduling.get_tiling_and_scores"

OPERANDS = (
    Operand("tiling", "text", "sizes by tile: y=64, x=256"),
    Operand("candidates", "names", "each with its score, the best first"),
    Operand("limit", "int", "tiles, by `triton.max_tiles`"),
    Operand("better", "text", "the tiling that is scored higher"),
    Operand("nodes", "names", "each with its loops"),
    Operand("prefer_nd_tiling", "flag", "without it the setting would change nothing"),
)  # fmt: skip

OUTCOMES = (
    Outcome("one-d-tiles", "{subject} {n:?is/are} tiled in one dimension ({tiling})"),
    Outcome("two-d-tiles",
        "{subject} {n:?is/are} tiled in two dimensions ({tiling}[; {reduced} {reduced_n:?is/are} reduced])"),
    Outcome("three-d-tiles",
        "{subject} {n:?is/are} tiled in three dimensions ({tiling}[; {reduced} {reduced_n:?is/are} "
        "reduced])"),
    Outcome("four-d-tiles",
        "{subject} {n:?is/are} tiled in four dimensions ({tiling}[; {reduced} {reduced_n:?is/are} "
        "reduced])"),
)  # fmt: skip

CAUSES = (
    Cause("coalescing", _ANY, _GET_TILING_AND_SCORES, "",
        "it has the highest score, by the bytes that are contiguous along its dimensions, of which a "
        "dimension of fewer than 8 elements counts a part[ ({candidates:4})]", "most is coalesced",
        changes=(_ONE_TILE,), test=("cls.tiling_is_compatible(? or ?", "cand.tiling == default_tiling"),
        example="values.t().contiguous(), values: float32 (256, 512)"),
    Cause("strides", _ANY, _GET_TILING_AND_SCORES, "",
        "accesses have stride 1 along these loops[ ({candidates:4})]; coalesced bytes were not counted",
        "stride 1 along its loops", changes=(_ONE_TILE,),
        test="(tiling := cls.get_first_compatible_tiling(?",
        example="values.t().contiguous(), with triton.coalesce_tiling_analysis = False"),
    Cause("one-candidate", _ANY, _GET_TILING_AND_SCORES, "",
        "no access asks for another tiling", "no other candidate",
        example="values + 1, values: float32 (256, 512)"),
    Cause("tile-limit", _ANY, _GET_TILING_AND_SCORES, "limit",
        "triton.max_tiles is {limit}[, though another tiling is scored higher ({candidates:4})]",
        "max_tiles {limit}", changes=(By("triton.max_tiles", "None", _TILES, is_default=True),),
        example="values.t().contiguous(), values: float32 (256, 512), with triton.max_tiles = 1"),
    Cause("loops-do-not-divide", _ANY, _GET_TILING_AND_SCORES, "better nodes",
        "{better} is scored higher, and does not divide the loops of each of its nodes ({nodes:4})",
        "{better} divides not all loops", changes=(By("triton.tiling_prevents_pointwise_fusion", "True",
        "keeps nodes apart that need different tiles; time it", is_default=True),),
        example="what is written across its loops, and what is made of it in loops that do not divide "
        "these, with triton.coalesce_tiling_analysis = False, triton.tiling_prevents_pointwise_fusion = "
        "False"),
    Cause("reductions-not-tiled", _ANY, _GET_TILING_AND_SCORES, "prefer_nd_tiling",
        "triton.tile_reductions is off, and coalesced bytes were not counted", "tile_reductions off",
        changes=(By("triton.tile_reductions", "True", "tiles reductions, too",
        applies=where("prefer_nd_tiling", True)),),
        example="values[:, :, :8].sum((1, 2)), with triton.coalesce_tiling_analysis = False, "
        "triton.prefer_nd_tiling = True"),
    Cause("n-d-tiles-preferred", _ANY, _GET_TILING_AND_SCORES, "",
        "triton.prefer_nd_tiling prefers as many dimensions as its loops have", "prefer_nd_tiling",
        changes=(By("triton.prefer_nd_tiling", "False", "takes tiles by their score", is_default=True),),
        example="values[:, :128] + 1, values: float32 (256, 512), with triton.prefer_nd_tiling = True"),
    Cause("matrix-product", "three-d-tiles", _GET_TILING_AND_SCORES, "",
        "it is a matrix product of Triton's own, with its rows, columns and sum", "matrix product",
        test="node.node.get_reduction_type() == ?",
        example="first @ second, with triton.native_matmul = True"),
)  # fmt: skip

KIND = Kind(
    "tiling", "into which tiles a Triton kernel divides its elements",
    OUTCOMES, OPERANDS, CAUSES, common="tiling candidates", derived=_derived, derives="reduced reduced_n",
)  # fmt: skip
