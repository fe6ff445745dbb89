from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.analysis.input_bounds import input_bounds
from inductor_probe.model.debug_dir import CompiledGraph, GraphDir
from inductor_probe.model.layouts import InputBound
from inductor_probe.reader.fx import parse_fx_graph


def bounds(inputs: str, *lines: str) -> dict[str, InputBound]:
    """Bounds of a graph of these lines, printed as torch prints them."""
    body = "".join(f"        {line}\n" for line in lines)
    text = f"class <lambda>(torch.nn.Module):\n    def forward(self, {inputs}):\n{body}        return (x,)\n"
    fx = parse_fx_graph(text, Path("fx_graph_transformed.py"))
    assert not fx.problems
    graph = CompiledGraph(GraphDir(Path("g"), 0, None), None, (), (), None, fx, None)
    return {bound.name: bound for bound in input_bounds(graph)}


def test_indices_of_real_graphs_stay_inside_what_they_pick_from(read: Callable[..., CompiledGraph]) -> None:
    programs = "torch-2.13.0-cpu-programs/"
    (at,) = input_bounds(read(programs + "scatters"))
    assert (at.name, at.low, at.high) == ("arg2_1", 3, 9), (
        "`at - 3` must not be negative, `at` below ten rows"
    )
    forward, backward = (input_bounds(read(programs + "training", at=which)) for which in (0, 1))
    for found in (forward, backward):
        (tokens,) = found
        assert (tokens.name, tokens.low, tokens.high, tokens.lost) == ("primals_2", 0, 19, False)
    (edges,) = input_bounds(read(programs + "masks"))
    assert (edges.name, edges.form, edges.operator) == ("arg1_1", "sorted", "aten.bucketize")


def test_a_graph_of_floats_alone_needs_nothing(read: Callable[..., CompiledGraph]) -> None:
    assert input_bounds(read("torch-2.13.0-cpu-programs/mutations")) == ()


def test_a_symbolic_dimension_gives_a_symbolic_bound() -> None:
    found = bounds('w: "f32[s77, 8]", i: "i64[4]"', 'x: "f32[4, 8]" = torch.ops.aten.embedding.default(w, i)')
    assert (found["i"].low, found["i"].high) == (0, "s77 - 1")


@pytest.mark.parametrize(
    ("between", "low", "high"),
    [
        ("add.Tensor(i, 2)", -2, 7),
        ("sub.Tensor(i, 3)", 3, 12),
        ("mul.Tensor(i, 4)", 0, 2),
        ("div.Tensor_mode(i, 3, rounding_mode = 'floor')", 0, 29),
        ("unsqueeze.default(i, 0)", 0, 9),
        ("cat.default([i, i])", 0, 9),
        ("where.self(m, i, z)", 0, 9),
    ],
)
def test_a_need_is_carried_back_through_arithmetic(between: str, low: int, high: int) -> None:
    found = bounds(
        'w: "f32[10, 8]", i: "i64[4]", m: "b8[4]", z: "i64[]"',
        f'j: "i64[4]" = torch.ops.aten.{between}',
        'x: "f32[4, 8]" = torch.ops.aten.index.Tensor(w, [j])',
    )
    assert (found["i"].low, found["i"].high) == (low, high)


def test_an_index_that_wraps_around_keeps_the_branch_that_is_taken() -> None:
    found = bounds(
        'w: "f32[10]", i: "i64[4]"',
        'n: "i64[4]" = torch.ops.aten.add.Tensor(i, 10)',
        'l: "b8[4]" = torch.ops.aten.lt.Scalar(i, 0)',
        'j: "i64[4]" = torch.ops.aten.where.self(l, n, i)',
        'x: "f32[4]" = torch.ops.aten.index.Tensor(w, [j])',
    )
    assert (found["i"].low, found["i"].high) == (0, 9) or (found["i"].low, found["i"].high) == (-10, -1)


def test_each_index_has_its_own_dimension_and_a_mask_takes_as_many_as_it_has() -> None:
    found = bounds(
        'w: "f32[5, 6, 7, 8]", m: "b8[5, 6]", i: "i64[3]", j: "i64[3]"',
        'y: "f32[3]" = torch.ops.aten.index.Tensor(w, [m, i])',
        'x: "f32[3]" = torch.ops.aten.index_put.default(w, [None, j], y)',
    )
    assert (found["i"].high, found["j"].high) == (6, 5)
    assert "m" not in found


@pytest.mark.parametrize("operator", ["remainder.Tensor", "floor_divide.default", "fmod.Tensor"])
def test_whole_numbers_are_not_divided_by_zero(operator: str) -> None:
    found = bounds('a: "i64[4]", b: "i64[4]"', f'x: "i64[4]" = torch.ops.aten.{operator}(a, b)')
    assert (found["b"].low, found["b"].high) == (1, None)
    assert "a" not in found
    floats = bounds('a: "f32[4]", b: "f32[4]"', f'x: "f32[4]" = torch.ops.aten.{operator}(a, b)')
    assert floats == {}


def test_a_shift_is_less_than_the_width() -> None:
    found = bounds('a: "i32[4]", b: "i32[4]"', 'x: "i32[4]" = torch.ops.aten.bitwise_left_shift.Tensor(a, b)')
    assert (found["b"].low, found["b"].high) == (0, 31)


def test_lengths_and_offsets_of_segments_are_made_of_the_data() -> None:
    found = bounds(
        'd: "f32[12, 2]", n: "i64[3]", o: "i64[4]"',
        "y: \"f32[3, 2]\" = torch.ops.aten.segment_reduce.default(d, 'sum', lengths = n)",
        "x: \"f32[3, 2]\" = torch.ops.aten.segment_reduce.default(d, 'sum', offsets = o)",
    )
    assert (found["n"].high, found["n"].form) == (12, "parts")
    assert (found["o"].high, found["o"].form) == (12, "offsets")


def test_what_no_rule_follows_is_said_to_be_lost() -> None:
    found = bounds(
        'w: "f32[10]", i: "i64[4]", k: "i64[4]"',
        'j: "i64[4]" = torch.ops.mylib.permuted.default(i)',
        'x: "f32[4]" = torch.ops.aten.index.Tensor(w, [j])',
        'y: "i64[4]" = torch.ops.aten.abs.default(k)',
    )
    assert found["i"].lost
    assert "k" not in found, "nothing is picked with it"


def test_offsets_of_a_pooling_window_never_point_into_its_padding() -> None:
    operator = "torch.ops.prims._low_memory_max_pool_offsets_to_indices.default"
    wide = bounds(
        'o: "i8[2, 4, 16, 16]"',
        f'x: "i64[2, 4, 16, 16]" = {operator}(o, [3, 3], [32, 32], [2, 2], [1, 1], [1, 1])',
    )
    assert (wide["o"].low, wide["o"].high) == (4, 5), "the middle row, from the middle on"
    bare = bounds('o: "i8[2, 8]"', f'x: "i64[2, 8]" = {operator}(o, [4], [32], [4], [0], [1])')
    assert (bare["o"].low, bare["o"].high) == (0, 3)
    edge = bounds('o: "i8[2, 8]"', f'x: "i64[2, 8]" = {operator}(o, [4], [30], [4], [0], [1])')
    assert edge["o"].high == 1, "the last window ends behind the input"


def test_a_number_out_of_a_tensor_that_a_slice_starts_at_stays_inside() -> None:
    found = bounds(
        'w: "f32[5, 5]", i: "i64[]", j: "i64[]"',
        'u: "Sym(u3)" = torch.ops.aten._local_scalar_dense.default(i)',
        "e = u + 2",
        'y: "f32[5, 2]" = torch.ops.aten.slice.Tensor(w, 1, u, e)',
        'v: "Sym(u4)" = torch.ops.aten._local_scalar_dense.default(j)',
        'x: "f32[5]" = torch.ops.aten.select.int(w, 0, v)',
    )
    assert (found["i"].low, found["i"].high, found["i"].operator) == (0, 3, "aten.slice")
    assert (found["j"].low, found["j"].high, found["j"].lost) == (0, 4, False)


def test_a_mask_takes_no_more_than_its_source_has() -> None:
    found = bounds(
        'w: "f32[10, 10]", m: "b8[10, 10]", s: "f32[u0]"',
        'x: "f32[10, 10]" = torch.ops.aten.masked_scatter.default(w, m, s)',
    )
    assert (found["m"].high, found["m"].form) == ("(u0)", "true")
