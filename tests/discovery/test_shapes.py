"""Dumps of every shape: trees, runs, graphs, renamed and moved copies, folders of them, and files in them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from inductor_probe.discovery.discover import find
from inductor_probe.errors import NotFoundError
from tests.conftest import DUMPS

HFLIP = DUMPS / "torch-2.13.0-cpu" / "hflip_cl"
LAYERNORM = DUMPS / "torch-2.1.2-cpu" / "layernorm_grad"


def run_of(scenario: Path) -> Path:
    return next(path for path in sorted(scenario.iterdir()) if path.name.startswith("run_"))


def graph_of(scenario: Path) -> Path:
    return sorted((run_of(scenario) / "torchinductor").glob("model*"))[0]


def names(target: Path | str, cwd: Path) -> list[str]:
    return [graph.name for graph in find(str(target), cwd).run.graphs]


def scenario(place: Path, of: Path = HFLIP) -> Path:
    """Lay a scenario's folder down as a user has it: with `torch_compile_debug` in it."""
    shutil.copytree(run_of(of), place / "torch_compile_debug" / run_of(of).name)
    return place


@pytest.mark.parametrize("below", ["", "torch_compile_debug", "a/b/c/torch_compile_debug"])
def test_a_tree_is_found_at_any_depth(tmp_path: Path, below: str) -> None:
    scenario(tmp_path / "here" / "a" / "b" / "c" if below.startswith("a") else tmp_path / "here")
    assert names("here", tmp_path) == [graph_of(HFLIP).name]


@pytest.mark.parametrize(
    "name", ["flip_cpu_channels_last_run_2023_05_01_10_00_00_000000-pid_1", "best", "x y"]
)
def test_a_renamed_run_and_its_folders(tmp_path: Path, name: str) -> None:
    shutil.copytree(run_of(HFLIP), tmp_path / name)
    for target in (name, f"{name}/torchinductor", f"{name}/torchinductor/{graph_of(HFLIP).name}"):
        assert names(target, tmp_path) == [graph_of(HFLIP).name]
    assert find(name, tmp_path).run.path == tmp_path / name


def test_a_graph_moved_alone_and_renamed(tmp_path: Path) -> None:
    shutil.copytree(graph_of(HFLIP), tmp_path / "best version")
    found = find("best version", tmp_path)
    assert found.graph is not None
    assert found.graph.path == tmp_path / "best version"


@pytest.mark.parametrize(
    "kept", [("output_code.py",), ("ir_pre_fusion.txt",), ("output_code.py", "ir_post_fusion.txt")]
)
def test_a_folder_with_only_a_few_files_of_a_graph(tmp_path: Path, kept: tuple[str, ...]) -> None:
    (tmp_path / "few").mkdir()
    for name in kept:
        shutil.copy(graph_of(HFLIP) / name, tmp_path / "few" / name)
    found = find("few", tmp_path)
    assert found.graph is not None
    assert found.graph.name == "few"


def test_loose_graphs_beside_each_other_are_one_run_in_compile_order(tmp_path: Path) -> None:
    for graph in (run_of(LAYERNORM) / "torchinductor").glob("model*"):
        shutil.copytree(graph, tmp_path / "copies" / graph.name)
    found = find("copies", tmp_path)
    assert found.graph is None
    assert [graph.kind for graph in found.run.graphs] == ["forward", "backward"]


@pytest.mark.parametrize(
    "inside",
    [
        "output_code.py",
        "ir_post_fusion.txt",
        "../aot_model___0_debug.log",
        "../../probe.json",
        "../../probe_logs/fusion.log",
        "../../probe_logs",
        "probe_inputs/arg0_1.bin",
        "probe_inputs",
    ],
)
def test_a_file_or_folder_inside_a_run_means_the_run(tmp_path: Path, inside: str) -> None:
    shutil.copytree(run_of(HFLIP), tmp_path / "run")
    graph = tmp_path / "run" / "torchinductor" / graph_of(HFLIP).name
    place = graph / inside
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.touch() if place.suffix else place.mkdir()
    found = find(str(place), tmp_path)
    assert found.run.path == tmp_path / "run"
    in_graph = not inside.startswith("..")
    assert (found.graph.path if found.graph else None) == (graph if in_graph else None)


def test_of_several_trees_one_has_to_be_named_and_short_names_are_offered(tmp_path: Path) -> None:
    scenario(tmp_path / "all" / "flip")
    scenario(tmp_path / "all" / "deep" / "norm", LAYERNORM)
    with pytest.raises(NotFoundError, match="holds 2 dumps: name one") as caught:
        find("all", tmp_path)
    assert caught.value.hint is not None
    assert "there is deep, flip" in caught.value.hint
    assert len(names("all/deep", tmp_path)) == 2
    assert len(names("all/flip", tmp_path)) == 1


def test_a_script_is_told_to_be_dumped(tmp_path: Path) -> None:
    scenario(tmp_path)
    (tmp_path / "check_flip.py").write_text("")
    with pytest.raises(NotFoundError, match="is a file outside of any dump") as caught:
        find("check_flip.py", tmp_path)
    assert caught.value.hint == f"probe dump {tmp_path / 'check_flip.py'} makes a dump of what it compiles"


def test_links_lead_to_what_they_name(tmp_path: Path) -> None:
    shutil.copytree(run_of(HFLIP), tmp_path / "real")
    (tmp_path / "latest").symlink_to("real")
    assert find("latest", tmp_path).run.path == tmp_path / "real"


def test_a_loop_of_links_and_a_dangling_one_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "gone").symlink_to("nowhere")
    for target in ("a", "gone"):
        with pytest.raises(NotFoundError):
            find(target, tmp_path)
    below = tmp_path / "below"
    below.mkdir()
    (below / "up").symlink_to("..")
    shutil.copytree(run_of(HFLIP), below / "run")
    assert names("below", tmp_path) == [graph_of(HFLIP).name]


@pytest.mark.parametrize("target", ["x" * 5000, "a\0b", "~nobody_of_that_name", "%s", "", "/", "-"])
def test_odd_names_get_a_sentence(tmp_path: Path, target: str) -> None:
    if target in ("", "/"):
        target = str(tmp_path)
    with pytest.raises(NotFoundError):
        find(target, tmp_path)


def test_a_stamp_that_is_no_date_sorts_by_the_folders_own_time(tmp_path: Path) -> None:
    tree = tmp_path / "torch_compile_debug"
    for name in ("run_2026_99_99_99_99_99_000000-pid_1", "run_2026_01_02_10_00_00_000000-pid_2"):
        shutil.copytree(run_of(HFLIP), tree / name)
    os.utime(tree / "run_2026_99_99_99_99_99_000000-pid_1", (0, 0))
    assert find(None, tmp_path).run.name == "run_2026_01_02_10_00_00_000000-pid_2"
