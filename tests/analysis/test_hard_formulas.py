"""Formulas of bodies that are very long, nested deep, or that nobody wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.analysis.canonical import canonical
from inductor_probe.analysis.formula.formula import formula
from inductor_probe.model.ir import Block, Op, Ref
from inductor_probe.report.formula import formula_text
from tests.analysis.made_bodies import F32, LOAD, body_node, op, store


@pytest.mark.parametrize(
    "operation", ["add", "exp", "where", "maximum", "add mul", "minimum maximum", "mul add exp"]
)
def test_a_body_of_thousands_of_operations_neither_fails_nor_grows(operation: str) -> None:
    ops = [*LOAD]
    last = "x"
    kinds = operation.split()
    for at in range(3000):
        kind = kinds[at % len(kinds)]
        args = {"exp": (Ref(last),), "where": (Ref("x"), Ref(last), Ref("x"))}
        ops.append(op(f"v{at}", kind, *args.get(kind, (Ref(last), Ref("x")))))
        last = f"v{at}"
    found = formula(body_node([*ops, *store(last)]))
    text = formula_text(found, 80)
    assert len(text) < 100 * 3000
    assert len({line for statement in found.statements for line in statement.lines}) == 3004
    assert hash(found) == hash(formula(body_node([*ops, *store(last)])))


arguments = st.lists(
    st.sampled_from(
        [Ref("x"), Ref("i"), Ref("nothing"), F32, "sum", "index0", 0, -1.5, None, True, (Ref("x"), 2), ()]
    ),
    max_size=5,
)
OPERATIONS = (
    "add", "and_", "where", "neg", "reciprocal", "minimum", "maximum", "reduction", "sort", "store", "load",
    "store_reduction", "constant", "to_dtype", "index_expr", "check_bounds", "device_assert_async", "masked",
    "frexp", "bucketize", "sum", "item",
)  # fmt: skip
MODULES = ("get_index", "set_indirect0", "masked_subblock1", "scan1", "other")
targets = st.sampled_from(
    [*(f"ops.{name}" for name in OPERATIONS), *(f"self.{name}" for name in MODULES), "[]", "f"]
)


@given(st.lists(st.tuples(targets, arguments), max_size=8))
def test_a_body_that_nobody_wrote_is_shown_all_the_same(calls: list[tuple[str, list[object]]]) -> None:
    inside = Block(
        "masked_subblock1", ("ops",), (Op("y", "ops.load", ("arg1", Ref("i")), (), 200),), Ref("y")
    )
    damaged = [
        Op("x" if at % 3 else f"v{at}", target, (Ref("x"), 0) if target == "[]" else tuple(args))  # type: ignore[arg-type]  # odd on purpose
        for at, (target, args) in enumerate(calls)
    ]
    node = body_node([*LOAD, *damaged], blocks=(inside,))
    assert node.body is not None
    found = formula(node)
    text = formula_text(found, 60)
    assert text.startswith("for p0 < 8")
    assert {line for statement in found.statements for line in statement.lines} == {
        op.line for block in node.body.blocks for op in block.ops
    }
    assert canonical(node) == canonical(body_node([*LOAD, *damaged], blocks=(inside,)))


def test_an_index_nested_deeper_than_the_stack_is_kept_as_it_is() -> None:
    deep = "(" * 90 + "p0" + "//2)" * 90
    node = body_node([*LOAD, *store("x")], indexes=(("index0", deep),))
    assert formula_text(formula(node)).count("//") >= 180
    assert canonical(node)


def test_a_block_that_calls_itself_ends() -> None:
    block = Block(
        "masked_subblock1", ("ops",), (Op("v", "self.masked_subblock1", (Ref("m"), 0.0), (), 200),), Ref("v")
    )
    ops = (*LOAD, op("v", "self.masked_subblock1", Ref("x"), 0.0), *store("v"))
    assert "masked_subblock1" in formula_text(formula(body_node(ops, blocks=(block,))))
