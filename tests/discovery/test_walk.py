"""Everything below a folder: all of it, once, and never more than the bounds."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from inductor_probe.discovery import walk
from inductor_probe.discovery.walk import everything_below
from inductor_probe.errors import NotFoundError
from inductor_probe.reader.debug_dir import read_graph, read_run
from tests.conftest import DUMPS
from tests.discovery.test_discover import scenario
from tests.dumps import FLIP, graph_in, run_in


def paths(path: Path, *, archives: bool = True) -> list[str]:
    return [run.path.relative_to(path).as_posix() for run in everything_below(path, archives=archives)]


def test_all_fixtures_are_found() -> None:
    below = everything_below(DUMPS)
    assert below.problems == ()
    assert {graph.path for run in below for graph in run.graphs} == {
        path.parent for path in DUMPS.glob("*/*/run_*/torchinductor/*/output_code.*")
    }


def test_runs_and_loose_graphs_of_all_names_and_depths(tmp_path: Path) -> None:
    scenario(tmp_path / "a" / "b")
    shutil.copytree(run_in(FLIP), tmp_path / "renamed run")
    shutil.copytree(graph_in(FLIP), tmp_path / "z" / "loose")
    shutil.copytree(graph_in(FLIP), tmp_path / "z" / "other")
    assert paths(tmp_path) == [f"a/b/torch_compile_debug/{run_in(FLIP).name}", "renamed run", "z"]
    assert [graph.name for graph in everything_below(tmp_path / "z").runs[0].graphs] == ["loose", "other"]


@pytest.mark.parametrize("name", [".hidden", "__pycache__", "node_modules", "venv", "lib/site-packages"])
def test_hidden_folders_and_environments_are_passed_over(tmp_path: Path, name: str) -> None:
    shutil.copytree(run_in(FLIP), tmp_path / name / "run")
    if name == "venv":
        (tmp_path / name / "pyvenv.cfg").touch()
    assert paths(tmp_path) == []
    assert len(paths(tmp_path / name / "run")) == 1  # asked for by name it is read


def test_links_are_not_followed_out_of_the_tree(tmp_path: Path) -> None:
    scenario(tmp_path / "real" / "x")
    (tmp_path / "real" / "x" / "loop").symlink_to(tmp_path)
    (tmp_path / "real" / "self").symlink_to("self")
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen" / "link").symlink_to(tmp_path / "real" / "x")
    assert len(paths(tmp_path)) == 1
    below = everything_below(tmp_path / "seen")
    assert below.runs == ()
    (problem,) = below.problems
    link = tmp_path / "seen" / "link"
    assert str(problem).startswith(f"{link}: a link to {tmp_path / 'real' / 'x'}, which is not part")
    assert len(everything_below(tmp_path / "seen" / "link").runs) == 1  # a link that is named is followed


def test_a_link_to_the_root_is_not_walked(tmp_path: Path) -> None:
    """A project has links of many kinds: those that lead to no dump are passed over in silence."""
    scenario(tmp_path / "mine")
    for number in range(9):
        (tmp_path / "mine" / f"root{number}").symlink_to("/")
    below = everything_below(tmp_path)
    assert len(below.runs) == 1
    assert below.problems == ()


def test_links_to_dumps_elsewhere_are_told_and_not_followed(tmp_path: Path) -> None:
    scenario(tmp_path / "mine")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(run_in(FLIP), elsewhere)
    for number in range(9):
        (tmp_path / "mine" / f"run{number}").symlink_to(elsewhere)
    below = everything_below(tmp_path / "mine")
    assert len(below.runs) == 1
    assert all(f"a link to {elsewhere}" in problem.message for problem in below.problems[:5])
    assert "links that lead elsewhere, not followed: 4" in below.problems[5].message


def test_a_linked_neighbour_is_no_part_of_a_dump(tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    for place in (run, other):
        shutil.copytree(run_in(FLIP), place)
    graph = next((run / "torchinductor").iterdir())
    (run / "torchinductor" / "model__9_inference_9.9").symlink_to(other / "torchinductor" / graph.name)
    (run / "torchinductor" / "model__8_inference_8.8").symlink_to(graph)
    found = read_run(run)
    assert [each.name for each in found.graphs] == [graph.name]
    assert "which is not part of this dump" in found.problems[1].message
    assert "a link, not counted as a graph of its own" in found.problems[0].message
    shutil.rmtree(run / "torchinductor")
    (run / "torchinductor").symlink_to(other / "torchinductor")
    assert read_run(run).graphs == ()
    code = other / "torchinductor" / graph.name / "output_code.py"
    code.rename(tmp_path / "elsewhere.py")
    code.symlink_to(tmp_path / "elsewhere.py")
    (loose,) = read_run(other).graphs
    assert any("elsewhere.py, which is not part" in problem.message for problem in read_graph(loose).problems)


def test_what_is_too_deep_or_too_much_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path.joinpath(*["d"] * (walk.MAX_DEPTH + 2))
    deep.mkdir(parents=True)
    (problem,) = everything_below(tmp_path).problems
    assert "not searched, it lies 24 folders deep" in problem.message
    monkeypatch.setattr(walk, "MAX_ENTRIES", 20)
    for number in range(30):
        (tmp_path / f"f{number}").touch()
    problems = everything_below(tmp_path).problems
    assert any("stopped after 20 entries" in problem.message for problem in problems)


def test_special_files_and_odd_names_do_not_stop_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.tar.gz")
    (tmp_path / "dangling.zip").symlink_to("nowhere")
    (tmp_path / os.fsdecode(b"\xff\xfe")).mkdir()
    (tmp_path / "new\nline").mkdir()
    shutil.copytree(run_in(FLIP), tmp_path / "run")
    assert paths(tmp_path) == ["run"]


def test_archives_below_are_unpacked_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "sent").mkdir()
    with tarfile.open(tmp_path / "sent" / "dump.tar.gz", "w:gz") as tar:
        tar.add(run_in(FLIP), "some/run")
    (tmp_path / "sent" / "broken.zip").write_bytes(b"PK\x03\x04 no")
    assert everything_below(tmp_path / "sent", archives=False).runs == ()
    below = everything_below(tmp_path / "sent")
    assert [run.name for run in below] == ["run"]
    assert [problem.message.split(":")[0] for problem in below.problems] == [
        f"cannot read {tmp_path / 'sent' / 'broken.zip'}"
    ]


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        everything_below(tmp_path / "no")
