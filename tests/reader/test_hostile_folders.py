"""What else a folder can hold where a dump's files should be: pipes, devices, links, folders, odd names."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.discovery.discover import find
from inductor_probe.discovery.run_facts import run_facts
from inductor_probe.discovery.walk import everything_below
from inductor_probe.errors import ProbeError
from inductor_probe.reader.debug_dir import read_run
from tests.conftest import DUMPS
from tests.dumps import copy_of, graph_in
from tests.reader.hostile import VERBS, assert_ends_well, limited, read

FLIP = graph_in(DUMPS / "torch-2.13.0-cpu" / "hflip_cl")
FILES = sorted(path.name for path in FLIP.iterdir())


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)


INSTEAD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a folder": Path.mkdir,
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to a pipe": lambda path: (os.mkfifo(path.with_name("p")), path.symlink_to("p")),
    "a dangling link": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to its folder": lambda path: path.symlink_to("."),
    "a huge sparse file": _sparse,
}


@pytest.fixture(params=INSTEAD)
def instead(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    return INSTEAD[request.param]


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_is_told_and_the_rest_is_read(
    tmp_path: Path, name: str, instead: Callable[[Path], object]
) -> None:
    copy = copy_of(FLIP, tmp_path)
    (copy / name).unlink()
    instead(copy / name)
    graph = read(copy)
    assert graph.pre or graph.post
    is_there = (copy / name).exists()  # a link that leads nowhere is a file that is missing
    assert not is_there or any(str(copy / name) in str(problem) for problem in graph.problems)


def test_a_manifest_that_is_no_file(tmp_path: Path, instead: Callable[[Path], object]) -> None:
    run = copy_of(FLIP, tmp_path).parents[1]
    instead(run / "probe.json")
    with limited():
        found = read_run(run)
        assert len(found.graphs) == 1
        assert run_facts(found).graphs == 1
        assert len(everything_below(tmp_path).runs) == 1


def test_all_files_at_once_in_every_verb(tmp_path: Path, instead: Callable[[Path], object]) -> None:
    copy = copy_of(FLIP, tmp_path)
    for name in FILES:
        (copy / name).unlink()
        if not (copy / "p").is_fifo():
            instead(copy / name)
    logs = copy.parents[1] / "probe_logs"
    logs.mkdir()
    if instead is not _sparse:  # of a log, half a GiB is read: that takes a while
        instead(logs / "fusion.log")
    instead(copy.parents[1] / "probe.json")
    for verb in VERBS:
        assert_ends_well(verb, copy)


@pytest.mark.parametrize("place", [".", "torchinductor"])
def test_links_where_folders_should_be(tmp_path: Path, place: str) -> None:
    run = copy_of(FLIP, tmp_path).parents[1]
    folder = run / place
    shutil.rmtree(folder)
    folder.symlink_to(folder.name)
    with limited(), pytest.raises(ProbeError):
        find(str(run), tmp_path)
    (tmp_path / "round").mkdir()
    (tmp_path / "round" / "torchinductor").symlink_to("..")
    (tmp_path / "round" / "x").symlink_to("../round")
    with limited():
        everything_below(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"format": ' + "9" * 6000 + "}",
        "null",
        "[]",
        '"x"',
        "{}",
        json.dumps({"graphs": [{"name": 1}]}),
        '{"a": NaN, "started": 1e999}',
        "\ufeff{}",
        "{" * 5000,
    ],
)
def test_manifests_that_are_none(tmp_path: Path, text: str) -> None:
    copy = copy_of(FLIP, tmp_path)
    (copy.parents[1] / "probe.json").write_text(text)
    with limited():
        run = read_run(copy.parents[1])
    assert run.manifest is None
    assert len(run.graphs) == 1
    assert any("probe.json" in problem.message for problem in run.problems)
    assert_ends_well("runs", copy)


NAMES = [
    "model__0_inference_0.0\x1b[31m",
    "model__0_inference_" + "9" * 200 + ".0",
    "model__0_inference_0.²",
    "\u202emodel__0_inference_0.0",
    "line\nend__0_inference_0.0",
    "-rf__0_inference_0.0",
    os.fsdecode(b"\xff\xfe__0_inference_0.0"),
    "%s{0}[bold]__0_inference_0.0",
    "a" * 200 + "__0_inference_0.0",
]


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_of_graphs(tmp_path: Path, name: str) -> None:
    copy = copy_of(FLIP, tmp_path)
    renamed = copy.rename(copy.with_name(name))
    (renamed / "ir_pre_fusion.txt").write_text("?")
    for verb in VERBS:
        assert_ends_well(verb, renamed)


def test_many_graphs_and_deep_folders_are_bounded(tmp_path: Path) -> None:
    run = copy_of(FLIP, tmp_path).parents[1]
    for number in range(3000):
        graph = run / "torchinductor" / f"model__0_inference_0.{number + 1}"
        graph.mkdir()
        (graph / "output_code.py").touch()
    deep = run / "torchinductor" / "x"
    for _ in range(100):
        deep = deep / "d"
    deep.mkdir(parents=True)
    with limited():
        (found,) = everything_below(tmp_path)
        assert len(found.graphs) == 3001
        run_facts(found)
