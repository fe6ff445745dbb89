"""Which decisions of the compiler fell otherwise in another graph, as far as both graphs record them.

Decisions are matched by what they are about: the kind and question, and the nodes or buffers of A under the
names of their partners in B. For example `vectorisation of op0, op1` of A is that of `op0, op2` of B where
op1 is matched with op2. A decision whose subjects are grouped otherwise in B has no partner; of nodes that
one side fused and the other did not, it is what finally decided about them on each side.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, islice

from inductor_probe.analysis.diff.matching import Matching
from inductor_probe.analysis.fusion.recorded import decision_of_pair
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision, DecisionKind
from inductor_probe.model.diff import DecisionChange, FusionChange

_MOST_PAIRS = 16
"""Pairs of groups of one change that are looked up: a group of 40 nodes that fell apart has 780."""


def decision_changes(matching: Matching) -> tuple[DecisionChange, ...]:
    """Return the decisions with another outcome or another cause, in the order in which A took them."""
    a, b = matching.a.graph.decisions, matching.b.graph.decisions
    if a is None or b is None:
        return ()
    kinds = {*a.recorders} & {*b.recorders}
    partners = _by_subject(matching.b.graph, kinds, {}, {})
    changes = []
    for key, decision in _by_subject(matching.a.graph, kinds, matching.nodes, matching.buffers).items():
        other = partners.get(key)
        if other is not None and (decision.outcome, decision.cause) != (other.outcome, other.cause):
            changes.append(DecisionChange(decision, other))
    return tuple(changes)


def pair_changes(matching: Matching, groups: Sequence[FusionChange]) -> tuple[DecisionChange, ...]:
    """Return the fusions of node groups on one side, each with the refusal of the same pair on the other."""
    a, b = matching.a.graph.decisions, matching.b.graph.decisions
    if a is None or b is None:
        return ()
    of_b = {other: name for name, other in matching.nodes.items()}
    changes: list[DecisionChange] = []
    for change in groups:
        apart, partner = (change.b, of_b) if change.relation == "split" else (change.a, matching.nodes)
        for first, second in islice(combinations(apart, 2), _MOST_PAIRS):
            here = {*first}, {*second}
            there = [{partner[name] for name in group if name in partner} for group in here]
            sides = [there, here] if change.relation == "split" else [here, there]
            decided = [
                decision_of_pair(side.decisions, *nodes) if all(nodes) else None
                for side, nodes in zip((a, b), sides, strict=True)
            ]
            if decided[0] and decided[1] and decided[0].outcome != decided[1].outcome:
                changes.append(DecisionChange(decided[0], decided[1]))
    return tuple(changes)


def _by_subject(
    graph: CompiledGraph,
    kinds: set[DecisionKind],
    nodes: Mapping[str, str],
    buffers: Mapping[str, str],
) -> dict[Hashable, Decision]:
    """Return the last decision of each question about each subject, under the names of the other side."""
    return dict(_keyed(graph, kinds, nodes, buffers))


def _keyed(
    graph: CompiledGraph,
    kinds: set[DecisionKind],
    nodes: Mapping[str, str],
    buffers: Mapping[str, str],
) -> Iterator[tuple[Hashable, Decision]]:
    names = {"node": nodes, "buffer": buffers}
    for decision in graph.decisions.decisions if graph.decisions else ():
        if decision.speculative or decision.kind not in kinds or decision.subject_type not in names:
            continue
        partner = names[decision.subject_type]
        groups = frozenset(
            frozenset(partner.get(name, name) for name in group) for group in decision.subjects
        )
        yield (decision.kind, decision.question, decision.subject_type, groups), decision
