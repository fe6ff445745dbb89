"""The wrapper: entries, kernels, launches, allocations and inputs of every form."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.model.code import CppFacts, OutputCode, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.reader.output_code import parse_output_code
from tests.conftest import DUMPS, all_graph_dirs
from tests.dumps import every_graph

Read = Callable[..., CompiledGraph]


def code_of(graph: CompiledGraph) -> OutputCode:
    assert graph.code is not None
    return graph.code


@every_graph
def test_launches_of_every_fixture_match_their_kernels(folder: Path) -> None:
    code = parse_output_code((folder / "output_code.py").read_text(), folder / "output_code.py")
    assert code.problems == ()
    for launch in code.launches:
        kernel = code.kernel(launch.kernel)
        assert kernel is not None
        if kernel.backend == "cpp":
            assert len(kernel.args) == len(launch.args)


def test_torch_2_1_passes_pointers_and_2_13_names(read: Read) -> None:
    old, new = code_of(read("torch-2.1.2-cpu/hflip_cl")), code_of(read("torch-2.13.0-cpu/hflip_cl"))
    assert (old.entry, new.entry) == ("call", "Runner.call")
    assert old.launches[0].args == new.launches[0].args == ("arg0_1", "buf0")
    assert [arg.role for arg in new.kernels[0].args] == ["in", "out"]


def test_layouts_come_from_allocations_where_torch_prints_none(read: Read) -> None:
    code = code_of(read("torch-2.1.2-cpu/hflip_cl"))
    layouts = {allocation.name: allocation.layout for allocation in code.allocations}
    stride = (150528, 1, 672, 3)
    assert layouts == {
        "arg0_1": BufferLayout("Input", "cpu", "uint8", (1, 3, 224, 224), stride),
        "buf0": BufferLayout("Allocation", "cpu", "uint8", (1, 3, 224, 224), stride),
    }


def test_inputs_that_share_their_memory_have_its_dtype_and_device() -> None:
    (path,) = (DUMPS / "torch-2.13.0-cpu" / "hflip_cl").glob("run_*/torchinductor/*/output_code.py")
    alone = "arg0_1 = rand_strided((1, 3, 224, 224), (150528, 1, 672, 3), device='cpu', dtype=torch.uint8)"
    shared = """_shared_storage_0 = rand_strided((301056,), (1,), device='cpu', dtype=torch.uint8)
    arg0_1 = torch.as_strided(_shared_storage_0, (1, 3, 224, 224), (150528, 1, 672, 3))"""
    text = path.read_text()
    assert alone in text
    plain, code = parse_output_code(text, path), parse_output_code(text.replace(alone, shared), path)
    assert code.problems == ()
    assert code.allocations[0].layout is not None
    assert code.allocations[0].layout == plain.allocations[0].layout


def test_symbolic_inputs_keep_their_symbols(read: Read) -> None:
    code = code_of(read("torch-2.13.0-cpu/dynamic_shapes"))
    layouts = {allocation.name: allocation.layout for allocation in code.allocations}
    assert layouts["arg2_1"] == BufferLayout("Input", "cpu", "float32", ("s77", "s27"), ("s27", 1))
    assert layouts["buf1"] is not None
    assert layouts["buf1"].offset == "s27 * s77"
    assert "arg0_1" not in layouts


def test_triton_launches_stand_inside_the_device_guard(read: Read) -> None:
    code = code_of(read("torch-2.11.0-cuda/layernorm_grad", 1))
    assert len(code.launches) == 4
    assert {kernel.backend for kernel in code.kernels} == {"triton"}
    assert isinstance(code.kernels[0].details, TritonFacts)
    assert code.kernels[0].details.reduction_hint == "INNER"
    reuse = next(allocation for allocation in code.allocations if allocation.kind == "reuse")
    assert (reuse.name, reuse.of) == ("buf4", "buf3")


def test_extern_calls_keep_their_outputs_and_comments(read: Read) -> None:
    code = code_of(read("torch-2.13.0-cpu/mlp_train", 1))
    assert {call.target for call in code.externs} == {"extern_kernels.mm"}
    assert all(len(call.outputs) == 1 for call in code.externs)
    sort = code_of(read("torch-2.13.0-cpu/multi_output_no_fuse")).externs[0]
    assert sort.target.startswith("torch.ops.aten.sort")
    assert sort.comment is not None
    assert sort.comment.aten == ("aten.sort",)


def test_scalar_and_vectorised_loop_nests_are_told_apart(read: Read) -> None:
    (flip,) = code_of(read("torch-2.13.0-cpu/hflip_cl")).kernels
    (antialias,) = code_of(read("torch-2.13.0-cpu/aa_separable_cl")).kernels
    assert isinstance(flip.details, CppFacts)
    assert isinstance(antialias.details, CppFacts)
    assert [flip.details.count(kind) for kind in ("vectorised", "scalar")] == [0, 1]
    assert [antialias.details.count(kind) for kind in ("vectorised", "scalar")] == [4, 0]


def test_a_cut_off_wrapper_is_read_up_to_the_cut() -> None:
    text = """import torch

def call(args):
    arg0_1, = args
    args.clear()
    buf0 = empty_strided_cpu((3, ), (1, ), torch.float32)
    cpp_fused_neg_0(arg0_1,
"""
    code = parse_output_code(text, Path("output_code.py"))
    assert code.inputs == ("arg0_1",)
    assert [allocation.name for allocation in code.allocations] == ["buf0"]
    (problem,) = code.problems
    assert str(problem) == "output_code.py:7: cut off, or not Python, from line 7 on"


def test_a_statement_of_no_known_form_is_named() -> None:
    text = """def call(args):
    arg0_1, = args
    frobnicate(arg0_1)
    buf0 <<= 2
    return (buf0, )
"""
    code = parse_output_code(text, Path("output_code.py"))
    assert [str(problem) for problem in code.problems] == [
        "output_code.py:3: unknown statement of the wrapper: frobnicate(arg0_1)",
        "output_code.py:4: unknown statement of the wrapper: buf0 <<= 2",
    ]
    assert code.returns == ("buf0",)


def test_partitions_branches_and_symbols_are_read() -> None:
    text = """import torch
cpp_fused_add_0 = async_compile.cpp_pybinding(['const float*', 'float*'], '''
extern "C" void kernel(const float* in_ptr0, float* out_ptr0) {}
''')
_tensor_constant0 = None  # device(type='cpu') torch.float32 (3,) (1,)

def partition_0(args):
    arg1_1, s0 = args
    buf0 = empty_strided_cpu((s0, ), (1, ), torch.float32)
    cpp_fused_add_0(arg1_1, buf0)
    return (buf0, )

class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        s0 = arg0_1
        with torch.cuda._DeviceGuard(0):
            partition0_args = [arg1_1, s0]
            (buf0,) = self.partitions[0](partition0_args)
            u0 = buf0.item()
            if u0:
                buf1 = torch.ops.aten.cumsum.default(buf0, 0)
            buf2 = buf1; del buf1  # reuse
            return (buf2, )
"""
    code = parse_output_code(text, Path("output_code.py"))
    assert not code.problems
    assert code.entry == "Runner.call"
    assert [(part.name, part.returns) for part in code.functions] == [("partition_0", ("buf0",))]
    assert code.subgraphs == ()
    assert [(symbol.name, symbol.value) for symbol in code.symbols] == [
        ("s0", "arg0_1"),
        ("u0", "buf0.item()"),
    ]
    assert [launch.args for launch in code.launches] == [("arg1_1", "buf0")]
    assert [call.outputs for call in code.externs] == [("buf1",)]
    assert ("_tensor_constant0", "constant") in [(at.name, at.kind) for at in code.allocations]


@pytest.mark.parametrize(
    ("steps", "size", "dtype"),
    [
        ("view(512, 1024).sum(dim=0).view([4, 256])", (4, 256), "float32"),
        ("view(512, 1024).amax(dim=0).view([1024]).to(torch.bfloat16)", (1024,), "bfloat16"),
        ("view(512, 1024).sum(dim=0)", (1024,), "float32"),  # of torch 2.11
        ("view(512, s0).sum(dim=0)", ("s0",), "float32"),
    ],
)
def test_the_reduction_of_a_workspace_is_a_call_that_makes_a_buffer(
    steps: str, size: tuple[Dim, ...], dtype: str
) -> None:
    code = parse_output_code(
        f"""
def call(args):
    arg0_1, = args
    workspace_0 = empty_strided_cuda((524288, ), (1, ), torch.float32)
    buf2 = workspace_0[0 * (512) * (1024) : (0 + 1) * (512) * (1024)].{steps}
    return (buf2, )
""",
        Path("output_code.py"),
    )
    assert code.problems == ()
    (reduction,) = code.externs
    assert reduction.target == f"torch.Tensor.{'amax' if 'amax' in steps else 'sum'}"
    assert (reduction.args, reduction.outputs) == (("workspace_0", "dim=0"), ("buf2",))
    buffer = next(allocation for allocation in code.allocations if allocation.name == "buf2")
    assert (buffer.kind, buffer.of) == ("new", None)
    assert buffer.layout is not None
    assert (buffer.layout.device, buffer.layout.dtype, buffer.layout.size) == ("cuda", dtype, size)
    assert buffer.layout.stride == ((256, 1) if len(size) == 2 else (1,))


def test_a_multi_kernel_has_the_parameters_of_those_it_chooses_among() -> None:
    text = """triton_red_0 = async_compile.triton('triton_red_0', '''
def triton_red_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    pass
''', device_str='cuda')
triton_per_1 = async_compile.triton('triton_per_1', '''
def triton_per_1(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    pass
''', device_str='cuda')
multi_kernel_0 = async_compile.multi_kernel('multi_kernel_0', [
    triton_red_0,
    triton_per_1,
])
def call(args):
    multi_kernel_0.run(arg0_1, buf0, 8, stream=stream0)
    return (buf0, )
"""
    code = parse_output_code(text, Path("output_code.py"))
    kernel = code.kernel("multi_kernel_0")
    assert kernel is not None
    assert kernel.chooses == ("triton_red_0", "triton_per_1")
    assert kernel.source == ""
    assert [argument.role for argument in kernel.args] == ["in", "out", "size"]
    assert [launch.kernel for launch in code.launches] == ["multi_kernel_0"]


METAL = """
    [[max_total_threads_per_threadgroup(64)]]
    kernel void {name}(
        device float* out_ptr0,
        constant half* in_ptr0,
        constant long& ks0,
        device c10::metal::ErrorMessages* error_buf,
        uint2 thread_pos [[thread_position_in_grid]],
        uint2 group_pos [[thread_position_in_threadgroup]]
    ) {{
        out_ptr0[thread_pos.x] = static_cast<float>(in_ptr0[ks0 * thread_pos.x]);
    }}
"""
OF_METAL = {
    "a library": (
        f"mps_lib_0 = compile_mps_shader('''{METAL.format(name='generated_kernel')}''')",
        "mps_lib_0.generated_kernel",
    ),
    "async_compile": (
        "generated_kernel_0 = async_compile.metal('generated_kernel_0', "
        f"'''{METAL.format(name='generated_kernel_0')}''', ['utils'])",
        "generated_kernel_0",
    ),
}


@pytest.mark.parametrize("form", OF_METAL)
def test_a_kernel_for_metal_is_shown_with_what_it_is_passed(form: str) -> None:
    """MetalKernel.codegen_kernel and MetalScheduling.define_kernel of torch/_inductor/codegen/mps.py."""
    definition, called = OF_METAL[form]
    text = f"""
import torch
{definition}
def call(args):
    arg0_1, s0 = args
    args.clear()
    with torch._ops.contextlib.nullcontext():
        buf0 = empty_strided((64, ), (1, ), device='mps', dtype=torch.float32)
        {called}(buf0, arg0_1, s0, threads=[64, 64], group_size=[1, 64], error_buf_idx=3)
        del arg0_1
    return (buf0, )
"""
    code = parse_output_code(text, Path("output_code.py"))
    assert code.problems == ()
    (kernel,), (launch,) = code.kernels, code.launches
    assert (kernel.backend, launch.kernel) == ("metal", kernel.name)
    assert [(arg.name, arg.role, arg.type) for arg in kernel.args] == [
        ("out_ptr0", "out", "device float*"),
        ("in_ptr0", "in", "constant half*"),
        ("ks0", "size", "constant long&"),
    ]
    assert launch.args == ("buf0", "arg0_1", "s0")
    assert dict(launch.keywords)["threads"] == "[64, 64]"


CUDA = sorted(folder for folder in all_graph_dirs() if "cuda" in folder.parts[-5])
PYTHON = [folder for folder in CUDA if folder.parts[-4] != "cpp_wrapper"]


@pytest.mark.parametrize("folder", PYTHON, ids=lambda folder: "/".join(folder.parts[-5:-3]))
def test_a_wrapper_for_xpu_is_read_as_one_for_cuda(folder: Path) -> None:
    """XPUDeviceOpOverrides of torch/_inductor/codegen/xpu/device_op_overrides.py has other names alone."""
    text = (folder / "output_code.py").read_text()
    path = Path("output_code.py")
    cuda, xpu = (
        parse_output_code(text, path),
        parse_output_code(re.sub(r"cuda(?!\w*\.so)", "xpu", text), path),
    )
    assert xpu.problems == ()
    assert [(one.kernel, one.args) for one in xpu.launches] == [
        (one.kernel, one.args) for one in cuda.launches
    ]
    assert [kernel.args for kernel in xpu.kernels] == [kernel.args for kernel in cuda.kernels]
    assert {kernel.backend for kernel in xpu.kernels} == {"triton"}
    devices = {one.layout.device for one in xpu.allocations if one.layout and one.layout.device}
    assert {device.partition(":")[0] for device in devices} <= {"xpu", "cpu"}


def test_a_kernel_for_pallas_has_the_parameters_of_its_entry() -> None:
    """PallasKernel.codegen_kernel: a function for each element, one that calls it, and the entry."""
    text = """
pallas_fused_add_0 = async_compile.pallas('pallas_fused_add_0', r'''
def pallas_fused_add_0_kernel(out_ptr0_alias, in_ptr0, out_ptr0):
    out_ptr0[...] = in_ptr0[...] + 1

def pallas_fused_add_0_jit_wrapper(out_shapes, out_dtypes, out_ptr0_alias, in_ptr0):
    return ()

def pallas_fused_add_0_main(out_ptr0_alias, in_ptr0, out_ptr0, stream=None):
    out_ptr0.copy_(in_ptr0)
''')

def call(args):
    arg0_1, = args
    args.clear()
    buf0 = empty_strided_cpu((64, ), (1, ), torch.float32)
    pallas_fused_add_0.run(buf0, arg0_1, buf0)
    return (buf0, )
"""
    code = parse_output_code(text, Path("output_code.py"))
    assert code.problems == ()
    assert [(arg.name, arg.role) for arg in code.kernels[0].args] == [
        ("out_ptr0_alias", "out"),
        ("in_ptr0", "in"),
        ("out_ptr0", "out"),
    ]
    assert code.launches[0].args == ("buf0", "arg0_1", "buf0")


@given(st.text())
def test_reading_never_runs_or_chokes_on_text(text: str) -> None:
    parse_output_code(text, Path("output_code.py"))


def test_a_number_in_a_wrapper_is_no_statement() -> None:
    text = """async_compile.wait(globals())
def call(args):
    arg0_1, = args
    assert_size_stride(arg0_1, (4, ), (1, ))
    0
    return (arg0_1, )
"""
    code = parse_output_code(text, Path("output_code.py"))
    (allocation,) = code.allocations
    assert allocation.span is not None
    assert (allocation.name, allocation.span.first) == ("arg0_1", 4)
    assert code.problems == ()
