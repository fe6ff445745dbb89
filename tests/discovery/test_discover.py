"""Which run or graph a word means."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.discovery.discover import find
from inductor_probe.errors import NotFoundError

DumpDir = Callable[[str], Path]
FIRST = "run_2026_01_01_10_00_00_000000-pid_1"
LATEST = "run_2026_01_02_10_00_00_000000-pid_1"


@pytest.fixture
def tree(tmp_path: Path, dump_dir: DumpDir) -> Path:
    """Two runs: the older one (copied last) of hflip, the later one of layer norm with two graphs."""
    for name, scenario in ((LATEST, "layernorm_grad"), (FIRST, "hflip_cl")):
        (run,) = dump_dir(f"torch-2.1.2-cpu/{scenario}").iterdir()
        shutil.copytree(run, tmp_path / "torch_compile_debug" / name)
    return tmp_path


def test_nothing_means_the_latest_run_by_its_stamp(tree: Path) -> None:
    assert find(None, tree).run.name == LATEST
    assert find(None, tree / "torch_compile_debug" / FIRST / "torchinductor").run.name == FIRST


@pytest.mark.parametrize("target", ["model__0_forward_55.0", "model__0_f"])
def test_a_graph_of_the_latest_run_by_name_or_prefix(tree: Path, target: str) -> None:
    found = find(target, tree)
    assert found.graph is not None
    assert found.graph.name == "model__0_forward_55.0"


@pytest.mark.parametrize(
    "target",
    [
        f"torch_compile_debug/{FIRST}",
        f"torch_compile_debug/{FIRST}/torchinductor",
        f"torch_compile_debug/{FIRST}/torchinductor/model___54.0",
        f"torch_compile_debug/{FIRST}/torchinductor/model___54.0/output_code.py",
        FIRST,
        "run_2026_01_01",
    ],
)
def test_a_run_by_path_name_or_prefix(tree: Path, target: str) -> None:
    assert find(target, tree).run.name == FIRST


def test_renamed_and_lone_copies_are_found(tree: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "copies" / "flip_cpu_channels_last"
    shutil.copytree(tree / "torch_compile_debug" / FIRST, renamed)
    assert find(str(renamed), tmp_path).run.name == "flip_cpu_channels_last"
    lone = tmp_path / "my_graph"
    shutil.copytree(renamed / "torchinductor" / "model___54.0", lone)
    found = find("my_graph", tmp_path)
    assert found.graph is not None
    assert found.graph.path == lone


def test_graphs_are_in_the_order_they_were_compiled(tree: Path) -> None:
    assert [graph.kind for graph in find(None, tree).run.graphs] == ["forward", "backward"]


def test_an_ambiguous_prefix_offers_the_names(tree: Path) -> None:
    with pytest.raises(NotFoundError, match="model is the start of 2 graphs") as caught:
        find("model", tree)
    assert caught.value.hint is not None
    assert "model__0_forward_55.0" in caught.value.hint


def test_an_unknown_name_offers_near_ones(tree: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        find("model__0_forward_54.0", tree)
    assert caught.value.hint == "did you mean model__0_forward_55.0 or model__0_backward_57.1?"


def test_a_graph_of_an_older_run_is_pointed_to(tree: Path) -> None:
    with pytest.raises(NotFoundError, match=r"has no graph model___54\.0, .* has") as caught:
        find("model___54.0", tree)
    assert caught.value.hint is not None
    assert FIRST in caught.value.hint


def test_a_folder_that_is_no_debug_dir_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="is not a debug dir"):
        find(str(tmp_path), tmp_path)
    with pytest.raises(NotFoundError, match="no run in") as caught:
        find(None, tmp_path)
    assert caught.value.hint == "dump a script first: probe dump check_hflip.py"
