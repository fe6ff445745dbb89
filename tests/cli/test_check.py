"""`probe check`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DUMPS, Ran


def checked(ran: Ran) -> dict[str, Any]:
    """Return the check that a command printed, with its problems."""
    output = json.loads(ran.out)
    return {**output["check"], "problems": output["problems"]}


def test_all_fixtures_are_whole(probe: Callable[..., Ran]) -> None:
    ran = probe("check", str(DUMPS), "--json")
    counts = checked(ran)
    assert counts["problems"] == []
    assert counts["unread_lines"] == counts["unlinked_nodes"] == 0
    assert len(counts["graphs"]) == len(list(DUMPS.glob("*/*/run_*/torchinductor/*/output_code.*")))
    assert ran.status == 0


def test_the_whole_corpus_is_whole(probe: Callable[..., Ran], corpus: Path) -> None:
    ran = probe("check", str(corpus), "--json")
    counts = checked(ran)
    assert counts["problems"] == []
    assert counts["unread_lines"] == counts["unlinked_nodes"] == 0
    assert len(counts["graphs"]) > 330
    assert ran.status == 0


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy a small run; return its only graph's folder."""
    run = tmp_path / "torch_compile_debug"
    shutil.copytree(DUMPS / "torch-2.13.0-cpu" / "hflip_cl", run)
    (graph,) = run.glob("run_*/torchinductor/model*")
    return graph


def test_an_aborted_compile_is_told(probe: Callable[..., Ran], copy: Path) -> None:
    (copy / "output_code.py").unlink()
    (copy / "ir_post_fusion.txt").write_text("")
    ran = probe("check", str(copy.parents[2]))
    assert ran.status == 1
    assert ran.out.startswith("not whole: 1 graph, ")
    assert "output_code.py does not exist" in ran.out
    assert "ir_post_fusion.txt:1: no node after fusion, though there are some before it" in ran.out


def test_lines_of_no_known_form_are_counted_and_named(probe: Callable[..., Ran], copy: Path) -> None:
    path = copy / "ir_post_fusion.txt"
    path.write_text(
        path.read_text().replace("op0.sizes = ", "op0.mood = serene\nwhat is this\nop0.sizes = ", 1)
    )
    ran = probe("check", str(copy), "--json")
    assert ran.status == 1
    counts = checked(ran)
    assert counts["unread_lines"] == 1
    assert [problem["message"] for problem in counts["problems"]] == [
        "not understood: what is this",
        "unknown field op0.mood = serene",
    ]
    assert counts["problems"][0]["span"]["path"] == str(path)
    assert path.read_text().split("\n")[counts["problems"][0]["span"]["first"] - 1] == "what is this"


def test_each_kind_of_file_says_what_was_read_and_what_was_checked(
    probe: Callable[..., Ran], copy: Path
) -> None:
    ran = probe("check", copy)
    first, *rest = ran.out.splitlines()
    assert first.startswith("whole: 1 graph, 1 node, 1 kernel, 1 launch, ")
    assert first.endswith(" comments or empty)")
    assert "only counted" not in ran.out
    assert [line.strip().partition(":")[0] for line in rest] == [
        "ir_post_fusion.txt",
        "ir_pre_fusion.txt",
        "C++ kernels in output_code.py",
        "wrapper in output_code.py",
        "fx_graph_transformed.py",
        "fx_graph_readable.py",
        "fx_graph_runnable.py",
        "inductor_provenance_tracking_node_mappings.json",
    ]
    counts = checked(probe("check", copy, "--json"))
    assert counts["whole"] is counts["sound"] is True
    assert counts["unopened"] == []
    for file in counts["files"]:
        parts = ("read", "checked", "comments", "counted", "unread")
        assert sum(file[part] for part in parts) == file["lines"]
    assert sum(file["lines"] for file in counts["files"]) == counts["lines"]
    kernels = next(file for file in counts["files"] if file["kind"].startswith("C++"))
    assert (kernels["files"], kernels["read"], kernels["counted"]) == (1, 0, 0)


def test_what_was_only_counted_is_not_called_whole(probe: Callable[..., Ran], copy: Path) -> None:
    path = copy / "output_code.py"
    text = path.read_text().replace(
        "async_compile.cpp_pybinding(['const uint8_t*', 'uint8_t*'], ", "async_compile.halide("
    )
    path.write_text(text.replace("cpp_fused_flip_0(arg0_1", "cpp_fused_flip_0.run(arg0_1"))
    (copy / "graph_diagram.svg").write_text("<svg/>")
    ran = probe("check", copy)
    assert ran.status == 0
    first, second, *_ = ran.out.splitlines()
    assert first.startswith("no problem: 1 graph, ")
    assert re.fullmatch(
        r"not called whole: \d+ lines of halide kernels in output_code.py only counted, "
        r"graph_diagram.svg not opened",
        second,
    )
    counts = checked(probe("check", copy, "--json"))
    assert (counts["whole"], counts["sound"]) == (False, True)
    assert counts["unopened"] == [str(copy / "graph_diagram.svg")]


def test_a_bench_file_beside_a_dump_leaves_it_whole(probe: Callable[..., Ran], copy: Path) -> None:
    (copy / "output_code_bench.py").write_text("mine = 1\n")
    assert probe("check", copy).out.startswith("whole: ")


def test_a_missing_def_forward_is_not_whole(probe: Callable[..., Ran], copy: Path) -> None:
    path = copy / "fx_graph_transformed.py"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "def forward" not in line))
    ran = probe("check", copy)
    assert ran.status == 1
    assert ran.out.startswith("not whole: ")
    assert "fx_graph_transformed.py:1: class <lambda> has no def forward" in ran.out


def test_an_empty_run_says_why(probe: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "torch_compile_debug" / "run_2026_01_01_00_00_00_000000-pid_1" / "torchinductor").mkdir(
        parents=True
    )
    ran = probe("check", str(tmp_path))
    assert ran.status == 1
    assert "no graph was dumped" in ran.out


def test_a_folder_without_a_dump_is_not_whole(probe: Callable[..., Ran], tmp_path: Path) -> None:
    ran = probe("check", str(tmp_path))
    assert ran.status == 1
    assert f"no dump below {tmp_path}" in ran.out


def test_a_graph_that_computes_nothing_is_no_problem(probe: Callable[..., Ran], copy: Path) -> None:
    (copy.parent / "model__1_inference_1.1").mkdir()
    ran = probe("check", str(copy.parents[2]), "--json")
    counts = checked(ran)
    assert ran.status == 0
    assert len(counts["graphs"]) == 1
    assert counts["empty_graphs"] == [str(copy.parent / "model__1_inference_1.1")]
    assert probe("layouts", "buf0", str(copy.parents[2])).status == 0


def test_a_graph_with_branches_is_noted(probe: Callable[..., Ran]) -> None:
    (run,) = DUMPS.glob("*-programs/conditional")
    ran = probe("check", run)
    assert ran.status == 0
    assert "torch dumps only the IR of the last part" in ran.out


def test_a_wrapper_in_cpp_without_an_entry_is_one_sentence(probe: Callable[..., Ran], copy: Path) -> None:
    (copy / "output_code.py").write_text(
        "cpp_wrapper_src = r'''\nvoid f() {}\n'''\ncall = load(cpp_wrapper_src)\n"
    )
    ran = probe("check", copy, "--json")
    (problem,) = json.loads(ran.out)["problems"]
    assert problem["message"].startswith("no inductor_entry_impl")
    assert ran.status == 1
