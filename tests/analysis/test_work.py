"""Bytes and flops of kernels on real dumps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.links import launches, links
from inductor_probe.analysis.memory_format import element_bytes, size_bytes
from inductor_probe.analysis.work import (
    buffer_traffic,
    call_traffic,
    counted_nodes,
    flops_by_node,
    kernel_work,
    node_traffic,
)
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxGraph, FxNode
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.timing import FlopCount
from inductor_probe.reader.values import constant_layout
from tests.conftest import all_graph_dirs
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]
PROGRAMS = "torch-2.13.0-cpu-programs"


def fx(*nodes: tuple[str, str, str]) -> FxGraph:
    return FxGraph((), tuple(FxNode(name, target, kind, None) for name, target, kind in nodes), ())


GRAPH = fx(
    ("mm", "torch.ops.aten.mm.default", "f32[2, 5]"),
    ("relu", "torch.ops.aten.relu.default", "f32[2, 5]"),
    ("addmm", "torch.ops.aten.addmm.default", "bf16[2, 7]"),
)


def test_counts_go_to_the_nodes_in_their_order() -> None:
    assert flops_by_node(GRAPH, [FlopCount("aten.mm", 60), FlopCount("aten.addmm", 140)]) == {
        "mm": 60,
        "addmm": 140,
    }


def test_a_sum_that_inductor_took_into_a_product_counts_the_same() -> None:
    assert flops_by_node(GRAPH, [FlopCount("aten.mm", 60), FlopCount("aten.mm", 140)]) == {
        "mm": 60,
        "addmm": 140,
    }


@pytest.mark.parametrize(
    "flops",
    [
        [FlopCount("aten.mm", 60)],
        [FlopCount("aten.bmm", 60), FlopCount("aten.mm", 1)],
        [FlopCount("aten.mm", 1)] * 3,
        [],
    ],
)
def test_other_operators_than_the_graph_has_count_for_nothing(flops: list[FlopCount]) -> None:
    assert flops_by_node(GRAPH, flops) == {}


@every_graph
def test_work_of_every_fixture_is_that_of_its_rows(folder: Path) -> None:
    graph = read_at(folder)
    rows = kernel_rows(graph)
    works = {work.name: work for work in kernel_work(graph, rows, None)}
    assert set(works) == {row.name for row in rows if row.launches}
    for row in rows:
        if not row.launches:
            continue
        work = works[row.name]
        read = row.bytes_read if row.recorded_read is None else row.recorded_read
        written = row.bytes_written if row.recorded_written is None else row.recorded_written
        known = isinstance(read, int) and isinstance(written, int)
        assert (work.moved is not None) == known
        assert (work.flops, work.dtype) == (None, None)


def test_a_product_of_a_real_dump_has_its_flops() -> None:
    """A fixture whose graph multiplies matrices: what runs that product gets the count, nothing else does."""
    products = 0
    for folder in all_graph_dirs():
        graph = read_at(folder)
        nodes = graph.fx.nodes if graph.fx else ()
        names = [node.target.split(".") for node in nodes]
        own = [
            f"aten.{words[3 if words[0] == 'torch' else 1]}"
            for words in names
            if {"mm", "addmm"} & set(words)
        ]
        if not own:
            continue
        products += 1
        flops = [FlopCount(name, 1000 + number) for number, name in enumerate(own)]
        works = kernel_work(graph, kernel_rows(graph), flops)
        assert sum(work.flops or 0 for work in works) == sum(1000 + at for at in range(len(own)))
        assert all(work.dtype for work in works if work.flops)
    assert products


def test_what_lays_out_the_operands_of_a_convolution_has_none_of_its_flops() -> None:
    folder = next(path for path in all_graph_dirs() if path.parents[2].name == "matrices")
    graph = read_at(folder)
    rows = kernel_rows(graph)
    assert [row.name for row in rows if row.launches and "convolution" in row.fx] == [
        "cpp_fused_convolution_1",
        "extern_kernels.convolution",
    ]
    counted = {work.name: work.flops for work in kernel_work(graph, rows, [FlopCount("aten.convolution", 9)])}
    assert counted["cpp_fused_convolution_1"] is None
    assert counted["extern_kernels.convolution"] == 9
    assert sum(filter(None, counted.values())) == 9


def calls_of(graph: CompiledGraph) -> dict[str, tuple[object, object]]:
    rows = [row for row in kernel_rows(graph) if row.backend == "extern"]
    return {row.name.removesuffix(".default"): (row.bytes_read, row.bytes_written) for row in rows}


def bytes_of(row: KernelRow) -> int | None:
    """Return what a row of `kernels` reads and writes; None where a size is symbolic or not known."""
    read = row.bytes_read if row.recorded_read is None else row.recorded_read
    written = row.bytes_written if row.recorded_written is None else row.recorded_written
    return read + written if isinstance(read, int) and isinstance(written, int) else None


@every_graph
def test_a_call_moves_the_same_bytes_in_every_screen(folder: Path) -> None:
    """`dump` had 97 KiB for a topk, `why` 33: the results of a call are nodes of their own."""
    graph = read_at(folder)
    for row in kernel_rows(graph):
        whole = bytes_of(row)
        if row.backend == "extern" and whole is not None and row.nodes:
            assert node_traffic(graph, row.nodes) == whole
            if len(row.launches) == 1:
                assert {node_traffic(graph, [node]) for node in row.nodes} == {whole}


@every_graph
def test_the_nodes_of_a_kernel_never_move_more_than_it(folder: Path) -> None:
    """Of memory that two nodes of a kernel mutate, both counted, and what a scatter only follows was read."""
    graph = read_at(folder)
    for row in kernel_rows(graph):
        moved, whole = node_traffic(graph, row.nodes), bytes_of(row)
        if row.backend == "extern" or len(row.launches) != 1 or moved is None:
            continue
        if whole is not None:
            assert moved <= whole


def test_a_buffer_that_is_mutated_inside_of_a_fused_node_is_written(read: Read) -> None:
    """State of an optimizer that a fused node changes, and reads then, counted as kept in registers."""
    graph = read("torch-2.11.0-cuda/foreach_adam")
    (row,) = (row for row in kernel_rows(graph) if row.name == "triton_for_fused_1")
    assert (row.bytes_read, row.bytes_written) == (262160, 196608)
    assert node_traffic(graph, row.nodes) == 262160 + 196608


def test_the_results_of_a_library_call_count_with_it(read: Read) -> None:
    """`op1 +1 not-tried` had twice the bytes of a convolution: once as the call, once as its result."""
    graph = read(f"{PROGRAMS}/fallbacks")
    (row, *_) = (row for row in kernel_rows(graph) if row.backend == "extern" and len(row.nodes) > 1)
    assert len(row.launches) == 1
    assert {counted_nodes(graph, [node]) for node in row.nodes} == {counted_nodes(graph, row.nodes)}


def test_a_view_moves_nothing(read: Read) -> None:
    graph = read(f"{PROGRAMS}/fallbacks")
    assert calls_of(graph)["torch.ops.aten.view_as_real"] == (0, 0)
    (calls,) = (calls for name, calls in launches(graph).items() if "view_as_real" in name)
    for moves_nothing in ("shallow_copy_data_", "set_.source_Tensor", "_conj", "view.dtype"):
        assert call_traffic(graph, f"torch.ops.aten.{moves_nothing}", calls) == (0, 0)


def test_a_call_moves_what_it_is_passed(read: Read) -> None:
    """Of a view its own elements; of a list all of it; in a part of a buffer it writes that part."""
    gathered = calls_of(read(f"{PROGRAMS}/bucketed_collectives"))
    assert gathered["torch.ops._c10d_functional.all_gather_into_tensor_out"] == (384 * 4, 768 * 4)
    reduced = calls_of(read(f"{PROGRAMS}/collective_kinds"))
    assert reduced["torch.ops._c10d_functional.all_reduce_coalesced_"] == (1024, 1024)
    into_others = calls_of(read(f"{PROGRAMS}/matrices"))
    assert into_others["extern_kernels.addmm"] == (1056, 256)


def test_a_kernel_reads_its_part_of_what_a_call_has_changed_before(read: Read) -> None:
    """A third of what was gathered counted as all: nodes have another name for it since the call."""
    graph = read(f"{PROGRAMS}/bucketed_collectives")
    (row,) = (row for row in kernel_rows(graph) if row.name == "cpp_fused_clone_split_with_sizes_view_1")
    assert (row.bytes_read, row.bytes_written) == (1024, 1024)
    assert node_traffic(graph, row.nodes) == 2048


def test_a_call_that_mutates_a_slice_moves_the_slice(read: Read) -> None:
    """A cache of 64 KiB was said to be written where 4 KiB of it were."""
    graph = read(f"{PROGRAMS}/collective_kinds")
    (call,) = launches(graph)["torch.ops._c10d_functional.all_reduce_coalesced_.default"]
    target = "torch.ops._c10d_functional.all_reduce_coalesced_.default"
    names = call.passed[0].text.strip("[]").split(", ")
    views = ", ".join(f"reinterpret_tensor({name}, (4, ), (1, ), 8)" for name in names)
    part = replace(call, passed=(replace(call.passed[0], text=f"[{views}]"), *call.passed[1:]))
    assert call_traffic(graph, target, [part]) == (len(names) * 16, len(names) * 16)


def test_a_buffer_is_not_reached_by_what_takes_a_view_of_it(read: Read) -> None:
    graph = read(f"{PROGRAMS}/fallbacks")
    (row,) = (row for row in kernel_rows(graph) if "view_as_real" in row.name)
    (operand,) = (passed.buffer for passed in row.launches[0].passed if passed.layout and passed.buffer)
    assert buffer_traffic(graph, operand or "") == element_bytes(row.launches[0].passed[0].layout)


def test_a_packed_constant_has_the_bytes_that_torch_wrote_down_or_those_of_its_elements() -> None:
    """A weight of 1,728 bytes had 64: its printed stride is (1, 0, 0, 0)."""
    size, stride = (16, 3, 3, 3), (1, 0, 0, 0)
    packed = constant_layout("cpu", "float32", size, stride)
    assert (packed.stride, size_bytes(packed), element_bytes(packed)) == (None, 1728, 1728)
    padded = constant_layout("cpu", "float32", size, stride, (("data_size", "2048"),))
    assert size_bytes(padded) == 2048


@pytest.mark.parametrize(
    ("size", "stride", "elements"),
    [
        ((2, 3), (3, 1), 6),
        ((2, 3), (192, 1), 6),
        ((2, 3), (0, 1), 3),
        ((5, 3), (1, 1), 7),
        ((0, 3), (3, 1), 0),
    ],
)
def test_gaps_are_not_moved_and_what_is_broadcast_is_once(
    size: tuple[int, ...], stride: tuple[int, ...], elements: int
) -> None:
    assert element_bytes(BufferLayout("View", "cpu", "float32", size, stride)) == elements * 4


def test_a_buffer_that_all_readers_are_fused_with_moves_nothing() -> None:
    """The ledger was led by a buffer in registers: 1.5 MiB that were never stored."""
    found = 0
    for folder in all_graph_dirs():
        graph = read_at(folder)
        passed = {one.buffer for made in launches(graph).values() for call in made for one in call.passed}
        for name, link in links(graph).nodes.items():
            for buffer in index_of(graph).nodes.leaf[name].outputs:
                generated = link.kernel in index_of(graph).kernels
                if generated and buffer.name not in passed and not buffer.mutations:
                    found += 1
                    assert buffer_traffic(graph, buffer.name) in (0, None)
                elif generated and buffer.name in passed:
                    assert buffer_traffic(graph, buffer.name) != 0 or 0 in (buffer.layout.size or ())
    assert found > 10
