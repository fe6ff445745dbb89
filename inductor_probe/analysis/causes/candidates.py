"""What is worth trying otherwise in a graph, and which changed decisions a candidate names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.causes.causes import graph_causes
from inductor_probe.analysis.causes.times import Times
from inductor_probe.analysis.flips import flips_of_decision
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import links
from inductor_probe.analysis.work import node_traffic
from inductor_probe.model.cause import Cause, Change
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import DecisionKind
from inductor_probe.model.diff import DecisionChange
from inductor_probe.model.remark import RemarkKind
from inductor_probe.model.setting import CONFIG
from inductor_probe.model.whatif import Candidate

_SLOW = ("autotune", "tuning", "benchmark", "multi_kernel")
"""In names of settings with which inductor times code while it compiles: what costs most is tried last."""
_SHORT = "inductor"
_OF_THREADS = ("inductor.cpp.threads", "inductor.cpp.dynamic_threads", "inductor.cpp.min_chunk_size")
"""Settings by which inductor divides loops among threads: `decide_parallel_depth` of its C++ backend."""
_OF_READERS: tuple[DecisionKind, ...] = ("layout", "copy", "realization", "rewrite", "fusion")
"""Decisions that change what reads the result, too."""
_BROUGHT: Mapping[DecisionKind, float] = {
    "vectorisation": 0.5, "reduction": 0.3, "fusion": 0.2, "layout": 0.2, "realization": 0.15, "loops": 0.1,
}  # fmt: skip
"""Of the time of what a decision is about, what another one may bring: guesses, not measured. They put
candidates into an order, and drop none."""
_BROUGHT_ELSE = 0.1
_WORTH: Mapping[RemarkKind, float] = {"missed": 1.0, "hazard": 1.0, "analysis": 0.5, "passed": 0.2}
"""What went well is rarely better undone."""


class Offer(Struct, frozen=True):
    """A candidate, and what it can gain.

    Attributes:
        causes: the decisions that it is offered for, with the graph of each.
        at_most: the share of a call that is spent in what these decisions are about: no more can be gained
            there. The largest of the graphs' where they are several; None where that is not known, as of a
            decision about a graph as a whole, or where nothing was timed.
        expected: of that, what such decisions may bring: a guess, for the order in which they are tried.
        pieces: loop nests or kernels, by graph and name, that these decisions are about, with their seconds.
    """

    candidate: Candidate
    causes: tuple[tuple[str, Cause], ...]
    at_most: float | None
    expected: float
    pieces: Mapping[tuple[str, str], float]


def offers_of(
    graphs: Iterable[CompiledGraph],
    threads: int | None = None,
    times: Mapping[str, Times] | None = None,
) -> tuple[Offer, ...]:
    """Return each setting that `probe why` offers for a decision of one of the graphs, then each flip.

    A setting that is offered for many subjects is one candidate: it holds for all of them. Flips come in the
    order of the ledger: missed optimisations first, by what is at stake. Settings with which inductor times
    code are last of all.

    Args:
        threads: with how many they are to be timed, where that is known. With one, what changes how many
            threads a loop has is left out, whatever it is offered for: a parallel region, or an atomic
            addition in it, costs time there and can gain nothing, so that one thread instead of several is a
            gain that says nothing of a program with several.
        times: by name of a graph, as far as they were timed.
    """
    settings: dict[Candidate, list[tuple[str, Cause]]] = {}
    flips: dict[Candidate, list[tuple[str, Cause]]] = {}
    graphs, times = tuple(graphs), times or {}
    for graph in graphs:
        for cause in graph_causes(graph, times=times.get(graph.name)).causes:
            if threads == 1 and cause.decision and cause.decision.kind == "threads":
                continue
            for pair in filter(None, map(_pair, cause.changes)):
                if threads != 1 or pair[0] not in _OF_THREADS:
                    settings.setdefault(Candidate(settings=(pair,)), []).append((graph.name, cause))
            if cause.decision is None:
                continue
            scope = graph.name if len(graphs) > 1 else None
            for flip in flips_of_decision(graph, cause.decision):
                turned = Candidate(flips=(replace(flip, graph=scope),))
                flips.setdefault(turned, []).append((graph.name, cause))
    named = {graph.name: graph for graph in graphs}
    offers = []
    for candidate, causes in (*settings.items(), *flips.items()):
        pieces = _pieces(causes, named, times)
        at_most = None if pieces is None else _largest_share(pieces, times)
        brought = max(_brought(named[name], cause) for name, cause in causes)
        expected = brought * (1.0 if at_most is None else at_most)
        offers.append(Offer(candidate, tuple(causes), at_most, expected, pieces or {}))
    return tuple(sorted(offers, key=lambda offer: times_code(offer.candidate)))  # stable: all else in order


def candidates_of(graphs: Iterable[CompiledGraph], threads: int | None = None) -> tuple[Candidate, ...]:
    """Return the candidates of `offers_of`."""
    return tuple(offer.candidate for offer in offers_of(graphs, threads))


def _pieces(
    causes: Iterable[tuple[str, Cause]], graphs: Mapping[str, CompiledGraph], times: Mapping[str, Times]
) -> dict[tuple[str, str], float] | None:
    """Return what was timed of what decisions are about, by graph; None where one is not known."""
    pieces: dict[tuple[str, str], float] = {}
    for graph, cause in causes:
        timed = times.get(graph)
        # Of a buffer that nothing writes any more nothing can be gained.
        is_gone = not cause.nodes and all(subject.type == "buffer" for subject in cause.subjects)
        if timed is None or timed.call is None or not (cause.nodes or is_gone):
            return None
        nodes = _changed_nodes(graphs[graph], cause)
        kernels = [link.kernel for link in links(graphs[graph]).of_nodes(nodes) if link.kernel]
        missing = [kernel for kernel in kernels if kernel not in timed.kernels]
        if missing and (
            not timed.libraries or any(name in index_of(graphs[graph]).kernels for name in missing)
        ):
            return None
        if missing:
            pieces[graph, "library functions"] = timed.libraries
        timed_pieces = timed.pieces(tuple(dict.fromkeys(kernels)), nodes)
        pieces.update({(graph, name): seconds for name, seconds in (*cause.times, *timed_pieces)})
    return pieces


def _largest_share(pieces: Mapping[tuple[str, str], float], times: Mapping[str, Times]) -> float:
    """Return the largest share of a graph's call that pieces have."""
    seconds: dict[str, float] = {}
    for (graph, _), time in pieces.items():
        seconds[graph] = seconds.get(graph, 0.0) + time
    return max((min(1.0, time / (times[graph].call or time)) for graph, time in seconds.items()), default=0.0)


def _changed_nodes(graph: CompiledGraph, cause: Cause) -> tuple[str, ...]:
    """Return the nodes whose code changes with a decision: those it is about, and readers of a buffer.

    Where a buffer lies, and whether there is one at all, is a matter of all that read it.
    """
    if cause.topic not in _OF_READERS:
        return cause.nodes
    index = index_of(graph).nodes
    buffers = (buffer.name for leaf in index.named(cause.nodes) for buffer in leaf.outputs)
    readers = (reader for buffer in buffers for reader in index.readers.get(buffer, ()))
    return tuple(dict.fromkeys((*cause.nodes, *readers)))


def _brought(graph: CompiledGraph, cause: Cause) -> float:
    """Return the share of its time that such a decision may bring, less where it is about few bytes."""
    kind = cause.topic
    brought = _WORTH[cause.kind] * (_BROUGHT.get(kind, _BROUGHT_ELSE) if kind else _BROUGHT_ELSE)
    if kind not in _OF_READERS or cause.cost is None:
        return brought
    moved = node_traffic(graph, _changed_nodes(graph, cause))  # of those that read it, too
    return brought * min(1.0, cause.cost / moved) if moved else brought


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
            if cause.decision and any(pair and pair[0] in names for pair in map(_pair, cause.changes))
        }
        for graph in (a, b)
    ]
    return tuple(
        change
        for change in changes
        if (change.a and change.a.number in governed[0])
        or (change.b and (change.b.number in governed[1] or change.b.operand("flip") is not None))
    )


def _pair(change: Change) -> tuple[str, str] | None:
    """Return the setting and the value to try, as `--set` takes them; None if the change names no setting."""
    setting = change.setting
    if setting is None or setting.offered is None or not setting.name.startswith(f"{CONFIG}."):
        return None
    return f"{_SHORT}{setting.name.removeprefix(CONFIG)}", setting.offered
