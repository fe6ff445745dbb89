"""Wrappers in C++, of `cpp_wrapper` and AOTInductor, on a CPU and a GPU: all they say is read and linked."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.links import links
from inductor_probe.analysis.pages import graph_page
from inductor_probe.analysis.summary import summarise
from inductor_probe.model.code import OutputCode
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.reader.cpp_wrapper import parse_cpp_wrapper
from inductor_probe.reader.debug_dir import read_graph, read_run, texts_of
from tests.conftest import DUMPS

DUMPED = [
    "*-cpu-programs/cpp_wrapper",
    "*-cpu-programs/cpp_operators",
    "*-cpu-programs/aoti",
    "*-cuda/cpp_wrapper",
    "*-cuda/aoti",
]


def read(pattern: str) -> tuple[CompiledGraph, OutputCode]:
    (path,) = DUMPS.glob(f"{pattern}/run_*")
    graph = read_graph(read_run(path).graphs[0])
    assert graph.code is not None
    return graph, graph.code


@pytest.mark.parametrize("pattern", DUMPED)
def test_every_line_is_accounted_for_and_every_node_linked(pattern: str) -> None:
    graph, code = read(pattern)
    checked = check_graph(graph, texts_of(graph))
    assert (checked.problems, checked.unlinked, checked.remarks) == ((), (), ())
    assert {launch.kernel for launch in code.launches} == set(code.by_name)
    assert all(kernel.args and kernel.details for kernel in code.kernels)
    assert not any(file.counted or file.unread for file in checked.files)


@pytest.mark.parametrize("pattern", DUMPED)
def test_inputs_and_results_are_those_of_the_fx_graph(pattern: str) -> None:
    graph, code = read(pattern)
    assert graph.fx is not None
    assert code.inputs == tuple(node.name for node in graph.fx.inputs)
    assert len(code.returns) == len(graph.fx.outputs)


def test_statements_are_put_as_a_python_wrapper_has_them() -> None:
    _, code = read("*-cpu-programs/cpp_wrapper")
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
    graph, code = read("*-cpu-programs/cpp_operators")
    calls = {call.target: call for call in code.externs}
    assert calls["fixtures::twice"].args[1:] == ("3",)
    kernels = {link.kernel for link in links(graph).nodes.values()}
    assert {"fixtures::twice", "fixtures::bump"} <= kernels
    (output,) = calls["fixtures::twice"].outputs
    assert output.startswith("buf")
    _, packaged = read("*-cpu-programs/aoti")
    (proxy,) = (call for call in packaged.externs if call.target.startswith("aoti_torch_proxy"))
    assert len(proxy.outputs) == 1


def test_constants_of_a_package_have_the_names_of_the_module() -> None:
    graph, code = read("*-cpu-programs/aoti")
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
