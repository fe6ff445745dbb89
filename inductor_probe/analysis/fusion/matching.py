"""Which part of the log is a graph's: one log holds many graphs, and names none.

A part fits a graph when it starts from the graph's nodes, and when its fusions lead to the nodes after
fusion. Parts and graphs are in the order of compilation; where more than one part can be a graph's and they
do not say the same, none is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inductor_probe.analysis.fusion.replay import replay, start_of
from inductor_probe.analysis.graph import index_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fusion import LogMatch
from inductor_probe.model.logs import CompilerLogs, FusionLog
from inductor_probe.model.proof import inferred, read


@dataclass(frozen=True, slots=True)
class Matched:
    """A graph's part of the log, None when it is not known, and what shows that."""

    log: FusionLog | None
    match: LogMatch


def match_log(
    graph: CompiledGraph,
    at: int,
    logs: CompilerLogs,
    graphs: Callable[[], Sequence[CompiledGraph]],
    count: int,
) -> Matched:
    """Find the part of `logs` that is about `graph`.

    Args:
        graph: as read.
        at: its place among the run's graphs, in the order of compilation.
        logs: of the run.
        graphs: reads all graphs of the run; called only where order and names of one do not tell.
        count: how many graphs the run has.
    """
    parts = logs.fusions
    if not parts:
        return Matched(None, _no_log(graph, logs))
    if len(parts) == count and (fit := _Fit.of(parts[at], graph)).by_groups:
        proof = inferred(
            "log-position-and-groups" if fit.groups_told else "log-position", part=at + 1, parts=count
        )
        return Matched(parts[at], LogMatch("proved", proof, parts[at].at.span))
    index = _Parts(parts)
    fitting = index.fitting(graph)
    if len(fitting) > 1:
        fitting = _by_order(fitting, at, index, graphs())
    found = [parts[number] for number in fitting]
    if len(found) == 1:
        return Matched(found[0], LogMatch("proved", inferred("only-log-part"), found[0].at.span))
    if found and all(one.rounds == other.rounds for one, other in pairwise(found)):
        proof = inferred("equal-log-parts", parts=len(found))
        return Matched(found[0], LogMatch("proved", proof, found[0].at.span))
    if found:
        lines = tuple(str(part.at.span.first) for part in found)
        proof = inferred("differing-log-parts", parts=len(found), lines=lines)
        return Matched(None, LogMatch("ambiguous", proof))
    return _by_names(graph, [parts[number] for number in index.alike(graph)])


def _by_names(graph: CompiledGraph, alike: Sequence[FusionLog]) -> Matched:
    """A part that starts from the graph's nodes, and ends with others than the graph has."""
    named = [part for part in alike if _Fit.of(part, graph).by_names]
    if len(named) == 1:
        return Matched(named[0], LogMatch("disagrees", inferred("log-part-by-names"), named[0].at.span))
    if named:
        return Matched(None, LogMatch("ambiguous", inferred("log-parts-by-names", parts=len(named))))
    return Matched(None, LogMatch("none", read("no-log-part")))


def _no_log(graph: CompiledGraph, logs: CompilerLogs) -> LogMatch:
    version = graph.torch_version or ""
    if version.startswith("2.1."):
        return LogMatch("none", read("torch-logs-no-fusion", version=version))
    return LogMatch("none", read("no-fusion-lines" if logs.files else "no-log"))


class _Parts:
    """The parts of a log by what they start from, so that few have to be compared with a graph."""

    def __init__(self, parts: Sequence[FusionLog]) -> None:
        self.parts = parts
        self._by_start: dict[object, list[int]] = {}
        for number, part in enumerate(parts):
            self._by_start.setdefault(_start_key(part), []).append(number)

    def alike(self, graph: CompiledGraph) -> list[int]:
        """Return the parts that start from as many nodes, or from nodes of the same names."""
        names = frozenset(index_of(graph).before.leaf)
        keys = (names, len(graph.pre or graph.post), None)
        return sorted(number for key in keys for number in self._by_start.get(key, ()))

    def fitting(self, graph: CompiledGraph) -> list[int]:
        """Return the parts that can be the graph's, in order."""
        return [number for number in self.alike(graph) if _Fit.of(self.parts[number], graph).by_groups]


def _start_key(part: FusionLog) -> object:
    """The names that a part starts from, or how many there are, or None."""
    if names := frozenset(name for members in start_of(part) for name in members):
        return names
    return part.rounds[0].nodes_before if part.rounds and part.rounds[0].number == 1 else None


def _by_order(fitting: list[int], at: int, index: _Parts, graphs: Sequence[CompiledGraph]) -> list[int]:
    """Leave out the parts that other graphs need: parts and graphs are in one order.

    Each graph is given the first part that fits behind that of the graph before, and the last one before that
    of the graph behind; what lies between is possible. A graph that no part fits was not logged.
    """
    if at >= len(graphs):
        return fitting
    earliest, latest = -1, len(index.parts)
    for graph in graphs[:at]:
        earliest = next((number for number in index.fitting(graph) if number > earliest), earliest)
    for graph in reversed(graphs[at + 1 :]):
        latest = next((number for number in reversed(index.fitting(graph)) if number < latest), latest)
    return [number for number in fitting if earliest < number < latest] or fitting


@dataclass(frozen=True, slots=True)
class _Fit:
    """How a part of the log fits a graph."""

    by_names: bool
    by_groups: bool
    groups_told: bool

    @classmethod
    def of(cls, part: FusionLog, graph: CompiledGraph) -> _Fit:
        if not _starts_from(part, graph) or not _same_compile(part, graph):
            return cls(False, False, False)
        if not graph.post:
            return cls(True, True, False)
        return cls(True, ends_with(part, graph), True)


def _same_compile(part: FusionLog, graph: CompiledGraph) -> bool:
    """Where both dynamo's ids are known they must agree; a restart adds `_1` to the log's."""
    known = graph.record.compile_id if graph.record else None
    logged = part.at.trace_id
    return known is None or logged is None or logged.partition("_")[0] == known.partition("_")[0]


def _starts_from(part: FusionLog, graph: CompiledGraph) -> bool:
    names = index_of(graph).before.leaf.keys()
    listed = {name for members in start_of(part) for name in members}
    if listed:
        return listed == names
    first = part.rounds[0] if part.rounds else None
    count = first.nodes_before if first and first.number == 1 else None
    if count is not None and count != len(graph.pre or graph.post):
        return False
    named = {
        name
        for row in part.rounds
        for attempt in row.attempts
        for side in (attempt.first, attempt.second)
        for name in side.split("_")
    }
    return named <= names


def ends_with(part: FusionLog, graph: CompiledGraph) -> bool:
    """Whether the part's fusions lead to the graph's nodes after fusion.

    Foreach kernels and combo kernels join nodes outside of the rounds: each may hold several groups.
    """
    index = index_of(graph)
    played = replay(part, start_of(part) or list(index.before.members.values()))
    after = {frozenset(index.post.members[top.name]): top.kind for top in graph.post}
    if not played.logged:  # torch 2.2 tells only how many are left
        last = next((row.nodes_after for row in reversed(part.rounds) if row.nodes_after is not None), None)
        return last is None or last == len(graph.post)
    if played.gaps:
        return False
    whole = {member: group for group in after for member in group}
    for group in played.groups:
        target = whole.get(next(iter(group)))
        if target is None or not group <= target:
            return False
        if group != target and after[target] not in _JOINED_OUTSIDE:
            return False
    return True


_JOINED_OUTSIDE = ("ForeachKernelSchedulerNode", "GroupedSchedulerNode", "FusedMixOrderReductions")
