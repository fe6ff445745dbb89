"""Which decisions of the compiler fell otherwise in another graph, as far as both graphs record them.

Decisions are matched by what they are about: the kind and question, and the nodes or buffers of A under the
names of their partners in B. For example `vectorisation of op0, op1` of A is that of `op0, op2` of B where
op1 is matched with op2. Where subjects are grouped otherwise in B, it is compared with those of B about a
part of them: op0 and op1 were one loop nest, and now op1 is scalar. A decision without such a partner is
one that torch did not take on the other side, if all that it is about is there, too: a node that has no
tail any more. Of nodes that one side fused and the other did not, it is what finally decided about them on
each side.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import NamedTuple

from inductor_probe.analysis.causes.pairs import decision_of_pair
from inductor_probe.analysis.diff.matching import Matching
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision, DecisionKind, Outcome, SubjectType
from inductor_probe.model.diff import DecisionChange, FusionChange
from inductor_probe.model.record import collected

_MOST_PAIRS = 16
"""Pairs of groups of one change that are looked up: a group of 40 nodes that fell apart has 780."""


class _Key(NamedTuple):
    """What a decision is about, under the names of B."""

    kind: DecisionKind
    question: frozenset[Outcome]
    subject_type: SubjectType
    groups: frozenset[frozenset[str]]

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*self.groups)


def decision_changes(matching: Matching) -> tuple[DecisionChange, ...]:
    """Return the decisions with another outcome or another cause, or on one side only.

    They come in the order in which A took them, those of B alone last.
    """
    a, b = matching.a.graph.decisions, matching.b.graph.decisions
    if a is None or b is None:
        return ()
    kinds = {*a.recorders} & {*b.recorders}
    others = _others_of_that_name(matching)
    of_a = _by_subject(matching.a.graph, kinds, matching.nodes, matching.buffers, others)
    of_b = _by_subject(matching.b.graph, kinds, {}, {})
    there = {"node": {*matching.nodes.values()}, "buffer": {*matching.buffers.values()}}
    same_devices = matching.a.devices == matching.b.devices
    parts_a, parts_b = _by_part(of_a), _by_part(of_b)
    changes: dict[DecisionChange, None] = {}
    for key, decision in of_a.items():
        if other := of_b.get(key):
            if (decision.outcome, decision.cause) != (other.outcome, other.cause):
                changes[DecisionChange(decision, other)] = None
            continue
        parts = _about_parts(key, parts_b)
        at_parts = (of_b[part] for part in parts if part not in of_a)
        changes |= {
            DecisionChange(decision, other): None for other in at_parts if decision.outcome != other.outcome
        }
        if not parts and same_devices and _can_be_missed(key, there):
            changes[DecisionChange(decision, None)] = None
    for key, decision in of_b.items():
        is_alone = key not in of_a and not _about_parts(key, parts_a)
        if is_alone and same_devices and _can_be_missed(key, there):
            changes[DecisionChange(None, decision)] = None
    return (*_values_turned(a.decisions, b.decisions), *changes)


def _values_turned(a: Sequence[Decision], b: Sequence[Decision]) -> Iterator[DecisionChange]:
    """Yield whether values are buffers, where a flip turned that, each with what torch chose in A.

    One side has a buffer of it and the other has none, so that they are paired by the FX node of the value.
    """
    for decision in b:
        value = decision.operand("node")
        if decision.kind == "realization" and decision.operand("flip") is not None and value is not None:
            before = [one for one in a if one.kind == "realization" and one.operand("node") == value]
            if before and before[-1].outcome != decision.outcome:
                yield DecisionChange(before[-1], decision)


def _others_of_that_name(matching: Matching) -> set[str]:
    """Return names of A that another value has in B: neither has a partner, and only one of them reduces."""
    a, b = matching.a, matching.b
    nodes = {name for name in a.texts if name in b.texts and not matching.comparable(name, name)}
    writers = ((buffer, a.producer[buffer], b.producer.get(buffer, "")) for buffer in a.producer)
    buffers = {name for name, node, other in writers if other and not matching.comparable(node, other)}
    return nodes | buffers


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
    others: Collection[str] = (),
) -> dict[_Key, Decision]:
    """Return the last decision of each question about each subject, under the names of the other side.

    `others` are names that something else has there.
    """
    names: Mapping[SubjectType, Mapping[str, str]] = {"node": nodes, "buffer": buffers, "graph": {}}
    decided: dict[_Key, Decision] = {}
    for decision in graph.decided:
        if decision.speculative or decision.kind not in kinds or decision.subject_type not in names:
            continue
        partner = names[decision.subject_type]
        taken = {*partner.values(), *others}  # what has no partner is not that which is called so in B
        groups = frozenset(
            frozenset(partner.get(name, f"{name} of A" if name in taken else name) for name in group)
            for group in decision.subjects
        )
        decided[_Key(decision.kind, decision.question, decision.subject_type, groups)] = decision
    return decided


def _by_part(decided: Iterable[_Key]) -> Mapping[Hashable, tuple[_Key, ...]]:
    """Return the keys by each name that they are about."""
    return collected(
        ((key.kind, key.question, key.subject_type, name), key) for key in decided for name in key.names
    )


def _about_parts(key: _Key, parts: Mapping[Hashable, tuple[_Key, ...]]) -> tuple[_Key, ...]:
    """Return the keys of the other side with the same question about some of the same names.

    Pairs have none: of another pair torch asks another question.
    """
    if len(key.groups) > 1:
        return ()
    candidates = (
        parts.get((key.kind, key.question, key.subject_type, name), ()) for name in sorted(key.names)
    )
    return tuple(dict.fromkeys(other for others in candidates for other in others if len(other.groups) == 1))


def _can_be_missed(key: _Key, there: Mapping[str, Collection[str]]) -> bool:
    """Whether it says something that the other side has no such decision: all it is about is on both.

    Which pairs the scheduler tries changes with each fusion before: `pair_changes` has those that matter.
    """
    names = there.get(key.subject_type, ())
    return key.kind != "fusion" and all(name in names for name in key.names)
