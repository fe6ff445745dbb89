"""Wrappers in C++, of `cpp_wrapper` and AOTInductor, on a CPU and a GPU: all they say is read and linked."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.linking.steps import read_steps
from inductor_probe.analysis.links import links
from inductor_probe.analysis.pages import graph_page
from inductor_probe.analysis.summary import summarise
from inductor_probe.model.code import FOLDING, Branch, OutputCode
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.reader.cpp_wrapper import parse_cpp_wrapper
from inductor_probe.reader.debug_dir import graph_dir, read_graph, read_run, texts_of
from tests.conftest import DUMPS

CPU, GPU = "torch-2.13.0-cpu-programs", "torch-2.11.0-cuda"
DUMPED = sorted(
    f"{folder.parent.name}/{folder.name}"
    for program in ("cpp_wrapper", "cpp_operators", "aoti")
    for folder in DUMPS.glob(f"*/{program}")
)


def read(program: str) -> tuple[CompiledGraph, OutputCode]:
    (path,) = (DUMPS / program).glob("run_*")
    graph = read_graph(read_run(path).graphs[0])
    assert graph.code is not None
    return graph, graph.code


@pytest.mark.parametrize("program", DUMPED)
def test_every_line_is_accounted_for_and_every_node_linked(program: str) -> None:
    graph, code = read(program)
    checked = check_graph(graph, texts_of(graph))
    assert (checked.problems, checked.unlinked, checked.remarks) == ((), (), ())
    assert {launch.kernel for launch in code.launches} == set(code.by_name)
    assert all(kernel.args and kernel.details for kernel in code.kernels)
    assert not any(file.counted or file.unread for file in checked.files)


@pytest.mark.parametrize("program", DUMPED)
def test_inputs_and_results_are_those_of_the_fx_graph(program: str) -> None:
    graph, code = read(program)
    assert graph.fx is not None
    assert code.inputs == tuple(node.name for node in graph.fx.inputs)
    assert len(code.returns) == len(graph.fx.outputs)


def test_statements_are_put_as_a_python_wrapper_has_them() -> None:
    _, code = read(f"{CPU}/cpp_wrapper")
    assert code.entry == "inductor_entry_impl"
    assert code.inputs == ("arg0_1", "arg1_1", "arg2_1", "arg3_1", "arg4_1", "arg5_1")[: len(code.inputs)]
    calls = {call.target: call for call in code.externs}
    sort = calls["aoti_torch_cpu_sort_stable"]
    assert sort.args[0].startswith("reinterpret_tensor(")
    assert len(sort.outputs) == 2
    assert sort.comment is not None
    assert sort.comment.handle is not None
    views = [item for item in code.allocations if item.kind == "view"]
    assert views
    assert all(item.layout and item.layout.size and item.layout.dtype for item in views)
    assert code.returns[-1].startswith("reinterpret_tensor(")
    assert {part.name for part in code.subgraphs} == {"true_graph_0", "false_graph_0"}


def test_custom_operators_are_calls_with_what_they_return() -> None:
    graph, code = read(f"{CPU}/cpp_operators")
    calls = {call.target: call for call in code.externs}
    assert calls["fixtures::twice"].args[1:] == ("3",)
    kernels = {link.kernel for link in links(graph).nodes.values()}
    assert {"fixtures::twice", "fixtures::bump"} <= kernels
    (output,) = calls["fixtures::twice"].outputs
    assert output.startswith("buf")
    _, packaged = read(f"{CPU}/aoti")
    (proxy,) = (call for call in packaged.externs if call.target.startswith("aoti_torch_proxy"))
    assert len(proxy.outputs) == 1


def test_constants_of_a_package_have_the_names_of_the_module() -> None:
    graph, code = read(f"{CPU}/aoti")
    run = read_run(graph.folder.path.parent.parent)
    page = graph_page(graph, summarise(run, [graph]).graphs[0])
    constants = {item.name: item.layout for item in page.constants}
    assert list(constants) == ["layers.0.weight", "layers.0.bias", "scale"]
    layout = constants["layers.0.weight"]
    assert layout is not None
    assert (layout.dtype, layout.size, layout.stride) == ("float32", (16, 32), (32, 1))
    assert page.constant_bytes == 16 * 32 * 4 + 2 * 16 * 4
    assert code.entry == "AOTInductorModel::run_impl"


def test_calls_by_a_stack_and_numbers_among_the_results_are_read() -> None:
    """As torch 2.13 prints `torch.linalg.inv`, and a package that returns a number."""
    lines = [
        "auto arg0_1 = std::move(inputs[0]);",
        "{",
        "std::vector<c10::IValue> dispatch_stack_0;",
        "dispatch_stack_0.reserve(2);",
        "dispatch_stack_0.emplace_back("
        "c10::IValue(*torch::aot_inductor::tensor_handle_to_tensor_pointer(arg0_1)));",
        'dispatch_stack_0.emplace_back(c10::IValue(std::string("linalg.inv")));',
        'static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_linalg_check_errors", "");',
        "op.callBoxed(&dispatch_stack_0);",
        "}",
        "RAIIAtenTensorHandle scalar_to_tensor_0 = scalar_to_tensor_handle(6L);",
        "output_handles[0] = arg0_1.release();",
        "output_handles[1] = scalar_to_tensor_0.release();",
    ]
    body = "".join(f"    {line}\n" for line in lines)
    text = f"void inductor_entry_impl(\n) {{\n{body}}} // inductor_entry_impl\n"
    code = parse_cpp_wrapper(text, Path("output_code.py"))
    (call,) = code.externs
    assert code.problems == ()
    assert (call.target, call.args[0]) == ("aten::_linalg_check_errors", "arg0_1")
    assert code.returns == ("arg0_1", "6")


def test_what_is_not_known_in_a_wrapper_is_named_with_its_line() -> None:
    text = (
        "void inductor_entry_impl(\n    AtenTensorHandle* input_handles\n) {\n"
        "    auto arg0_1 = std::move(inputs[0]);\n    frobnicate<3>(arg0_1) += 2;\n"
        "    output_handles[0] = arg0_1.release();\n} // inductor_entry_impl\n"
    )
    code = parse_cpp_wrapper(text, Path("output_code.py"), first=10)
    (problem,) = code.problems
    assert problem.message == "unknown statement of the wrapper: frobnicate<3>(arg0_1) += 2;"
    assert problem.span is not None
    assert problem.span.first == 14
    assert (code.inputs, code.returns) == (("arg0_1",), ("arg0_1",))


def test_a_wrapper_that_is_cut_off_says_so() -> None:
    text = "void inductor_entry_impl(\n) {\n    auto arg0_1 = std::move(inputs[0]);\n"
    code = parse_cpp_wrapper(text, Path("output_code.cpp"))
    assert [problem.message for problem in code.problems] == ["cut off: the wrapper has no end"]
    assert code.inputs == ("arg0_1",)


def call_in(body: str) -> OutputCode:
    text = f"void inductor_entry_impl(\n) {{\n    auto arg0_1 = std::move(inputs[0]);\n{body}\n}}\n"
    return parse_cpp_wrapper(text, Path("output_code.py"), outputs=0)


def test_lists_in_boxed_calls_are_read_and_all_that_they_return() -> None:
    """Operators with lists of numbers, or several results, were three lines that nobody understood."""
    code = call_in("""
    RAIIAtenTensorHandle buf2;
    RAIIAtenTensorHandle buf3;
    {
        std::vector<c10::IValue> dispatch_stack_0;
        dispatch_stack_0.reserve(4);
        dispatch_stack_0.emplace_back(c10::IValue(*torch::aot_inductor::tensor_handle_to_tensor_pointer(arg0_1)));
        dispatch_stack_0.emplace_back(c10::IValue(static_cast<double>(0.5)));
        dispatch_stack_0.emplace_back(c10::IValue(std::string("n")));
        c10::impl::GenericList tmp_list_1(c10::SymIntType::get());
        tmp_list_1.reserve(2);
        tmp_list_1.emplace_back(c10::IValue(c10::SymInt(static_cast<int64_t>(1L))));
        tmp_list_1.emplace_back(c10::IValue(c10::SymInt(static_cast<int64_t>(2L))));
        dispatch_stack_0.emplace_back(c10::IValue(std::move(tmp_list_1)));
        static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("mylib::split3", "");
        op.callBoxed(&dispatch_stack_0);
        buf2 = torch::aot_inductor::new_tensor_handle(std::move(dispatch_stack_0[0]).toTensor());
        buf3 = torch::aot_inductor::new_tensor_handle(std::move(dispatch_stack_0[1]).toTensor());
    }""")
    assert not code.problems
    (call,) = code.externs
    assert call.target == "mylib::split3"
    assert call.args == ("arg0_1", "0.5", '"n"', "[1, 2]")
    assert call.outputs == ("buf2", "buf3")


def test_operators_that_are_called_by_python_are_library_calls() -> None:
    """multinomial takes a generator, and is called through custom_op_wrapper."""
    code = call_in("""
    RAIIPyObject custom_op_wrapper;
    {
        py::gil_scoped_acquire_simple acquire;
        RAIIPyObject codecache_module(PyImport_ImportModule("torch._inductor.codecache"));
        custom_op_wrapper = PyObject_GetAttrString(codecache_module, "custom_op_wrapper");
    }
    RAIIAtenTensorHandle buf6;
    {
        RAIIPyObject py_args_0(PyTuple_New(5));
        PyTuple_SetItem(py_args_0, 0, PyUnicode_FromString("torch.ops.aten.multinomial.default"));
        PyTuple_SetItem(py_args_0, 1, PyCapsule_New(reinterpret_cast<void*>(arg0_1.get()), NULL, NULL));
        PyTuple_SetItem(py_args_0, 2, PyLong_FromLongLong(2));
        PyObject* py_args_0_3 = PyList_New(2);
        PyList_SetItem(py_args_0_3, 0, PyLong_FromLongLong(4));
        PyList_SetItem(py_args_0_3, 1, PyLong_FromLongLong(5));
        PyTuple_SetItem(py_args_0, 3, py_args_0_3);
        PyTuple_SetItem(py_args_0, 4, Py_None);
        RAIIPyObject py_buf5(PyObject_CallObject(custom_op_wrapper, py_args_0));
        buf6 = reinterpret_cast<AtenTensorHandle>(PyCapsule_GetPointer(py_buf5.get(), NULL));
    }""")
    assert not code.problems
    (call,) = code.externs
    assert (call.target, call.outputs) == ("torch.ops.aten.multinomial.default", ("buf6",))
    assert call.args == ("arg0_1", "2", "[4, 5]", "None")


def test_constants_of_a_frozen_graph_are_no_inputs() -> None:
    code = call_in("""
    [[maybe_unused]] auto _frozen_param5 = std::move(inputs[1]);
    const char* var_0 = "none";
    AtenTensorHandle buf3_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(
        aoti_torch_cpu_mkldnn__linear_pointwise(arg0_1, _frozen_param5, nullptr, var_0, &buf3_handle)
    );
    RAIIAtenTensorHandle buf3(buf3_handle);""")
    assert not code.problems
    assert code.inputs == ("arg0_1",)
    assert [item.name for item in code.allocations if item.kind == "constant"] == ["_frozen_param5"]
    assert code.externs[0].args == ("arg0_1", "_frozen_param5", "None", '"none"')


LAZY = """
static const char* k1_0_source = R"TRITON(
async_compile.triton('k1', '''

import triton
import triton.language as tl

@triton_heuristics.user_autotune(
    configs=[{'B': 64}],
    inductor_meta={},
    triton_meta={'signature': {'x': '*fp32', 'n': 'i32', 'B': 'constexpr'}},
)
@triton.jit
def k1(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)
''', device_str='cuda')

)TRITON";
static LazyKernelCompileResult k1_0_result;
template <typename x_type_>
static __attribute__((noinline)) void call_k1_0(
    const x_type_& x,
    int64_t n,
    int64_t _grid_0,
    int32_t device_idx_,
    cudaStream_t stream_,
    const std::optional<std::string>& cubin_dir_ = std::nullopt
){
}
void inductor_entry_impl(
) {
    auto arg0_1 = std::move(inputs[0]);
    ensure_triton_kernel_compiles_started();
    call_k1_0(arg0_1, 1000, 16L, 0, stream0);
}
"""


def test_triton_kernels_that_are_compiled_as_they_are_launched_are_read() -> None:
    """torch 2.13 with cpp_wrapper on a GPU: launchers were not found, and the wrapper launched nothing."""
    code = parse_cpp_wrapper(LAZY, Path("output_code.py"))
    assert not code.problems
    (kernel,), (launch,) = code.kernels, code.launches
    assert (kernel.name, launch.kernel, launch.args) == ("k1_0", "k1_0", ("arg0_1", "1000", "16"))
    assert [(arg.name, arg.type) for arg in kernel.args] == [("x", "*fp32"), ("n", "i32")]


def test_the_size_of_a_kernel_that_is_launched_again_is_read() -> None:
    """G2: "unknown statement of the wrapper: triton_poi_..._xnumel = 2176L*s77;", and no bench file."""
    launch = "    call_k1_0(arg0_1, 1000, 16L, 0, stream0);\n"
    again = """
    int64_t s77 = arg0_1_size[0];
    int64_t k1_0_xnumel = 64L*s77;
    call_k1_0(arg0_1, k1_0_xnumel, 16L, 0, stream0);
    k1_0_xnumel = 8L*(c10::div_floor_integer(static_cast<int64_t>(s77), static_cast<int64_t>(2L)));
    call_k1_0(arg0_1, k1_0_xnumel, 16L, 0, stream0);
"""
    code = parse_cpp_wrapper(LAZY.replace(launch, again), Path("output_code.py"))
    assert not code.problems
    halved = "8*(c10::div_floor_integer(static_cast<int64_t>(s77), static_cast<int64_t>(2)))"
    assert [launched.args[1] for launched in code.launches] == ["64*s77", halved]


def test_a_second_handle_of_a_buffer_and_lists_of_pointers_are_what_they_refer_to() -> None:
    """A result that is a buffer once more was returned as a name that nothing bound."""
    code = call_in("""
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(
        aoti_torch_cpu_index_Tensor(
            arg0_1, std::array<const AtenTensorHandle*, 1>{&temporary_reference(arg0_1.get())}.data(), 1,
            &buf1_handle
        )
    );
    RAIIAtenTensorHandle buf1(buf1_handle);
    AtenTensorHandle tmp_buf1_0;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(buf1, &tmp_buf1_0));
    auto var_1 = RAIIAtenTensorHandle(tmp_buf1_0);
    output_handles[0] = var_1.release();""")
    assert not code.problems
    assert code.externs[0].args == ("arg0_1", "[arg0_1]")
    assert code.returns == ("buf1",)


FOLDS = """
void AOTInductorModel::_const_run_impl(
    std::vector<AtenTensorHandle>& output_handles
) {
    [[maybe_unused]] auto& w = constants_->at(0);
    cpp_fused_relu_0((const float*)(w.data_ptr()), (float*)(buf0.data_ptr()));
}
void AOTInductorModel::run_impl(
) {
    auto arg0_1 = std::move(inputs[0]);
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(buf0, arg0_1, arg0_1));
    output_handles[0] = buf0.release();
}
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  cpp_fused_relu_0(const float* in_ptr0,
                       float* out_ptr0)
{
    out_ptr0[0] = in_ptr0[0];
}
"""


def test_what_folds_constants_writes_no_buffer_of_the_graph() -> None:
    """Both have a buf0: the kernel that folds was linked to the node of the matrix product."""
    code = parse_cpp_wrapper(FOLDS, Path("output_code.cpp"))
    assert [launch.kernel for launch in code.launches] == ["cpp_fused_relu_0"]
    steps = read_steps(code)
    assert [step.subgraph for step in steps.steps] == [FOLDING, None]
    assert code.folds("cpp_fused_relu_0")
    assert [step.name for step in steps.writers["buf0"]] == ["aoti_torch_cpu_mm_out"]
    assert [step.name for step in steps.reachers[f"{FOLDING}_buf0"]] == ["cpp_fused_relu_0"]


def test_the_ir_of_what_folds_constants_is_read_beside_that_of_the_graph(tmp_path: Path) -> None:
    """Torch writes the one over the other, and both have an op0 that writes buf0."""
    node = (
        "op0: SchedulerNode(ComputedBuffer)\nop0.writes = [MemoryDep('buf0', c0, {c0: 4})]\n"
        "op0.unmet_dependencies = []\nop0.met_dependencies = []\n"
    )
    for name in ("ir_post_fusion.txt", f"ir_post_fusion.{FOLDING}.txt"):
        (tmp_path / name).write_text(node)
    (tmp_path / "output_code.cpp").write_text(FOLDS)
    found = graph_dir(tmp_path)
    assert found is not None
    graph = read_graph(found)
    assert [node.name for node in graph.post] == ["op0", f"{FOLDING}_op0"]
    assert [access.name for node in graph.post for access in node.writes] == ["buf0", f"{FOLDING}_buf0"]
    assert links(graph).nodes[f"{FOLDING}_op0"].kernel == "cpp_fused_relu_0"


def test_what_a_profile_shows_of_a_call_is_no_call_and_the_call_keeps_its_lists() -> None:
    """Torch 2.15 makes values of all arguments for a profile (`cpp.enable_kernel_profile`)."""
    code = call_in("""
    AtenTensorHandle buf0_handle;
    {
    C10IValueHandle tmp_aoti_torch_cpu_convolution_input_0 = nullptr;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_tensor_to_ivalue(arg0_1, &tmp_aoti_torch_cpu_convolution_input_0));
    RAIIC10IValueHandle RAII_tmp_aoti_torch_cpu_convolution_input_0(tmp_aoti_torch_cpu_convolution_input_0);
    C10IValueHandle tmp_aoti_torch_cpu_convolution_scalar_0 = nullptr;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_int64_to_ivalue(0, &tmp_aoti_torch_cpu_convolution_scalar_0));
    RAIIC10IValueHandle RAII_tmp_aoti_torch_cpu_convolution_scalar_0(tmp_aoti_torch_cpu_convolution_scalar_0);
    std::vector<C10IValueHandle> aoti_torch_cpu_convolution_inputs_({tmp_a, tmp_b});
    RAIIAtenRecordFunctionHandle record_f_("f", nullptr, aoti_torch_cpu_convolution_inputs_);
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_convolution(arg0_1, arg0_1, &temporary_reference(arg0_1.get()),
        static_cast<const int64_t*>(std::array<int64_t, 2>{1L, 3L}.data()), 2, 0, &buf0_handle));
    }
    RAIIAtenTensorHandle buf0(buf0_handle);
    assert_size_stride(buf0, {2L, 8L}, {8L, 1L}, "op", cached_torch_dtype_bfloat16, "torch.bfloat16");
    output_handles[0] = buf0.release();""")
    assert not code.problems
    (call,) = code.externs
    assert (call.target, call.outputs) == ("aoti_torch_cpu_convolution", ("buf0",))
    assert call.args == ("arg0_1", "arg0_1", "arg0_1", "[1, 3]", "0")
    (layout,) = (one.layout for one in code.allocations if one.name == "buf0")
    assert layout is not None
    assert (layout.dtype, layout.size, layout.stride) == ("bfloat16", (2, 8), (8, 1))


def test_a_branch_by_the_number_of_a_selector_is_a_branch() -> None:
    """Torch 2.15 prints a conditional as a switch: without its steps, a bench file ran all branches."""
    code = call_in("""
    int64_t buf1_scalar;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_int64(arg0_1, &buf1_scalar));
    if (buf1_scalar == 0) {
        auto buf2 = std::move(arg0_1);
    } else if (buf1_scalar == 1) {
        auto buf2 = std::move(arg0_1);
    } else {
        auto buf2 = std::move(arg0_1);
    }
    if (static_cast<int64_t>(s77 > 3L) == 0) {
        auto buf3 = std::move(arg0_1);
    }""")
    assert not code.problems
    assert [(step.kind, step.condition) for step in code.steps if isinstance(step, Branch)] == [
        ("if", "buf1_scalar == 0"),
        ("elif", "buf1_scalar == 1"),
        ("else", ""),
        ("end", ""),
        ("if", "static_cast<int64_t>(s77 > 3L) == 0"),
        ("end", ""),
    ]
