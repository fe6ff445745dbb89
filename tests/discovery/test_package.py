"""A `.pt2` file by its path: a package of AOTInductor is read, and anything else is told in a sentence.

The packages here are put together as torch/export/pt2_archive/_package.py does, from the code of a real one.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.analysis.check import check_graph
from inductor_probe.discovery.discover import dump_at, find
from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.reader.debug_dir import read_graph, texts_of
from tests.conftest import DUMPS, Ran

MODEL = "m/data/aotinductor/model"


def code() -> str:
    (path,) = DUMPS.glob("torch-2.13.0-cpu-programs/aoti/run_*/torchinductor/*/output_code.cpp")
    return path.read_text()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wrapper, _, kernels = code().partition("\n// Triton kernels are embedded")
    information = {
        "cpp_fused_flip_0:1": {"stack_traces": [], "post_grad_nodes": ["rev"], "pre_grad_nodes": []}
    }
    path = tmp_path / "m.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/archive_format", "pt2")
        archive.writestr(f"{MODEL}/c1.kernel.cpp", f"// Triton kernels are embedded{kernels}")
        archive.writestr(f"{MODEL}/c2.wrapper.cpp", wrapper)
        archive.writestr(f"{MODEL}/c2.wrapper.so", b"\x7fELF")
        archive.writestr(f"{MODEL}/c2.wrapper_metadata.json", json.dumps({"AOTI_DEVICE_KEY": "cpu"}))
        archive.writestr(f"{MODEL}/kernel_information.json", json.dumps(information))
        archive.writestr("m/data/weights/weights_config.json", "{}")
    return path


def test_wrapper_kernels_and_constants_of_a_package_are_read(package: Path) -> None:
    target = dump_at(package)
    assert target is not None
    assert target.graph is not None or len(target.run.graphs) == 1
    graph = read_graph(target.run.graphs[0])
    assert graph.name == "model"
    assert not graph.problems
    assert graph.code is not None
    assert [launch.kernel for launch in graph.code.launches] == list(graph.code.by_name)
    constants = {
        dict(item.layout.extras)["original_fqn"]: dict(item.layout.extras)["data_size"]
        for item in graph.code.allocations
        if item.kind == "constant" and item.layout
    }
    assert constants == {"layers.0.weight": "2048", "layers.0.bias": "64", "scale": "64"}
    assert graph.provenance is not None
    assert graph.provenance.kernels["cpp_fused_flip_0"] == ("rev",)
    checked = check_graph(graph, texts_of(graph))
    assert (checked.problems, checked.remarks, checked.unlinked) == ((), (), ())
    inputs = [item.layout for item in graph.code.allocations if item.kind == "input"]
    assert [(layout.dtype, layout.size) for layout in inputs if layout] == [
        ("float32", ("s77", 32)),
        ("float32", (16,)),
    ]


def test_verbs_take_a_package_and_bench_files_are_made_outside_of_it(
    probe: Callable[..., Ran], package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = probe("check", package)
    assert ran.status == 0
    assert ran.out.startswith("whole: 1 graph, 0 nodes, 3 kernels")
    assert "layers.0.weight f32[16, 32]" in probe("show", package).out
    ran = probe("bench-kernel", package)
    assert ran.status == 2
    assert "a bench file, and your edits in it, would not be kept there" in ran.err


def test_a_kernel_of_a_package_becomes_a_program(
    probe: Callable[..., Ran], package: Path, tmp_path: Path
) -> None:
    target = tmp_path / "flip.cpp"
    ran = probe("export-cpp", "cpp_fused_flip_0", package, "--size", "s77=8", "-o", target)
    assert ran.status == 0, ran.err
    text = target.read_text()
    assert "of output_code.cpp." in text
    assert 'extern "C"  void  cpp_fused_flip_0(' in text
    assert "cpp_fused_flip_0(in_ptr0, out_ptr0, ks0);" in text


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (None, "cannot read"),
        ({"ep/models/model.json": "{}"}, "torch.export.save"),
        ({"archive/data.pkl": "x"}, r"no C\+\+ below data/aotinductor"),
        ({f"{MODEL}/../../../../evil.cpp": "x"}, r"no C\+\+ below data/aotinductor"),
    ],
)
def test_what_is_no_package_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: dict[str, str] | None, sentence: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "other.pt2"
    path.write_text("no zip")
    if members is not None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in members.items():
                archive.writestr(name, text)
    with pytest.raises(UnreadableError, match=sentence):
        dump_at(path)
    assert not (tmp_path / "evil.cpp").exists()


def test_a_package_that_is_not_there_is_no_name_of_a_run(tmp_path: Path) -> None:
    """The answer was that there is no run, and how to dump one."""
    with pytest.raises(NotFoundError, match=r"model\.pt2 does not exist"):
        find("model.pt2", tmp_path)


def test_code_of_another_torch_is_read_as_far_as_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "old.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/aotinductor/model/c1.cpp", code().replace("run_impl(", "run_it("))
    target = dump_at(path)
    assert target is not None
    graph = read_graph(target.run.graphs[0])
    assert [problem.message for problem in graph.problems] == [
        "no inductor_entry_impl and no run_impl in the C++ wrapper"
    ]
    assert graph.code is not None
    assert len(graph.code.kernels) == 3
