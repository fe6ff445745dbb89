"""Collectives and what waits for them, as torch printed them for ranks of several kinds of programs."""

from __future__ import annotations

import pytest

from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.links import links
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.reader.debug_dir import texts_of
from tests.analysis.graphs import folder_of, read_at

PROGRAMS = "torch-2.13.0-cpu-programs"


def graph(program: str, at: int = 0) -> CompiledGraph:
    return read_at(folder_of(f"{PROGRAMS}/{program}", at))


@pytest.mark.parametrize(
    ("program", "name", "read", "written"),
    [
        ("collective_kinds", "all_reduce_", 512, 512),  # in place: the bytes of the buffer it writes into
        ("collective_kinds", "all_gather_into_tensor", 512, 1024),
        ("collective_kinds", "reduce_scatter_tensor", 512, 256),
        ("collective_kinds", "all_to_all_single", 512, 512),
        ("collective_kinds", "broadcast_", 512, 512),
        ("collective_kinds", "wait_tensor", 0, 0),
        ("tensor_parallel", "all_reduce_", 512, 512),
        ("bucketed_collectives", "reduce_scatter_tensor", 3072, 1536),
        ("bucketed_collectives", "all_reduce_", 192, 192),
    ],
)
def test_the_bytes_of_a_collective(program: str, name: str, read: int, written: int) -> None:
    target = f"torch.ops._c10d_functional.{name}.default"
    (row,) = (row for row in kernel_rows(graph(program)) if row.name == target)
    assert (row.bytes_read, row.bytes_written) == (read, written)


def test_backward_graphs_of_one_call_go_on_counting_launches() -> None:
    """Buckets of DDP: the second backward graph counts on, which was told as a missing launch."""
    folders = [folder_of(f"{PROGRAMS}/data_parallel", at) for at in range(4)]
    backward = [folder for folder in folders if "_backward_" in folder.name]
    texts = [(folder / "output_code.py").read_text() for folder in backward]
    first = [text.partition("[Provenance debug handles] ")[2].split()[0] for text in texts]
    assert [int(name.rpartition(":")[2]) for name in first] == [1, 4]
    for folder in backward:
        read = read_at(folder)
        assert check_graph(read, texts_of(read)).problems == ()


def test_the_wait_is_not_the_node_of_what_filled_its_buffer() -> None:
    """Torch lists it for the all_gather that it waits for, and for the addmm that is reduced in place."""
    kinds, parallel = graph("collective_kinds"), graph("tensor_parallel")
    assert {
        (row.name.split(".")[3], row.fx)
        for row in kernel_rows(kinds)
        if row.name.endswith((".all_gather_into_tensor.default", ".broadcast_.default"))
    } == {("all_gather_into_tensor", ("all_gather_into_tensor",)), ("broadcast_", ("broadcast",))}
    (products,) = (row for row in kernel_rows(parallel) if row.name == "extern_kernels.addmm")
    assert products.fx == ("addmm", "addmm_1")
    fused = {name: link.fx for name, link in links(kinds).nodes.items() if name in ("op0", "op4", "op12")}
    assert fused == {"op0": ("relu",), "op4": ("mul",), "op12": ("exp", "broadcast")}
