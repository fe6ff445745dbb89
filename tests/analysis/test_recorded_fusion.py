"""Which recorded decision says what became of two nodes."""

from __future__ import annotations

from inductor_probe.analysis.fusion.recorded import decision_of_pair
from inductor_probe.capture.recorders.fusion_causes import uncovered
from inductor_probe.model.decision import Decision, FusionCause, Outcome, TorchFrame

PLACE = TorchFrame("torch/_inductor/scheduler.py", "Scheduler.can_fuse", 7327)


def decision(
    number: int, outcome: Outcome, cause: FusionCause, *subjects: tuple[str, ...], speculative: bool = False
) -> Decision:
    return Decision(number, "fusion", "node", subjects, outcome, cause, (), PLACE, speculative=speculative)


FIRST = decision(1, "refused", "loop-ranges-differ", ("op0",), ("op1",), speculative=True)
STEP = decision(2, "fused", "common-buffer", ("op0",), ("op2",))
LAST = decision(3, "refused", "fused-ranges", ("op0", "op2"), ("op1",))
CALL = decision(4, "not-tried", "extern-kernel", ("op3",))
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
