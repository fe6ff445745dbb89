"""Fusion of scheduler nodes: what is missed, and what turns it (shown in `tests/proving_ground`)."""

from __future__ import annotations

import re
from collections.abc import Callable

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def _operand(name: str) -> Callable[[Decision], str | None]:
    """Return what reads an operand as the value to try: the least that would do."""

    def value(decision: Decision) -> str | None:
        operand = decision.operand(name)
        return None if operand is None else str(operand)

    return value


def _pairwise_attempts(decision: Decision) -> str:
    """Return how many users of a buffer a node is to be paired with: up to this one, or all."""
    return str(decision.operand("distance") or len(decision.subjects))


_LOADED = re.compile(r"\b(?:tmp|indirect)\d+")


def _is_affine(decision: Decision, _: CompiledGraph) -> bool:
    """Whether no index is itself loaded (`c2 + 256*tmp0`): no order of loops makes a gather equal to it."""
    indices = (str(decision.operand(f"{which}_index")) for which in ("first", "second"))
    return not any(map(_LOADED.search, indices))


def _is_elsewhere(decision: Decision, graph: CompiledGraph) -> bool:
    """Whether accesses without a gather differ by their index, and not by how far they go alone."""
    is_same = decision.operand("first_index") == decision.operand("second_index")
    return _is_affine(decision, graph) and not is_same


_EQUAL_ACCESS = Source("equal-access", applies=_is_elsewhere)
_EQUAL_EXTENT = Source(
    "equal-extent",
    applies=lambda decision, graph: _is_affine(decision, graph) and not _is_elsewhere(decision, graph),
)
_EQUAL_RANGES = Source("equal-ranges")

_NOT_STRICT = ("elements", "rows-per-column", "rows")
"""Checks of `MixOrderReduction.can_fuse` that are not made in its mode that is not strict."""

RULES = Rules(
    kinds={
        "fused": "passed",
        "refused": "missed",
        "undone": "missed",
        "postponed": "analysis",
        "not-tried": "analysis",
        "intermediate-node": "analysis",
        "cycle": "analysis",
        "pair-limit": "missed",
    },
    changes={
        "accesses-differ": (_EQUAL_ACCESS, _EQUAL_EXTENT),
        "loop-order-differs": (
            By(
                "loop_ordering_after_fusion", "True", is_default=True, safe=True,
                applies=lambda decision, _: decision.operand("cpu") is False,
            ),
            _EQUAL_ACCESS,
        ),
        "loop-sizes-differ": (_EQUAL_RANGES,),
        "mix-order-limit": (
            By(
                "triton.mix_order_reduction", "True", is_default=True, safe=True,
                applies=lambda decision, _: decision.operand("check") == "off",
            ),
            By(
                "triton.mix_order_reduction_non_strict_mode", "True", safe=True,
                applies=lambda decision, _: decision.operand("check") in _NOT_STRICT,
            ),
        ),
        "sizes-differ": (Source("equal-size"),),
        "epilogue-fusion-off": (
            By(
                "epilogue_fusion", "True", is_default=True, safe=True,
                applies=lambda decision, _: not decision.operand("template_setting"),
            ),
        ),
        "prologue-fusion-off": (By("prologue_fusion", "True", is_default=True, safe=True),),
        "slower-when-timed": (By("benchmark_fusion", "False", is_default=True, safe=True),),
        "dependency-differs": (_EQUAL_ACCESS, _EQUAL_EXTENT),
        "in-place-write": (Source("out-of-place"),),
        "few-shared-bytes": (
            By("score_fusion_memory_threshold", _operand("shared_bytes"), present="threshold", safe=True),
        ),
        "fusion-size-limit": (By("max_fusion_size", _operand("nodes"), present="limit", safe=True),),
        "too-many-buffers": (By("max_fusion_unique_io_buffers", "None", is_default=True, safe=True),),
        "horizontal-size-limit": (
            By("cpp.max_horizontal_fusion_size", _operand("nodes"), present="limit", safe=True),
        ),
        "pair-limit": (
            By(
                "max_fusion_buffer_group_pairwise_attempts", _pairwise_attempts, present="limit", safe=True
            ),
        ),
        "loop-ranges-differ": (_EQUAL_RANGES,),
        "fused-ranges": (_EQUAL_RANGES,),
        "no-common-outer-loop": (Source("common-outer-dimension"),),
        "tilings-differ": (By("triton.tiling_prevents_pointwise_fusion", "False", safe=True),),
        "tiling-not-of-reduction": (By("triton.tiling_prevents_reduction_fusion", "False", safe=True),),
    },
)  # fmt: skip
