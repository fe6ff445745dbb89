"""A formula gives the numbers that the body gives, and leaves nothing of it out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.analysis.canonical import canonical
from inductor_probe.analysis.formula.formula import formula
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.formula import Call, Definition, Effect, Formula, Number, Store
from inductor_probe.model.ir import Block, BufferLayout, Dotted, Op, Ref, SchedulerNode
from inductor_probe.report.formula import formula_lines
from tests.analysis.bodies import MORE_DUMPS, all_bodies, formula_text, more_bodies, more_dumps
from tests.analysis.evaluation import BodyMachine, FormulaMachine, NotEvaluatedError, World, points
from tests.analysis.made_bodies import F32, LOAD, body_node, op, store

I64 = Dotted("torch.int64")
BOOL = Dotted("torch.bool")


def layouts_of(node: SchedulerNode) -> dict[str, BufferLayout]:
    found = {name: layout for name, layout, _ in node.layouts}
    return {**found, **{buffer.name: buffer.layout for buffer in node.outputs if buffer.layout}}


def check(node: SchedulerNode, where: str = "") -> Formula:
    """Run the body and evaluate the formula at some points: the same stores, and no other loads."""
    assert node.body is not None
    found = formula(node)
    lines = {line for statement in found.statements for line in statement.lines}
    assert lines == {op.line for block in node.body.blocks for op in block.ops}, where
    ran, evaluated = World(layouts_of(node)), World(layouts_of(node))
    stores = 0
    for outer, inner in points(ran, node):
        expected = BodyMachine(ran, node.body).run(outer, inner)
        assert FormulaMachine(evaluated, found).run(outer, inner) == expected, where
        stores += len(expected)
    assert evaluated.loaded <= ran.loaded, where
    assert stores or not any(op.target.startswith("ops.store") for op in node.body.blocks[0].ops)
    return found


def test_formulas_give_the_numbers_of_the_bodies() -> None:
    for where, node in all_bodies():
        check(node, where)
    assert len(all_bodies()) > 50


def test_the_check_notices_another_constant() -> None:
    half = (*LOAD, op("c", "constant", 0.5, F32), op("y", "add", Ref("x"), Ref("c")), *store("y"))
    node = body_node(half)
    assert node.body is not None
    other = formula(body_node([*half[:2], op("c", "constant", 0.75, F32), *half[3:]]))
    world = World({})
    for outer, inner in points(world, node):
        assert BodyMachine(world, node.body).run(outer, inner) != FormulaMachine(world, other).run(
            outer, inner
        )


@pytest.mark.skipif(more_dumps() is None, reason=f"{MORE_DUMPS} names no folder with more dumps")
def test_formulas_of_more_dumps() -> None:
    seen = unknown = 0
    for where, node in more_bodies(more_dumps() or Path()):
        seen += 1
        try:
            check(node, where)
        except NotEvaluatedError:
            unknown += 1
    assert unknown * 50 <= seen, "most index functions can be evaluated"


def test_a_weight_computation_is_a_few_lines(read: Callable[..., CompiledGraph]) -> None:
    graph = read("torch-2.13.0-cpu/aa_separable_cl")
    node = next(leaf for top in graph.nodes for leaf in top.leaves() if leaf.name == "op1")
    assert node.body is not None
    assert len(node.body.blocks[0].ops) > 400
    lines = formula_lines(formula(node), 100)
    statements = [line for line in lines if line.startswith("  ")]
    assert len(statements) <= 8
    assert "  buf1[p0, p1, p2] = g(0) + g(1) + g(2) + g(3) + g(4)" in statements


def statements(node: SchedulerNode, width: int = 100) -> list[str]:
    check(node)
    return [line.strip() for line in formula_lines(formula(node), width) if line.startswith("  ")]


def test_a_cast_to_the_same_dtype_is_none_and_any_other_is_seen() -> None:
    casts = (
        op("a", "to_dtype", Ref("x"), F32, src_dtype=F32),
        op("b", "to_dtype", Ref("a"), Dotted("torch.uint8"), src_dtype=F32, use_compute_types=True),
        op("c", "to_dtype", Ref("b"), I64, src_dtype=Dotted("torch.uint8")),
    )
    assert statements(body_node([*LOAD, *casts, *store("c")])) == ["buf0[p0] = i64(u8(arg0[p0]))"]


F16 = Dotted("torch.float16")


@pytest.mark.parametrize(
    ("used", "conventions"),
    [("b", ("cast-left-out",)), ("a", ())],
    ids=["computed with", "only stored"],
)
def test_a_cast_that_code_leaves_out_is_said(used: str, conventions: tuple[str, ...]) -> None:
    """Of `x - x.half().float()` the kernel computes `x - x`; what is stored as half precision is rounded."""
    casts = (
        op("a", "to_dtype", Ref("x"), F16, src_dtype=F32, use_compute_types=True),
        op("b", "to_dtype", Ref("a"), F32, src_dtype=F16, use_compute_types=True),
    )
    kept = casts if used == "b" else casts[:1]
    assert formula(body_node([*LOAD, *kept, *store(used)])).conventions == conventions


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [
        (0.1, F32, "0.1"),
        (2, F32, "2.0"),
        (float("inf"), F32, "inf"),
        (1e-05, F32, "1e-05"),
        (1.0, I64, "1"),
        (1, BOOL, "True"),
    ],
)
def test_constants_are_written_as_their_dtype_has_them(number: float, dtype: Dotted, text: str) -> None:
    ops = (op("c", "constant", number, dtype), *store("c"))
    assert statements(body_node(ops)) == [f"buf0[p0] = {text}"]


def test_a_masked_load_stays_under_its_mask() -> None:
    inside = Block(
        "masked_subblock1",
        ("ops",),
        (
            Op("i", "self.get_index", ("index1",), (), 200),
            Op("y", "ops.load", ("arg1", Ref("i")), (), 201),
            Op("z", "ops.mul", (Ref("y"), Ref("y")), (), 202),
        ),
        Ref("z"),
    )
    ops = (
        *LOAD,
        op("zero", "constant", 0.0, F32),
        op("m", "lt", Ref("x"), Ref("zero")),
        op("v", "self.masked_subblock1", Ref("m"), 0.5),
        *store("v"),
    )
    node = body_node(ops, indexes=(("index0", "p0"), ("index1", "p0 - 1")), blocks=(inside,))
    assert statements(node) == [
        "m0 = arg0[p0] < 0.0",
        "t0 = arg1[p0 - 1]  # only where m0",
        "buf0[p0] = masked(m0, t0 * t0, 0.5)",
    ]


def test_an_unknown_operation_keeps_its_name_and_arguments() -> None:
    ops = (*LOAD, op("y", "halide_clamp", Ref("x"), 3, True), *store("y"))
    assert statements(body_node(ops)) == ["buf0[p0] = ops.halide_clamp(arg0[p0], 3, True)"]


def test_what_nothing_takes_is_still_told() -> None:
    ops = (*LOAD, op("y", "exp", Ref("x")), *store("x"))
    found = formula(body_node(ops))
    assert found.statements[-1] == Effect(Call("exp", (formula_value(found),)), used=False)


def formula_value(found: Formula) -> object:
    return next(s for s in found.statements if isinstance(s, Store)).value


def test_an_atomic_store_adds() -> None:
    ops = (
        *LOAD,
        op("at", "self.get_index", "index0"),
        op("s", "store", "buf0", Ref("at"), Ref("x"), "atomic_add"),
    )
    assert statements(body_node(ops)) == ["buf0[p0] += arg0[p0]"]


def test_a_load_after_a_store_is_another_value() -> None:
    again = (op("j", "self.get_index", "index0"), op("y", "load", "arg0", Ref("j")))
    first = op("s", "store", "arg0", Ref("i"), Ref("c"), None)
    ops = (
        *LOAD,
        op("c", "constant", 1.0, F32),
        first,
        *again,
        op("z", "add", Ref("x"), Ref("y")),
        *store("z"),
    )
    found = formula(body_node(ops))
    assert formula_text(found).count("arg0[p0]") == 3
    assert not any(isinstance(statement, Definition) for statement in found.statements)


def test_adding_a_negative_number_is_subtraction() -> None:
    ops = (*LOAD, op("c", "constant", -0.5, F32), op("y", "add", Ref("x"), Ref("c")), *store("y"))
    assert statements(body_node(ops)) == ["buf0[p0] = arg0[p0] - 0.5"]


def test_clamp_is_minimum_of_maximum_only() -> None:
    limits = (op("lo", "constant", 0.0, F32), op("hi", "constant", 1.0, F32))
    clamp = (op("a", "maximum", Ref("x"), Ref("lo")), op("b", "minimum", Ref("a"), Ref("hi")))
    other = (op("a", "minimum", Ref("x"), Ref("hi")), op("b", "maximum", Ref("a"), Ref("lo")))
    assert statements(body_node([*LOAD, *limits, *clamp, *store("b")])) == [
        "buf0[p0] = clamp(arg0[p0], 0.0, 1.0)"
    ]
    assert statements(body_node([*LOAD, *limits, *other, *store("b")])) == [
        "buf0[p0] = max(min(arg0[p0], 1.0), 0.0)"
    ]


def test_subscripts_only_where_layout_and_ranges_prove_them() -> None:
    layout = BufferLayout("FixedLayout", "cpu", "float32", (4, 6), (6, 1))
    span = None
    inside = body_node(
        [*LOAD, *store("x")], (("p0", 24),), (("index0", "23 - p0"),), layouts=(("arg0", layout, span),)
    )
    assert "arg0[23 - p0]" in formula_text(formula(inside))
    rows = body_node(
        [*LOAD, *store("x")],
        (("p0", 4), ("p1", 6)),
        (("index0", "6*p0 - p1 + 5"),),
        layouts=(("arg0", layout, span),),
    )
    assert "arg0[p0, 5 - p1]" in formula_text(formula(rows))
    beyond = body_node(
        [*LOAD, *store("x")],
        (("p0", 4), ("p1", 6)),
        (("index0", "6*p0 + p1 + 1"),),
        layouts=(("arg0", layout, span),),
    )
    assert "arg0[6*p0 + p1 + 1]" in formula_text(formula(beyond))


def test_a_node_without_a_body_has_no_formula() -> None:
    with pytest.raises(ValueError, match="op1 has no loop body"):
        formula(SchedulerNode("op1", "ExternKernelSchedulerNode", "FallbackKernel"))


def test_numbers_keep_the_dtype_they_were_given() -> None:
    ops = (op("c", "constant", 0.5, F32), *store("c"))
    stored = formula(body_node(ops)).statements[0]
    assert isinstance(stored, Store)
    assert stored.value == Number("0.5", "float32")


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
