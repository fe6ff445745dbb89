"""Annotated kernels: still the same program, and every claim in them holds."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.analysis.annotation.annotate import annotate
from inductor_probe.errors import NotFoundError
from inductor_probe.model.code import Kernel
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]

_COMMENT = re.compile(r"  (?://|#) (?P<node>\w*?(?:op|buf)\d+)(?P<rest>[^\n]*)$")
_FUNCTIONS = {
    "exp": ("exp", "expm1", "sigmoid"),
    "erf": ("erf",),
    "rsqrt": ("rsqrt",),
    "sqrt": ("sqrt", "rsqrt"),
    "floor": ("floor", "floor_to_int", "floordiv"),
    "tanh": ("tanh",),
    "sin": ("sin",),
    "cos": ("cos",),
}


def kernels_of(graph: CompiledGraph) -> list[Kernel]:
    assert graph.code is not None
    return list(graph.code.kernels)


def leaves_of(graph: CompiledGraph) -> dict[str, SchedulerNode]:
    return {leaf.name: leaf for top in graph.nodes for leaf in top.leaves()}


def line(text: str, part: str) -> str:
    (found,) = [line for line in text.splitlines() if part in line]
    return found


def without_comments(text: str, mark: str) -> list[str]:
    """The lines of the kernel as it was: comments, directives and what stands above removed."""
    lines = []
    for at in text.splitlines():
        if at.startswith((f"{mark} ", "#line")) or at.lstrip().startswith(f"{mark} loop nest") or at == mark:
            continue
        lines.append(re.sub(rf" +{mark} (?:\w*(?:op|buf)\d|reads|writes|adds|was ).*$", "", at).rstrip())
    return lines


def check(graph: CompiledGraph) -> None:
    """What must hold for the annotation of any kernel."""
    leaves = leaves_of(graph)
    for kernel in kernels_of(graph):
        text = annotate(graph, kernel.name)
        if kernel.backend == "triton":
            assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(kernel.source))
        else:
            plain = [at.rstrip() for at in kernel.source.strip("\n").splitlines()]
            plain = [at if "#include" not in at else "#include" for at in plain]
            told = [at if "#include" not in at else "#include" for at in without_comments(text, "//")]
            assert told == plain
        for at in text.splitlines():
            found = _COMMENT.search(at)
            if not found or "AMBIGUOUS" in found["rest"] or " | " in found["rest"]:
                continue
            leaf = leaves[found["node"]]
            if leaf.body is None:
                continue
            if written := re.match(r" (?:writes|adds to) (\w+)", found["rest"]):
                names = [name for buffer in leaf.outputs for name in (buffer.name, *buffer.mutations)]
                assert written[1] in names
            if (
                read := re.match(r"(?: \(and [^)]*\))? reads (\w+)(?! or)", found["rest"])
            ) and " or " not in found["rest"]:
                assert read[1] in {dep.name for dep in leaf.reads}, at
            operations = {op.target for block in leaf.body.blocks for op in block.ops}
            for name, may_be in _FUNCTIONS.items():
                if re.search(rf"(?:\.|std::|libdevice\.|tl_math\.){name}\(", at):
                    assert operations & {f"ops.{operation}" for operation in may_be}, at


@every_graph
def test_annotations_of_every_fixture_hold(folder: Path) -> None:
    check(read_at(folder))


def test_stores_name_the_buffer_behind_memory_that_several_share(read: Read) -> None:
    graph = read("torch-2.2.2-cpu/inplace_mutation")
    (kernel,) = kernels_of(graph)
    text = annotate(graph, kernel.name, line_directives=False)
    stores = [at.partition("  // ")[2] for at in text.splitlines() if ".store(" in at]
    assert stores
    assert all(re.match(r"buf\d+ writes (?:buf|arg)", at) for at in stores)


def test_values_inside_of_a_fused_kernel_are_told_apart(read: Read) -> None:
    graph = read("torch-2.11.0-cuda/layernorm_grad", 0)
    text = annotate(graph, "triton_per_fused_gelu_native_layer_norm_0")
    assert "# op3" in line(text, "tmp21 = libdevice.rsqrt(")
    assert "# op4 reads primals_2" in line(text, "tl.load(in_ptr1")
    assert "# op4" in line(text, "tmp27 = tmp25 + tmp26")  # its result stays inside of the kernel
    assert "# op5" in line(text, "libdevice.erf(")
    assert "# op3 writes buf3" in line(text, "tl.store(in_out_ptr0")
    assert "AMBIGUOUS" not in text
    assert "#   gelu => add_2, erf, mul_2, mul_3, mul_4" in text


def test_a_kernel_of_two_launches_tells_both(read: Read) -> None:
    graph = read("torch-2.11.0-cuda/layernorm_grad", 1)
    name = "triton_per_fused_gelu_gelu_backward_native_layer_norm_native_layer_norm_backward_2"
    text = annotate(graph, name)
    assert "op6 writes buf6 | op8 writes buf8" in line(text, "tl.store(out_ptr0")
    assert text.count("# launched at output_code.py:") == 2


def test_line_directives_go_to_the_user_and_back(read: Read) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    text = annotate(graph, "cpp_fused_flip_0").splitlines()
    away = [at for at, found in enumerate(text) if re.match(r'#line 34 "[^"]+\.py"', found)]
    assert away
    assert all(re.search(r"// op0\b.*:34$", text[at + 1]) for at in away)
    back = [
        (at, int(found[1]))
        for at, row in enumerate(text)
        if (found := re.match(r'#line (\d+) "cpp_fused_flip_0.cpp"', row))
    ]
    assert back
    assert all(number == at + 2 for at, number in back)
    assert "#line" not in annotate(graph, "cpp_fused_flip_0", line_directives=False).replace("// #line", "")


def test_text_of_the_dump_cannot_leave_its_comment(read: Read, tmp_path: Path) -> None:
    source = read("torch-2.13.0-cpu/hflip_cl").folder.path
    copy = tmp_path / "torch_compile_debug" / "run_x" / "torchinductor" / source.name
    shutil.copytree(source, copy)
    for name in ("fx_graph_transformed.py", "fx_graph_readable.py"):
        file = copy / name
        if file.exists():
            file.write_text(re.sub(r"code: [^\n]*", "code: evil \\\\\\\\", file.read_text()))
    text = annotate(read_at(copy), "cpp_fused_flip_0")
    assert "evil" in text
    assert not any(at.endswith("\\") for at in text.splitlines())


def test_an_unknown_kernel_offers_near_names(read: Read) -> None:
    with pytest.raises(NotFoundError, match="no kernel cpp_fused_flip_1") as caught:
        annotate(read("torch-2.13.0-cpu/hflip_cl"), "cpp_fused_flip_1")
    assert caught.value.hint is not None
    assert "cpp_fused_flip_0" in caught.value.hint


def test_a_library_function_has_no_text_to_annotate(read: Read) -> None:
    with pytest.raises(NotFoundError, match=r"extern_kernels\.addmm is a library function"):
        annotate(read("torch-2.13.0-cpu/mlp_train"), "extern_kernels.addmm")


@pytest.mark.compiles
@pytest.mark.parametrize("directives", [True, False])
@pytest.mark.parametrize("name", ["torch-2.13.0-cpu/aa_separable_cl", "torch-2.13.0-cpu/hflip_cl"])
def test_annotated_cpp_compiles(read: Read, tmp_path: Path, name: str, directives: bool) -> None:
    torch = find_spec("torch")
    compiler = shutil.which("g++")
    if compiler is None or torch is None or torch.origin is None:
        pytest.skip("needs g++ and torch's headers")
    include = Path(torch.origin).parent / "include"
    graph = read(name)
    (kernel,) = kernels_of(graph)
    text = annotate(graph, kernel.name, line_directives=directives)
    file = tmp_path / "kernel.cpp"
    file.write_text(text)
    told = re.search(r"compile: g\+\+ -c FILE (?P<flags>.*) -ITORCH/include", text)
    assert told is not None
    ran = subprocess.run(
        [compiler, *told["flags"].split(), "-fsyntax-only", "-I", str(include), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.compiles
def test_the_largest_shift_of_a_scalar_shift_belongs_to_the_shift(warm_here: None, tmp_path: Path) -> None:
    """`constexpr decltype(tmp2) max_shift` defines no value, and went to the node that made `tmp2`."""
    (tmp_path / "shift.py").write_text(
        "import torch\n"
        "def shift(x, s):\n"
        "    by = s.flip(0) + 1\n"
        "    return by, x.flip(0) >> by\n"
        "torch.compile(shift)(torch.arange(33), torch.arange(33))\n"
    )
    graph = ip.dump(tmp_path / "shift.py", out=tmp_path).graphs[0].generated
    (kernel,) = kernels_of(graph)
    text = annotate(graph, kernel.name, line_directives=False)
    assert "// op0" in line(text, "int64_t(tmp")  # the sum: both nodes are in one loop nest
    assert "// op1" in line(text, "max_shift = ")
    assert "// op1" in line(text, ">> max_shift")
