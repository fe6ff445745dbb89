"""The rules of each kind of decision."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.analysis.causes import (
    configs,
    copies,
    cudagraphs,
    fallback,
    freezing,
    fusion,
    index_width,
    layout,
    loops,
    realization,
    reduction,
    rewrite,
    threads,
    tiling,
    vectorisation,
)
from inductor_probe.analysis.causes.rules import Rules
from inductor_probe.model.decision import DecisionKind

RULES: Mapping[DecisionKind, Rules] = {
    "layout": layout.RULES,
    "copy": copies.RULES,
    "realization": realization.RULES,
    "vectorisation": vectorisation.RULES,
    "fallback": fallback.RULES,
    "reduction": reduction.RULES,
    "index-width": index_width.RULES,
    "threads": threads.RULES,
    "rewrite": rewrite.RULES,
    "cudagraphs": cudagraphs.RULES,
    "freezing": freezing.RULES,
    "fusion": fusion.RULES,
    "loops": loops.RULES,
    "tiling": tiling.RULES,
    "configs": configs.RULES,
}


def rules_of(kind: DecisionKind) -> Rules:
    """Return the rules of a kind; empty ones for a kind without rows."""
    return RULES.get(kind, Rules())
