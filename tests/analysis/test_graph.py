"""The index of a graph is made once, and lives as long as the graph."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.graph import NodeIndex, index_of, once_per_graph
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.links import links
from inductor_probe.analysis.nodes import node_rows
from inductor_probe.analysis.pages import page_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import Buffer, BufferLayout, SchedulerNode
from inductor_probe.reader.debug_dir import read_graph
from tests.conftest import all_graph_dirs
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]


class Counting(tuple[SchedulerNode, ...]):
    """The nodes of a graph; counts how often somebody walks over all of them."""

    walks = 0

    def __iter__(self) -> Iterator[SchedulerNode]:
        type(self).walks += 1
        return super().__iter__()


@pytest.fixture
def counted(read: Read, monkeypatch: pytest.MonkeyPatch) -> CompiledGraph:
    monkeypatch.setattr(Counting, "walks", 0)
    graph = read("torch-2.13.0-cpu/mlp_train")
    return replace(graph, pre=(), post=Counting(graph.post))


def test_a_graph_that_layouts_are_asked_of_is_indexed_once(counted: CompiledGraph) -> None:
    layouts(counted)
    first = Counting.walks
    assert first <= 3  # its leaves, what each is fused into, and the units that run together
    for name in (None, "op1", "op2", "buf1", "buf0"):
        layouts(counted, name)
    links(counted)
    kernel_rows(counted)
    assert Counting.walks <= first + 1  # the fused nodes, by name
    node_rows(counted)
    pages = Counting.walks
    for name in index_of(counted).nodes.node:
        page_of(counted, name)
    assert Counting.walks == pages


def test_a_changed_copy_is_concluded_anew(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    assert links(graph) is links(graph)
    copy = replace(graph, provenance=None)
    assert links(copy) is not links(graph)
    assert index_of(copy) is not index_of(graph)
    assert graph == replace(graph)
    assert "derived" not in repr(graph)


@pytest.mark.parametrize("folder", all_graph_dirs()[::5], ids=lambda folder: folder.parts[-4])
def test_what_was_concluded_of_a_graph_goes_with_it(folder: Path) -> None:
    """A conclusion that holds its graph would keep both until the collector runs."""
    graph = read_graph(read_at(folder).folder)  # nobody else has this one
    for name in (*index_of(graph).nodes.node, *index_of(graph).kernels):
        page_of(graph, name)
    gc.collect()
    gc.disable()
    try:
        gone = weakref.ref(index_of(graph))
        del graph
        assert gone() is None
    finally:
        gc.enable()


def test_none_is_a_conclusion_too(read: Read) -> None:
    asked: list[str] = []

    @once_per_graph
    def nothing(graph: CompiledGraph) -> None:
        asked.append(graph.name)

    graph = read("torch-2.13.0-cpu/hflip_cl")
    for _ in range(2):
        nothing(graph)
    assert asked == [graph.name]


@every_graph
def test_the_maps_of_an_index_agree_with_each_other(folder: Path) -> None:
    index = index_of(read_at(folder))
    for nodes in (index.pre, index.post):
        assert list(nodes.leaf.values()) == list(nodes.leaves)
        assert nodes.leaf.keys() == nodes.top.keys() == nodes.place.keys() <= nodes.node.keys()
        assert nodes.producer.keys() == nodes.buffers.keys()
        for name, top in nodes.top.items():
            assert name in nodes.members[top.name]
        for buffer, readers in nodes.readers.items():
            assert all(buffer in {dep.name for dep in nodes.leaf[reader].reads} for reader in readers)
        for buffer, later in nodes.mutated_as.items():
            assert all(buffer in nodes.buffers[name].mutations for name in later)
        assert nodes.producer.keys() >= {*nodes.returned}


def test_nodes_fused_on_the_way_have_a_name_too() -> None:
    layout = BufferLayout("FixedLayout", "cpu", "float32", (2,), (1,))
    outputs = [(Buffer(f"buf{number}", None, layout, ()),) for number in range(3)]
    one, two, three = (
        SchedulerNode(f"op{number}", "SchedulerNode", "ComputedBuffer", outputs=outputs[number])
        for number in range(3)
    )
    pair = SchedulerNode("op0_op1", "FusedSchedulerNode", "", children=(one, two))
    top = SchedulerNode("op0_op1_op2", "ForeachKernelSchedulerNode", "", children=(pair, three))
    index = NodeIndex([top])
    assert list(index.node) == ["op0_op1_op2", "op0_op1", "op0", "op1", "op2"]
    assert index.top["op1"].name == "op0_op1_op2"
    assert index.members == {"op0_op1_op2": ("op0", "op1", "op2")}
    assert list(index.layouts) == ["buf0", "buf1", "buf2"]
