"""`probe check`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import DUMPS, Ran

KEYS = ["graphs", "nodes", "kernels", "launches", "lines", "unread_lines", "unlinked_nodes", "problems"]


def test_all_fixtures_are_whole(probe: Callable[..., Ran]) -> None:
    ran = probe("check", str(DUMPS), "--json")
    counts = json.loads(ran.out)
    assert [key for key in counts if key in KEYS] == KEYS
    assert counts["problems"] == []
    assert counts["unread_lines"] == counts["unlinked_nodes"] == 0
    assert counts["graphs"] == len(list(DUMPS.glob("*/*/run_*/torchinductor/*/output_code.py")))
    assert ran.status == 0


def test_the_whole_corpus_is_whole(probe: Callable[..., Ran], corpus: Path) -> None:
    ran = probe("check", str(corpus), "--json")
    counts = json.loads(ran.out)
    assert counts["problems"] == []
    assert counts["unread_lines"] == counts["unlinked_nodes"] == 0
    assert counts["graphs"] > 330
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
    counts = json.loads(ran.out)
    assert counts["unread_lines"] == 1
    assert [problem["message"] for problem in counts["problems"]] == [
        "not understood: what is this",
        "unknown field op0.mood = serene",
    ]
    assert counts["problems"][0]["path"] == str(path)
    assert path.read_text().split("\n")[counts["problems"][0]["line"] - 1] == "what is this"


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
    counts = json.loads(ran.out)
    assert ran.status == 0
    assert counts["graphs"] == 1
    assert counts["empty_graphs"] == [str(copy.parent / "model__1_inference_1.1")]
    assert probe("layouts", "buf0", str(copy.parents[2])).status == 0


def test_a_graph_with_branches_is_noted(probe: Callable[..., Ran]) -> None:
    (run,) = DUMPS.glob("*-programs/conditional")
    ran = probe("check", run)
    assert ran.status == 0
    assert "torch keeps the IR of the last part only" in ran.out


def test_a_wrapper_in_cpp_is_one_sentence(probe: Callable[..., Ran], copy: Path) -> None:
    (copy / "output_code.py").write_text(
        "cpp_wrapper_src = r'''\nvoid f() {}\n'''\ncall = load(cpp_wrapper_src)\n"
    )
    ran = probe("check", copy, "--json")
    (problem,) = json.loads(ran.out)["problems"]
    assert problem["message"].startswith("the wrapper is C++")
    assert ran.status == 1
