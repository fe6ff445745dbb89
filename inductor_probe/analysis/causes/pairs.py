"""What torch decided about two nodes, among the decisions that were recorded of their graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from inductor_probe.model.decision import CauseCode, Decision, Operand

ABOUT_MANY: frozenset[CauseCode] = frozenset({"no-common-buffer", "pair-limit"})
"""Of many groups: they say why each two of them were not tried of which nothing else is recorded."""


def decision_of_pair(
    decisions: Iterable[Decision], first: Collection[str], second: Collection[str]
) -> Decision | None:
    """Return what fused two nodes, or kept them apart in the end; None where nothing is recorded of them.

    Torch decides about the fused nodes of each round. The last decision counts that has all of the first in
    one group and all of the second in another: of op0 and op1 that about (op0, op2) and (op1), if the earlier
    decision about (op0) and (op1) was another. Without one, a decision about many groups counts, as if about
    the two that hold the nodes. A node that is in no pair (a library call) has a decision of one group, which
    is returned if no decision is about the pair.

    Args:
        decisions: of a graph, in any order. first, second: names of unfused nodes, none in both.
    """
    one, other = frozenset(first), frozenset(second)
    rows = sorted((row for row in decisions if row.kind == "fusion"), key=lambda row: row.number)
    about_pair = [row for row in rows if len(row.subjects) > 1 and _splits(row, one, other)]
    about_one = [row for row in rows if len(row.subjects) == 1 and {*row.subjects[0]} & (one | other)]
    tried = [row for row in about_pair if row.cause not in ABOUT_MANY]
    final = [row for row in tried if not row.speculative]
    untried = (row for row in (_between(row, one, other) for row in about_pair if row not in tried) if row)
    return next(reversed(final or tried or [*untried] or about_one), None)


def untried_of_node(decisions: Iterable[Decision], many: Decision, nodes: Collection[str]) -> Decision | None:
    """Return a decision about many groups as one about that of a node, and those it was not tried with.

    It is returned as it is where the nodes are in several of its groups, and None where each pair of the
    node has another decision.
    """
    inside = [position for position, group in enumerate(many.subjects) if not {*group}.isdisjoint(nodes)]
    if len(inside) != 1:
        return many
    [position] = inside
    group = many.subjects[position]
    rows = [row for row in decisions if row.kind == "fusion" and row != many]
    tried = {frozenset(row.subjects) for row in rows if len(row.subjects) == 2}
    farther = [row for row in rows if row.cause == "pair-limit" and group in row.subjects]
    others = tuple(
        other
        for number, other in enumerate(many.subjects)
        if frozenset((group, other)) not in tried
        and _is_far(many, position, number)
        and not (many.cause != "pair-limit" and any(_limits(row, group, other) for row in farther))
    )
    return _narrowed(many, (group, *others)) if others else None


def is_between(decision: Decision, first: Collection[str], second: Collection[str]) -> bool:
    """Whether a decision about a pair has nodes of the first on one side only, of the second on the other."""
    sides = [(not {*first}.isdisjoint(group), not {*second}.isdisjoint(group)) for group in decision.subjects]
    return sides in ([(True, False), (False, True)], [(False, True), (True, False)])


def _group(decision: Decision, names: frozenset[str]) -> int | None:
    """Return which group of a decision has all of some nodes."""
    return next((n for n, group in enumerate(decision.subjects) if names <= frozenset(group)), None)


def _splits(decision: Decision, first: frozenset[str], second: frozenset[str]) -> bool:
    one, other = _group(decision, first), _group(decision, second)
    return one is not None and other is not None and one != other


def _between(decision: Decision, first: frozenset[str], second: frozenset[str]) -> Decision | None:
    """Return a decision about many groups as one about two of them; None where it does not speak of these."""
    one, other = sorted(
        number for names in (first, second) if (number := _group(decision, names)) is not None
    )
    if not _is_far(decision, one, other):
        return None
    distance = (("distance", other - one),) if decision.cause == "pair-limit" else ()
    return _narrowed(decision, (decision.subjects[one], decision.subjects[other]), distance)


def _is_far(decision: Decision, one: int, other: int) -> bool:
    """Whether two groups are different and, where torch tries the next few only, as far apart."""
    limit = decision.operand("limit")
    return abs(one - other) > (limit if isinstance(limit, int) else 0)


def _limits(decision: Decision, group: tuple[str, ...], other: tuple[str, ...]) -> bool:
    groups = decision.subjects
    return other in groups and _is_far(decision, groups.index(group), groups.index(other))


def _narrowed(
    decision: Decision, groups: tuple[tuple[str, ...], ...], more: tuple[tuple[str, Operand], ...] = ()
) -> Decision:
    """Return a decision about some of its groups, without the operand that counts all pairs."""
    operands = tuple((name, value) for name, value in decision.operands if name != "pairs")
    return replace(decision, subjects=groups, operands=(*operands, *more))
