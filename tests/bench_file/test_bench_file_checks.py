"""Bench files of fixtures, compiled and checked as they are: each in a process of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inductor_probe.analysis.input_bounds import input_bounds
from inductor_probe.bench_file.source import bench_source
from inductor_probe.reader.debug_dir import graph_dir, read_graph
from tests.bench_file.checked import check
from tests.conftest import DUMPS
from tests.dumps import graph_in

pytestmark = pytest.mark.usefixtures("warm")

PROGRAMS = DUMPS / "torch-2.13.0-cpu-programs"


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("random_numbers", r"float>\(0\.3\)", "float>(0.31)"),
        ("conditional", r"float>\(([12])\.0\)", r"float>(\1.5)"),
        ("scatters", r"int64_t>\(3\)", "int64_t>(2)"),
    ],
)
def test_pristine_code_and_its_copies_are_right_and_an_edited_copy_is_not(
    name: str, before: str, after: str, tmp_path: Path
) -> None:
    folder = graph_in(PROGRAMS / name)
    graph = graph_dir(folder)
    assert graph is not None
    source = bench_source(
        (folder / "output_code.py").read_text(),
        (folder / "fx_graph_runnable.py").read_text(),
        folder.name,
        bounds=input_bounds(read_graph(graph)),
        readable=(folder / "fx_graph_readable.py").read_text(),
    )
    path = tmp_path / "output_code_bench.py"
    edited = re.sub(
        r"_v2 = async_compile.*?\'\'\'\)",
        lambda copy: re.sub(before, after, copy[0]),
        source,
        flags=re.DOTALL,
    )
    assert edited != source
    for text in (source, edited):
        path.write_text(text)
        checks = check(path)
        assert (checks["call"]["correct"], checks["call"]["remarks"]) == (True, [])
        copies = [each["correct"] for name, each in checks.items() if name != "call"]
        assert len(copies) >= 2
        assert all(copies) is (text is source)


@pytest.mark.compiles
def test_a_graph_with_collectives_is_judged_without_a_process_group(tmp_path: Path) -> None:
    """G3: "Could not resolve the process group", so that nothing of the graph was checked or timed."""
    folder = graph_in("torch-2.13.0-cpu-programs/tensor_parallel", "forward")
    runnable = (folder / "fx_graph_runnable.py").read_text()
    source = bench_source((folder / "output_code.py").read_text(), runnable, folder.name)
    assert "# Collectives of a stand-in process group of one rank: nothing is sent." in source
    path = tmp_path / "output_code_bench.py"
    path.write_text(source)
    checks = check(path)
    assert all(one["correct"] and not one["remarks"] for one in checks.values())
    assert {"call", "call_v2"} < {*checks}
