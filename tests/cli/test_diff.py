"""`probe diff` as a user meets it: exit statuses, widths, pipes, JSON, code, and bad input."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import inductor_probe as ip
from tests.builders import manifest_text
from tests.conftest import DUMPS, Probe
from tests.dumps import FLIP as NEW
from tests.dumps import TRAINING as TRAIN
from tests.dumps import graph_in, run_in

OLD = DUMPS / "torch-2.1.2-cpu" / "hflip_cl"
LAYERNORM = [DUMPS / f"torch-{version}-cpu" / "layernorm_grad" for version in ("2.1.2", "2.4.1")]


def copy_of(scenario: Path, tmp_path: Path, name: str) -> Path:
    """A copy of a run below `tmp_path`, with another name."""
    copy = tmp_path / "torch_compile_debug" / name
    shutil.copytree(run_in(scenario), copy)
    return copy


def test_equal_runs_are_said_to_be_equal(probe: Probe, tmp_path: Path) -> None:
    copy = copy_of(TRAIN, tmp_path, "run_renamed")
    ran = probe("diff", TRAIN, copy)
    assert (ran.status, ran.err) == (0, "")
    assert "all 2 pairs of graphs are equal" in ran.out
    assert "equal, names and spelling aside:\n  model__0_forward_1.0\n  model__0_backward_3.1\n" in ran.out
    every = probe("diff", TRAIN, copy, "--all")
    assert every.out.count("A and B compute the same with the same code") == 2


def test_different_graphs_end_with_1_and_say_why(probe: Probe) -> None:
    ran = probe("diff", OLD, NEW)
    assert (ran.status, ran.err) == (1, "")
    assert "torch: 2.1.2+cu121 -> 2.13.0+cpu" in ran.out
    assert "1 node does the same operations in other loops: buf0 -> op0" in ran.out
    assert "loops: [224, 3, 224] -> [224, 224, 3]" in ran.out
    assert "spelling only: index type (1)" in ran.out


@pytest.mark.parametrize("columns", ["80", "140"])
def test_widths_hold(probe: Probe, columns: str) -> None:
    ran = probe("diff", *LAYERNORM, "--all", COLUMNS=columns)
    assert ran.status == 1
    assert all(len(line) <= int(columns) for line in ran.out.splitlines())


def test_a_pipe_gets_whole_lines_without_colours(probe: Probe) -> None:
    ran = probe("diff", *LAYERNORM)
    assert "\x1b" not in ran.out
    assert all(line == line.rstrip() for line in ran.out.splitlines())


def test_json_of_two_runs_has_their_graphs(probe: Probe) -> None:
    ran = probe("diff", *LAYERNORM, "--json")
    found = json.loads(ran.out)
    assert (ran.status, found["diff"]["record"], found["diff"]["equal"]) == (1, "RunDiff", False)
    forward = found["diff"]["graphs"][0]
    assert forward["fusion"][0]["relation"] == "merged"
    assert {"name": "fused_groups", "a": 4, "b": 1} in forward["counts"]
    assert any("fused groups" in line for line in found["summary"])


def test_knobs_and_versions_of_the_manifests_are_told(probe: Probe, tmp_path: Path) -> None:
    for changes in (
        {"label": "static", "versions": (("torch", "2.13.0"),)},
        {"label": "dynamic", "knobs": (("dynamic", "True"),), "versions": (("torch", "2.12.1"),)},
    ):
        copy = copy_of(NEW, tmp_path, f"run_{changes['label']}")
        (copy / "probe.json").write_text(manifest_text(**changes))
    ran = probe("diff", "static", "dynamic", cwd=tmp_path)
    assert ran.status == 0, "what was asked for makes no difference by itself"
    assert "  torch: 2.13.0 -> 2.12.1\n  --set dynamic: not set -> True\n" in ran.out


def test_json_of_two_graphs_has_the_one_pair(probe: Probe) -> None:
    graphs = [graph_in(OLD), graph_in(NEW)]
    found = json.loads(probe("diff", *graphs, "--json").out)
    assert found["diff"]["record"] == "GraphDiff"
    assert [found["diff"][side]["torch_version"] for side in ("a", "b")] == [
        "2.1.2+cu121",
        "2.13.0+cpu",
    ]


def test_a_graph_finds_its_partner_in_a_run(probe: Probe) -> None:
    backward = graph_in(TRAIN, "backward")
    ran = probe("diff", backward, TRAIN)
    assert ran.status == 0
    assert ran.out.startswith(f"A  {backward}\nB  {backward}\n\nmodel__0_backward_3.1\n")


def test_without_names_the_two_latest_runs_are_compared(probe: Probe, tmp_path: Path) -> None:
    copy_of(OLD, tmp_path, "run_2026_01_01_00_00_00_000000-pid_1")
    copy_of(NEW, tmp_path, "run_2026_01_02_00_00_00_000000-pid_2")
    ran = probe("diff", cwd=tmp_path)
    assert ran.status == 1
    assert "torch: 2.1.2+cu121 -> 2.13.0+cpu" in ran.out
    backwards = probe("diff", "run_2026_01_02", "run_2026_01_01", cwd=tmp_path)
    assert "torch: 2.13.0+cpu -> 2.1.2+cu121" in backwards.out
    assert probe("diff", "run_2026_01_02", cwd=tmp_path).status == 0, "the latest run is B"


@pytest.mark.parametrize("order", [("--code", "A", "B"), ("A", "B", "--code"), ("A", "B", "--code", "cpp_")])
def test_code_is_shown_on_demand(probe: Probe, order: tuple[str, ...]) -> None:
    places = {"A": OLD, "B": NEW}
    ran = probe("diff", *(places.get(word, word) for word in order))
    assert ran.status == 1
    assert ran.out.startswith("cpp_fused_flip_0 -> cpp_fused_flip_0\n--- cpp_fused_flip_0\n+++ cpp_fused")
    assert any(line.startswith("-") and "simd" in line for line in ran.out.splitlines()) or "@@" in ran.out
    assert "long" not in ran.out, "the spelling of 64-bit integers is no difference"


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        ([], "there are not two runs", "probe diff RUN_A RUN_B"),
        (["nowhere/at/all", NEW], "nowhere/at/all does not exist", None),
        ([OLD, NEW, "--code", "triton_x"], "neither side has a kernel triton_x", "cpp_fused_flip_0"),
    ],
)
def test_bad_input_gets_a_sentence(
    probe: Probe, arguments: list[str | Path], error: str, hint: str | None
) -> None:
    ran = probe("diff", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert error in ran.err
    assert hint is None or hint in ran.err


def test_what_could_not_be_read_ends_with_2_and_the_rest_is_compared(probe: Probe, tmp_path: Path) -> None:
    copy = copy_of(NEW, tmp_path, "run_damaged")
    (file,) = copy.glob("torchinductor/*/ir_post_fusion.txt")
    file.unlink()
    ran = probe("diff", NEW, copy)
    assert ran.status == 2
    assert "not compared: B has no nodes after fusion" in ran.out
    assert "ir_post_fusion.txt" in ran.err


def test_the_command_line_mirrors_the_api() -> None:
    old, new = ip.open_run(OLD), ip.open_run(NEW)
    found = old.diff(new)
    assert not found.equal
    assert repr(found) == repr(ip.diff(OLD, NEW))
    (graph,) = found.graphs
    alone = old.graphs[0].diff(new.graphs[0]).result
    assert replace(alone, environment=()) == replace(graph, environment=())
    assert {fact for fact in alone.environment if "." in fact.name} <= set(found.result.environment)
    assert graph.kernel("cpp_fused_flip_0") is not None
    assert [title for title, _ in found.code()] == ["cpp_fused_flip_0 -> cpp_fused_flip_0"]
