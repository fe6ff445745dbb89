"""Layout rows on real dumps: formats, accesses, patterns, origins and remarks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.layouts import layout_and_packing, layouts
from inductor_probe.analysis.links import links
from inductor_probe.errors import NotFoundError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.layouts import LayoutRow, Packing, Pattern
from inductor_probe.model.manifest import ConstantFact, GraphRecord
from inductor_probe.model.remark import Subject
from inductor_probe.reader.output_code import parse_output_code
from inductor_probe.report.pages.layouts import layout_table
from inductor_probe.report.terminal import to_text
from inductor_probe.report.words.layouts import part_text
from tests.conftest import all_graph_dirs
from tests.dumps import every_graph, graph_in, read_at

Read = Callable[..., CompiledGraph]


def row(graph: CompiledGraph, name: str) -> LayoutRow:
    (found,) = layouts(graph, name)
    return found


@every_graph
def test_every_buffer_of_every_fixture_has_a_row_and_a_kernel(folder: Path) -> None:
    graph = read_at(folder)
    assert graph.problems == ()
    written = {buffer.name for node in graph.post for leaf in node.leaves() for buffer in leaf.outputs}
    rows = {found.buffer: found for found in layouts(graph)}
    linked = links(graph)
    assert written <= set(rows)
    for name in written:
        leaf = next(leaf for node in graph.post for leaf in node.leaves() if leaf.name == rows[name].producer)
        proof = linked.nodes[leaf.name].kernel_proof
        assert rows[name].kernel or (proof and proof.code in ("no-kernel", "wrapper-statement"))
        if leaf.body is not None:
            assert rows[name].writes or rows[name].layout is None or leaf.outputs[0].mutations


def test_separable_antialias_shows_the_gather_that_the_layout_of_its_intermediate_causes(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/aa_separable_cl")
    horizontal = row(graph, "buf1")
    assert (horizontal.memory_format, horizontal.dim_order) == ("transposed", (0, 2, 1, 3))
    assert horizontal.size_bytes == 4 * 4 * 3 * 345 * 256
    gather, change = horizontal.remarks
    assert (gather.code, gather.kind, gather.knowledge) == ("noncontiguous-access", "missed", "read")
    assert gather.subjects == (Subject("node", "op1"),)
    numbers = dict(gather.numbers)
    assert (numbers["buffer"], numbers["pattern"], numbers["loop"], numbers["steps"]) == (
        "arg0_1",
        "indirect",
        "x2",
        256,
    )
    assert (numbers["unit_stride_loop"], numbers["unit_stride_steps"], numbers["accesses"]) == ("x1", 3, 5)
    assert (numbers["format"], numbers["written"], numbers["written_dim_order"]) == (
        "channels_last",
        "buf1",
        "[0, 2, 1, 3]",
    )
    assert gather.cost == 5 * 1380 * 3 * 256 * 4
    assert (change.code, change.subject.name, change.cost) == ("layout-change", "op3", 4 * 3 * 256 * 256 * 4)
    source = row(graph, "arg0_1")
    assert [access.pattern.kind for access in source.reads] == ["indirect"] * 5
    assert source.reads[0].indirect == (("indirect0", ("p2",)),)
    assert dict(source.reads[0].strides) == {"p0": 1368, "p1": 1, "p2": "indirect"}
    assert source.remarks == (gather,)


def test_rows_reached_indirectly_but_read_along_the_innermost_loop_are_contiguous(read: Read) -> None:
    reads = row(read("torch-2.13.0-cpu/aa_separable_cl"), "buf1").reads
    assert [access.pattern for access in reads] == [Pattern("contiguous", 1)] * 3
    assert reads[0].indirect == (("indirect0", ("p2",)),)
    assert reads[0].innermost == "p3"


@pytest.mark.parametrize(
    ("name", "pattern", "strides"),
    [
        ("torch-2.13.0-cpu/hflip_cf", Pattern("reversed", -1), {"p0": 224, "p1": -1}),
        (
            "torch-2.13.0-cpu/hflip_cl",
            Pattern("contiguous", 1, 3, ("p1",)),
            {"p0": 672, "p1": -3, "p2": 1},
        ),
        ("torch-2.1.2-cpu/hflip_cl", Pattern("reversed", -3), {"z0": 672, "z1": 1, "z2": -3}),
        ("torch-2.6.0-cpu/hflip_sliced", Pattern("reversed", -1), {"p0": 60270, "p1": 246, "p2": -1}),
    ],
)
def test_flips(read: Read, name: str, pattern: Pattern, strides: dict[str, int]) -> None:
    (access,) = row(read(name), "arg0_1").reads
    assert access.pattern == pattern
    assert dict(access.strides) == strides


def test_what_a_reversal_costs_is_not_held_against_the_layout(read: Read) -> None:
    assert row(read("torch-2.13.0-cpu/hflip_cf"), "arg0_1").remarks == ()


def test_old_dumps_take_layouts_from_the_wrapper_and_say_so(read: Read) -> None:
    flipped = row(read("torch-2.1.2-cpu/hflip_cl"), "buf0")
    assert flipped.layout is not None
    assert (flipped.layout.kind, flipped.memory_format) == ("Allocation", "channels_last")
    facts = {each.fact: each.span for each in flipped.evidence}
    assert facts["allocation"].path.name == "output_code.py"
    text = facts["allocation"].path.read_text().splitlines()[facts["allocation"].first - 1]
    assert text.strip().startswith("buf0 = empty_strided((1, 3, 224, 224), (150528, 1, 672, 3)")


def test_a_node_shows_what_it_writes_and_then_what_it_reads(read: Read) -> None:
    rows = layouts(read("torch-2.13.0-cpu/aa_separable_cl"), "op3")
    assert [found.buffer for found in rows] == ["buf3", "buf1", "buf2"]


def test_a_fused_node_is_known_by_its_own_name(read: Read) -> None:
    graph = read("torch-2.4.1-cpu/layernorm_grad")
    assert {found.buffer for found in layouts(graph, graph.post[0].name)} >= {"buf0", "primals_3"}


def test_outputs_come_from_their_place_in_the_return(read: Read) -> None:
    origin = row(read("torch-2.13.0-cpu/hflip_cl"), "buf0").origin
    assert origin is not None
    assert origin.node == "rev"
    assert origin.source is not None
    assert (origin.source.line, origin.source.code[:3]) == (34, "run")


def test_an_origin_that_cannot_be_proved_is_ambiguous_and_names_the_candidates(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/aa_separable_cl")
    listed = row(graph, "buf1").origin
    assert listed is not None
    assert (
        listed.node == "clone"
    )  # which torch lists for the kernel, and which leaves no trace in loop bodies
    origin = row(replace(graph, provenance=None), "buf1").origin
    assert origin is not None
    assert origin.node is None
    assert origin.candidates == ("sum_3", "clone")


def test_symbolic_sizes_stay_text(read: Read) -> None:
    found = row(read("torch-2.13.0-cpu/dynamic_shapes"), "buf2")
    assert found.layout is not None
    assert (found.layout.size, found.memory_format) == (("s17 + s77", "s27"), "contiguous")
    assert found.size_bytes == "4*(s17 + s77)*s27"


def test_a_reduction_reads_along_the_reduced_loop_and_stores_outside_of_it(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/mlp_train", 1)
    bias_gradient = next(found for found in layouts(graph) if found.producer == "op2")
    assert [access.innermost for access in bias_gradient.writes] == ["p0"]
    reads = [access for found in layouts(graph) for access in found.reads if access.node == "op2"]
    assert [(access.innermost, access.pattern) for access in reads] == [("p1", Pattern("strided", 64))]


def test_extern_kernels_read_whole_buffers(read: Read) -> None:
    found = row(read("torch-2.13.0-cpu/mlp_train", 1), "primals_4")
    assert [access.pattern for access in found.reads] == [Pattern("whole_buffer")]


def test_a_call_reads_the_part_that_it_is_passed(read: Read) -> None:
    """`starts[1:]` of a call was `whole buffer`."""
    graph = read("torch-2.13.0-cpu/mlp_train", 1)
    assert graph.code is not None
    view = "reinterpret_tensor(primals_4, (63, ), (1, ), 1)"
    calls = (
        replace(call, args=tuple(view if "primals_4" in text else text for text in call.args))
        for call in graph.code.externs
    )
    code = replace(graph.code, externs=tuple(calls))
    (access,) = row(replace(graph, code=code), "primals_4").reads
    assert (access.pattern, part_text(access.parts)) == (
        Pattern("part"),
        "a part: [63] with strides [1] from element 1",
    )


def test_an_unknown_buffer_offers_near_names(read: Read) -> None:
    with pytest.raises(NotFoundError, match=r"has no buffer, node, kernel, .* buf9") as caught:
        layouts(read("torch-2.13.0-cpu/aa_separable_cl"), "buf9")
    assert caught.value.hint is not None
    assert "buf3" in caught.value.hint


def test_a_row_asked_for_by_name_is_that_of_the_whole_table() -> None:
    for folder in all_graph_dirs():
        graph = read_at(folder)
        rows = {row.buffer: row for row in layouts(graph)}
        for name, row in list(rows.items())[::3]:
            assert layouts(graph, name) == (row,), (folder, name)
        for top in graph.nodes[::3]:
            inside = {leaf.name for leaf in top.leaves()}
            reached = {
                row.buffer
                for row in rows.values()
                if inside & {access.node for access in (*row.writes, *row.reads)}
            }
            if top.name not in rows:
                named = layouts(graph, top.name)
                assert {row.buffer for row in named} == reached
                assert all(row == rows[row.buffer] for row in named)


# As torch 2.13 writes them for a frozen convolution: its bias, its weight in mkldnn's format; and a GPU's.
CONSTANTS = """\
_frozen_param18 = None  # device(type='cpu') torch.float32 (16,) (1,) 7f9f22183de0
_frozen_param19 = None  # device(type='cpu') torch.float32 (16, 3, 3, 3) (1, 0, 0, 0) 7f9f2146bfc0
constant0 = None  # device(type='cuda', index=1) torch.bfloat16 () () 7f9f2146bfc1
other = None
"""


def with_constants(graph: CompiledGraph) -> CompiledGraph:
    file = graph_in("torch-2.13.0-cpu/hflip_cl") / "output_code.py"
    text = file.read_text().replace("\ncpp_fused_flip_0 = ", f"\n{CONSTANTS}cpp_fused_flip_0 = ", 1)
    code = parse_output_code(text, Path("output_code.py"))
    assert not code.problems
    return replace(graph, code=code)


def test_constants_have_the_layout_that_stands_behind_them(read: Read) -> None:
    code = with_constants(read("torch-2.13.0-cpu/hflip_cl")).code
    assert code is not None
    found = {each.name: each.layout for each in code.allocations if each.kind == "constant"}
    bias, weight, gpu = found["_frozen_param18"], found["_frozen_param19"], found["constant0"]
    assert bias is not None
    assert (bias.dtype, bias.size, bias.stride, bias.device) == ("float32", (16,), (1,), "cpu")
    assert gpu is not None
    assert (gpu.dtype, gpu.size, gpu.stride, gpu.device) == ("bfloat16", (), (), "cuda:1")
    assert weight is not None
    assert (weight.size, weight.stride) == ((16, 3, 3, 3), None)
    assert found["other"] is None


def test_a_packed_weight_is_said_to_be_one(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    code = with_constants(graph).code
    assert code is not None
    weight = next(each.layout for each in code.allocations if each.name == "_frozen_param19")
    row = replace(
        layouts(graph)[0],
        buffer="_frozen_param19",
        layout=weight,
        memory_format="unknown",
        packing=Packing(None, "inferred"),
    )
    shown = " ".join(to_text(layout_table([row]), 80).split())
    assert "_frozen_param19: a constant with the stride [1, 0, 0, 0], which cannot be that of its" in shown
    assert "inferred: a weight that freezing packed for a library" in shown


def test_a_weight_that_the_manifest_says_was_packed_is_recorded_as_that(read: Read) -> None:
    """What strides suggest was shown as most likely, though the manifest has the call that packed it."""
    graph = read("torch-2.13.0-cpu/hflip_cl")
    name = layouts(graph)[0].buffer
    size, operator = (16, 3, 3, 3), "mkldnn._reorder_convolution_weight"
    fact = ConstantFact(
        name, "packed", size, (1, 0, 0, 0), "float32", "cpu", "torch._mkldnn", operator=operator
    )
    record = GraphRecord(graph.name, None, None, constants=(fact,))
    row = layouts(replace(graph, record=record), name)[0]
    assert row.packing == Packing(operator, "recorded")
    unknown = BufferLayout("Constant", "cpu", "float32", size, None, extras=(("printed stride", "[1, 0]"),))
    row = replace(row, layout=unknown, memory_format="unknown")
    shown = " ".join(to_text(layout_table([row]), 120).split())
    assert f"{name}: a weight that {operator} packed: its layout is the library's own" in shown
    assert "inferred" not in shown


def test_an_expanded_constant_has_its_stride_and_is_no_packed_weight() -> None:
    size, stride = (16, 3, 3, 3), (1, 0, 0, 0)
    layout = BufferLayout(
        "Constant", "cpu", "float32", size, None, extras=(("printed stride", str([*stride])),)
    )
    assert layout_and_packing(layout, None) == (layout, Packing(None, "inferred"))
    fact = ConstantFact("constant0", "plain", size, stride, "float32", "cpu", "torch.strided")
    expanded, packing = layout_and_packing(layout, fact)
    assert expanded == replace(layout, stride=stride, extras=())
    assert packing is None


def test_the_result_of_a_call_with_several_values_has_no_layout_of_its_own(read: Read) -> None:
    shown = to_text(layout_table(layouts(read("torch-2.13.0-cpu-programs/training"))), 160)
    assert "buf6: the result of a call whose values are buffers of their own: those have layouts" in shown


def test_what_has_no_memory_is_not_contiguous(read: Read) -> None:
    """A `NoneLayout` is printed with the size [0], and was counted as a contiguous buffer."""
    rows = {row.buffer: row for row in layouts(read("torch-2.13.0-cpu-programs/cpp_collectives"))}
    assert {(rows[name].memory_format, rows[name].size_bytes) for name in ("buf1", "buf4")} == {("none", 0)}
    document = layout_table(tuple(rows.values()))
    text = to_text(document, 100)
    assert "9 buffers: 5 contiguous, 4 without memory" in text
    assert "[0]" not in text
