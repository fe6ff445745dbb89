"""Collectives and what waits for them, as torch printed them for ranks of several kinds of programs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.collectives import collectives
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.links import links
from inductor_probe.analysis.ranks import _OFFSET, ProcessGraphs, _of_ranks, first_difference
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.manifest import DumpProcess
from inductor_probe.reader.debug_dir import texts_of
from tests.dumps import folder_of, read_at

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


def test_one_wait_for_several_results_is_no_collective_and_ends_each_of_them() -> None:
    """Torch 2.15 waits for the results of a coalesced collective at once."""
    waited = read_at(folder_of("torch-2.15.0-cpu-programs/collective_kinds", 0))
    assert waited.code is not None
    (wait,) = (call for call in waited.code.externs if "wait_tensors" in call.target)
    rows = collectives(waited)
    assert not any("wait" in row.name for row in rows)
    assert [row.name for row in rows if wait.span in row.waits] == ["all_reduce_coalesced"]
    (moved,) = (row for row in kernel_rows(waited) if "wait_tensors" in row.name)
    assert (moved.bytes_read, moved.bytes_written) == (0, 0)


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


def test_collectives_in_their_order_with_what_waits_for_them() -> None:
    rows = collectives(graph("collective_kinds"))
    assert [(row.place, row.name, row.reduction, row.group, row.group_size) for row in rows] == [
        (1, "all_reduce", "sum", "0", None),
        (2, "all_gather_into_tensor", None, "0", 2),
        (3, "reduce_scatter_tensor", "avg", "0", 2),
        (4, "all_to_all_single", None, "0", None),
        (5, "all_reduce_coalesced", "max", "0", None),
        (6, "broadcast", None, "0", None),
    ]
    assert [(row.buffers, row.results, row.bytes_in, row.bytes_out) for row in rows] == [
        (("buf0",), ("buf0",), 512, 512),
        (("buf3",), ("buf4",), 512, 1024),
        (("buf5",), ("buf6",), 512, 256),
        (("buf7",), ("buf8",), 512, 512),
        (("buf9", "buf10"), ("buf9", "buf10"), 1024, 1024),
        (("buf15",), ("buf15",), 512, 512),
    ]
    assert [(row.nodes, row.fx) for row in rows][1:3] == [
        (("op3",), ("all_gather_into_tensor",)),
        (("op5",), ("reduce_scatter_tensor",)),
    ]
    assert [len(row.waits) for row in rows] == [1, 1, 1, 1, 2, 1]
    assert [row.meanwhile for row in rows] == [(), (), (), (), ("cpp_fused_tanh_3",), MEANWHILE]


MEANWHILE = ("cpp_fused_tanh_3", "cpp_fused_add_mul_4")


def test_buckets_are_gathered_into_a_part_of_a_buffer() -> None:
    gather, scatter, reduce = collectives(graph("bucketed_collectives"))
    assert (gather.name, gather.buffers, gather.results) == (
        "all_gather_into_tensor_out",
        ("buf0",),
        ("buf0",),
    )
    assert (gather.bytes_in, gather.bytes_out) == (1536, 3072), "it is passed a half of the buffer"
    assert (scatter.buffers, scatter.results, scatter.bytes_in, scatter.bytes_out) == (
        ("buf26",), ("buf27",), 3072, 1536
    )  # fmt: skip
    assert (reduce.name, reduce.reduction, reduce.bytes_out) == ("all_reduce", "sum", 192)


def test_collectives_of_a_wrapper_in_cpp_are_waited_for() -> None:
    """They were not listed, or never waited for; what torch returns in C++ is a handle of the same buffer."""
    read = graph("cpp_collectives")
    (row,) = collectives(read)
    assert (row.name, row.reduction, row.group) == ("all_reduce", "sum", "0")
    assert (row.results, row.bytes_in, row.bytes_out) == (("buf0",), 2048, 2048)
    assert (row.nodes, len(row.waits)) == (("op1",), 1)
    (wait,) = (row for row in kernel_rows(read) if row.name.endswith("wait_tensor"))
    assert (wait.bytes_read, wait.bytes_written) == (0, 0)
    assert check_graph(read, texts_of(read)).problems == ()


def test_ranks_whose_compile_failed_are_not_said_to_be_the_same() -> None:
    """Two ranks without a wrapper had 'same kernels, same collectives in the same order'."""
    read = graph("collective_kinds")
    for same, graphs in ((True, (read,)), (False, (replace(read, code=None),)), (False, ())):
        process = DumpProcess(0, 1, 0, 2, (), None, len(graphs), "ok", 0, None)
        ranks = [ProcessGraphs(f"rank{n}", replace(process, pid=n, rank=n), graphs) for n in range(2)]
        assert [code for code, _, _ in _of_ranks(ranks)] == ["ranks-same"] * same


def test_a_rank_s_own_part_of_a_bucket_is_no_difference() -> None:
    """Each rank gathers from its own offset into the result: that was said to be another collective."""
    views = [f"reinterpret_tensor(buf0, (512, ), (1, ), {offset})" for offset in (0, 512)]
    assert len({_OFFSET.sub("OFFSET", view) for view in views}) == 1


def test_the_wait_that_torch_lists_is_no_difference() -> None:
    """`show` of a collective said that no node computes the wait, and that torch does not list itself."""
    for program, at in (("collective_kinds", 0), ("bucketed_collectives", 0), ("tensor_parallel", 0)):
        pairs = [
            pair
            for pair in links(graph(program, at)).kernel_fx
            if pair.conflict and (pair.kernel.startswith("torch.ops._c10d") or "wait" in pair.fx)
        ]
        assert pairs == []


@pytest.mark.parametrize("program", ["collective_kinds", "bucketed_collectives"])
def test_the_page_of_a_graph_lists_them(program: str) -> None:
    folder = folder_of(f"{PROGRAMS}/{program}")
    text = str(ip.open_graph(folder).show())
    assert re.search(r"1 +all_(reduce sum|gather_into_tensor_out) +0", text)
    assert "waits at" in text


@pytest.mark.parametrize(
    ("edit", "difference"),
    [
        (("all_reduce_.default(buf0, 'sum'", "all_reduce_.default(buf0, 'max'"), ("collective", 1)),
        (("torch.ops._c10d_functional.broadcast_.default(buf15, 0, '0')", "pass"), ("collective", 10)),
        ((".tanh()", ".sinh()"), ("call", 14)),
        (("", ""), None),
    ],
    ids=["another reduction", "one that is missing", "another kernel", "the same"],
)
def test_the_first_difference_of_ranks_is_named(
    tmp_path: Path, edit: tuple[str, str], difference: tuple[str, int] | None
) -> None:
    folder = folder_of(f"{PROGRAMS}/collective_kinds")
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    code = (copy / "output_code.py").read_text()
    assert edit[0] in code
    (copy / "output_code.py").write_text(code.replace(*edit) if edit[0] else code)
    first, second = (
        ProcessGraphs(
            f"rank{rank}", DumpProcess(rank, 1, rank, 2, (), None, 1, "ok", 0, None), (read_at(at),)
        )
        for rank, at in enumerate((folder, copy))
    )
    found = first_difference(first, second)
    assert (found and (found["what"], found["place"])) == difference
    fewer = replace(second, graphs=())
    assert (first_difference(first, fewer) or {})["what"] == "collective"
