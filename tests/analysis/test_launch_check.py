"""Launches against signatures: real Triton dumps fit, and what is changed in them is found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.launch_check import ASPECTS, check_launches
from inductor_probe.model.code import Launch
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.kernels import LaunchCheck
from inductor_probe.reader.output_code import parse_output_code
from inductor_probe.report.words.remarks import sentence
from tests.dumps import every_graph, read_at

Read = Callable[..., CompiledGraph]
LAYER_NORM = "torch-2.11.0-cuda/layernorm_grad"


def with_launch(graph: CompiledGraph, at: int, *args: str) -> CompiledGraph:
    assert graph.code is not None
    launches = list(graph.code.launches)
    launches[at] = replace(launches[at], args=args)
    return replace(graph, code=replace(graph.code, launches=tuple(launches)))


def edited(graph: CompiledGraph, old: str, new: str) -> CompiledGraph:
    """Read the graph again with its wrapper's text changed at one place."""
    path = graph.folder.path / "output_code.py"
    text = path.read_text()
    assert text.count(old) == 1, text.count(old)
    return replace(graph, code=parse_output_code(text.replace(old, new), path))


def said(check: LaunchCheck) -> list[str]:
    return [f"{remark.number('aspect')}: {sentence(remark, remark.subject.name)}" for remark in check.remarks]


@every_graph
def test_launches_of_every_fixture_fit(folder: Path) -> None:
    check = check_launches(read_at(folder))
    assert check.fits, said(check)


@pytest.fixture(scope="module")
def cuda_graphs(corpus: Path) -> list[CompiledGraph]:
    folders = sorted(path.parent for path in corpus.glob("*cuda*/**/torchinductor/*/output_code.py"))
    assert folders
    return [read_at(folder) for folder in folders]


def test_launches_of_the_corpus_fit_and_every_aspect_was_compared(cuda_graphs: list[CompiledGraph]) -> None:
    compared: Counter[str] = Counter()
    for graph in cuda_graphs:
        check = check_launches(graph)
        assert check.fits, said(check)
        compared.update(dict(check.compared))
    assert all(compared[aspect] > 0 for aspect in ASPECTS), compared


def swaps(launch: Launch) -> Iterator[tuple[str, ...]]:
    for i, first in enumerate(launch.args):
        for j, second in enumerate(launch.args[i + 1 :], i + 1):
            if first != second:
                args = list(launch.args)
                args[i], args[j] = second, first
                yield tuple(args)


def test_nearly_every_swap_of_two_arguments_is_found(cuda_graphs: list[CompiledGraph]) -> None:
    """What remains: nodes that read both first in one step, and a result taken for an input of its kernel."""
    found: Counter[bool] = Counter()
    for graph in cuda_graphs:
        assert graph.code is not None
        for at, launch in enumerate(graph.code.launches):
            for args in swaps(launch):
                found[not check_launches(with_launch(graph, at, *args)).fits] += 1
    assert found[True] > 900
    assert found[False] / found.total() < 0.03, found


def test_every_wrong_size_is_found(cuda_graphs: list[CompiledGraph]) -> None:
    for graph in cuda_graphs:
        assert graph.code is not None
        names = {kernel.name: [arg.name for arg in kernel.args] for kernel in graph.code.kernels}
        for at, launch in enumerate(graph.code.launches):
            for position, name in enumerate(names[launch.kernel]):
                if name.endswith("numel") and re.fullmatch(r"\d+", launch.args[position]):
                    args = list(launch.args)
                    args[position] = str(int(args[position]) + 16)
                    check = check_launches(with_launch(graph, at, *args))
                    assert any(remark.number("aspect") == "numel" for remark in check.remarks), (launch, name)


def test_a_remark_says_the_line_and_what_is_wrong_there(read: Read) -> None:
    graph = edited(read(LAYER_NORM), "buf0, 1024, 768, stream", "buf0, 1024, 704, stream")
    check = check_launches(graph)
    assert {remark.number("aspect") for remark in check.remarks} == {"numel"}
    texts = said(check)
    assert texts[0] == "numel: r0_numel is passed 704, but the kernel was generated for 768"
    assert any("it is passed xnumel=1024, r0_numel=704, but op" in text for text in texts)
    line = (
        (graph.folder.path / "output_code.py").read_text().split("\n")[check.remarks[0].evidence[0].first - 1]
    )
    assert ".run(" in line
    assert {(remark.kind, remark.knowledge) for remark in check.remarks} == {("hazard", "read")}
    first = check.remarks[0]
    assert sentence(first) == f"{first.evidence[0]}: {first.subject.name}: {texts[0].removeprefix('numel: ')}"


def test_an_argument_too_few(read: Read) -> None:
    graph = read(LAYER_NORM)
    assert graph.code is not None
    launch = graph.code.launches[0]
    check = check_launches(with_launch(graph, 0, *launch.args[:-1]))
    assert said(check) == [
        f"count: it takes {len(launch.args)} arguments, but is passed {len(launch.args) - 1}"
    ]


def test_a_number_for_a_pointer(read: Read) -> None:
    graph = read(LAYER_NORM)
    assert graph.code is not None
    args = graph.code.launches[0].args
    texts = said(check_launches(with_launch(graph, 0, "7", *args[1:])))
    assert texts[0].startswith("type: ")
    assert "is a pointer (*fp32) and is passed the number 7" in texts[0]


def test_another_dtype(read: Read) -> None:
    graph = read(LAYER_NORM)
    text = (graph.folder.path / "output_code.py").read_text()
    start = text.index("'signature': {'in_out_ptr0': '*fp32'")
    graph = replace(
        graph,
        code=parse_output_code(
            text[:start] + text[start:].replace("'*fp32'", "'*bf16'", 1), graph.folder.path / "output_code.py"
        ),
    )
    assert any("in_out_ptr0 is *bf16 and is passed" in each for each in said(check_launches(graph)))


def test_a_view_that_is_not_aligned_as_promised(read: Read) -> None:
    graph = read(LAYER_NORM)
    assert graph.code is not None
    launch = graph.code.launches[0]
    buffer = launch.args[0]
    for offset, fits in ((4, True), (3, False)):
        view = f"reinterpret_tensor({buffer}, (8, 128, 1), (128, 1, 1), {offset})"
        texts = said(check_launches(with_launch(graph, 0, view, *launch.args[1:])))
        assert any(f"starts at byte {4 * offset} of its storage" in text for text in texts) is not fits


def test_a_size_beyond_32_bits(read: Read) -> None:
    graph = read(LAYER_NORM)
    assert graph.code is not None
    args = graph.code.launches[0].args
    texts = said(check_launches(with_launch(graph, 0, *args[:-1], str(1 << 31))))
    assert "index width: r0_numel is int32, but is passed 2147483648" in texts


def test_a_grid_without_its_size(read: Read) -> None:
    path_graph = read(LAYER_NORM)
    text = (path_graph.folder.path / "output_code.py").read_text()
    assert "'grid_type': 'Grid1D'" in text
    code = parse_output_code(
        text.replace("'grid_type': 'Grid1D'", "'grid_type': 'Grid2D'"),
        path_graph.folder.path / "output_code.py",
    )
    texts = said(check_launches(replace(path_graph, code=code)))
    assert "grid: its grid Grid2D needs ynumel, which is not passed" in texts


def test_the_grid_of_a_template_covers_its_output(cuda_graphs: list[CompiledGraph]) -> None:
    (graph,) = [graph for graph in cuda_graphs if "mm_epilogue" in str(graph.folder.path)]
    assert graph.code is not None
    (at,) = [at for at, launch in enumerate(graph.code.launches) if "_tem_" in launch.kernel]
    args = graph.code.launches[at].args
    assert args[-3:] == ("32", "1", "1")
    texts = said(check_launches(with_launch(graph, at, *args[:-3], "31", "1", "2")))
    assert texts == [
        "grid: its grid has 31 blocks in x, but 256x256 in tiles of 64x32 needs 32",
        "grid: its grid has 2 blocks in y and z, but its output holds 1 matrix",
    ]


def test_symbolic_sizes_are_compared(cuda_graphs: list[CompiledGraph]) -> None:
    graphs = [graph for graph in cuda_graphs if "dynamic_shapes" in str(graph.folder.path)]
    (graph,) = graphs
    assert graph.code is not None
    args = graph.code.launches[0].args
    check = check_launches(with_launch(graph, 0, *args[:-1], "s77"))
    assert any(text.startswith("numel") and "s77" in text for text in said(check))
