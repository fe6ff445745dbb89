"""From a string to a run or graph: names, labels, paths, and dumps of every shape."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.discovery.discover import find, name_of
from inductor_probe.errors import NotFoundError
from tests.builders import manifest_text
from tests.conftest import DUMPS
from tests.dumps import FLIP, graph_in, run_in

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


def test_after_whatif_names_mean_the_run_of_the_user(tree: Path) -> None:
    """Names meant the run that `probe whatif` had made to be compared with it."""
    runs = tree / "torch_compile_debug"
    shutil.copytree(runs / FIRST, runs / (b := LATEST.replace("10_00", "11_00")))
    (runs / b / "probe.json").write_text(manifest_text(baseline=LATEST))
    assert find(None, tree).run.name == LATEST
    assert find("model__0_f", tree).run.name == LATEST
    assert find(b, tree).run.name == b
    (runs / LATEST / "probe.json").write_text(manifest_text(baseline="gone"))
    (runs / FIRST / "probe.json").write_text(manifest_text(baseline="gone"))
    assert find(None, tree).run.name == b


def test_a_name_with_an_ellipsis_is_what_a_screen_shortened(tree: Path) -> None:
    graph = find("model__0_f…_55.0", tree).graph
    assert graph is not None
    assert graph.name == "model__0_forward_55.0"


LABEL = "gpt_block"


@pytest.fixture
def labelled(tree: Path) -> Path:
    """The same runs, the older one twice and both times with a label; the latest has none."""
    runs = tree / "torch_compile_debug"
    shutil.copytree(runs / FIRST, runs / FIRST.replace("10_00", "11_00"))
    for run in (FIRST, FIRST.replace("10_00", "11_00")):
        (runs / run / "probe.json").write_text(manifest_text(label=LABEL))
    return tree


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
        (run / "probe.json").write_text(manifest_text(label="model__0"))
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


LAYERNORM = DUMPS / "torch-2.1.2-cpu" / "layernorm_grad"


def names(target: Path | str, cwd: Path) -> list[str]:
    return [graph.name for graph in find(str(target), cwd).run.graphs]


def scenario(place: Path, of: Path = FLIP) -> Path:
    """Lay a scenario's folder down as a user has it: with `torch_compile_debug` in it."""
    shutil.copytree(run_in(of), place / "torch_compile_debug" / run_in(of).name)
    return place


@pytest.mark.parametrize("below", ["", "torch_compile_debug", "a/b/c/torch_compile_debug"])
def test_a_tree_is_found_at_any_depth(tmp_path: Path, below: str) -> None:
    scenario(tmp_path / "here" / "a" / "b" / "c" if below.startswith("a") else tmp_path / "here")
    assert names("here", tmp_path) == [graph_in(FLIP).name]


@pytest.mark.parametrize(
    "name", ["flip_cpu_channels_last_run_2023_05_01_10_00_00_000000-pid_1", "best", "x y"]
)
def test_a_renamed_run_and_its_folders(tmp_path: Path, name: str) -> None:
    shutil.copytree(run_in(FLIP), tmp_path / name)
    for target in (name, f"{name}/torchinductor", f"{name}/torchinductor/{graph_in(FLIP).name}"):
        assert names(target, tmp_path) == [graph_in(FLIP).name]
    assert find(name, tmp_path).run.path == tmp_path / name


def test_a_graph_moved_alone_and_renamed(tmp_path: Path) -> None:
    shutil.copytree(graph_in(FLIP), tmp_path / "best version")
    found = find("best version", tmp_path)
    assert found.graph is not None
    assert found.graph.path == tmp_path / "best version"


@pytest.mark.parametrize(
    "kept", [("output_code.py",), ("ir_pre_fusion.txt",), ("output_code.py", "ir_post_fusion.txt")]
)
def test_a_folder_with_only_a_few_files_of_a_graph(tmp_path: Path, kept: tuple[str, ...]) -> None:
    (tmp_path / "few").mkdir()
    for name in kept:
        shutil.copy(graph_in(FLIP) / name, tmp_path / "few" / name)
    found = find("few", tmp_path)
    assert found.graph is not None
    assert found.graph.name == "few"


def test_loose_graphs_beside_each_other_are_one_run_in_compile_order(tmp_path: Path) -> None:
    for graph in (run_in(LAYERNORM) / "torchinductor").glob("model*"):
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
    shutil.copytree(run_in(FLIP), tmp_path / "run")
    graph = tmp_path / "run" / "torchinductor" / graph_in(FLIP).name
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
    shutil.copytree(run_in(FLIP), tmp_path / "real")
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
    shutil.copytree(run_in(FLIP), below / "run")
    assert names("below", tmp_path) == [graph_in(FLIP).name]


@pytest.mark.parametrize("target", ["x" * 5000, "a\0b", "~nobody_of_that_name", "%s", "", "/", "-"])
def test_odd_names_get_a_sentence(tmp_path: Path, target: str) -> None:
    if target in ("", "/"):
        target = str(tmp_path)
    with pytest.raises(NotFoundError):
        find(target, tmp_path)


def test_a_stamp_that_is_no_date_sorts_by_the_folders_own_time(tmp_path: Path) -> None:
    tree = tmp_path / "torch_compile_debug"
    for name in ("run_2026_99_99_99_99_99_000000-pid_1", "run_2026_01_02_10_00_00_000000-pid_2"):
        shutil.copytree(run_in(FLIP), tree / name)
    os.utime(tree / "run_2026_99_99_99_99_99_000000-pid_1", (0, 0))
    assert find(None, tmp_path).run.name == "run_2026_01_02_10_00_00_000000-pid_2"
