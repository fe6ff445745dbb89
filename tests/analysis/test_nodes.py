"""Node rows on real dumps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inductor_probe.analysis.nodes import node_rows
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.nodes import MemoryEffect, NodeRow, Ranges
from inductor_probe.reader.debug_dir import read_graph, read_run
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]


def rows(graph: CompiledGraph, *, pre: bool = False) -> dict[str, NodeRow]:
    return {row.node: row for row in node_rows(graph, pre)}


@every_graph
def test_every_node_of_every_fixture_has_a_row_that_says_what_it_does(folder: Path) -> None:
    graph = read_at(folder)
    after, before = rows(graph), rows(graph, pre=True)
    assert set(after) == {leaf.name for top in graph.post for leaf in top.leaves()}
    assert set(after) <= set(before)
    for row in (*after.values(), *before.values()):
        assert row.kind != "other"
        assert (row.kind in ("extern", "fallback", "result", "nop", "template")) == (not row.operations)
        assert row.writes


def test_a_normalisation_is_one_nest_of_loops_on_the_gpu_but_for_its_tail(read: Read) -> None:
    found = rows(read("torch-2.11.0-cuda/layernorm_grad", 1))
    first = found["op1"]
    assert (first.kind, first.reductions, first.ranges) == ("reduction", ("sum",), Ranges((1024,), (768,)))
    assert (first.top, first.top_class) == ("op0_op1_op2_op3_op4", "FusedSchedulerNode")
    assert first.agrees is True  # 1024 x 768 beside 1024 | 768
    forward = rows(read("torch-2.11.0-cuda/layernorm_grad"))
    assert forward["op5"].ranges == Ranges((786432,), ())
    assert forward["op5"].agrees is False
    assert found["op6"].agrees is None


def test_what_a_node_does_to_memory_is_typed(read: Read) -> None:
    found = rows(read("torch-2.2.2-cpu/inplace_mutation"))
    assert found["buf2"].effects == (MemoryEffect("mutates", "arg0_1"),)
    assert found["buf2"].mutates == ("arg0_1",)
    backward = rows(read("torch-2.13.0-cpu/mlp_train", 1))
    assert backward["op3"].effects == (MemoryEffect("reuses", "buf0"),)
    assert backward["op3"].users == ("op4", "op5")


def test_library_calls_are_told_from_fallbacks_and_their_items(read: Read) -> None:
    kinds = {row.ir: row.kind for row in node_rows(read("torch-2.13.0-cpu-programs/fallbacks"))}
    assert kinds["FallbackKernel"] == "fallback"
    assert kinds["MultiOutput"] == "result"
    assert {row.kind for row in node_rows(read("torch-2.13.0-cpu/mlp_train", 1))} == {
        "extern",
        "pointwise",
        "reduction",
    }


def test_foreach_is_a_trait(read: Read) -> None:
    found = node_rows(read("torch-2.11.0-cuda/foreach_adam"))
    assert all({"foreach", "fused", "pointwise"} <= set(row.traits) for row in found)


def test_layouts_of_old_dumps_come_from_the_wrapper(read: Read) -> None:
    (written,) = rows(read("torch-2.1.2-cpu/hflip_cl"))["buf0"].writes
    assert written.layout is not None
    assert written.layout.size == (1, 3, 224, 224)


def test_an_item_has_the_layout_that_its_reader_prints(corpus: Path) -> None:
    """Torch 2.4 prints the layout of an item of a library call only below the nodes that read it."""
    run = next((corpus / "torch-2.4.1-cpu" / "cumsum_scan").glob("**/run_*"))
    graph = read_graph(read_run(run).graphs[0])
    (item,) = (row for row in node_rows(graph) if row.kind == "result")
    (written,) = item.writes
    assert written.layout is not None
    assert (written.layout.dtype, written.layout.size) == ("float32", (64, 1024))
