"""The fusion log of a graph: its part of the run's log, the fusions replayed, and what it says of pairs.

One log holds many graphs, and names none. A part fits a graph when it starts from the graph's nodes, and when
its fusions lead to the nodes after fusion. Parts and graphs are in the order of compilation; where more than
one part can be a graph's and they do not say the same, none is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from inductor_probe.analysis.graph import index_of, without_subgraphs
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fusion import LogMatch
from inductor_probe.model.logs import CompilerLogs, FusionAttempt, FusionLog
from inductor_probe.model.proof import inferred, read
from inductor_probe.model.span import Problem

_JOINED_OUTSIDE = ("ForeachKernelSchedulerNode", "GroupedSchedulerNode", "FusedMixOrderReductions")


class Matched(NamedTuple):
    """A graph's part of the log, None when it is not known, and what shows that."""

    log: FusionLog | None
    match: LogMatch


def match_log(
    graph: CompiledGraph,
    position: int,
    logs: CompilerLogs,
    graphs: Callable[[], Sequence[CompiledGraph]],
    count: int,
) -> Matched:
    """Find the part of `logs` that is about `graph`.

    Args:
        graph: as read.
        position: among the run's graphs, in the order of compilation.
        logs: of the run.
        graphs: reads all graphs of the run; called only where order and names of one leave it open.
        count: how many graphs the run has.
    """
    graph = without_subgraphs(graph)
    parts = logs.fusions
    if not parts:
        version = graph.torch_version or ""
        if version.startswith("2.1."):
            return Matched(None, LogMatch("none", read("torch-logs-no-fusion", version=version)))
        return Matched(None, LogMatch("none", read("no-fusion-lines" if logs.files else "no-log")))
    if len(parts) == count and _fits(parts[position], graph):
        operands = {"part": position + 1, "parts": count}
        proof = inferred("log-position-and-groups" if graph.post else "log-position", **operands)
        return Matched(parts[position], LogMatch("proved", proof, parts[position].logged.span))
    index = _Parts(parts)
    numbers = index.fitting(graph)
    if len(numbers) > 1:
        numbers = _by_order(numbers, position, index, graphs())
    fitting = [parts[number] for number in numbers]
    if fitting and all(one.rounds == other.rounds for one, other in pairwise(fitting)):
        one = inferred("only-log-part")
        proof = one if len(fitting) == 1 else inferred("equal-log-parts", parts=len(fitting))
        return Matched(fitting[0], LogMatch("proved", proof, fitting[0].logged.span))
    if fitting:
        lines = tuple(str(part.logged.span.first) for part in fitting)
        proof = inferred("differing-log-parts", parts=len(fitting), lines=lines)
        return Matched(None, LogMatch("ambiguous", proof))
    # A part that starts from the graph's nodes, and ends with others than the graph has.
    named = [parts[number] for number in index.alike(graph) if _starts_from(parts[number], graph)]
    if len(named) == 1:
        return Matched(named[0], LogMatch("disagrees", inferred("log-part-by-names"), named[0].logged.span))
    if named:
        return Matched(None, LogMatch("ambiguous", inferred("log-parts-by-names", parts=len(named))))
    return Matched(None, LogMatch("none", read("no-log-part")))


class _Parts:
    """The parts of a log by what they start from, so that few have to be compared with a graph."""

    def __init__(self, parts: Sequence[FusionLog]) -> None:
        self.parts = parts
        self._by_start: dict[object, list[int]] = {}  # names of nodes, how many there are, or None
        for number, part in enumerate(parts):
            first = part.rounds[0] if part.rounds and part.rounds[0].number == 1 else None
            count = first.nodes_before if first else None
            self._by_start.setdefault(_start_names(part) or count, []).append(number)

    def alike(self, graph: CompiledGraph) -> list[int]:
        """Return the parts that start from as many nodes, or from nodes of the same names."""
        keys = (frozenset(index_of(graph).before.leaf), len(graph.pre or graph.post), None)
        return sorted(number for key in keys for number in self._by_start.get(key, ()))

    def fitting(self, graph: CompiledGraph) -> list[int]:
        """Return the parts that can be the graph's, in order."""
        return [number for number in self.alike(graph) if _fits(self.parts[number], graph)]


def _by_order(fitting: list[int], position: int, index: _Parts, graphs: Sequence[CompiledGraph]) -> list[int]:
    """Remove the parts that other graphs need: parts and graphs are in one order.

    Each graph gets the first part that fits behind that of the graph before, and the last one before that of
    the graph behind; what lies between is possible. A graph that no part fits was not logged. If parts 0, 1
    and 2 fit each of three graphs, graph 1 can have none but part 1.
    """
    if position >= len(graphs):
        return fitting
    earliest, latest = -1, len(index.parts)
    for graph in graphs[:position]:
        earliest = next((number for number in index.fitting(graph) if number > earliest), earliest)
    for graph in reversed(graphs[position + 1 :]):
        latest = next((number for number in reversed(index.fitting(graph)) if number < latest), latest)
    return [number for number in fitting if earliest < number < latest] or fitting


def _fits(part: FusionLog, graph: CompiledGraph) -> bool:
    return _starts_from(part, graph) and (not graph.post or ends_with(part, graph))


def _starts_from(part: FusionLog, graph: CompiledGraph) -> bool:
    """Whether a part starts from the graph's nodes, and is of the same compile as far as that is known."""
    compile_id = graph.record.compile_id if graph.record else None
    trace_id = part.logged.trace_id  # a restart adds `_1`
    if compile_id and trace_id and trace_id.partition("_")[0] != compile_id.partition("_")[0]:
        return False
    names = index_of(graph).before.leaf.keys()
    if start := _start_names(part):
        return start == names
    first = part.rounds[0] if part.rounds else None
    count = first.nodes_before if first and first.number == 1 else None
    if count is not None and count != len(graph.pre or graph.post):
        return False
    attempts = (attempt for row in part.rounds for attempt in row.attempts)
    return {name for row in attempts for side in (row.first, row.second) for name in side.split("_")} <= names


def _start(log: FusionLog) -> list[tuple[str, ...]]:
    """Return the groups that the first round starts from, where the log lists its candidates."""
    first = next((row for row in log.rounds if row.candidates), None)
    candidates = first.candidates if first else ()
    return [tuple(member.node for member in candidate.members) for candidate in candidates]


def _start_names(log: FusionLog) -> frozenset[str]:
    return frozenset(name for members in _start(log) for name in members)


def ends_with(part: FusionLog, graph: CompiledGraph) -> bool:
    """Whether the part's fusions lead to the graph's nodes after fusion.

    Foreach kernels and combo kernels join nodes outside of the rounds: each may hold several groups.
    """
    graph = without_subgraphs(graph)
    result = replay(part, graph)
    if not result.logged:  # torch 2.2 logs only how many are left
        last = next((row.nodes_after for row in reversed(part.rounds) if row.nodes_after is not None), None)
        return last is None or last == len(graph.post)
    if result.gaps:
        return False
    members = index_of(graph).post.members
    after = {frozenset(members[top.name]): top.kind for top in graph.post}
    group_of = {member: group for group in after for member in group}
    for group in result.groups:
        target = group_of.get(next(iter(group)), frozenset())
        if not group <= target or (group != target and after[target] not in _JOINED_OUTSIDE):
            return False
    return True


class Replay(NamedTuple):
    """What the log's fusions make of the nodes it starts from.

    Attributes:
        groups: sets of unfused nodes at the end.
        logged: False when this torch lists only what it could fuse (2.2): `groups` are those at the start.
        gaps: fusions of what the lines before do not make: lines are missing from the log.
    """

    groups: frozenset[frozenset[str]]
    logged: bool
    gaps: tuple[FusionAttempt, ...]


def replay(log: FusionLog, graph: CompiledGraph) -> Replay:
    """Replay the fusions of `log` on the groups it starts from, those of the graph where it lists none.

    From `op0`, `op1`, `op2`, the lines `fusing op0 with op1` and `fusing op0_op1 with op2` make one group.
    """
    start = _start(log) or list(index_of(graph).before.members.values())
    groups = {name: frozenset(members) for members in start for name in members}
    gaps: list[FusionAttempt] = []
    attempts = [attempt for row in log.rounds for attempt in row.attempts]
    for attempt in attempts:
        if attempt.outcome == "fused":
            sides = [frozenset(side.split("_")) for side in (attempt.first, attempt.second)]
            if not all(groups.get(name) == side for side in sides for name in side):
                gaps.append(attempt)
            joined = frozenset[str]().union(*(groups.get(name, {name}) for side in sides for name in side))
            groups.update(dict.fromkeys(joined, joined))
    logged = not any(attempt.outcome == "possible" for attempt in attempts)
    return Replay(frozenset(groups.values()), logged, tuple(gaps))


def log_problems(graph: CompiledGraph, matched: Matched) -> Iterator[Problem]:
    """Yield where the log and the IR after fusion disagree, group by group."""
    if matched.log is None or matched.match.state != "disagrees":
        return
    result, index = replay(matched.log, graph), index_of(graph)
    for gap in result.gaps:
        yield Problem(
            f"the log fuses {gap.first} with {gap.second}, but no earlier line creates them", gap.span
        )
    after = set(map(frozenset, index.post.members.values()))
    for group in sorted(result.groups - after, key=sorted):
        name = "_".join(sorted(group, key=lambda member: index.before.place.get(member, 0)))
        yield Problem(f"the log ends with {name}, but the IR has no such node", matched.match.span)
