"""What torch decided about two nodes, among the decisions that were recorded of their graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from inductor_probe.model.decision import Decision


def decision_of_pair(
    decisions: Iterable[Decision], first: Collection[str], second: Collection[str]
) -> Decision | None:
    """Return what fused two nodes, or kept them apart in the end; None where nothing is recorded of them.

    Torch decides about the fused nodes of each round. The last decision counts that has all of the first in
    one group and all of the second in another: of op0 and op1 that about (op0, op2) and (op1), if the earlier
    one about (op0) and (op1) was another. A node that is in no pair (a library call) has a decision of one
    group, which counts if there is none about the pair.

    Args:
        decisions: of a graph, in any order. first, second: names of unfused nodes, none in both.
    """
    one, other = frozenset(first), frozenset(second)
    rows = sorted((row for row in decisions if row.kind == "fusion"), key=lambda row: row.number)
    about_pair = [row for row in rows if len(row.subjects) > 1 and _splits(row, one, other)]
    about_one = [row for row in rows if len(row.subjects) == 1 and {*row.subjects[0]} & (one | other)]
    final = [row for row in about_pair if not row.speculative]
    return next(reversed(final or about_pair or about_one), None)


def _splits(decision: Decision, first: frozenset[str], second: frozenset[str]) -> bool:
    groups = [frozenset(group) for group in decision.subjects]
    return any(
        first <= one and second <= other
        for number, one in enumerate(groups)
        for position, other in enumerate(groups)
        if number != position
    )
