"""Every verb on damaged dumps ends with a sentence and a status, shows what it can, and never hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import DUMPS
from tests.dumps import copy_of, graph_in
from tests.reader.hostile import DAMAGES, GRAPHS, VERBS, assert_ends_well, look

FILES = (
    "ir_post_fusion.txt",
    "output_code.py",
    "fx_graph_transformed.py",
    "ir_pre_fusion.txt",
    "fx_graph_runnable.py",
)


@pytest.fixture(params=VERBS)
def verb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file(tmp_path: Path, verb: str, damage: str) -> None:
    # Not every file of every graph with every verb, but over all of them each damage meets each file.
    at = list(DAMAGES).index(damage) + VERBS.index(verb)
    graph = copy_of(graph_in(GRAPHS[at % len(GRAPHS)]), tmp_path)
    file = graph / FILES[at % len(FILES)]
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert_ends_well(verb, graph)


@pytest.mark.parametrize(
    "damage", ["empty", "half", "nul in the middle", "no brackets", "huge numbers", "escapes"]
)
def test_all_files_damaged(tmp_path: Path, verb: str, damage: str) -> None:
    graph = copy_of(graph_in(GRAPHS[0]), tmp_path)
    for file in graph.iterdir():
        file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert_ends_well(verb, graph)


def test_every_file_missing_and_no_file_at_all(tmp_path: Path, verb: str) -> None:
    source = graph_in(GRAPHS[1])
    for name in sorted(path.name for path in source.iterdir()):
        graph = copy_of(source, tmp_path / name)
        (graph / name).unlink()
        assert_ends_well(verb, graph)
    graph = copy_of(source, tmp_path / "none")
    for file in graph.iterdir():
        file.unlink()
    assert_ends_well(verb, graph)


@pytest.mark.parametrize("verb", ["layouts", "nodes", "check"])
def test_the_readable_part_is_shown_and_the_damage_named(tmp_path: Path, verb: str) -> None:
    graph = copy_of(graph_in(DUMPS / "torch-2.13.0-cpu" / "aa_separable_cl"), tmp_path)
    file = graph / "ir_post_fusion.txt"
    text = file.read_text()
    cut = text.rindex("op2.sizes")
    file.write_text(text[: cut + 12])
    status, out, err = look(verb, graph)
    out = out.replace("\n", "")  # a long path takes several lines of a narrow screen
    assert status == (1 if verb == "check" else 2)
    assert graph.name in out
    assert "op1" in out or verb == "check"
    line = text[:cut].count("\n") + 1
    assert f"{file}:{line}: " in (out if verb == "check" else err)


def test_a_verb_on_a_dump_whose_every_name_escapes(tmp_path: Path, verb: str) -> None:
    graph = copy_of(graph_in(GRAPHS[0]), tmp_path)
    for file in graph.iterdir():
        file.write_bytes(DAMAGES["escapes"](file.read_bytes()))
    renamed = graph.rename(graph.with_name("m\x1b]0;x\x07__0_inference_0.0"))
    _, out, err = look(verb, renamed)
    for text in (out, err):
        assert not set(text) & set("\x1b\x07\x9b\u202e\r\b")
