"""Which run or graph a word means."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.discovery.discover import find, name_of
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


def test_a_graph_of_an_older_run_is_found_by_its_name(tree: Path) -> None:
    """F11: `the latest run has no graph ...` was all that was said."""
    for name in ("model___54.0", "model___"):
        named = find(name, tree)
        assert named.run.name == FIRST
        assert named.graph is not None
        assert named.graph.name == "model___54.0"


LABEL = "gpt_block"


@pytest.fixture
def labelled(tree: Path) -> Path:
    """The same runs, the older one twice and both times with a label; the latest has none."""
    runs = tree / "torch_compile_debug"
    shutil.copytree(runs / FIRST, runs / FIRST.replace("10_00", "11_00"))
    for run in (FIRST, FIRST.replace("10_00", "11_00")):
        (runs / run / "probe.json").write_text(manifest(LABEL))
    return tree


MANIFEST = {
    "format": 1, "command": [], "script": "a.py", "scenario": "a", "cases": [], "knobs": {}, "versions": {},
    "machine": {}, "started": "2026-01-01T10:00:00+00:00", "duration_s": 1.0, "outcome": "ok",
    "exit_status": 0, "compiled_frames": 1, "graphs": [],
}  # fmt: skip


def manifest(label: str | None) -> str:
    """Text of a `probe.json` with this label."""
    return json.dumps({**MANIFEST, "label": label})


@pytest.mark.parametrize(
    ("target", "graph"),
    [
        (LABEL, None),
        ("gpt", None),
        (f"{LABEL}:0", "model___54.0"),
        ("gpt:0", "model___54.0"),
        (f"{LABEL}/model___54.0", "model___54.0"),
        (f"{LABEL}/model", "model___54.0"),
        (f"{LABEL}/", None),
    ],
)
def test_a_graph_of_any_run_is_named_in_a_few_characters(
    labelled: Path, target: str, graph: str | None
) -> None:
    """F11: `gpt_block:1` and `gpt_block/model__1`. Of two runs with one label the latest is meant."""
    named = find(target, labelled)
    assert named.run.name == FIRST.replace("10_00", "11_00")
    assert (named.graph and named.graph.name) == graph


def test_a_number_alone_is_of_the_latest_run(tree: Path) -> None:
    named = find(":1", tree)
    assert named.graph is not None
    assert (named.run.name, named.graph.name) == (LATEST, "model__0_backward_57.1")
    assert name_of(named.run, named.graph, tree) == "model__0_backward_57.1"
    assert find(f"{LATEST}:1", tree) == named


def test_a_whole_label_goes_before_the_start_of_a_graph(labelled: Path) -> None:
    for run in (labelled / "torch_compile_debug").glob(f"{FIRST[:16]}*"):
        (run / "probe.json").write_text(manifest("model__0"))
    assert find("model__0", labelled).graph is None


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        (f"{LABEL}/nope", "has no graph nope", "there is model___54.0"),
        (f"{LABEL}:7", "has no graph whose name ends in .7", "it has model___54.0"),
        (":7", "has no graph whose name ends in .7", "it has model__0_forward_55.0"),
        ("model___54.0", "names graphs of 2 older runs: name the run, too", f"one of {LABEL}:0"),
        ("no/such/place", "no/such/place does not exist", None),
        ("gpt_blokc", "no graph or run called gpt_blokc", f"did you mean {LABEL}?"),
    ],
)
def test_a_name_in_a_run_that_is_there_is_told_from_a_run_that_is_not(
    labelled: Path, target: str, message: str, hint: str | None
) -> None:
    with pytest.raises(NotFoundError) as caught:
        find(target, labelled)
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_a_folder_that_is_no_debug_dir_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="is not a debug dir"):
        find(str(tmp_path), tmp_path)
    with pytest.raises(NotFoundError, match="no run in") as caught:
        find(None, tmp_path)
    assert caught.value.hint == "dump a script first: probe dump check_hflip.py"
