"""`probe memory`: what wrappers allocate and free, and the peak of a public report, measured and read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.analysis.memory import memory_of
from inductor_probe.model.memory import GraphMemory
from inductor_probe.report.pages.memory import memory_pages
from inductor_probe.report.terminal import to_text
from tests.conftest import Probe
from tests.dumps import TRAINING, copy_of, every_graph, graph_in, read_at, run_in

PROGRAM = Path(__file__).with_name("memory_program.py")
WRAPPER = """
def call(args):
    arg0_1, = args
    args.clear()
    assert_size_stride(arg0_1, (256, 4), (4, 1), 'input')
    buf0 = empty_strided_cpu((256, 4), (4, 1), torch.float32)
    extern_kernels.mm(arg0_1, arg0_1, out=buf0)
    del arg0_1
    buf1 = reinterpret_tensor(buf0, (4, 256), (1, 4), 0)
    buf2 = empty_strided_cpu((128, ), (1, ), torch.float64)
    extern_kernels.mm(buf1, buf1, out=buf2)
    del buf0
    del buf1
    buf3 = buf2; del buf2  # reuse
    buf4 = empty_strided_cpu((2, 8), (16, 1), torch.float32)
    extern_kernels.mm(buf3, buf3, out=buf4)
    del buf3
    return (buf4, )
"""

PARTITIONS = """
def partition_0(args):
    buf0, = args
    args.clear()
    buf1 = empty_strided_cpu((64, ), (1, ), torch.float32)
    extern_kernels.mm(buf0, buf0, out=buf1)
    del buf0
    return (buf1, )

def call(args):
    arg0_1, = args
    args.clear()
    buf0 = empty_strided_cpu((256, 4), (4, 1), torch.float32)
    extern_kernels.mm(arg0_1, arg0_1, out=buf0)
    del arg0_1
    partition0_args = [buf0]
    del buf0
    (buf1,) = self.partitions[0](partition0_args)
    del partition0_args
    buf2 = empty_strided_cpu((128, ), (1, ), torch.float32)
    extern_kernels.mm(buf1, buf1, out=buf2)
    del buf1
    return (buf2, )
"""


def row_of(folder: Path) -> GraphMemory:
    (row,) = memory_of([read_at(folder)])
    return row


def test_memory_lives_as_long_as_any_name_for_it(tmp_path: Path) -> None:
    folder = copy_of(graph_in("torch-2.13.0-cpu/hflip_cl"), tmp_path)
    (folder / "output_code.py").write_text(WRAPPER)
    row = row_of(folder)
    assert [(life.names, life.bytes, life.first, life.last, life.held) for life in row.lives] == [
        (("buf0", "buf1"), 4096, 0, 1, "call"),  # its view is deleted last
        (("buf2", "buf3"), 1024, 1, 2, "call"),  # taken over
        (("buf4",), 96, 2, 2, "output"),  # with the gap between its rows
    ]
    assert [step.bytes for step in row.steps] == [4096, 5120, 1120]
    assert (row.peak, row.at, row.left, row.uncounted) == (5120, 1, 96, ())


@every_graph
def test_memory_of_every_graph_adds_up(folder: Path) -> None:
    for row in memory_of([read_at(folder)]):
        for place, step in enumerate(row.steps):
            live = [one.bytes for one in row.lives if one.first <= place <= one.last]
            assert step.bytes == sum(live)
        assert all(step.bytes <= row.peak for step in row.steps)
        assert sum(one.bytes for one in row.lives if one.at_peak) == row.peak
        assert row.left <= row.peak
        assert row.graph in to_text(memory_pages(ip.memory(folder, measure=False).record, everything=True))


def test_a_backward_begins_with_what_its_forward_saved() -> None:
    forward, backward = memory_of(graph.compiled for graph in ip.open_run(run_in(TRAINING)).graphs)
    saved = {one.bytes for one in forward.lives if one.held == "saved"}
    taken = [one for one in backward.lives if one.held == "forward" and "of the forward" not in one.names[-1]]
    assert saved
    assert saved <= {one.bytes for one in taken}
    assert all(one.first == 0 and one.last < len(backward.steps) - 1 for one in taken)


def test_names_that_end_where_arguments_are_gathered_live_in_the_partition(tmp_path: Path) -> None:
    folder = copy_of(graph_in("torch-2.13.0-cpu/hflip_cl"), tmp_path)
    (folder / "output_code.py").write_text(PARTITIONS)
    row = row_of(folder)
    assert [(life.names, life.first, life.last) for life in row.lives] == [
        (("buf0",), 0, 1),
        (("buf2",), 2, 2),  # the partition's own ends with it
        (("buf1",), 1, 2),
    ]


@pytest.mark.compiles
@pytest.mark.takes(60)
@pytest.mark.usefixtures("warm")
def test_a_checkpointed_network_takes_more_than_eager(tmp_path: Path, probe: Probe) -> None:
    """pytorch/pytorch#120381: the peak of forward and backward is higher compiled than in eager."""
    run = ip.dump(PROGRAM, out=tmp_path)
    record = ip.memory(run).record
    (call,) = record.measured
    assert record.not_measured is None
    assert call.backward
    assert call.compiled.peak > 1.05 * call.eager.peak
    assert call.read is not None
    of_wrappers = sum(one.bytes for one in call.compiled.live if one.operator in {"", "aten.ones_like"})
    assert call.read == pytest.approx(of_wrappers, rel=0.02)
    assert {one.operator for one in call.eager.live} >= {"aten.gelu"}
    forward, backward = record.rows
    assert call.read == backward.peak > forward.peak
    shown = probe("memory", run.path, cwd=tmp_path)
    assert shown.status == 0, shown.err
    assert shown.out.startswith("! Sequential, forward and backward: peak ")
    assert "of the forward" in shown.out
    ran = probe("memory", run.path, "--no-measure", "--json", cwd=tmp_path)
    read = json.loads(ran.out)
    assert [one["graph"] for one in read["rows"]] == [row.graph for row in record.rows]
    assert read["not_measured"]["code"] == "not-asked"
