"""Words for tiles of Triton kernels: codegen/simd.py, `SIMDScheduling.get_tiling_and_scores`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the loop over what is reduced, which is no tile that anything chose."""
    tiles = [tile.partition("=")[0] for tile in str(operands.get("tiling", "")).split(", ")]
    reduced = [tile for tile in tiles if tile.startswith("r")]
    return {"reduced": tuple(reduced), "reduced_n": len(reduced)} if reduced else {}


WORDS = KindWords(
    outcomes={
        "one-d-tiles": "{subject} {n:?is/are} tiled in one dimension ({tiling})",
        "two-d-tiles": "{subject} {n:?is/are} tiled in two dimensions "
        "({tiling}[; {reduced} {reduced_n:?is/are} reduced])",
        "three-d-tiles": "{subject} {n:?is/are} tiled in three dimensions "
        "({tiling}[; {reduced} {reduced_n:?is/are} reduced])",
        "four-d-tiles": "{subject} {n:?is/are} tiled in four dimensions "
        "({tiling}[; {reduced} {reduced_n:?is/are} reduced])",
    },
    causes={
        "coalescing": CauseWords(
            "it has the highest score, by the bytes that are contiguous along its dimensions, of which a "
            "dimension of fewer than 8 elements counts a part[ ({candidates:4})]",
            "most is coalesced",
        ),
        "strides": CauseWords(
            "accesses have stride 1 along these loops[ ({candidates:4})]; coalesced bytes were not counted",
            "stride 1 along its loops",
        ),
        "one-candidate": CauseWords("no access asks for another tiling", "no other candidate"),
        "tile-limit": CauseWords(
            "triton.max_tiles is {limit}[, though another tiling is scored higher ({candidates:4})]",
            "max_tiles {limit}",
        ),
        "loops-do-not-divide": CauseWords(
            "{better} is scored higher, and does not divide the loops of each of its nodes ({nodes:4})",
            "{better} divides not all loops",
        ),
        "reductions-not-tiled": CauseWords(
            "triton.tile_reductions is off, and coalesced bytes were not counted", "tile_reductions off"
        ),
        "n-d-tiles-preferred": CauseWords(
            "triton.prefer_nd_tiling prefers as many dimensions as its loops have", "prefer_nd_tiling"
        ),
        "matrix-product": CauseWords(
            "it is a matrix product of Triton's own, with its rows, columns and sum", "matrix product"
        ),
    },
    changes={
        "triton.tiling_prevents_pointwise_fusion": "keeps nodes apart that need different tiles; time it",
        "triton.max_tiles": "limits the dimensions of tiles, or does not; time it",
        "triton.tile_reductions": "tiles reductions, too",
        "triton.prefer_nd_tiling": "takes tiles by their score",
    },
    derived=_derived,
)
