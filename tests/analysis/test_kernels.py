"""Rows of kernels on real dumps: what runs in them, what they are passed, what they move."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.causes.nests import nest_of
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.model.code import CppFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import DECISION_KINDS, Decision, Decisions, Operand
from inductor_probe.model.kernels import KernelRow
from tests.builders import decision
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]


def rows(graph: CompiledGraph) -> dict[str, KernelRow]:
    return {row.name: row for row in kernel_rows(graph)}


def check(graph: CompiledGraph) -> None:
    """What holds for the rows of any dump."""
    assert graph.code is not None
    found = rows(graph)
    assert set(found) == {at.name for at in graph.code.kernels} | {at.target for at in graph.code.externs}
    prints_layouts = any(leaf.layouts for top in graph.nodes for leaf in top.leaves())  # torch 2.4 and later
    known = {leaf.name for top in graph.nodes for leaf in top.leaves()}
    for row in found.values():
        assert set(row.nodes) <= known
        assert row.launches, row.name
        if row.backend == "extern":
            assert sum(call.target == row.name for call in graph.code.externs) == len(row.launches)
            continue
        assert row.details
        assert row.source
        assert sum(launch.kernel == row.name for launch in graph.code.launches) == len(row.launches)
        for launch in row.launches:
            assert [passed.arg for passed in launch.passed if passed.arg] == list(row.args)
        pointers = [arg for arg in row.args if arg.role in ("in", "out", "inout")]
        assert pointers
        for launch in row.launches:
            for passed in launch.passed:
                if passed.arg in pointers:
                    assert passed.buffer is not None, passed
                    assert passed.layout is not None or not prints_layouts, passed


@every_graph
def test_every_kernel_of_every_fixture_has_its_facts(folder: Path) -> None:
    check(read_at(folder))


def test_a_triton_reduction(read: Read) -> None:
    row = rows(read("torch-2.11.0-cuda/layernorm_grad", 0))["triton_per_fused_gelu_native_layer_norm_0"]
    assert (row.backend, row.kind, row.reductions) == ("triton", "persistent_reduction", 2)
    assert {"op0", "op1", "op3", "op4", "op5"} <= set(row.nodes)
    assert len(row.tops) == 1
    assert "reduction" in row.traits
    assert {"aten.var_mean", "aten.rsqrt", "aten.erf"} <= set(row.ops)
    assert {"rsqrt", "erf"} <= set(row.fx)
    passed = {at.arg.name: at.text for at in row.launches[0].passed if at.arg}
    assert passed["in_ptr0"] == "primals_1"
    assert passed["r0_numel"] == "768"
    assert dict(row.launches[0].keywords) == {"stream": "stream0"}


def test_bytes_count_each_buffer_once_and_only_what_is_reached(read: Read) -> None:
    row = rows(read("torch-2.11.0-cuda/layernorm_grad", 0))["triton_per_fused_gelu_native_layer_norm_0"]
    activations, vector, row_values = 4 * 8 * 128 * 768, 4 * 768, 4 * 8 * 128
    assert row.bytes_read == activations + 2 * vector  # in_out pointers hold what the kernel itself makes
    assert row.bytes_written == activations + 2 * row_values
    flip = rows(read("torch-2.6.0-cpu/hflip_sliced"))["cpp_fused_flip_0"]
    assert flip.bytes_read == 3 * 224 * 224  # a slice of a larger input
    mutation = rows(read("torch-2.2.2-cpu/inplace_mutation"))
    (row,) = mutation.values()
    assert row.bytes_read == 2 * 4 * 128 * 128


def test_symbolic_bytes_stay_text(read: Read) -> None:
    (row,) = rows(read("torch-2.13.0-cpu/dynamic_shapes")).values()
    assert row.bytes_read == "8*s17*s27 + 8*s27*s77"


def test_a_kernel_that_is_launched_twice_is_one_row(read: Read) -> None:
    row = rows(read("torch-2.11.0-cuda/layernorm_grad", 1))[
        "triton_per_fused_gelu_gelu_backward_native_layer_norm_native_layer_norm_backward_2"
    ]
    assert row.nodes == ("op6", "op8")
    assert [[at.buffer for at in launch.passed[:2]] for launch in row.launches] == [
        ["buf5", "buf6"],
        ["buf7", "buf8"],
    ]
    assert row.bytes_written == 2 * 4 * 768


def test_library_calls_are_rows(read: Read) -> None:
    row = rows(read("torch-2.13.0-cpu/mlp_train", 1))["extern_kernels.mm"]
    assert (row.backend, row.kind, row.loads, len(row.launches)) == ("extern", "library", None, 3)
    assert row.bytes_written == 4 * (32 * 256 + 64 * 256 + 256 * 128)
    sort = next(
        row for name, row in rows(read("torch-2.13.0-cpu/multi_output_no_fuse")).items() if "sort" in name
    )
    assert sort.kind == "fallback"
    (fallback,) = sort.remarks
    assert (fallback.code, fallback.subject.name, fallback.number("kernel")) == ("fallback", "op0", sort.name)
    assert fallback.cost == sort.bytes_read + sort.bytes_written


def test_scalar_nests_have_a_remark_without_a_cause(read: Read) -> None:
    (row,) = rows(read("torch-2.13.0-cpu/hflip_cl")).values()
    (remark,) = row.remarks
    assert (remark.code, remark.kind, remark.knowledge, remark.cost) == (
        "scalar-loops",
        "missed",
        "read",
        301056,
    )
    assert remark.numbers == (("scalar", 1), ("nests", 1))
    text = (remark.evidence[0].path).read_text().split("\n")
    assert "for(int64_t x0" in text[remark.evidence[0].first - 1]
    assert {"cpp", "scalar"} <= set(row.traits)
    (new,) = rows(read("torch-2.13.0-cpu/aa_separable_cl")).values()
    assert new.remarks == ()
    assert "scalar" not in new.traits


def test_nests_without_a_full_vector_have_a_remark(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inductor_probe.analysis.kernels.SMALLEST_COST", 0)
    (row,) = rows(read("torch-2.13.0-cpu-programs/short_softmax")).values()
    (remark,) = row.remarks
    assert (remark.code, remark.kind, remark.knowledge) == ("underfilled-loops", "missed", "read")
    assert remark.numbers == (("underfilled", 2), ("nests", 2))
    assert len(remark.evidence) == 2


def test_rows_come_in_the_order_of_their_first_use(read: Read) -> None:
    for name in ("torch-2.13.0-cpu/mlp_train", "torch-2.13.0-cpu/multi_output_no_fuse"):
        lines = [row.launches[0].span.first for row in kernel_rows(read(name))]
        assert lines == sorted(lines)


def test_loads_and_stores_agree_with_a_plain_count(read: Read) -> None:
    (row,) = rows(read("torch-2.13.0-cpu/aa_separable_cl")).values()
    stores = len(re.findall(r"\.store\((?:in_)?out_ptr|(?:in_)?out_ptr\d+\[[^\]]*\] =", row.source))
    assert row.stores == stores


def with_decisions(graph: CompiledGraph, *decisions: Decision) -> CompiledGraph:
    return replace(graph, read_decisions=lambda: Decisions("2.13.0", DECISION_KINDS, decisions))


def test_a_kernel_that_is_launched_several_times_has_the_decisions_of_its_nests(read: Read) -> None:
    """`dump` said that nothing records why, and `why` had it: one text has a decision for each launch."""
    graph = read("torch-2.13.0-cpu-programs/bucketed_collectives")
    nodes = ("op10", "op14", "op18")
    vectorised = [
        decision("vectorisation", node, "vectorised", "contiguous-only-loop", number=number)
        for number, node in enumerate(nodes, 1)
    ]
    graph = with_decisions(graph, *vectorised)
    row = rows(graph)["cpp_fused_relu_2"]
    assert (row.nodes, len(row.launches)) == (nodes, 3)
    assert row.decisions == (vectorised[0],)
    assert [nest_of(graph, one) for one in vectorised] == [("cpp_fused_relu_2", 0)] * 3


def test_why_a_nest_is_scalar_is_said_where_it_is_not_known_which_nest_that_is(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    scalar = decision("vectorisation", "op0", "scalar", "dtype-not-vectorisable")
    other = decision("vectorisation", "op0", "vectorised", "contiguous-only-loop", number=2)
    (row,) = kernel_rows(with_decisions(graph, scalar, other))
    assert row.decisions == ()
    assert [remark.decisions for remark in row.remarks] == [(scalar,)]


def test_the_width_of_vectors_is_the_recorded_one(read: Read) -> None:
    graph = read("torch-2.13.0-cpu-programs/bucketed_collectives")
    operands: dict[str, Operand] = {"bit_width": 256}
    one = decision("vectorisation", "op10", "vectorised", "contiguous-only-loop", operands=operands)
    details = rows(with_decisions(graph, one))["cpp_fused_relu_2"].details
    assert isinstance(details, CppFacts)
    assert details.vector_bits == 256


def test_arguments_of_a_library_call_stand_in_their_order_and_a_part_of_its_result_is_no_clash(
    read: Read,
) -> None:
    graph = read("torch-2.13.0-cpu-programs/bucketed_collectives")
    row = rows(graph)["torch.ops._c10d_functional.all_gather_into_tensor_out.default"]
    assert row.remarks == ()
    (launch,) = row.launches
    assert launch.passed[-1].text.startswith("out=")
