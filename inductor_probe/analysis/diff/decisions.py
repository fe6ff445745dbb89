"""Which decisions of the compiler fell otherwise in another graph, as far as both graphs record them.

Decisions are matched by what they are about: the kind, and the nodes or buffers of A under the names of their
partners in B. For example `vectorisation of op0, op1` of A is that of `op0, op2` of B where op1 is matched
with op2. A decision whose subjects are grouped otherwise in B has no partner, and is left to the comparison
of fused groups.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from inductor_probe.analysis.diff.matching import Matching
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision, DecisionKind
from inductor_probe.model.diff import DecisionChange


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


def _by_subject(
    graph: CompiledGraph,
    kinds: set[DecisionKind],
    nodes: Mapping[str, str],
    buffers: Mapping[str, str],
) -> dict[Hashable, Decision]:
    """Return the last decision of each kind about each subject, under the names of the other side."""
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
        yield (decision.kind, decision.subject_type, groups), decision
