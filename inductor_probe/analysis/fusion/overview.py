"""Fusion in a graph: rounds, groups, refusals by reason, and which nodes were left apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from inductor_probe.analysis.fusion.accesses import shared_buffers
from inductor_probe.analysis.fusion.matching import Matched
from inductor_probe.analysis.fusion.mentions import round_attempts
from inductor_probe.analysis.fusion.nodes import GraphNodes
from inductor_probe.analysis.fusion.replay import Replay, replay, start_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fusion import (
    ApartPair,
    FusionGroup,
    GraphFusion,
    NodeFusion,
    PairAttempt,
    Refusal,
    RefusalCount,
    RoundRow,
)
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.logs import FusionLog
from inductor_probe.model.span import Problem


def fusion_of_graph(graph: CompiledGraph, matched: Matched) -> GraphFusion:
    """Return what was fused in the graph and what was refused; `matched` is its part of the log."""
    nodes = GraphNodes(graph)
    played = replayed(nodes, matched.log) if matched.log else None
    apart = _Apart(nodes)
    for part in matched.log.rounds if matched.log else ():
        for attempt in round_attempts(part, nodes.producers):
            apart.take(attempt)
    return GraphFusion(
        graph=graph.name,
        nodes_before=len(graph.pre),
        nodes_after=len(graph.post),
        log=matched.match,
        rounds=tuple(_rounds(matched.log)) if matched.log else (),
        steps=played.steps if played else (),
        groups=tuple(_groups(nodes, played)),
        refusals=tuple(apart.counts()),
        apart=tuple(apart.pairs()),
        problems=tuple(log_problems(nodes, matched)),
    )


def fusion_of_node(graph: CompiledGraph, matched: Matched, name: str) -> NodeFusion:
    """Return the part of `fusion_of_graph` that is about a node, a fused one, or what writes a buffer.

    Raises:
        NotFoundError: the graph has nothing of that name.
    """
    members = GraphNodes(graph).named(name)
    whole = fusion_of_graph(graph, matched)
    groups = [group for group in whole.groups if not set(members).isdisjoint(group.nodes)]
    names = {group.name for group in groups}
    return NodeFusion(
        graph=graph.name,
        name=name,
        nodes=members,
        log=whole.log,
        group=groups[0] if len(groups) == 1 else None,
        steps=tuple(step for step in whole.steps if not set(members).isdisjoint(step.nodes)),
        apart=tuple(pair for pair in whole.apart if pair.first in names or pair.second in names),
        problems=whole.problems,
    )


def group_of(nodes: GraphNodes, members: frozenset[str]) -> FusionGroup | None:
    """Return the node after fusion that holds all `members`, if one does."""
    tops = {top.name: top for name in members if (top := nodes.top_of.get(name))}
    if len(tops) != 1 or any(name not in nodes.top_of for name in members):
        return None
    top = next(iter(tops.values()))
    return FusionGroup(top.name, top.kind, tuple(leaf.name for leaf in top.leaves()), _kernel(nodes, top))


def replayed(nodes: GraphNodes, log: FusionLog) -> Replay:
    """Play the log's fusions on the nodes it starts from."""
    graph = nodes.graph
    tops = [tuple(leaf.name for leaf in top.leaves()) for top in graph.pre or graph.post]
    return replay(log, start_of(log) or tops)


def log_origins(log: FusionLog | None) -> dict[str, tuple[str, ...]]:
    """Return the FX nodes that the log names for each unfused node."""
    first = next((part for part in log.rounds if part.candidates), None) if log else None
    if first is None:
        return {}
    return {member.node: member.origins for candidate in first.candidates for member in candidate.members}


def log_problems(nodes: GraphNodes, matched: Matched) -> Iterator[Problem]:
    """Yield where the log and the IR after fusion disagree, group by group."""
    if matched.log is None or matched.match.state != "disagrees":
        return
    played = replayed(nodes, matched.log)
    for step in played.gaps:
        yield Problem(
            f"the log fuses {step.first} with {step.second}, and no line before makes them", step.span
        )
    groups = played.groups
    after = {frozenset(leaf.name for leaf in top.leaves()) for top in nodes.graph.post}
    for group in sorted(groups - after, key=sorted):
        name = "_".join(sorted(group, key=lambda member: nodes.places.get(member, 0)))
        yield Problem(f"the log ends with {name}, and the IR has no such node", matched.match.span)


def _rounds(log: FusionLog) -> Iterator[RoundRow]:
    for part in log.rounds:
        outcomes = [attempt.outcome for attempt in part.attempts]
        yield RoundRow(
            part.number,
            part.nodes_before,
            part.nodes_after,
            part.found,
            outcomes.count("fused"),
            outcomes.count("refused"),
        )


def _groups(nodes: GraphNodes, played: Replay | None) -> Iterator[FusionGroup]:
    made_by: dict[str, list[int]] = {}
    for step in played.steps if played else ():
        top = nodes.top_of.get(step.nodes[0])
        if top is not None:
            made_by.setdefault(top.name, []).append(step.number)
    for top in nodes.graph.post:
        members = tuple(leaf.name for leaf in top.leaves())
        yield FusionGroup(top.name, top.kind, members, _kernel(nodes, top), tuple(made_by.get(top.name, ())))


def _kernel(nodes: GraphNodes, top: SchedulerNode) -> str | None:
    kernels = {link.kernel for leaf in top.leaves() if (link := nodes.links.get(leaf.name))}
    return kernels.pop() if len(kernels) == 1 else None


@dataclass(slots=True)
class _Weighed:
    """Two nodes after fusion, while the log is walked."""

    refusals: dict[Refusal, None] = field(default_factory=dict)
    shared: int | bool | None = None
    silent: bool = False


@dataclass(slots=True)
class _Reason:
    """A form of refusal, while the log is walked."""

    refusal: Refusal
    pairs: set[frozenset[str]] = field(default_factory=set)
    lines: int = 0
    standing: set[tuple[str, str]] = field(default_factory=set)


class _Apart:
    """Collects what is said of pairs by the nodes after fusion that hold them."""

    def __init__(self, nodes: GraphNodes) -> None:
        self.nodes = nodes
        self.by_pair: dict[tuple[str, str], _Weighed] = {}
        self.by_form: dict[str, _Reason] = {}
        self._tops: dict[str, str | None] = {}

    def take(self, attempt: PairAttempt) -> None:
        """Take one mention of a pair."""
        pair = self._pair(attempt)
        if attempt.refusal is not None:
            reason = self.by_form.setdefault(attempt.refusal.form, _Reason(attempt.refusal))
            reason.lines += 1
            reason.pairs.add(frozenset((attempt.first, attempt.second)))
            if pair is not None:
                reason.standing.add(pair)
        if pair is None:
            return
        weighed = self.by_pair.setdefault(pair, _Weighed())
        weighed.silent = attempt.silent
        if attempt.refusal is not None:
            weighed.refusals[attempt.refusal] = None
        if attempt.shared is not None:
            weighed.shared = max(attempt.shared, weighed.shared or 0)

    def _pair(self, attempt: PairAttempt) -> tuple[str, str] | None:
        """The nodes after fusion on both sides, in order; None when they ended up in one."""
        tops = [self._top(attempt.first), self._top(attempt.second)]
        if tops[0] is None or tops[1] is None or tops[0] == tops[1]:
            return None
        one, other = sorted((top for top in tops if top), key=self._place)
        return one, other

    def _top(self, name: str) -> str | None:
        if name not in self._tops:
            tops = {self.nodes.top_of[part].name for part in name.split("_") if part in self.nodes.top_of}
            self._tops[name] = tops.pop() if len(tops) == 1 else None
        return self._tops[name]

    def _place(self, top: str) -> int:
        return self.nodes.places.get(top.partition("_")[0], 0)

    def counts(self) -> Iterator[RefusalCount]:
        """Yield the reasons, those that keep most pairs apart first."""
        rows = sorted(self.by_form.values(), key=lambda row: (-len(row.standing), -len(row.pairs)))
        for row in rows:
            yield RefusalCount(row.refusal, len(row.pairs), row.lines, len(row.standing))

    def pairs(self) -> Iterator[ApartPair]:
        """Yield the pairs, those that share most first."""
        found = [
            ApartPair(
                *pair,
                tuple(weighed.refusals),
                self._shared(pair) if weighed.shared is None else weighed.shared,
                weighed.silent,
            )
            for pair, weighed in self.by_pair.items()
        ]
        yield from sorted(found, key=lambda pair: -(pair.shared or 0))

    def _shared(self, pair: tuple[str, str]) -> int | None:
        """What the IR shows the two to share, by torch's count: before torch 2.5 no log has it."""
        if len(self.by_pair) > _MOST_COUNTED:
            return None
        sides = [[leaf for name in top.split("_") if (leaf := self.nodes.leaves.get(name))] for top in pair]
        rows = shared_buffers(sides[0], sides[1], self.nodes.layouts)
        sizes = [row.bytes for row in rows if row.matches]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


_MOST_COUNTED = 2000
