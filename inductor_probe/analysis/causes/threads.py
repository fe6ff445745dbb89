"""Threads of C++ loop nests: what is missed, and what turns it (shown in `tests/proving_ground`)."""

from __future__ import annotations

from collections.abc import Callable

from inductor_probe.analysis.causes.rules import By, Rules, Source
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


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


RULES = Rules(
    kinds={
        "parallel": "passed",
        "few-vector-steps": "missed",
        "one-thread-set": "missed",
        "reduction-boundary": "missed",
        "reduction-under-vector-loop": "missed",
        "little-work-per-iteration": "missed",
    },
    changes={
        "little-work": (By("cpp.min_chunk_size", _size_of("work_per_thread"), "min_chunk_size", safe=True),),
        "little-work-per-iteration": (
            By("cpp.min_chunk_size", _size_of("work_of_next_loop"), "min_chunk_size", safe=True),
        ),
        "one-thread-set": (
            By("cpp.threads", "-1", "cpp_threads", is_default=True, safe=True, applies=_is_by_setting),
            Source("set-num-threads", safe=True, applies=_is_by_torch),
        ),
        "reduction-boundary": (Source("two-step-reduction", safe=True),),
        "reduction-under-vector-loop": (By("cpp.enable_loop_tail_vec", "True", is_default=True, safe=True),),
        "dynamic-threads": (By("cpp.dynamic_threads", "False", is_default=True, safe=True),),
    },
)
