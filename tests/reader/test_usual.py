"""The usual forms read by pattern, held against the parser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inductor_probe.model.ir import Ref
from inductor_probe.reader import loop_body, output_code, usual, values
from inductor_probe.reader.ir import parse_ir
from inductor_probe.reader.output_code import parse_output_code
from tests.conftest import all_graph_dirs

FORMS = ("memory_dep", "star_dep", "layout", "users", "names", "operands")
REMEMBERED = (values.deps, values.dep, values.layout, values.users, loop_body._arguments, loop_body._op)


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
        "StarDep(name='buf0', mode='atomic_add')",
    ],
)
def test_an_unusual_dep_is_left_to_the_parser(text: str) -> None:
    assert usual.memory_dep(text) is None
    assert usual.star_dep(text) is None
    assert values.deps(f"[{text}]")


def test_a_constant_is_no_name() -> None:
    assert usual.operands("load, inf") is None
    assert usual.operands("load, 2") is None
    assert usual.operands("'buf0', load, None") == ("buf0", Ref("load"), None)


def test_shorthand_leaves_the_wrapper_as_it_is() -> None:
    texts = [folder / "output_code.py" for folder in all_graph_dirs()]
    for path in texts:
        text = path.read_text()
        known = parse_output_code(text, path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(output_code, "shortened", lambda wrapper: (wrapper, []))
            assert parse_output_code(text, path) == known


@pytest.mark.parametrize("damaged", ["[NodeUser(node=OUTPUT, can_inplace=False", "[NodeUser()]", "[x]"])
def test_damaged_users_are_not_read_by_halves(damaged: str) -> None:
    assert usual.users(damaged) is None
    with pytest.raises((ValueError, KeyError)):
        values.users(damaged)


def test_paths_do_not_matter(tmp_path: Path) -> None:
    text = (all_graph_dirs()[0] / "ir_post_fusion.txt").read_text()
    assert parse_ir(text, tmp_path).nodes == parse_ir(text, Path("elsewhere")).nodes


def test_a_number_in_a_wrapper_is_no_shorthand() -> None:
    text = """async_compile.wait(globals())
def call(args):
    arg0_1, = args
    assert_size_stride(arg0_1, (4, ), (1, ))
    0
    return (arg0_1, )
"""
    code = parse_output_code(text, Path("output_code.py"))
    (allocation,) = code.allocations
    assert allocation.span is not None
    assert (allocation.name, allocation.span.first) == ("arg0_1", 4)
    assert code.problems == ()
