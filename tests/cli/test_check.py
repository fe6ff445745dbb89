"""`probe check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from inductor_probe.model.decision import DECISIONS_NAME, Decisions
from inductor_probe.store.decisions import write_decisions
from tests.conftest import DUMPS, Probe, Ran, Screen
from tests.dumps import FLIP, PROGRAMS, copy_of, graph_in


def checked(ran: Ran) -> dict[str, Any]:
    """Return the check that a command printed, with its problems."""
    output = json.loads(ran.out)
    return {**output["check"], "problems": output["problems"]}


def test_all_fixtures_are_whole(probe: Probe) -> None:
    ran = probe("check", str(DUMPS), "--json")
    counts = checked(ran)
    assert counts["problems"] == []
    assert counts["unread_lines"] == counts["unlinked_nodes"] == 0
    assert len(counts["graphs"]) == len(list(DUMPS.glob("*/*/run_*/torchinductor/*/output_code.*")))
    assert ran.status == 0


def test_the_whole_corpus_is_whole(probe: Probe, corpus: Path) -> None:
    ran = probe("check", str(corpus), "--json")
    counts = checked(ran)
    assert counts["problems"] == []
    assert counts["unread_lines"] == counts["unlinked_nodes"] == 0
    assert len(counts["graphs"]) > 330
    assert ran.status == 0


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of a small graph, alone in its run."""
    return copy_of(graph_in(FLIP), tmp_path)


def test_an_aborted_compile_is_told(screen: Screen, copy: Path) -> None:
    (copy / "output_code.py").unlink()
    (copy / "ir_post_fusion.txt").write_text("")
    counts, problems = screen("check", copy.parents[2], columns=1000).split("\n\n")
    assert counts.startswith("not whole: 1 graph, ")
    assert problems.replace(copy.parents[1].name, "run") == snapshot("""\
TMP/torch_compile_debug/run/torchinductor/model__0_inference_0.0/output_code.py does not exist
TMP/torch_compile_debug/run/torchinductor/model__0_inference_0.0/ir_post_fusion.txt:1: no node after fusion, though there are some before it
exit 1
""")  # noqa: E501


def test_lines_of_no_known_form_are_counted_and_named(probe: Probe, copy: Path) -> None:
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
    probe: Probe, screen: Screen, copy: Path
) -> None:
    assert screen("check", copy) == snapshot("""\
whole: 1 graph, 1 node, 1 kernel, 1 launch, 265 lines (84 read, 135 checked, 46 comments or empty)
  ir_post_fusion.txt: 28 lines (26 read, 2 comments or empty)
  ir_pre_fusion.txt: 28 lines (26 read, 2 comments or empty)
  C++ kernels in output_code.py: 35 lines (35 checked)
  wrapper in output_code.py: 78 lines (3 read, 58 checked, 17 comments or empty)
  fx_graph_transformed.py: 5 lines (4 read, 1 checked)
  fx_graph_readable.py: 5 lines (4 read, 1 checked)
  fx_graph_runnable.py: 85 lines (20 read, 40 checked, 25 comments or empty)
  inductor_provenance_tracking_node_mappings.json: 1 line (1 read)
""")
    counts = checked(probe("check", copy, "--json"))
    assert counts["whole"] is counts["sound"] is True
    assert counts["unopened"] == []
    for file in counts["files"]:
        parts = ("read", "checked", "comments", "counted", "unread")
        assert sum(file[part] for part in parts) == file["lines"]
    assert sum(file["lines"] for file in counts["files"]) == counts["lines"]
    kernels = next(file for file in counts["files"] if file["kind"].startswith("C++"))
    assert (kernels["files"], kernels["read"], kernels["counted"]) == (1, 0, 0)


def test_what_was_only_counted_is_not_called_whole(probe: Probe, screen: Screen, copy: Path) -> None:
    path = copy / "output_code.py"
    text = path.read_text().replace(
        "async_compile.cpp_pybinding(['const uint8_t*', 'uint8_t*'], ", "async_compile.halide("
    )
    path.write_text(text.replace("cpp_fused_flip_0(arg0_1", "cpp_fused_flip_0.run(arg0_1"))
    (copy / "graph_diagram.svg").write_text("<svg/>")
    assert screen("check", copy) == snapshot("""\
no problem: 1 graph, 1 node, 1 kernel, 1 launch, 265 lines (84 read, 100 checked, 51 comments or
empty, 30 only counted)
not called whole: 30 lines of halide kernels in output_code.py only counted, graph_diagram.svg not
opened
  ir_post_fusion.txt: 28 lines (26 read, 2 comments or empty)
  ir_pre_fusion.txt: 28 lines (26 read, 2 comments or empty)
  halide kernels in output_code.py: 35 lines (5 comments or empty, 30 only counted)
  wrapper in output_code.py: 78 lines (3 read, 58 checked, 17 comments or empty)
  fx_graph_transformed.py: 5 lines (4 read, 1 checked)
  fx_graph_readable.py: 5 lines (4 read, 1 checked)
  fx_graph_runnable.py: 85 lines (20 read, 40 checked, 25 comments or empty)
  inductor_provenance_tracking_node_mappings.json: 1 line (1 read)
""")
    counts = checked(probe("check", copy, "--json"))
    assert (counts["whole"], counts["sound"]) == (False, True)
    assert counts["unopened"] == [str(copy / "graph_diagram.svg")]


def test_a_bench_file_beside_a_dump_leaves_it_whole(probe: Probe, copy: Path) -> None:
    (copy / "output_code_bench.py").write_text("mine = 1\n")
    assert probe("check", copy).out.startswith("whole: ")


def test_a_missing_def_forward_is_not_whole(screen: Screen, copy: Path) -> None:
    path = copy / "fx_graph_transformed.py"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "def forward" not in line))
    counts, problems = screen("check", copy, columns=1000).split("\n\n")
    assert counts.startswith("not whole: 1 graph, ")
    assert problems.replace(copy.parents[1].name, "run") == snapshot("""\
TMP/torch_compile_debug/run/torchinductor/model__0_inference_0.0/fx_graph_transformed.py:1: class <lambda> has no def forward
exit 1
""")  # noqa: E501


def test_an_empty_run_says_why(screen: Screen, tmp_path: Path) -> None:
    (tmp_path / "torch_compile_debug" / "run_2026_01_01_00_00_00_000000-pid_1" / "torchinductor").mkdir(
        parents=True
    )
    assert screen("check", tmp_path, columns=1000) == snapshot("""\
not whole: 0 graphs, 0 nodes, 0 kernels, 0 launches, 0 lines

TMP/torch_compile_debug/run_2026_01_01_00_00_00_000000-pid_1: no graph was dumped, and there is no probe.json that records why; consistent with a warm cache: `probe dump` gives each run an empty one
exit 1
""")  # noqa: E501


def test_a_folder_without_a_dump_is_not_whole(screen: Screen, tmp_path: Path) -> None:
    assert screen("check", tmp_path, columns=1000) == snapshot("""\
not whole: 0 graphs, 0 nodes, 0 kernels, 0 launches, 0 lines

no dump below TMP
exit 1
""")


@pytest.mark.parametrize("recorded", [False, True])
def test_a_graph_that_computes_nothing_is_no_problem(probe: Probe, copy: Path, *, recorded: bool) -> None:
    """As the backward of `x + y`. With the record that nothing was decided, six files were missing."""
    (copy.parent / "model__1_inference_1.1").mkdir()
    if recorded:
        nothing = Decisions("2.13.0", ("fusion",), ())
        write_decisions(copy.parent / "model__1_inference_1.1" / DECISIONS_NAME, nothing)
    ran = probe("check", str(copy.parents[2]), "--json")
    counts = checked(ran)
    assert ran.status == 0
    assert len(counts["graphs"]) == 1
    assert counts["empty_graphs"] == [str(copy.parent / "model__1_inference_1.1")]
    assert probe("layouts", "buf0", str(copy.parents[2])).status == 0


def test_a_graph_with_branches_is_noted(probe: Probe) -> None:
    ran = probe("check", PROGRAMS / "conditional")
    assert ran.status == 0
    assert "torch dumps only the IR of the last part" in ran.out


def test_a_wrapper_in_cpp_without_an_entry_is_one_sentence(probe: Probe, copy: Path) -> None:
    (copy / "output_code.py").write_text(
        "cpp_wrapper_src = r'''\nvoid f() {}\n'''\ncall = load(cpp_wrapper_src)\n"
    )
    ran = probe("check", copy, "--json")
    (problem,) = json.loads(ran.out)["problems"]
    assert problem["message"].startswith("no inductor_entry_impl")
    assert ran.status == 1
