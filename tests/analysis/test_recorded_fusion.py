"""Which recorded decision says what became of two nodes."""

from __future__ import annotations

from typing import Any

from inductor_probe.analysis.causes.pairs import decision_of_pair, untried_of_node
from inductor_probe.capture.recorders.fusion_rounds import uncovered
from inductor_probe.model.decision import CauseCode, Decision, Outcome
from tests.builders import decision


def decided(number: int, outcome: Outcome, cause: CauseCode, subjects: str, **changes: Any) -> Decision:
    return decision("fusion", subjects, outcome, cause, number=number, **changes)


FIRST = decided(1, "refused", "loop-ranges-differ", "op0, op1", speculative=True)
STEP = decided(2, "fused", "common-buffer", "op0, op2")
LAST = decided(3, "refused", "fused-ranges", "op0 op2, op1")
CALL = decided(4, "not-tried", "extern-kernel", "op3")
ALL = (FIRST, STEP, LAST, CALL)


def test_what_kept_two_nodes_apart_is_the_last_decision_about_nodes_that_hold_them() -> None:
    assert decision_of_pair(ALL, ["op0"], ["op1"]) == LAST
    assert decision_of_pair(reversed(ALL), ["op1"], ["op0"]) == LAST
    assert decision_of_pair(ALL, ["op0", "op2"], ["op1"]) == LAST


def test_nodes_in_one_group_are_decided_about_where_they_were_in_two() -> None:
    assert decision_of_pair(ALL, ["op0"], ["op2"]) == STEP


def test_a_node_that_is_in_no_pair_says_why_for_all_of_its_pairs() -> None:
    assert decision_of_pair(ALL, ["op3"], ["op1"]) == CALL
    assert decision_of_pair((FIRST, STEP), ["op3"], ["op1"]) is None


def test_an_earlier_decision_is_covered_by_a_later_one_about_nodes_that_hold_both() -> None:
    op0, op1, op2 = 1, 2, 4

    def bits(mask: int) -> list[int]:
        return [bit for bit in (op0, op1, op2) if mask & bit]

    latest_first = [(op0 | op2, op1), (op0, op2), (op0, op1)]
    assert uncovered(latest_first, lambda mask: iter(bits(mask))) == [True, True, False]


FAR = decided(6, "not-tried", "pair-limit", "op0, op1, op2, op3", operands={"limit": 1, "pairs": 2})
APART = decided(5, "not-tried", "no-common-buffer", "op0, op1, op2, op3, op4", operands={"pairs": 4})
TRIED = decided(7, "refused", "accesses-differ", "op0, op2")
MANY = (APART, FAR, TRIED)


def test_a_decision_about_many_groups_answers_for_each_pair_that_has_none_of_its_own() -> None:
    apart, far = (decision_of_pair(MANY, ["op0"], [other]) for other in ("op4", "op3"))
    assert apart is not None
    assert (apart.cause, apart.subjects, apart.operands) == ("no-common-buffer", (("op0",), ("op4",)), ())
    assert far is not None
    assert (far.cause, far.subjects) == ("pair-limit", (("op0",), ("op3",)))
    assert dict(far.operands) == {"limit": 1, "distance": 3}
    assert decision_of_pair(MANY, ["op2"], ["op0"]) == TRIED


def test_of_one_node_a_decision_about_many_names_those_that_it_was_not_tried_with() -> None:
    apart, far = (untried_of_node(MANY, many, ["op0"]) for many in (APART, FAR))
    assert apart is not None
    assert apart.subjects == (("op0",), ("op1",), ("op4",))
    assert far is not None
    assert far.subjects == (("op0",), ("op3",))
    assert untried_of_node(MANY, FAR, ["op0", "op1"]) == FAR
    near = decided(8, "refused", "accesses-differ", "op0, op3")
    assert untried_of_node((*MANY, near), FAR, ["op0"]) is None
