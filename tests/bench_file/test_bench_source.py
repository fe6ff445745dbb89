from __future__ import annotations

import ast
import re
import tarfile
from pathlib import Path

import pytest

from inductor_probe.bench_file.python_form import code_as_python
from inductor_probe.bench_file.sections import cut
from inductor_probe.bench_file.source import bench_source, core
from inductor_probe.errors import UnreadableError
from inductor_probe.harness import CORE, HEAD, ONLY_ON_GPU, ORDERS
from inductor_probe.model.manifest import InputFact
from tests.conftest import CORPUS, REPOSITORY, python_graph_dirs
from tests.dumps import graph_in


def made(folder: Path, facts: tuple[InputFact, ...] = ()) -> str:
    runnable = folder / "fx_graph_runnable.py"
    return bench_source(
        (folder / "output_code.py").read_text(),
        runnable.read_text() if runnable.exists() else None,
        folder.name,
        facts,
    )


def defined(source: str) -> set[str]:
    tree = ast.parse(source)
    names = {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    return names | {
        target.id
        for each in tree.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }


@pytest.mark.parametrize("folder", python_graph_dirs(), ids=lambda folder: "-".join(folder.parts[-5:-3]))
def test_every_dump_becomes_a_program_with_a_copy_of_everything(folder: Path) -> None:
    source = made(folder)
    compile(source, "output_code_bench.py", "exec")
    sections = cut((folder / "output_code.py").read_text())
    names = defined(source)
    assert {f"{name}_v2" for name in sections.names} <= names
    assert {"call", "call_v2", "make_inputs", "GRAPH", "KERNELS", "main"} <= names
    assert "inductor_probe." not in source
    assert "compiled_module_main" not in source
    assert str(folder) not in source


def test_a_program_in_cpp_has_a_stand_in_group_only_where_it_has_collectives() -> None:
    """Of each wrapper in C++ "collectives are those of a stand-in process group" was said."""
    for name, has in (("cpp_wrapper", False), ("cpp_operators", False), ("cpp_collectives", True)):
        folder = graph_in(f"torch-2.13.0-cpu-programs/{name}")
        texts = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
        code, path, of_cpp = code_as_python(texts, folder)
        assert of_cpp
        assert ("ONE_RANK" in defined(bench_source(code, None, name, path=path, of_cpp=True))) == has


def test_the_pristine_part_is_the_dump_to_the_letter() -> None:
    folder = graph_in("torch-2.13.0-cpu/hflip_cl")
    source, dumped = made(folder), (folder / "output_code.py").read_text()
    kernel = dumped[dumped.index("cpp_fused_flip_0 =") : dumped.index("async_compile.wait")].strip()
    wrapper = dumped[dumped.index("class Runner") : dumped.index("def get_args")].strip()
    assert kernel in source
    assert wrapper in source
    assert kernel.replace("cpp_fused_flip_0 =", "cpp_fused_flip_0_v2 =") in source


def test_the_copy_of_the_wrapper_launches_the_copies_of_the_kernels() -> None:
    for name in ("torch-2.13.0-cpu/mlp_train", "torch-2.2.2-cpu/inplace_mutation"):
        source = made(graph_in(name))
        kernels = cut((graph_in(name) / "output_code.py").read_text()).names
        body = source[source.index("The wrapper, with a copy") : source.index("The reference")]
        for kernel in kernels:
            assert len(re.findall(rf"\b{kernel}\(", body)) == len(re.findall(rf"\b{kernel}_v2\(", body)) > 0


def test_old_wrappers_have_a_function_and_new_ones_a_runner() -> None:
    assert "Runner_v2" not in defined(made(graph_in("torch-2.2.2-cpu/inplace_mutation")))
    assert {"Runner_v2", "runner_v2"} <= defined(made(graph_in("torch-2.13.0-cpu/hflip_cl")))


def test_triton_copies_agree_on_their_four_names() -> None:
    source = made(graph_in("torch-2.11.0-cuda/layernorm_grad"))
    copies = [name for name in defined(source) if name.startswith("triton_") and name.endswith("_v2")]
    assert copies
    for copy in copies:
        assert f"{copy} = async_compile.triton('{copy}'" in source
        assert f"'kernel_name': '{copy}'" in source
        assert f"\ndef {copy}(" in source
        assert f"{copy}.run(" in source


def test_the_core_is_pasted_whole_and_without_notes_to_our_tools() -> None:
    pasted = core(gpu=True)
    folder = REPOSITORY / "inductor_probe" / "harness"
    for stem in (*HEAD, *CORE):
        tree = ast.parse((folder / f"{stem}.py").read_text())
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        assert set(names) <= defined(f"{pasted.options}\n{pasted.code}")
    lines = [*pasted.imports, *pasted.torch_imports]
    assert "noqa" not in pasted.code
    assert "type: ignore" not in pasted.code
    assert not any("inductor_probe" in line for line in lines)
    assert len({line.split()[1] for line in lines}) == len(lines)


def test_the_core_needs_nothing_of_the_rest() -> None:
    folder = REPOSITORY / "inductor_probe" / "harness"
    for stem in (*HEAD, *CORE):
        imported = re.findall(r"from inductor_probe\.harness\.(\w+)", (folder / f"{stem}.py").read_text())
        assert set(imported) <= {*HEAD, *CORE, ORDERS}
    assert {*ONLY_ON_GPU} <= {*CORE}


def test_no_name_of_the_core_hides_another() -> None:
    """All of it is one module in a bench file."""
    pasted = core(gpu=True)
    for text in (pasted.options, pasted.code, pasted.orders):
        names = [
            node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
        ]
        assert len(names) == len(set(names))


def test_integers_come_from_the_range_that_was_recorded() -> None:
    folder = graph_in("torch-2.13.0-cpu/hflip_cl")
    fact = InputFact("arg0_1", "tensor", None, (1, 3, 4, 4), (48, 1, 12, 3), 5, "uint8", "cpu", 7, 9)
    source = made(folder, (fact,))
    line = "(1, 3, 4, 4), (48, 1, 12, 3), torch.uint8, 'cpu', low=7, high=9, offset=5)"
    assert line in source
    assert "low=0, high=255" in made(folder)


def test_symbolic_sizes_are_bound() -> None:
    folder = graph_in("torch-2.13.0-cpu/dynamic_shapes")
    assert "SIZES = {'s77': 33" in made(folder)
    names = ("arg0_1", "arg1_1", "arg2_1", "arg3_1", "arg4_1")
    facts = tuple(
        InputFact(name, "symint", 8)
        if name in ("arg0_1", "arg1_1", "arg3_1")
        else InputFact(name, "tensor", None, (8, 8), (8, 1), 0, "float32", "cpu")
        for name in names
    )
    assert "SIZES = {'s77': 8" in made(folder, facts)
    assert "SIZES = {'s77': 33" in made(folder, facts[:-1]), "facts that miss an input do not fit together"


@pytest.mark.parametrize(
    "name", ['it\'s "quoted"', "back\\slash", '"""', "new\nline", "model__0_inference_0.0"]
)
def test_the_name_of_a_folder_neither_ends_nor_changes_the_text_around_it(name: str) -> None:
    folder = graph_in("torch-2.13.0-cpu/hflip_cl")
    source = bench_source((folder / "output_code.py").read_text(), None, name)
    tree = ast.parse(source)
    assert name in (ast.get_docstring(tree, clean=False) or "")
    assert f"GRAPH = {name!r}" in source


def test_unknown_integer_ranges_are_narrow_and_said() -> None:
    text = (graph_in("torch-2.13.0-cpu/hflip_cl") / "output_code.py").read_text()
    source = bench_source(text.replace("dtype=torch.uint8)", "dtype=torch.int64)"), None, "g")
    assert "low=0, high=2)" in source
    assert "arg0_1: the dump does not record its range" in source


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("super().__init__()", "super().__init__(); self.c = torch.randn(3)", "constants"),
        ("class Repro", "class Other", "no module Repro"),
        ("class Repro", "class (", "not Python"),
    ],
)
def test_a_graph_without_a_reference_says_why(before: str, after: str, why: str) -> None:
    folder = graph_in("torch-2.13.0-cpu/hflip_cl")
    runnable = (folder / "fx_graph_runnable.py").read_text().replace(before, after)
    source = bench_source((folder / "output_code.py").read_text(), runnable, "g")
    compile(source, "output_code_bench.py", "exec")
    assert "class AtenGraph" not in source
    assert why in source[source.index("NO_REFERENCE = ") :].partition("\n")[0]
    assert "no fx_graph_runnable.py" in bench_source((folder / "output_code.py").read_text(), None, "g")


def test_a_file_that_is_cut_off_is_named_with_its_line() -> None:
    text = (graph_in("torch-2.13.0-cpu/hflip_cl") / "output_code.py").read_text()
    with pytest.raises(UnreadableError, match=r"output_code\.py:\d+: cut off"):
        bench_source(text[: text.index("''')")], None, "g")
    with pytest.raises(UnreadableError, match="not a whole"):
        bench_source(text[: text.index("async_compile.wait")], None, "g")
    with pytest.raises(UnreadableError, match="no call and no Runner"):
        bench_source(text[: text.index("class Runner")], None, "g")


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the full corpus is not at {CORPUS}")
def test_graphs_of_the_corpus_become_programs() -> None:
    """Every sixth of them: all take minutes, and each torch has dozens of each form."""
    count = 0
    for archive in sorted(CORPUS.glob("*.tar.gz")):
        with tarfile.open(archive) as tar:
            wanted = ("output_code.py", "fx_graph_runnable.py")
            texts = {
                member.name: tar.extractfile(member).read().decode()  # type: ignore[union-attr]
                for member in tar
                if member.name.endswith(wanted)
            }
        for name in [name for name in texts if name.endswith("output_code.py")][::6]:
            runnable = texts.get(name.replace("output_code.py", "fx_graph_runnable.py"))
            source = bench_source(texts[name], runnable, "g", path=name)
            compile(source, name, "exec")
            assert {f"{kernel}_v2" for kernel in cut(texts[name]).names} <= defined(source)
            count += 1
    assert count > 50
