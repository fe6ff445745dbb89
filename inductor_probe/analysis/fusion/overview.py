"""Fusion of a graph, a node and a pair: the decisions about them, with rounds, groups and the IR's facts.

The decisions are those that were recorded, or else those that `decisions.py` reads in torch's log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from inductor_probe.analysis.causes.pairs import is_between
from inductor_probe.analysis.fusion.facts import members_of, pair_facts
from inductor_probe.analysis.fusion.log import Matched, log_problems
from inductor_probe.analysis.graph import index_of, without_subgraphs
from inductor_probe.analysis.links import links
from inductor_probe.errors import ProbeError
from inductor_probe.model.cause import Cause, GraphCauses
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision
from inductor_probe.model.fusion import (
    FusionDecision,
    FusionGroup,
    GraphFusion,
    NodeFusion,
    PairFacts,
    RoundRow,
)
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.logs import FusionRound
from inductor_probe.model.span import Problem


def fusion_of_graph(
    graph: CompiledGraph, matched: Matched, decisions: Iterable[Decision], causes: Sequence[Cause]
) -> GraphFusion:
    """Return what was fused in the graph and what was not.

    Args:
        graph: as read. matched: its part of the log.
        decisions: about fusion, recorded or read in the log. causes: of the final ones.
    """
    graph, steps = without_subgraphs(graph), _steps(decisions)
    return GraphFusion(
        graph=graph.name,
        nodes_before=len(graph.pre),
        nodes_after=len(graph.post),
        log=matched.match,
        rounds=tuple(map(_round, matched.log.rounds if matched.log else ())),
        groups=tuple(_group(graph, top, steps) for top in graph.post),
        steps=steps,
        causes=tuple(causes),
        problems=tuple(log_problems(graph, matched)),
    )


def fusion_of_node(
    graph: CompiledGraph,
    matched: Matched,
    name: str,
    decisions: Iterable[Decision],
    *,
    why: Callable[[], GraphCauses],
) -> NodeFusion:
    """Return what is known of a node, a fused one, or what writes a buffer; `why` returns the causes.

    Raises:
        NotFoundError: the graph has nothing of that name.
    """
    members, tops = members_of(graph, name), index_of(graph).post.top
    groups = {top.name: top for member in members if (top := tops.get(member))}
    steps = tuple(one for one in _steps(decisions) if any(not {*members}.isdisjoint(x) for x in one.subjects))
    return NodeFusion(
        graph=graph.name,
        name=name,
        nodes=members,
        log=matched.match,
        group=_group(graph, next(iter(groups.values())), steps) if len(groups) == 1 else None,
        steps=steps,
        causes=why().causes,
        problems=tuple(log_problems(graph, matched)),
    )


def fusion_of_pair(
    graph: CompiledGraph,
    matched: Matched,
    first: str,
    second: str,
    decisions: Iterable[Decision],
    *,
    why: Callable[[], GraphCauses],
) -> FusionDecision:
    """Say whether two nodes were fused, when, or why not.

    Args:
        graph, matched, decisions: as of `fusion_of_graph`.
        first, second: nodes, fused ones, or buffers that a node writes. why: returns the causes about both.

    Raises:
        NotFoundError: a name that the graph does not have. ProbeError: both name the same node.
    """
    log = matched.log
    candidates = next((row.candidates for row in log.rounds if row.candidates), ()) if log else ()
    origins = {member.node: member.origins for candidate in candidates for member in candidate.members}
    facts = pair_facts(graph, first, second, origins)
    one, other = frozenset(facts.first.nodes), frozenset(facts.second.nodes)
    if one & other:
        both = ", ".join(sorted(one & other))
        raise ProbeError(f"{first} and {second} both name {both}", "name two different nodes or buffers")
    causes = why().causes
    tops = {top.name if (top := index_of(graph).post.top.get(name)) else "" for name in one | other}
    top = index_of(graph).post.node.get(next(iter(tops))) if len(tops) == 1 else None
    kernel = facts.first.kernel
    tried = tuple(row for row in decisions if row.kind == "fusion" and is_between(row, one, other))
    return FusionDecision(
        graph=graph.name,
        outcome="fused" if top else next((cause.outcome for cause in causes if cause.outcome), None),
        facts=facts,
        log=matched.match,
        group=_group(graph, top, _steps(tried)) if top else None,
        same_kernel=kernel if not top and kernel == facts.second.kernel else None,
        tried=tried,
        causes=tuple(causes),
        problems=(
            *log_problems(graph, matched),
            *_contradictions(graph, facts, tried, is_fused=top is not None),
        ),
    )


def _contradictions(
    graph: CompiledGraph, facts: PairFacts, tried: Iterable[Decision], *, is_fused: bool
) -> Iterator[Problem]:
    """Yield where the log and the IR say different things of a pair."""
    both = f"{facts.first.name} and {facts.second.name}"
    sides = {facts.first.nodes, facts.second.nodes}
    shares = any(row.bytes for row in facts.shared if row.matches)
    for row in tried:
        text = str(row.operand("text"))
        if row.outcome == "fused" and row.knowledge == "read" and graph.post and not is_fused:
            yield Problem(f"the log fuses {both}, but the IR after fusion does not", row.span)
        if {*row.subjects} == sides and text.startswith("intermediate nodes"):
            yield Problem(f"the log says that nodes run between {both}, but the IR shows none", row.span)
        if {*row.subjects} == sides and text == "no shared data" and shares:
            yield Problem(f"the log says that {both} share no data, but the IR shows that they do", row.span)


def _steps(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return the fusions in order."""
    return tuple(sorted((one for one in decisions if one.step), key=lambda one: one.step or 0))


def _group(graph: CompiledGraph, top: SchedulerNode, steps: Iterable[Decision]) -> FusionGroup:
    nodes = index_of(graph).post.members[top.name]
    linked = links(graph).nodes
    kernels = {link.kernel for name in nodes if (link := linked.get(name))}
    kernel = kernels.pop() if len(kernels) == 1 else None
    made = (one.step for one in steps if one.step and {*nodes}.issuperset(chain(*one.subjects)))
    return FusionGroup(top.name, top.kind, nodes, kernel, tuple(made))


def _round(row: FusionRound) -> RoundRow:
    outcomes = [attempt.outcome for attempt in row.attempts]
    counts = outcomes.count("fused"), outcomes.count("refused")
    return RoundRow(row.number, row.nodes_before, row.nodes_after, row.possible, *counts)
