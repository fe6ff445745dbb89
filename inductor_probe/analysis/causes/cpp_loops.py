"""Vectors and threads of C++ loop nests: what is missed, what turns it (shown in `tests/proving_ground`)."""

from __future__ import annotations

import re
from collections.abc import Callable

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.analysis.graph import index_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision

_WITHOUT_HEURISTICS = By("cpp.enable_tiling_heuristics", "False")
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
    """Whether a loop of its nodes that is not vectorised has as many steps as the vectorised one needs."""
    limit = decision.operand("range_limit") or decision.operand("factor")
    tiled = decision.operand("ranges")
    vectorised = tiled if isinstance(tiled, tuple) else ()
    leaves = index_of(graph).nodes.leaf
    sizes = [
        size
        for group in decision.subjects
        for name in group
        if name in leaves
        for loops in leaves[name].sizes or ()
        for size in loops
    ]
    others = [size for size in sizes if str(size) not in vectorised]
    return isinstance(limit, int | float) and any(isinstance(size, str) or size >= limit for size in others)


_CONTIGUOUS = Source("contiguous-operand", applies=_reads_strided)
_LONGER = Source("longer-range", applies=_has_longer_loop)

VECTORISATION = Rules(
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
        "no-vector-isa": (By("cpp.simdlen", "None", is_default=True),),
        "dtype-not-vectorisable": (Source("vectorisable-dtype"),),
        "non-contiguous-accesses": (_WITHOUT_HEURISTICS, _CONTIGUOUS),
        "short-inner-range": (_WITHOUT_HEURISTICS, Source("longer-inner-range", applies=_has_longer_loop)),
        "range-below-vector": (_LONGER,),
        "short-low-precision-range": (_LONGER,),
        "tail-vectorisation-off": (By("cpp.enable_loop_tail_vec", "True", is_default=True),),
        "constant-stride": (_CONTIGUOUS,),
        "varying-stride": (_CONTIGUOUS,),
        "atomic-access": (By("cpp.threads", "1"),),
    },
)


def _size_of(operand: str) -> Callable[[Decision], str | None]:
    """Return what makes a chunk size that is just small enough for the work of one thread."""

    def value(decision: Decision) -> str | None:
        work = decision.operand(operand)
        return str(work) if isinstance(work, int) and work > 0 else None

    return value


def _is_by_setting(decision: Decision, _: CompiledGraph) -> bool:
    return decision.operand("cpp_threads") == 1


def _is_by_torch(decision: Decision, graph: CompiledGraph) -> bool:
    return not _is_by_setting(decision, graph)


THREADS = Rules(
    kinds={
        "parallel": "passed",
        "few-vector-steps": "missed",
        "outer-loops-rounded": "missed",
        "one-thread-set": "missed",
        "reduction-boundary": "missed",
        "reduction-under-vector-loop": "missed",
        "little-work-per-iteration": "missed",
    },
    changes={
        "little-work": (By("cpp.min_chunk_size", _size_of("work_per_thread"), "min_chunk_size"),),
        "little-work-per-iteration": (
            By("cpp.min_chunk_size", _size_of("work_of_next_loop"), "min_chunk_size"),
        ),
        "one-thread-set": (
            By("cpp.threads", "-1", "cpp_threads", is_default=True, applies=_is_by_setting),
            Source("set-num-threads", applies=_is_by_torch),
        ),
        "outer-loops-rounded": (Source("whole-vector"),),
        "reduction-boundary": (Source("two-step-reduction"),),
        "reduction-under-vector-loop": (By("cpp.enable_loop_tail_vec", "True", is_default=True),),
        "dynamic-threads": (By("cpp.dynamic_threads", "False", is_default=True),),
    },
)
