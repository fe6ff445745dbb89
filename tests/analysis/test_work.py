"""Bytes and flops of kernels on real dumps."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.work import flops_by_node, kernel_work
from inductor_probe.model.fx import FxGraph, FxNode
from inductor_probe.model.timing import FlopCount
from inductor_probe.reader.debug_dir import graph_dir, read_graph
from tests.conftest import all_graph_dirs


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


@pytest.mark.parametrize("folder", all_graph_dirs(), ids=lambda folder: "/".join(folder.parts[-5:-3]))
def test_work_of_every_fixture_is_that_of_its_rows(folder: Path) -> None:
    found = graph_dir(folder)
    assert found is not None
    graph = read_graph(found)
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
        found = graph_dir(folder)
        assert found is not None
        graph = read_graph(found)
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
    found = graph_dir(folder)
    assert found is not None
    graph = read_graph(found)
    rows = kernel_rows(graph)
    assert [row.name for row in rows if row.launches and "convolution" in row.fx] == [
        "cpp_fused_convolution_1",
        "extern_kernels.convolution",
    ]
    counted = {work.name: work.flops for work in kernel_work(graph, rows, [FlopCount("aten.convolution", 9)])}
    assert counted["cpp_fused_convolution_1"] is None
    assert counted["extern_kernels.convolution"] == 9
    assert sum(filter(None, counted.values())) == 9
