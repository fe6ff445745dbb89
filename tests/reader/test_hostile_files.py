"""Damaged files in a graph's folder: every damage, every file; the rest is read, path and line are named."""

from __future__ import annotations

import functools
import random
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inductor_probe.model.debug_dir import CompiledGraph
from tests.conftest import DUMPS
from tests.dumps import copy_of, graph_in
from tests.reader.hostile import DAMAGES, read

FLIP = graph_in(DUMPS / "torch-2.13.0-cpu" / "hflip_cl")
SOURCES = {
    "cpp": graph_in(DUMPS / "torch-2.13.0-cpu" / "dynamic_shapes"),
    "triton": graph_in(DUMPS / "torch-2.11.0-cuda" / "foreach_adam"),
    "old": graph_in(DUMPS / "torch-2.1.2-cpu" / "layernorm_grad"),
}
FILES = sorted({path.name for graph in SOURCES.values() for path in graph.iterdir()})
PART_OF = {
    "ir_pre_fusion.txt": "pre",
    "ir_post_fusion.txt": "post",
    "output_code.py": "code",
    "fx_graph_transformed.py": "fx",
    "fx_graph_readable.py": "fx_before",
}
_SETTINGS = settings(max_examples=25, suppress_health_check=list(HealthCheck))


def parts(graph: CompiledGraph) -> dict[str, object]:
    return {name: getattr(graph, name) for name in PART_OF.values()}


@functools.cache
def whole(source: str, part: str) -> str:
    """Return what is read of a part where nothing is damaged, without the folder."""
    return repr(getattr(read(SOURCES[source]), part)).replace(str(SOURCES[source]), "")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("source", SOURCES)
def test_every_damage_to_every_file_is_survived(tmp_path: Path, source: str, damage: str) -> None:
    original = SOURCES[source]
    for name in FILES:
        if not (original / name).exists():
            continue
        copy = copy_of(original, tmp_path / name)
        data = DAMAGES[damage]((copy / name).read_bytes())
        (copy / name).write_bytes(data)
        graph = read(copy)
        for file, part in PART_OF.items():
            if file not in (name, "fx_graph_readable.py" if part == "fx" else name):
                # What the other files hold is shown as if nothing had happened.
                assert repr(getattr(graph, part)).replace(str(copy), "") == whole(source, part), (name, part)
        for problem in graph.problems:
            assert problem.span is not None or str(copy) in problem.message


@pytest.mark.parametrize("damage", ["half", "nul in the middle", "utf16", "no brackets", "deep brackets"])
@pytest.mark.parametrize("name", ["ir_pre_fusion.txt", "ir_post_fusion.txt", "output_code.py"])
def test_what_cannot_be_read_is_told_with_path_and_line(tmp_path: Path, name: str, damage: str) -> None:
    copy = copy_of(SOURCES["cpp"], tmp_path)
    (copy / name).write_bytes(DAMAGES[damage]((copy / name).read_bytes()))
    problems = read(copy).problems
    assert any(re.search(rf"{re.escape(str(copy / name))}:\d+: ", str(problem)) for problem in problems)


@_SETTINGS
@given(st.data())
@pytest.mark.parametrize("name", sorted(path.name for path in FLIP.iterdir()))
def test_cut_at_any_byte(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    whole = (FLIP / name).read_bytes()
    end = data.draw(st.integers(0, len(whole) - 1))
    copy = copy_of(FLIP, tmp_path_factory.mktemp("cut"))
    (copy / name).write_bytes(whole[:end])
    read(copy)
    shutil.rmtree(copy.parents[3])


@pytest.mark.parametrize("name", ["ir_pre_fusion.txt", "ir_post_fusion.txt"])
def test_nodes_before_the_cut_are_shown(tmp_path: Path, name: str) -> None:
    source = SOURCES["old"]
    whole = (source / name).read_bytes()
    nodes = [node.name for node in parts(read(source))[PART_OF[name]]]  # type: ignore[attr-defined]  # of nodes
    rng = random.Random(name)  # noqa: S311 - the same cuts every time
    copy = copy_of(source, tmp_path)
    for end in sorted(rng.sample(range(len(whole)), 40)):
        (copy / name).write_bytes(whole[:end])
        read_nodes = [node.name for node in parts(read(copy))[PART_OF[name]]]  # type: ignore[attr-defined]
        complete = whole[:end].count(b"\n\n\n")
        assert read_nodes[:complete] == nodes[:complete]
        assert len(read_nodes) <= complete + 1


@pytest.mark.parametrize("source", SOURCES)
def test_bytes_changed_anywhere(tmp_path: Path, source: str) -> None:
    original = SOURCES[source]
    copy = copy_of(original, tmp_path)
    rng = random.Random(source)  # noqa: S311 - the same changes every time
    names = [path.name for path in sorted(original.iterdir())]
    for _ in range(60):
        name = rng.choice(names)
        whole = (original / name).read_bytes()
        (copy / name).write_bytes(mutated(whole, rng))
        read(copy)
        (copy / name).write_bytes(whole)


_TOKENS = [
    b"(",
    b")",
    b"[",
    b"]",
    b"{",
    b"'",
    b'"""',
    b"\n",
    b"\\",
    b",",
    b":",
    b" ",
    b"=",
    b"-",
    b"**",
    b"0x",
    b"1e400",
]
_TOKENS += [
    b"\xff",
    b"\r",
    b"\f",
    b"\t",
    b"#",
    b"None",
    b"lambda:",
    b"op1",
    b"buf0",
    b"9" * 30,
    "²".encode(),
    b"0or",
]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Change, drop, repeat, move or insert something, once or a few times."""
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        start = rng.randrange(len(data) + 1)
        end = start + rng.choice([1, 2, 20, 200, 2000])
        other = rng.randrange(len(data) + 1)
        data = rng.choice(
            [
                data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :],
                data[:start] + data[end:],
                data[:end] + data[start:],
                data[:other] + data[start:end] + data[other:],
                data[:start] + rng.choice(_TOKENS) + data[start:],
            ]
        )
    return data


@_SETTINGS
@given(st.sampled_from(FILES), st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_anything_at_all_in_any_file(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes
) -> None:
    copy = copy_of(FLIP, tmp_path_factory.mktemp("any"))
    (copy / name).write_bytes(data)
    graph = read(copy)
    assert graph.pre or graph.post  # one of the two files is untouched
    shutil.rmtree(copy.parents[3])


def test_files_under_each_others_names(tmp_path: Path) -> None:
    for original in SOURCES.values():
        names = [path.name for path in sorted(original.iterdir())]
        for shift in range(1, len(names)):
            copy = copy_of(original, tmp_path / f"{original.name}{shift}{original.parents[2].name}")
            for at, name in enumerate(names):
                shutil.copy(original / names[(at + shift) % len(names)], copy / name)
            read(copy)


@pytest.mark.parametrize("number", ["0x" + "f" * 5000, "0b" + "10" * 3000, "0o" + "7_" * 4000])
def test_a_number_that_python_reads_and_cannot_print_is_named(tmp_path: Path, number: str) -> None:
    copy = copy_of(FLIP, tmp_path)
    file = copy / "ir_post_fusion.txt"
    lines = file.read_text().split("\n")
    lines[3] += f" {number}"
    file.write_text("\n".join(lines))
    assert f"{file}:4: a number of more than 1,000 digits" in str(read(copy).problems[0])


def test_a_number_that_python_cannot_print_leaves_the_rest_of_the_file_readable(tmp_path: Path) -> None:
    """The whole file was refused for it."""
    copy = copy_of(FLIP, tmp_path)
    good = read(FLIP)
    for name in ("ir_post_fusion.txt", "output_code.py"):
        text = (copy / name).read_text()
        (copy / name).write_text(text.replace("150528", "0x" + "f" * 5000, 1) + f"# {'0b' + '1' * 2000}\n")
    damaged = read(copy)
    assert [node.name for node in damaged.post] == [node.name for node in good.post]
    assert damaged.code is not None
    assert good.code is not None
    assert [launch.kernel for launch in damaged.code.launches] == [
        launch.kernel for launch in good.code.launches
    ]
    assert all("a number of more than 1,000 digits, not read" in str(each) for each in damaged.problems[:2])
