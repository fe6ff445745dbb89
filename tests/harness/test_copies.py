"""Which copies of a bench file nobody edited: as its own text says, for every form of wrapper and kernel."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from inductor_probe.bench_file.sections import cut
from inductor_probe.bench_file.source import bench_source
from inductor_probe.harness.bench import Bench
from inductor_probe.harness.references import unedited
from inductor_probe.variants.bench_variants import add_variant
from inductor_probe.variants.registry import apply_rewrite
from tests.conftest import DUMPS, python_graph_dirs

GRAPHS = [path / "output_code.py" for path in python_graph_dirs()]


def bench(path: Path, source: str, kernels: tuple[str, ...]) -> Bench:
    """A bench file as far as names go: nothing of it is run."""
    path.write_text(source, encoding="utf-8")
    names = {
        getattr(target, "id", "")
        for each in ast.parse(source).body
        for target in (each.targets if isinstance(each, ast.Assign) else ())
    }
    names |= {each.name for each in ast.parse(source).body if isinstance(each, ast.FunctionDef)}
    namespace = {**dict.fromkeys(names), "__file__": str(path)}
    if "ABLATIONS" in names:
        namespace["ABLATIONS"] = {}
    return Bench({**namespace, "GRAPH": "g", "KERNELS": list(kernels), "NO_REFERENCE": ""})


def source_of(code: Path) -> tuple[str, tuple[str, ...]]:
    text = code.read_text()
    return bench_source(text, None, code.parent.name), cut(text).names


@pytest.mark.parametrize("code", GRAPHS[::3], ids=lambda path: str(path.relative_to(DUMPS))[:60])
def test_all_copies_of_a_fresh_file_are_unedited(code: Path, tmp_path: Path) -> None:
    source, kernels = source_of(code)
    subject = bench(tmp_path / "b.py", source, kernels)
    assert unedited(subject) == {f"{name}_v2" for name in ("call", *kernels)}


def test_an_edit_shows_in_the_kernel_and_in_the_wrapper_that_launches_it(tmp_path: Path) -> None:
    code = next(path for path in GRAPHS if "torch-2.13.0-cpu/aa_separable_cl" in str(path))
    source, kernels = source_of(code)
    first, *others = kernels
    start = source.index(f"{first}_v2 = ")
    edited = source[:start] + source[start:].replace("auto tmp0", "auto  tmp0", 1)
    assert unedited(bench(tmp_path / "b.py", edited, kernels)) == {f"{name}_v2" for name in others}


def test_an_edit_of_the_wrapper_leaves_kernels_alone(tmp_path: Path) -> None:
    code = next(path for path in GRAPHS if "torch-2.13.0-cpu/hflip_cl" in str(path))
    source, kernels = source_of(code)
    edited = source.replace("class Runner_v2:", "class Runner_v2:\n    mine = 1")
    assert edited != source
    assert unedited(bench(tmp_path / "b.py", edited, kernels)) == {f"{name}_v2" for name in kernels}


def test_a_copy_that_was_asked_for_is_one_as_long_as_nobody_edits_it(tmp_path: Path) -> None:
    code = next(path for path in GRAPHS if "torch-2.13.0-cpu/hflip_cl" in str(path))
    source, kernels = source_of(code)
    (kernel,) = kernels
    source = add_variant(source, f"{kernel}_v3")
    source = apply_rewrite(source, f"index:{kernel} int32")
    found = unedited(bench(tmp_path / "b.py", source, kernels))
    assert f"{kernel}_v3" in found
    assert f"{kernel}_v4" not in found


def test_without_its_text_nothing_is_known() -> None:
    assert (
        unedited(Bench({"GRAPH": "g", "KERNELS": ["k"], "NO_REFERENCE": "", "k": None, "k_v2": None}))
        == set()
    )
