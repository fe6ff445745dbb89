"""What is worth trying otherwise in a graph, and which changed decisions a candidate names."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.analysis.flips import flips_of_decision
from inductor_probe.model.cause import Cause, Change
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.diff import DecisionChange
from inductor_probe.model.flip import Flip
from inductor_probe.model.setting import CONFIG
from inductor_probe.model.whatif import Candidate

_SLOW = ("autotune", "tuning", "benchmark", "multi_kernel")
"""In names of settings with which inductor times code while it compiles: what costs most is tried last."""
_SHORT = "inductor"
_OF_THREADS = ("inductor.cpp.threads", "inductor.cpp.dynamic_threads", "inductor.cpp.min_chunk_size")
"""Settings by which inductor divides loops among threads: `decide_parallel_depth` of its C++ backend."""


def candidates_of(graphs: Iterable[CompiledGraph], threads: int | None = None) -> tuple[Candidate, ...]:
    """Return each setting that `probe why` offers for a decision of one of the graphs, then each flip.

    A setting that is offered for many subjects is one candidate: it holds for all of them. Flips come in the
    order of the ledger: missed optimisations first, by what is at stake. Settings with which inductor times
    code are last of all.

    Args:
        threads: with how many they are to be timed, where that is known. With one, what changes how many
            threads a loop has is left out, whatever it is offered for: a parallel region, or an atomic
            addition in it, costs time there and can gain nothing, so that one thread instead of several is a
            gain that says nothing of a program with several.
    """
    settings: dict[tuple[str, str], None] = {}
    flips: dict[Flip, None] = {}
    graphs = tuple(graphs)
    for graph in graphs:
        for cause in graph_causes(graph).causes:
            if threads == 1 and cause.decision and cause.decision.kind == "threads":
                continue
            pairs = [pair for change in cause.changes if (pair := _pair(change))]
            settings.update(
                dict.fromkeys(pair for pair in pairs if threads != 1 or pair[0] not in _OF_THREADS)
            )
            if cause.decision is None:
                continue
            scope = graph.name if len(graphs) > 1 else None
            turned = flips_of_decision(graph, cause.decision)
            flips.update(dict.fromkeys(replace(flip, graph=scope) for flip in turned))
    offered = [
        *(Candidate(settings=(pair,)) for pair in settings),
        *(Candidate(flips=(flip,)) for flip in flips),
    ]
    return tuple(sorted(offered, key=times_code))  # stable: all else stays in order


def times_code(candidate: Candidate) -> bool:
    """Whether inductor times code while it compiles a candidate: nothing else may run beside it then."""
    return any(word in name for name, _ in candidate.settings for word in _SLOW)


def asked_changes(
    changes: Iterable[DecisionChange], candidate: Candidate, a: CompiledGraph, b: CompiledGraph
) -> tuple[DecisionChange, ...]:
    """Return the changed decisions that a candidate names: by a setting that governs one, or by a flip.

    All others fell otherwise as a consequence. A setting governs a decision where `probe why` offers it, on
    either side, with whatever value: set to the value that is offered there, it has no other to offer.
    """
    names = {name for name, _ in candidate.settings}
    governed = [
        {
            cause.decision.number
            for cause in graph_causes(graph).causes
            if cause.decision and _is_governed(cause, names)
        }
        for graph in (a, b)
    ]
    return tuple(
        change
        for change in changes
        if (change.a and change.a.number in governed[0])
        or (change.b and (change.b.number in governed[1] or change.b.operand("flip") is not None))
    )


def _is_governed(cause: Cause, names: set[str]) -> bool:
    return any((pair := _pair(change)) is not None and pair[0] in names for change in cause.changes)


def _pair(change: Change) -> tuple[str, str] | None:
    """Return the setting and the value to try, as `--set` takes them; None if the change names no setting."""
    setting = change.setting
    if setting is None or setting.offered is None or not setting.name.startswith(f"{CONFIG}."):
        return None
    return f"{_SHORT}{setting.name.removeprefix(CONFIG)}", setting.offered
