"""The usual forms read by pattern, held against the parser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inductor_probe.reader import loop_body, usual, values
from inductor_probe.reader.ir import parse_ir
from tests.conftest import all_graph_dirs

FORMS = ("memory_dep", "layout", "users", "names")
REMEMBERED = (values.deps, values.dep, values.layout, values.users, loop_body._arguments)


def forget() -> None:
    for function in REMEMBERED:
        function.cache_clear()


@pytest.fixture
def parser_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every value be parsed."""
    forget()
    for name in FORMS:
        monkeypatch.setattr(usual, name, lambda text: None)
    yield
    forget()


def test_both_ways_of_reading_agree(request: pytest.FixtureRequest) -> None:
    files = [
        folder / name for folder in all_graph_dirs() for name in ("ir_pre_fusion.txt", "ir_post_fusion.txt")
    ]
    forget()
    quick = [parse_ir(file.read_text(), file) for file in files]
    request.getfixturevalue("parser_alone")
    for file, known in zip(files, quick, strict=True):
        assert parse_ir(file.read_text(), file).nodes == known.nodes


@pytest.mark.parametrize(
    "text",
    [
        "MemoryDep('buf0', ModularIndexing(c0, 1, 3), {c0: 8})",
        "MemoryDep('buf0', c0, {c0: s77})",
        "MemoryDep('buf0', c0, {c0: 8}, atomic_add)",
        "StarDep(name='buf0', mode=None)",
    ],
)
def test_an_unusual_dep_is_left_to_the_parser(text: str) -> None:
    assert usual.memory_dep(text) is None
    assert values.deps(f"[{text}]")


def test_a_constant_is_no_name() -> None:
    assert usual.names("load, inf") is None
    assert usual.names("load, 2") is None


@pytest.mark.parametrize("damaged", ["[NodeUser(node=OUTPUT, can_inplace=False", "[NodeUser()]", "[x]"])
def test_damaged_users_are_not_read_by_halves(damaged: str) -> None:
    assert usual.users(damaged) is None
    with pytest.raises((ValueError, KeyError)):
        values.users(damaged)


def test_paths_do_not_matter(tmp_path: Path) -> None:
    text = (all_graph_dirs()[0] / "ir_post_fusion.txt").read_text()
    assert parse_ir(text, tmp_path).nodes == parse_ir(text, Path("elsewhere")).nodes
