"""The sentences of causes, and what is offered to change a decision."""

from __future__ import annotations

from typing import cast

import pytest

from inductor_probe.analysis.causes.conditions import applies
from inductor_probe.catalogue import causes_of, remark_of
from inductor_probe.catalogue.entries import By
from inductor_probe.model.cause import Change
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import CauseCode, Decision, DecisionKind, Operand, Outcome
from inductor_probe.model.setting import Setting
from inductor_probe.report.words.decisions import change_text, sentence, short_cause
from tests.builders import decision


def decided(kind: DecisionKind, outcome: Outcome, cause: CauseCode, **operands: Operand) -> Decision:
    return decision(kind, "op0", outcome, cause, operands=operands)


def test_vectors_of_tiles_with_too_few_rows_are_not_called_less_than_full() -> None:
    """A copy to 8 x 324 has full vectors along 324, and 8 of 16 rows; "4 of 16 lanes" was said."""
    operands: dict[str, Operand] = {
        "loops": ("x0", "x1"),
        "ranges": (8, 324),
        "factor": 16,
        "full_vectors": ("0", "20"),
        "tails": ("8", "4"),
    }
    cause = decided("vectorisation", "underfilled", "range-below-vector", **operands)
    assert sentence(cause) == (
        "op0 is vectorised, but no tile is full: along x0 only 8 of 16 rows of tiles are filled, by a mask "
        "[range-below-vector]"
    )
    assert short_cause(cause) == "8 of 16 rows of tiles filled"
    wide = operands | {"ranges": (16, 9), "full_vectors": ("1", "0"), "tails": ("0", "9")}
    of_lanes = decided("vectorisation", "underfilled", "range-below-vector", **wide)
    assert short_cause(of_lanes) == "9 of 16 lanes filled"


def test_the_sentence_of_a_short_inner_loop() -> None:
    operands = {
        "loop": "x2",
        "range": 3,
        "range_limit": 4.0,
        "factor": 16,
        "operations": 2,
        "operations_limit": 10,
    }
    cause = decided("vectorisation", "scalar", "short-inner-range", **operands)
    assert sentence(cause) == (
        "op0 is scalar: its loop x2 has 3 steps, fewer than 4 (a quarter of a vector of 16), and "
        "2 operations are fewer than the 10 that would be worth it [short-inner-range]"
    )
    assert short_cause(cause) == "inner range 3 < 16/4 with 2 operations"


def test_names_that_a_rewrite_has_not_kept_are_counted() -> None:
    nodes, by = (tuple(f"{name}_{number}" for number in range(24)) for name in ("seed", "lookup"))
    cause = decided(
        "rewrite", "replaced", "pass", nodes=nodes, nodes_count=1000, by=by, operators=("prims.seed",)
    )
    assert sentence(cause).startswith(
        "seed_0, seed_1, seed_2, seed_3 and 996 more became lookup_0, lookup_1, lookup_2, lookup_3 and 20 "
    )


def test_a_cause_without_words_is_shown_with_its_operands() -> None:
    cause = decided("vectorisation", "scalar", "too-hot", degrees=90)
    assert sentence(cause) == "op0 is scalar: too-hot (degrees 90)"


def test_a_cause_without_the_operands_of_its_sentence_is_shown_with_what_it_has() -> None:
    cause = decided("vectorisation", "scalar", "short-inner-range", range=3)
    assert sentence(cause) == "op0 is scalar: short-inner-range (range 3)"


def test_a_change_says_its_value_and_the_present_one_and_claims_no_safety() -> None:
    """`[safe: the same results but for rounding]` was a constant of a kind: nothing had compared them."""
    setting = Setting("torch._inductor.config.cpp.simdlen", "None", "1")
    cause = decided("vectorisation", "scalar", "no-vector-isa")
    assert change_text(Change("cpp.simdlen", setting), cause) == (
        "torch._inductor.config.cpp.simdlen = None (1 in this dump): lets inductor choose the widest vectors "
        "of the machine"
    )
    frozen = decided("freezing", "frozen", "parameters", constants=2, inputs=1, folded=0)
    (off,) = causes_of("freezing")["parameters"].changes
    assert isinstance(off, By)
    assert off.differs
    assert "[results may differ]" in change_text(Change("freezing", differs=True), frozen)
    assert sentence(frozen).endswith("what changes a parameter after the compile is not seen [parameters]")


def test_an_operator_of_the_user_s_is_not_torch_s_own() -> None:
    said = {
        operator: sentence(decided("fallback", "extern", "no-lowering", operator=operator))
        for operator in ("field.put_rows.default", "aten.topk.default")
    }
    assert said["field.put_rows.default"].startswith("op0 calls field.put_rows.default: ")
    assert said["aten.topk.default"].startswith("op0 calls torch's own aten.topk.default: ")


def test_a_clone_before_an_operator_that_changes_it_is_not_said_to_change_nothing() -> None:
    removed = decided(
        "rewrite", "removed", "no-op", nodes=("clone",), operators=("aten.clone.default",), by=("arg0_1",),
        mutated_by=("auto_functionalized_v2",), by_operators=(),
    )  # fmt: skip
    assert sentence(removed) == (
        "clone was removed, and arg0_1 used in its place: aten.clone gives the values of its operand in the "
        "same size, strides and dtype; auto_functionalized_v2 changes in place what it takes [no-op]"
    )


def test_a_loop_shorter_than_its_vector_says_how_often_threads_start() -> None:
    """`FloorDiv(4, 16)` is no step to torch, so 1,568 starts were a `passed` row that named none of them."""
    operands: dict[str, Operand] = {
        "threads": 8, "loops": ("x3",), "outer_steps": 0, "inner_steps": 49, "ratio_limit": 300,
        "starts": 1568, "rounded_loops": ("x2 (4)",), "is_reduction": True,
    }  # fmt: skip
    cause = decided("threads", "parallel", "outer-loops-rounded", **operands)
    assert remark_of(cause) == "missed"
    assert sentence(cause) == (
        "op0 shares x3 among 8 threads 1,568 times in a call: torch divides the loop inside where it has "
        "more than 300 times the steps of those around it, and counts 0 of these, as x2 (4) is shorter than "
        "a vector; there are 1,568, at each of which a team of threads starts and ends [outer-loops-rounded]"
    )
    assert short_cause(cause) == "1,568 starts of 8 threads, counted as 0"


@pytest.mark.parametrize(
    ("first", "second", "is_offered"),
    [
        (("64*c0 + c1", "c0: 8, c1: 64"), ("-c1 + 64*c0 + 63", "c0: 8, c1: 64"), True),
        (("64*c0 + c1", "c0: 8, c1: 64"), ("64*c1 + c0", "c0: 64, c1: 8"), True),
        (("c0", "c0: 512"), ("c0 + 256", "c0: 256"), False),
        (("c0", "c0: 512"), ("2*c0", "c0: 256"), False),
        (("c0", "c0: 512"), ("c0 + 64*tmp0", "c0: 64"), False),
        (("c0", "c0: 512"), ("all", ""), False),
    ],
)
def test_the_same_index_is_not_asked_of_other_elements(
    first: tuple[str, str], second: tuple[str, str], is_offered: bool
) -> None:
    cause = decided(
        "fusion", "refused", "accesses-differ", buffer="buf4", first_index=first[0], first_ranges=first[1],
        second_index=second[0], second_ranges=second[1],
    )  # fmt: skip
    change, _ = causes_of("fusion")["accesses-differ"].changes
    assert applies(change, cause, cast(CompiledGraph, None)) == is_offered


@pytest.mark.parametrize(
    ("cause", "first", "second", "is_offered"),
    [
        ("loop-ranges-differ", ("(64, 32)", "()"), ("(2048)", "()"), True),
        ("loop-ranges-differ", ("(64, 32)", "()"), ("(64)", "()"), False),
        ("no-common-outer-loop", ("(64)", "(32)"), ("(64, 32)", "()"), True),
        ("no-common-outer-loop", ("()", "(8192)"), ("()", "()"), False),
    ],
)
def test_the_same_dimensions_are_not_asked_of_loops_that_cannot_have_them(
    cause: CauseCode, first: tuple[str, str], second: tuple[str, str], is_offered: bool
) -> None:
    refused = decided(
        "fusion", "refused", cause, first_ranges=first[0], first_reduction=first[1], second_ranges=second[0],
        second_reduction=second[1],
    )  # fmt: skip
    (change,) = causes_of("fusion")[cause].changes
    assert applies(change, refused, cast(CompiledGraph, None)) == is_offered


@pytest.mark.parametrize(
    ("index", "is_offered"),
    [("128*d0 + d1", True), ("81*((d1//4)) + 648*(ModularIndexing(d1, 1, 4))", False)],
)
def test_a_read_through_a_view_that_mixes_dimensions_is_not_to_be_made_contiguous(
    index: str, is_offered: bool
) -> None:
    operands = {"does": "read of", "buffer": "arg0_1", "outer_stride": 128, "inner_stride": 1, "index": index}
    cause = decided("loops", "separate", "loops-not-contiguous", **operands)
    graph = cast(CompiledGraph, None)  # the rule looks at the decision alone
    changes = causes_of("loops")["loops-not-contiguous"].changes
    assert any(applies(change, cause, graph) for change in changes) is is_offered


def test_dynamic_sizes_that_keep_a_graph_from_cuda_graphs_have_a_setting() -> None:
    cause = decided("cudagraphs", "skipped", "no-partition", reasons=("dynamic shape ops",))
    graph = cast(CompiledGraph, None)
    changes = causes_of("cudagraphs")["no-partition"].changes
    offered = [change for change in changes if applies(change, cause, graph)]
    assert [getattr(change, "code", None) for change in offered] == ["triton.cudagraph_skip_dynamic_graphs"]
