"""Forms of torch 2.1 and 2.2, and values that lack a part."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from inductor_probe.analysis.links import links
from inductor_probe.api.check import check
from inductor_probe.reader.debug_dir import graph_dir, read_graph
from inductor_probe.reader.ir import parse_ir
from inductor_probe.reader.output_code import parse_output_code
from tests.conftest import DUMPS

# As the templates of torch 2.1 write it: `torch/_inductor/codegen/triton.py` and `wrapper.py`.
TRITON_2_1 = """
from ctypes import c_void_p, c_long
import torch
import math
from torch._inductor.hooks import run_intermediate_hooks

from torch import empty_strided, device
from torch._inductor.codecache import AsyncCompile

import triton
import triton.language as tl
from torch._inductor.triton_heuristics import grid, start_graph, end_graph
from torch._C import _cuda_getCurrentRawStream as get_cuda_stream

assert_size_stride = torch._C._dynamo.guards.assert_size_stride
async_compile = AsyncCompile()


# kernel path: /repro/.cache/aa/caa.py
# Source Nodes: [add], Original ATen: [aten.add]
# add => add
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
import triton
import triton.language as tl
from torch._inductor.ir import ReductionHint
from torch._inductor.ir import TileHint
from torch._inductor.triton_heuristics import AutotuneHint, pointwise
from torch._inductor.utils import instance_descriptor
from torch._inductor import triton_helpers

@pointwise(
    size_hints=[1024], 
    filename=__file__,
    triton_meta={'signature': {0: '*fp32', 1: '*fp32', 2: 'i32'}, 'device': 0, 'device_type': 'cuda', 'constants': {}, 'configs': [instance_descriptor(divisible_by_16=(0, 1), equal_to_1=())]},
    inductor_meta={'autotune_hints': set(), 'kernel_name': 'triton_poi_fused_add_0', 'mutated_arg_names': []},
    min_elem_per_thread=0
)
@triton.jit
def triton_(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 1000
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = 1.0
    tmp2 = tmp0 + tmp1
    tl.store(out_ptr0 + (x0), tmp2, xmask)
''')


async_compile.wait(globals())
del async_compile

def call(args):
    arg0_1, = args
    args.clear()
    assert_size_stride(arg0_1, (1000, ), (1, ))
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0) # no-op to ensure context
        buf0 = empty_strided((1000, ), (1, ), device='cuda', dtype=torch.float32)
        # Source Nodes: [add], Original ATen: [aten.add]
        stream0 = get_cuda_stream(0)
        triton_poi_fused_add_0.run(arg0_1, buf0, 1000, grid=grid(1000), stream=stream0)
        run_intermediate_hooks('add', buf0)
        del arg0_1
        return (buf0, )


def benchmark_compiled_module(times=10, repeat=10):
    from torch._dynamo.testing import rand_strided
    from torch._inductor.utils import print_performance
    arg0_1 = rand_strided((1000, ), (1, ), device='cuda:0', dtype=torch.float32)
    return print_performance(lambda: call([arg0_1]), times=times, repeat=repeat)


if __name__ == "__main__":
    from torch._inductor.wrapper_benchmark import compiled_module_main
    compiled_module_main('None', benchmark_compiled_module)
"""  # noqa: E501, W291 - as torch prints it


def test_get_cuda_stream_of_torch_2_1_is_understood() -> None:
    code = parse_output_code(TRITON_2_1, Path("output_code.py"))
    assert code.problems == ()
    (launch,) = code.launches
    assert (launch.kernel, launch.args) == ("triton_poi_fused_add_0", ("arg0_1", "buf0", "1000"))
    assert dict(launch.keywords)["stream"] == "stream0"
    (kernel,) = code.kernels
    assert [argument.role for argument in kernel.args] == ["in", "out", "size"]


def _without_members(graph: Path) -> None:
    """Print a graph as torch does where it fails behind the outputs of fused nodes: without those in them."""
    for name in ("ir_pre_fusion.txt", "ir_post_fusion.txt"):
        path = graph / name
        nodes = path.read_text().split("\n\n\n")
        for index, node in enumerate(nodes):
            nodes[index] = re.split(r"\n    \w+\.snodes\[0\] =", node)[0]
        path.write_text("\n\n\n".join(nodes))


def test_fused_nodes_without_the_nodes_in_them_have_those_of_the_file_before_fusion(tmp_path: Path) -> None:
    run = tmp_path / "torch_compile_debug"
    shutil.copytree(DUMPS / "torch-2.1.2-cpu" / "layernorm_grad", run)
    for path in sorted(run.glob("run_*/torchinductor/*_*.*")):
        folder = graph_dir(path)
        assert folder is not None
        expected = read_graph(folder)
        _without_members(path)
        assert "snodes" not in (path / "ir_post_fusion.txt").read_text()
        for graph in (read_graph(folder), read_graph(folder, earlier=False)):
            assert graph.problems == ()
            assert [top.name for top in graph.post] == [top.name for top in expected.post]
            assert [[leaf.name for leaf in top.leaves()] for top in graph.post] == [
                [leaf.name for leaf in top.leaves()] for top in expected.post
            ]
            assert links(graph).nodes.keys() == links(expected).nodes.keys()
            assert links(graph).unlinked == ()
    checked = check(run)
    assert [str(problem) for problem in checked.problems] == []
    assert checked.whole


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("users = [NodeUser(can_inplace=False, is_weak=False)]", "NodeUser without node"),
        ("users = [NodeUser(node=OUTPUT, is_weak=False)]", "NodeUser without can_inplace"),
        ("users = [NodeUser(node=SchedulerNode(), can_inplace=False)]", "SchedulerNode without nodes"),
        ("writes = [StarDep(mode=None)]", "StarDep without name"),
        ("writes = [WeakDep(mutating_buf='buf1')]", "WeakDep without name"),
        (
            "writes = [MemoryDep('buf0', c0)]",
            "a MemoryDep without name, index or ranges: MemoryDep('buf0', c0)",
        ),
        ("layout = MultiOutputLayout(device=device(index=0))", "device without type"),
    ],
)
def test_a_value_that_lacks_a_part_is_told_in_words(line: str, message: str) -> None:
    text = f"buf0: ExternKernelSchedulerNode(FallbackKernel)\nbuf0.{line}\n\n\n"
    (problem,) = parse_ir(text, Path("ir_pre_fusion.txt")).problems
    assert problem.message == message
