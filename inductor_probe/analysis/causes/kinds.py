"""The rules of each kind of decision."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.analysis.causes import (
    cpp_loops,
    fallback,
    fusion,
    graph_level,
    layout,
    loops,
    realization,
    reduction,
)
from inductor_probe.analysis.causes.rules import Rules
from inductor_probe.model.decision import DecisionKind

RULES: Mapping[DecisionKind, Rules] = {
    "layout": layout.LAYOUT,
    "copy": layout.COPIES,
    "realization": realization.RULES,
    "vectorisation": cpp_loops.VECTORISATION,
    "fallback": fallback.RULES,
    "reduction": reduction.RULES,
    "index-width": loops.INDEX_WIDTH,
    "threads": cpp_loops.THREADS,
    "rewrite": graph_level.REWRITE,
    "cudagraphs": graph_level.CUDAGRAPHS,
    "freezing": graph_level.FREEZING,
    "fusion": fusion.RULES,
    "loops": loops.LOOPS,
    "tiling": loops.TILING,
    "configs": loops.CONFIGS,
}


def rules_of(kind: DecisionKind) -> Rules:
    """Return the rules of a kind; empty ones for a kind without rows."""
    return RULES.get(kind, Rules())
