"""Wrappers in C++ as Python: text fixtures of C++ wrappers on a CPU and on a GPU."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from inductor_probe.bench_file.python_form import code_as_python
from inductor_probe.bench_file.source import bench_source
from inductor_probe.errors import UnreadableError
from inductor_probe.model.manifest import InputFact
from tests.dumps import graph_in

CPU, GPU = "torch-2.13.0-cpu-programs", "torch-2.11.0-cuda"
FACTS = {
    f"{CPU}/aoti": (
        InputFact("arg3_1", "tensor", None, (6, 32), (32, 1), 0, "float32", "cpu"),
        InputFact("arg4_1", "tensor", None, (16,), (1,), 0, "float32", "cpu"),
    ),
    f"{GPU}/aoti": (
        InputFact("arg4_1", "tensor", None, (4, 3, 10, 12), (360, 120, 12, 1), 0, "float32", "cuda:0"),
        InputFact("arg5_1", "tensor", None, (4,), (1,), 0, "float32", "cuda:0"),
    ),
}
PROGRAMS = [f"{CPU}/{name}" for name in ("aoti", "cpp_operators", "cpp_wrapper")]
PROGRAMS += [f"{GPU}/{name}" for name in ("aoti", "cpp_wrapper")]


def texts_in(folder: Path) -> dict[str, str | None]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def python_of(program: str) -> str:
    folder = graph_in(program)
    code, path, of_cpp = code_as_python(texts_in(folder), folder, FACTS.get(program, ()))
    assert of_cpp
    assert path.parent == folder
    return code


def call_of(program: str) -> str:
    code = python_of(program)
    (call,) = (
        node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef) and node.name == "call"
    )
    return ast.unparse(call)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_launch_is_there_in_order_and_names_are_bound_before(program: str) -> None:
    folder = graph_in(program)
    code = python_of(program)
    bench = bench_source(
        code, texts_in(folder)["fx_graph_runnable.py"], folder.name, FACTS.get(program, ()), of_cpp=True
    )
    compile(bench, "bench", "exec")
    assert "WRAPPER_IN_CPP = True" in bench
    cpp = next(path for path in folder.glob("output_code.*")).read_text()
    launched = re.findall(r"^ +(?:call_)?((?:cpp|triton)_\w+)\(", cpp, re.MULTILINE)
    called = re.findall(r"^ +((?:cpp|triton)_\w+?)(?:\.run)?\(", call_of(program), re.MULTILINE)
    assert called
    assert called == [name for name in launched if name in called]
    assigned = {"args", "torch", "shim", "range", "stand_ins", "get_raw_stream", "reinterpret_tensor"}
    assigned |= {
        node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name) and not is_load(node)
    }
    assigned |= {node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}
    used = {
        node.id
        for node in ast.walk(ast.parse(call_of(program)))
        if isinstance(node, ast.Name) and is_load(node)
    }
    assert used <= assigned


def is_load(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def test_loops_and_branches_are_pythons() -> None:
    loop = call_of(f"{CPU}/cpp_operators")
    assert "    while True:\n        while_loop_cond_graph_0_arg0_1 = buf6\n" in loop
    assert "        if not buf5_cond_result_scalar:\n            break\n" in loop
    branch = call_of(f"{CPU}/cpp_wrapper")
    assert "    if buf14_scalar:\n        true_graph_0_arg1_1 = buf8\n" in branch
    assert "    else:\n        false_graph_0_arg1_1 = buf8\n" in branch
    assert "    buf17 = empty_strided_cpu((s77, 8), (8, 1), torch.float32)\n" in branch


def test_an_operator_that_is_called_by_number_returns_random_values() -> None:
    call = call_of(f"{CPU}/aoti")
    assert (
        "buf4, = stand_ins({'buf4': empty_strided_cpu((s77, 16), (16, 1), torch.float32)}).values()" in call
    )
    folder = graph_in(f"{CPU}/aoti")
    bench = bench_source(python_of(f"{CPU}/aoti"), texts_in(folder)["fx_graph_runnable.py"], "g", of_cpp=True)
    assert call.count("stand_ins(") == 1
    assert "NO_REFERENCE = 'the wrapper in C++ runs an operator by number" in bench


def test_triton_kernels_are_launched_on_a_stream_with_their_sizes() -> None:
    assert "triton_poi_fused_2.run(buf4, 4, stream=stream0)" in call_of(f"{GPU}/aoti")
    assert "triton_poi_fused_2 = async_compile.triton('triton_poi_fused_2', '''" in python_of(f"{GPU}/aoti")


def test_a_kernel_that_is_launched_again_has_its_size_of_then() -> None:
    """G2: AOTInductor with a dynamic size had no bench file where a kernel is launched twice."""
    folder, facts = graph_in(f"{GPU}/aoti"), FACTS[f"{GPU}/aoti"]
    texts = texts_in(folder)
    launch = "    call_triton_poi_fused_2(buf4, {}, this->device_idx_, stream, kernels, this->cubin_dir_);\n"
    by_name = launch.format("triton_poi_fused_2_xnumel")
    again = f"""\
    int64_t triton_poi_fused_2_xnumel = 4L*s77;
{by_name}    triton_poi_fused_2_xnumel = 2L*s77;
{by_name}"""
    before = texts["output_code.cpp"] or ""
    texts["output_code.cpp"] = before.replace(launch.format("4L"), again)
    assert texts["output_code.cpp"] != before
    code, _, of_cpp = code_as_python(texts, folder, facts)
    launches = re.findall(r"triton_poi_fused_2\.run\((.*)\)", code)
    assert launches == ["buf4, 4*s77, stream=stream0", "buf4, 2*s77, stream=stream0"]
    compile(bench_source(code, texts["fx_graph_runnable.py"], "g", facts, of_cpp=of_cpp), "bench", "exec")


def test_inputs_and_constants_are_made_by_their_layouts() -> None:
    code = python_of(f"{CPU}/aoti")
    assert "layers_0_weight = rand_strided((16, 32), (32, 1), device='cpu', dtype=torch.float32)" in code
    assert "arg3_1 = rand_strided((6, 32), (32, 1), device='cpu', dtype=torch.float32)" in code
    assert "return [arg3_1, arg4_1]" in code


def test_a_size_that_nothing_says_is_a_sentence() -> None:
    folder = graph_in(f"{CPU}/aoti")
    with pytest.raises(UnreadableError, match="does not say what the size s77 was"):
        code_as_python(texts_in(folder), folder)


def test_a_statement_that_is_not_understood_is_a_sentence() -> None:
    folder = graph_in(f"{CPU}/aoti")
    texts = texts_in(folder)
    texts["output_code.cpp"] = (texts["output_code.cpp"] or "").replace(
        "cpp_fused_flip_0((const", "mystery<<3>>((const"
    )
    with pytest.raises(UnreadableError, match=r"output_code\.cpp:\d+: not all of this wrapper is understood"):
        code_as_python(texts, folder, FACTS[f"{CPU}/aoti"])


def test_python_stays_as_it_is() -> None:
    texts: dict[str, str | None] = {"output_code.py": "call = None\n"}
    assert code_as_python(texts, Path("g")) == ("call = None\n", Path("g/output_code.py"), False)
