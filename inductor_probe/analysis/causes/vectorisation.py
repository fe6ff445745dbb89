"""Vectorisation of C++ loop nests: what is missed, and what turns it (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.layouts import layout_rows
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision

_WITHOUT_HEURISTICS = By("cpp.enable_tiling_heuristics", "False", safe=True)


def _reads_strided(decision: Decision, graph: CompiledGraph) -> bool:
    """Whether a node reads with a stride above 1: a copy makes that contiguous, and no reversed read."""
    nodes = {name for group in decision.subjects for name in group}
    return any(
        access.node in nodes and access.pattern.kind == "strided"
        for row in layout_rows(graph).values()
        for access in row.reads
    )


def _has_longer_loop(decision: Decision, graph: CompiledGraph) -> bool:
    """Whether another loop of its nodes has as many steps as the innermost one needs."""
    limit = decision.operand("range_limit")
    leaves = index_of(graph).nodes.leaf
    sizes = [
        size
        for group in decision.subjects
        for name in group
        if name in leaves
        for loops in leaves[name].sizes or ()
        for size in loops
    ]
    return isinstance(limit, int | float) and any(isinstance(size, str) or size >= limit for size in sizes)


RULES = Rules(
    kinds={"scalar": "missed", "vectorised": "passed", "no-loops": "analysis"},
    changes={
        "no-vector-isa": (By("cpp.simdlen", "None", is_default=True, safe=True),),
        "dtype-not-vectorisable": (Source("vectorisable-dtype"),),
        "non-contiguous-accesses": (
            _WITHOUT_HEURISTICS,
            Source("contiguous-operand", applies=_reads_strided),
        ),
        "short-inner-range": (_WITHOUT_HEURISTICS, Source("longer-inner-range", applies=_has_longer_loop)),
    },
)
