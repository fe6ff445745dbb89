"""Remarks about layouts, held against what the kernels' text and the buffers' addresses say."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.layout_remarks import SMALLEST_COST, remarks, with_remarks
from inductor_probe.analysis.layouts import layouts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.layouts import Access, GeneratedAccess, LayoutRow, Pattern
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import Span
from tests.conftest import all_graph_dirs
from tests.dumps import read_at

Read = Callable[..., CompiledGraph]

_NAME = re.compile(r"[A-Za-z_]\w*")


def check_graph(graph: CompiledGraph) -> int:
    rows = {row.buffer: row for row in layouts(graph)}
    leaves = {leaf.name: leaf for top in graph.nodes for leaf in top.leaves()}
    about = remarks(rows.values())
    for remark in about:
        for subject in remark.subjects:
            assert leaves[subject.name].body is not None, "nothing is said of library calls"
        row = rows[str(remark.number("buffer"))]
        assert row.layout is not None
        assert row.layout.size is not None
        assert 0 not in row.layout.size
        assert any(length != 1 for length in row.layout.size)
        assert remark.cost is None or remark.cost >= SMALLEST_COST
        if (written := remark.number("written")) is not None:
            check_orders(remark, row, rows[str(written)])
        if remark.code == "noncontiguous-access" and remark.knowledge == "read":
            check_text(remark, graph)
    costs = [remark.cost for remark in about]
    known = [cost for cost in costs if cost is not None]
    assert costs == [*sorted(known, reverse=True), *([None] * (len(costs) - len(known)))]
    return len(about)


def check_orders(remark: Remark, row: LayoutRow, written: LayoutRow) -> None:
    """By the addresses of the elements that both have, at most three along each dimension."""
    said = [remark.number(name) for name in ("format", "dim_order", "written_format", "written_dim_order")]
    assert said[:2] != said[2:], "a format compared with itself"
    assert row.layout is not None
    assert written.layout is not None
    sizes = [row.layout.size or (), written.layout.size or ()]
    strides = [row.layout.stride or (), written.layout.stride or ()]
    if not all(isinstance(number, int) for part in (*sizes, *strides) for number in part):
        return
    shared = [range(min(int(a), int(b), 3)) for a, b in zip(*sizes, strict=True)]
    one, other = (
        sorted(
            product(*shared), key=lambda at, by=stride: sum(a * int(b) for a, b in zip(at, by, strict=True))
        )
        for stride in strides
    )
    assert one != other


def check_text(remark: Remark, graph: CompiledGraph) -> None:
    """By evaluating the index in the kernel's own line at two neighbouring steps."""
    (place, *_) = [span for span in remark.evidence if span.path.name == "output_code.py"]
    lines = place.path.read_text().split("\n")
    line = lines[place.first - 1]
    if "tl." in line:
        assert all(abs(step) != 1 for step in triton_steps(lines, place))
    else:
        step = cpp_step(lines, place)
        assert step == "indirect" or abs(step) > 1, (line, step)


def cpp_step(lines: list[str], place: Span) -> int | str:
    """How far `pointer[index]` moves for one step of the innermost loop around it."""
    line = lines[place.first - 1]
    assert not re.search(r"_ptr\d+ \+", line), f"a vector access is contiguous: {line}"
    variable = innermost_around(lines, place.first)
    text = re.sub(r"static_cast<\w+>|c10::", "", bracketed(line[line.index("_ptr") :]))
    text = re.sub(r"\b(\d+)L\b", r"\1", text)
    if re.search(rf"tmp\w*\[{variable}\]", text):
        return "indirect"
    values = dict.fromkeys(_NAME.findall(text), 1)
    if variable not in values:
        assert any(name.startswith("tmp") for name in values), f"{variable} does not move it: {text}"
        return "indirect"
    return evaluated(text, {**values, variable: 2}) - evaluated(text, values)


def bracketed(text: str) -> str:
    """What stands in the first square brackets, brackets within included."""
    start = text.index("[")
    depth = 0
    for at, letter in enumerate(text[start:], start):
        depth += (letter == "[") - (letter == "]")
        if depth == 0:
            return text[start + 1 : at]
    raise AssertionError(f"brackets are not closed: {text}")


def innermost_around(lines: list[str], number: int) -> str:
    """The innermost loop around a line, by counting braces upwards."""
    depth = 0
    for above in reversed(lines[: number - 1]):
        depth += above.count("}") - above.count("{")
        found = re.search(r"\bfor\s*\((?:int64_t|long) (\w+)", above)
        if found and (depth < 0 or depth == 0):
            return found[1]
        depth = max(depth, 0)
    raise AssertionError(f"no loop above line {number}")


def triton_steps(lines: list[str], place: Span) -> list[int]:
    """How far the index of a block moves for one step along each axis, from several places on."""
    index = re.search(r"tl\.\w+\(\w+ \+ \((.*?)\), ", lines[place.first - 1])
    assert index is not None, lines[place.first - 1]
    start = max(at for at, line in enumerate(lines[: place.first]) if line.startswith("def triton"))
    defined = [
        (found[1], found[2])
        for line in lines[start : place.first]
        if (found := re.fullmatch(r"\s+([xyzr][\d_]+) = (.*)", line))
    ]
    axes = ("xindex", "yindex", "zindex", "rindex", "r0_index")

    def address(values: dict[str, int]) -> int:
        known = dict(values)
        for name, text in defined:
            known[name] = evaluated(text, known)
        for name in _NAME.findall(index[1]):
            known.setdefault(name, 7)
        return evaluated(index[1], known)

    steps = []
    for axis in axes:
        for first in (0, 1, 5):
            values = dict.fromkeys(axes, 2)
            steps.append(address({**values, axis: first + 1}) - address({**values, axis: first}))
    return steps


def evaluated(text: str, values: dict[str, int]) -> int:
    """The value of an index of a fixture, which holds arithmetic only."""
    assert re.fullmatch(r"[\w\s+\-*/%().]*", text), text
    return int(eval(text, {"__builtins__": {}}, dict(values)))  # noqa: S307 - arithmetic, as matched above


def test_remarks_of_the_fixtures_hold_against_addresses_and_kernels() -> None:
    assert sum(check_graph(read_at(folder)) for folder in all_graph_dirs()) >= 4


def test_a_loop_that_codegen_vectorised_is_contiguous_whatever_the_ir_has_innermost(read: Read) -> None:
    rows = layouts(read("torch-2.13.0-cpu/mlp_train", 1))
    reads = [(row, access) for row in rows for access in row.reads if access.node == "op2"]
    assert [access.pattern for _, access in reads] == [Pattern("strided", 64)]
    made = reads[0][1].generated
    assert made is not None
    assert (made.form, made.loop, made.stride, made.contiguous) == ("vector", "x0", 1, True)
    assert all(remark.subject.name != "op2" for row in rows for remark in row.remarks)


def test_without_generated_code_a_remark_is_inferred(read: Read) -> None:
    graph = replace(read("torch-2.13.0-cpu/aa_separable_cl"), code=None)
    (row,) = layouts(graph, "arg0_1")
    assert {remark.knowledge for remark in row.remarks} == {"inferred"}
    assert [remark.number("loop") for remark in row.remarks] == ["p2"]


def made_row(name: str, size: tuple[int, ...], stride: tuple[int, ...], **facts: object) -> LayoutRow:
    layout = BufferLayout("FixedLayout", "cpu", "float32", size, stride)
    given: dict[str, object] = {
        "graph": "g",
        "buffer": name,
        "role": "intermediate",
        "layout": layout,
        "memory_format": "contiguous",
        "dim_order": tuple(range(len(size))),
        "size_bytes": 1 << 20,
        "producer": None,
        "kernel": "k",
        "writes": (),
        "reads": (),
        "origin": None,
    }
    return LayoutRow(**{**given, **facts})  # type: ignore[arg-type]


def made_access(steps: tuple[int, ...], strides: tuple[int, ...]) -> Access:
    names = [f"p{number}" for number in range(len(steps))]
    return Access(
        "op0",
        "k",
        "-",
        tuple(zip(names, steps, strict=True)),
        tuple(zip(names, strides, strict=True)),
        names[-1],
        Pattern("contiguous", 1),
        contiguous=True,
        generated=GeneratedAccess("vector", "x1", 1, 64, True),
    )


def test_a_permutation_between_two_contiguous_buffers_is_no_layout_change() -> None:
    """`x.permute(0, 2, 1)`: dimensions at the same place of both are not the same loop."""
    read = made_access((8, 64, 32), (2048, 1, 64))
    write = made_access((8, 64, 32), (2048, 1, 64))
    rows = {
        "x": made_row("x", (8, 32, 64), (2048, 64, 1), reads=(read,)),
        "buf0": made_row("buf0", (8, 64, 32), (2048, 1, 64), producer="op0", writes=(write,)),
    }
    assert all(not row.remarks for row in with_remarks(rows, {"op0"}).values())


def test_a_layout_change_is_a_remark_of_both_buffers_and_none_of_library_calls() -> None:
    read, write = made_access((8, 64, 32), (2048, 32, 1)), made_access((8, 64, 32), (2048, 1, 64))
    rows = {
        "x": made_row("x", (8, 64, 32), (2048, 32, 1), reads=(read,)),
        "buf0": made_row("buf0", (8, 64, 32), (2048, 1, 64), producer="op0", writes=(write,)),
    }
    known = with_remarks(rows, {"op0"})
    (remark,) = known["x"].remarks
    assert known["buf0"].remarks == (remark,)
    assert (remark.code, remark.kind, remark.cost) == ("layout-change", "analysis", 1 << 20)
    assert with_remarks(rows, set()) == rows


@pytest.mark.parametrize("size", [(2, 32, 1, 1), (1, 1, 1, 1), (0, 32, 8, 8)])
def test_gradients_of_1x1_convolutions_and_empty_buffers_have_no_remarks(size: tuple[int, ...]) -> None:
    read, write = made_access((64, 64), (1, 64)), made_access((64, 64), (64, 1))
    rows = {
        "x": made_row("x", size, (32, 1, 32, 32), reads=(read,)),
        "buf0": made_row("buf0", (2, 32, 8, 8), (2048, 1, 256, 32), producer="op0", writes=(write,)),
    }
    assert all(not row.remarks for row in with_remarks(rows, {"op0"}).values())
