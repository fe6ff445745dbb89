"""Fusion in a graph: rounds, groups, refusals by reason, and which pairs were not fused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inductor_probe.analysis.fusion.facts import members_of, shared_buffers, total_bytes
from inductor_probe.analysis.fusion.log import Matched, replay, round_attempts
from inductor_probe.analysis.fusion.refusals import settings_for, traits_of
from inductor_probe.analysis.graph import index_of, without_subgraphs
from inductor_probe.analysis.links import links
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fusion import (
    FusionGroup,
    GraphFusion,
    NodeFusion,
    PairAttempt,
    RefusalCount,
    RoundRow,
    UnfusedPair,
)
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.logs import FusionRound
from inductor_probe.model.remark import Remark, Subject
from inductor_probe.model.span import Problem

_MOST_COUNTED = 2000
"""Pairs whose shared bytes are counted from the IR."""


def fusion_of_graph(graph: CompiledGraph, matched: Matched) -> GraphFusion:
    """Return what was fused in the graph and what was refused; `matched` is its part of the log."""
    graph = without_subgraphs(graph)
    index = index_of(graph)
    log = matched.log
    steps = replay(log, graph).steps if log else ()
    made_by: dict[str, list[int]] = {}
    for step in steps:
        if top := index.post.top.get(step.nodes[0]):
            made_by.setdefault(top.name, []).append(step.number)
    rounds = log.rounds if log else ()
    pairs = _pairs_of(graph, matched)
    return GraphFusion(
        graph=graph.name,
        nodes_before=len(graph.pre),
        nodes_after=len(graph.post),
        log=matched.match,
        rounds=tuple(map(_round, rounds)),
        steps=steps,
        groups=tuple(_group(graph, top, *made_by.get(top.name, ())) for top in graph.post),
        refusals=tuple(pairs.counts()),
        unfused=tuple(pairs.unfused()),
        problems=tuple(log_problems(graph, matched)),
    )


def fusion_of_node(graph: CompiledGraph, matched: Matched, name: str) -> NodeFusion:
    """Return the part of `fusion_of_graph` that is about a node, a fused one, or what writes a buffer.

    Raises:
        NotFoundError: the graph has nothing of that name.
    """
    members = members_of(graph, name)
    fusion = fusion_of_graph(graph, matched)
    groups = [group for group in fusion.groups if not set(members).isdisjoint(group.nodes)]
    names = {group.name for group in groups}
    return NodeFusion(
        graph=graph.name,
        name=name,
        nodes=members,
        log=fusion.log,
        group=groups[0] if len(groups) == 1 else None,
        steps=tuple(step for step in fusion.steps if not set(members).isdisjoint(step.nodes)),
        unfused=tuple(pair for pair in fusion.unfused if pair.first in names or pair.second in names),
        problems=fusion.problems,
    )


def group_of(graph: CompiledGraph, members: frozenset[str]) -> FusionGroup | None:
    """Return the node after fusion that holds all `members`, if one does."""
    after = index_of(graph).post
    tops = {top.name: top for name in members if (top := after.top.get(name))}
    if len(tops) != 1 or any(name not in after.top for name in members):
        return None
    return _group(graph, next(iter(tops.values())))


def _group(graph: CompiledGraph, top: SchedulerNode, *steps: int) -> FusionGroup:
    nodes = index_of(graph).post.members[top.name]
    linked = links(graph).nodes
    kernels = {link.kernel for name in nodes if (link := linked.get(name))}
    return FusionGroup(top.name, top.kind, nodes, kernels.pop() if len(kernels) == 1 else None, steps)


def unfused_remarks(graph: CompiledGraph, matched: Matched) -> Iterator[Remark]:
    """Yield what the log says of each pair that was tried and not fused, where decisions are not recorded."""
    pairs = _pairs_of(graph, matched)
    for row in pairs.unfused():
        last = row.refusals[-1].reason if row.refusals and not row.without_reason else ""
        span = pairs.by_pair[row.first, row.second][-1].span
        yield Remark(
            code="not-fused",
            kind="missed",
            subject=Subject("node", row.first),
            also=(Subject("node", row.second),),
            numbers=(("other", row.second), ("reason", last)),
            cost=None if isinstance(row.shared, bool) else row.shared,
            evidence=(span,) if span else (),
            knowledge="read",
        )


def log_problems(graph: CompiledGraph, matched: Matched) -> Iterator[Problem]:
    """Yield where the log and the IR after fusion disagree, group by group."""
    if matched.log is None or matched.match.state != "disagrees":
        return
    result = replay(matched.log, graph)
    for step in result.gaps:
        yield Problem(
            f"the log fuses {step.first} with {step.second}, but no earlier line creates them", step.span
        )
    index = index_of(graph)
    after = set(map(frozenset, index.post.members.values()))
    for group in sorted(result.groups - after, key=sorted):
        name = "_".join(sorted(group, key=lambda member: index.before.place.get(member, 0)))
        yield Problem(f"the log ends with {name}, but the IR has no such node", matched.match.span)


def _round(row: FusionRound) -> RoundRow:
    outcomes = [attempt.outcome for attempt in row.attempts]
    counts = outcomes.count("fused"), outcomes.count("refused")
    return RoundRow(row.number, row.nodes_before, row.nodes_after, row.possible, *counts)


def _pairs_of(graph: CompiledGraph, matched: Matched) -> _Pairs:
    """Return the attempts to fuse pairs in a graph's part of the fusion log; empty without a log."""
    producers = index_of(graph).before.producer
    rounds = matched.log.rounds if matched.log else ()
    return _Pairs(graph, (attempt for row in rounds for attempt in round_attempts(row, producers)))


class _Pairs:
    """The mentions of pairs in the log, by the nodes after fusion that hold them, and by form of refusal."""

    def __init__(self, graph: CompiledGraph, attempts: Iterable[PairAttempt]) -> None:
        self.graph = graph
        self.index = index_of(graph)
        self.by_pair: dict[tuple[str, str], list[PairAttempt]] = {}
        self.by_form: dict[str, list[PairAttempt]] = {}
        self._tops: dict[str, str | None] = {}
        for attempt in attempts:
            if attempt.refusal is not None:
                self.by_form.setdefault(attempt.refusal.form, []).append(attempt)
            if names := self._names(attempt):
                self.by_pair.setdefault(names, []).append(attempt)

    def _names(self, attempt: PairAttempt) -> tuple[str, str] | None:
        """The nodes after fusion on both sides, in order; None when they ended up in one."""
        one, other = self._top(attempt.first), self._top(attempt.second)
        if one is None or other is None or one == other:
            return None
        position = self.index.before.place
        first, second = (position.get(top.partition("_")[0], 0) for top in (one, other))
        return (other, one) if second < first else (one, other)

    def _top(self, name: str) -> str | None:
        if name not in self._tops:
            after = self.index.post.top
            tops = {after[part].name for part in name.split("_") if part in after}
            self._tops[name] = tops.pop() if len(tops) == 1 else None
        return self._tops[name]

    def counts(self) -> list[RefusalCount]:
        """Return the reasons, those of most unfused pairs first, with settings for these pairs."""
        traits = {top.name: traits_of(top.leaves()) for top in self.graph.post}
        rows: list[RefusalCount] = []
        for form, attempts in self.by_form.items():
            unfused = {names for attempt in attempts if (names := self._names(attempt))}
            pairs = {frozenset((attempt.first, attempt.second)) for attempt in attempts}
            kinds = ((traits[first], traits[second]) for first, second in unfused)
            settings = settings_for(form, kinds, self.graph.runnable)
            refusals = (attempt.refusal for attempt in attempts if attempt.refusal)
            rows.append(RefusalCount(next(refusals), len(pairs), len(attempts), len(unfused), settings))
        return sorted(rows, key=lambda row: (-row.unfused, -row.pairs))

    def unfused(self) -> list[UnfusedPair]:
        """Return the pairs, those that share most first."""
        rows: list[UnfusedPair] = []
        for names, attempts in self.by_pair.items():
            refusals = dict.fromkeys(attempt.refusal for attempt in attempts if attempt.refusal)
            logged = [attempt.shared for attempt in attempts if attempt.shared is not None]
            shared = max(logged) if logged else self._shared(names)
            rows.append(UnfusedPair(*names, tuple(refusals), shared, attempts[-1].without_reason))
        return sorted(rows, key=lambda row: -(row.shared or 0))

    def _shared(self, pair: tuple[str, str]) -> int | None:
        """What the IR shows the two to share, by torch's count: before torch 2.5 no log has it."""
        if len(self.by_pair) > _MOST_COUNTED:
            return None
        before = self.index.before
        first, second = (
            [before.leaf[name] for name in top.split("_") if name in before.leaf] for top in pair
        )
        return total_bytes(row.bytes for row in shared_buffers(first, second, before.layouts) if row.matches)
