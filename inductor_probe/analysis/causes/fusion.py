"""Fusion of scheduler nodes: what is missed, and what turns it (shown in `tests/proving_ground`)."""

from __future__ import annotations

import math
from collections.abc import Callable

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.analysis.index import parse_index
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


def _uses_same_elements(decision: Decision, _: CompiledGraph) -> bool:
    """Whether accesses are shown to reach the same elements, in another order: a copy in that order helps.

    No order makes a slice of a buffer equal to all of it, or to another slice.
    """
    first, second = (_elements(decision, which) for which in ("first", "second"))
    is_same = decision.operand("first_index") == decision.operand("second_index")
    return first is not None and first == second and not is_same


def _elements(decision: Decision, which: str) -> tuple[object, ...] | None:
    """Return what is equal for accesses to the same elements: where they begin, and strides with their sizes.

    `64*d0 + d1` over d0: 8, d1: 64 and `63 - d1 + 64*d0` are 512 elements from 0 on. None where the index is
    no sum of loops with constant strides, or not printed.
    """
    printed, ranges = decision.operand(f"{which}_index"), decision.operand(f"{which}_ranges")
    if not isinstance(printed, str) or not isinstance(ranges, str) or printed == "all":
        return None
    sizes = dict(pair.split(": ", 1) for pair in ranges.split(", ") if ": " in pair)
    try:
        index = parse_index(printed)
    except ValueError:
        return None
    if not index.names <= sizes.keys():
        return None
    first = dict(index.terms).get((), 0)
    runs: list[tuple[int, int]] = []
    for name, text in sizes.items():
        stride = index.stride(name)
        if not isinstance(stride, int) or not text.isdecimal():
            return None
        size = int(text)
        if stride and size > 1:
            first += min(stride, 0) * (size - 1)
            runs.append((abs(stride), size))
    merged: list[tuple[int, int]] = []
    for stride, size in sorted(runs):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = merged[-1][0], merged[-1][1] * size
        else:
            merged.append((stride, size))
    return first, *merged


_EQUAL_ACCESS = Source("equal-access", applies=_uses_same_elements)


def _has_as_many_points(decision: Decision, _: CompiledGraph) -> bool:
    """Whether loops of both run over as many points: else no order of dimensions makes them equal."""
    first, second = (_points(decision, which) for which in ("first", "second"))
    return first is not None and first == second


def _points(decision: Decision, which: str) -> int | None:
    texts = [str(decision.operand(f"{which}_{name}")) for name in ("ranges", "reduction")]
    sizes = [size.strip() for text in texts for size in text.strip("()").split(",") if size.strip()]
    return math.prod(map(int, sizes)) if all(map(str.isdecimal, sizes)) else None


def _has_outer_loops(decision: Decision, _: CompiledGraph) -> bool:
    """Whether both have a loop that is not reduced: what reduces to one value has none in common."""
    return all(decision.operand(f"{which}_ranges") not in (None, "()") for which in ("first", "second"))


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
        "accesses-differ": (_EQUAL_ACCESS,),
        "loop-order-differs": (
            By(
                "loop_ordering_after_fusion", "True", is_default=True,
                applies=lambda decision, _: decision.operand("cpu") is False,
            ),
            _EQUAL_ACCESS,
        ),
        "loop-sizes-differ": (_EQUAL_RANGES,),
        "mix-order-limit": (
            By(
                "triton.mix_order_reduction", "True", is_default=True,
                applies=lambda decision, _: decision.operand("check") == "off",
            ),
            By(
                "triton.mix_order_reduction_non_strict_mode", "True",
                applies=lambda decision, _: decision.operand("check") in _NOT_STRICT,
            ),
        ),
        "sizes-differ": (Source("equal-size"),),
        "epilogue-fusion-off": (
            By(
                "epilogue_fusion", "True", is_default=True,
                applies=lambda decision, _: not decision.operand("template_setting"),
            ),
        ),
        "prologue-fusion-off": (By("prologue_fusion", "True", is_default=True),),
        "slower-when-timed": (By("benchmark_fusion", "False", is_default=True),),
        "dependency-differs": (_EQUAL_ACCESS,),
        "in-place-write": (Source("out-of-place"),),
        "few-shared-bytes": (
            By("score_fusion_memory_threshold", _operand("shared_bytes"), present="threshold"),
        ),
        "fusion-size-limit": (By("max_fusion_size", _operand("nodes"), present="limit"),),
        "too-many-buffers": (By("max_fusion_unique_io_buffers", "None", is_default=True),),
        "horizontal-size-limit": (
            By("cpp.max_horizontal_fusion_size", _operand("nodes"), present="limit"),
        ),
        "pair-limit": (
            By(
                "max_fusion_buffer_group_pairwise_attempts", _pairwise_attempts, present="limit"
            ),
        ),
        "loop-ranges-differ": (Source("equal-ranges", applies=_has_as_many_points),),
        "fused-ranges": (_EQUAL_RANGES,),
        "no-common-outer-loop": (Source("common-outer-dimension", applies=_has_outer_loops),),
        "tilings-differ": (By("triton.tiling_prevents_pointwise_fusion", "False"),),
        "tiling-not-of-reduction": (By("triton.tiling_prevents_reduction_fusion", "False"),),
    },
)  # fmt: skip
