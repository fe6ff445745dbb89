"""Vectorisation of C++ loop nests: what is missed, and what turns it (shown in `tests/proving_ground`)."""

from __future__ import annotations

import re

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.analysis.graph import index_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision

_WITHOUT_HEURISTICS = By("cpp.enable_tiling_heuristics", "False", safe=True)
_INDIRECT = re.compile(r"\b(indirect|tmp)\d+")
"""What was loaded or computed before, in an index."""


def _reads_strided(decision: Decision, _: CompiledGraph) -> bool:
    """Whether a named load is strided: a copy makes that contiguous, no reversed or indirect one."""
    columns = [decision.operand(name) for name in ("node_operations", "indices", "strides")]
    loads = zip(*(column if isinstance(column, tuple) else () for column in columns), strict=False)
    return any(
        operation == "load" and stride != "-1" and not _INDIRECT.search(index)
        for operation, index, stride in loads
    )


def _has_longer_loop(decision: Decision, graph: CompiledGraph) -> bool:
    """Whether another loop of its nodes has as many steps as the vectorised one needs."""
    limit = decision.operand("range_limit") or decision.operand("factor")
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


_CONTIGUOUS = Source("contiguous-operand", safe=True, applies=_reads_strided)
_LONGER = Source("longer-range", safe=True, applies=_has_longer_loop)

RULES = Rules(
    kinds={
        "scalar": "missed",
        "vectorised": "passed",
        "underfilled": "missed",
        "half-width": "missed",
        "lane-by-lane": "missed",
        "tail-vectorisation-off": "missed",
        "no-loops": "analysis",
    },
    changes={
        "no-vector-isa": (By("cpp.simdlen", "None", is_default=True, safe=True),),
        "dtype-not-vectorisable": (Source("vectorisable-dtype"),),
        "non-contiguous-accesses": (_WITHOUT_HEURISTICS, _CONTIGUOUS),
        "short-inner-range": (_WITHOUT_HEURISTICS, Source("longer-inner-range", applies=_has_longer_loop)),
        "range-below-vector": (_LONGER,),
        "short-low-precision-range": (_LONGER,),
        "tail-vectorisation-off": (By("cpp.enable_loop_tail_vec", "True", is_default=True, safe=True),),
        "constant-stride": (_CONTIGUOUS,),
        "varying-stride": (_CONTIGUOUS,),
        "atomic-access": (By("cpp.threads", "1", safe=True),),
    },
)
