from __future__ import annotations

import ast
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.variants.index import (
    Layout,
    Sum,
    UnprovedError,
    coordinates,
    flat_index,
    python_text,
    sum_of,
    written,
)

CHANNELS_LAST = Layout((4, 3, 345, 256), (264960, 1, 768, 3))
ROWS_OF_CHANNELS = Layout((4, 3, 345, 256), (264960, 256, 768, 1))


def ranges(**sizes: int):  # type: ignore[no-untyped-def]
    """Least and largest value of names, and of what the coordinates make of them."""

    def of(factor: str) -> tuple[int, int]:
        return 0, sizes[factor] - 1

    return of


@pytest.mark.parametrize(
    ("index", "sizes", "expected"),
    [
        # a loop over two dimensions that lie behind each other becomes one again
        ("x2 + 256*x1 + 768*x0", {"x0": 1380, "x1": 3, "x2": 256}, "x1 + 768*x0 + 3*x2"),
        # what is loaded stands for a row, and nothing but a row
        (
            "x3 + 256*x1 + 768*t + 264960*x0",
            {"x0": 4, "x1": 3, "t": 345, "x3": 256},
            "264960*x0 + x1 + 768*t + 3*x3",
        ),
        # reversed columns: the constant is the last column
        ("255 - x2 + 256*x1 + 768*x0", {"x0": 1380, "x1": 3, "x2": 256}, "x1 + 768*x0 + -3*x2 + 765"),
        # a flat loop over all of it has to be taken apart, but for the rows of all images
        ("x0", {"x0": 4 * 345 * 3 * 256}, "((x0) // 256) % 3 + 768*((x0 // 256) // 3) + 3*(x0 % 256)"),
    ],
)
def test_a_flat_index_in_another_layout(index: str, sizes: dict[str, int], expected: str) -> None:
    where = coordinates(sum_of(index), ROWS_OF_CHANNELS, ranges(**sizes))
    moved, wanted = flat_index(where, CHANNELS_LAST), sum_of(expected)
    assert {ast.unparse(ast.parse(f)): v for f, v in moved.terms} == dict(wanted.terms)
    assert moved.constant == wanted.constant


@pytest.mark.parametrize(
    ("index", "sizes", "layout", "why"),
    [
        (
            "x2 + 256*x1 + 768*x0",
            {"x0": 1381, "x1": 3, "x2": 256},
            ROWS_OF_CHANNELS,
            "runs over the end of dimension 0",
        ),
        (
            "x2 + 256*x1",
            {"x1": 3, "x2": 257},
            Layout((2, 3, 256), (768, 256, 1)),
            "dimension 1 would be 0 to 3",
        ),
        ("x2 + x1", {"x1": 3, "x2": 256}, Layout((2, 3, 256), (768, 256, 1)), "outside of its size 256"),
        ("x2 - 1", {"x2": 10}, Layout((2, 10), (10, 1)), "left over"),
        ("2*x0", {"x0": 9}, Layout((6, 3), (3, 1)), "runs over the end of dimension 1"),
        ("x0", {"x0": 3}, Layout((2, 4), (8, 2)), "not a multiple of a stride"),
    ],
)
def test_what_is_not_proved_is_refused(index: str, sizes: dict[str, int], layout: Layout, why: str) -> None:
    with pytest.raises(UnprovedError) as caught:
        coordinates(sum_of(index), layout, ranges(**sizes))
    assert why in str(caught.value)


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    old=st.randoms(use_true_random=False),
    cut=st.integers(0, 4),
)
def test_every_element_is_found_again(sizes: list[int], old, cut: int) -> None:  # type: ignore[no-untyped-def]
    """A loop for each dimension, or one for the outermost `cut` of them, reaches the same elements."""

    def dense(order: list[int]) -> Layout:
        stride, step = [0] * len(sizes), 1
        for dim in order:
            stride[dim], step = step, step * sizes[dim]
        return Layout(tuple(sizes), tuple(stride))

    dims = list(range(len(sizes)))
    before, after = dense(old.sample(dims, len(dims))), dense(old.sample(dims, len(dims)))
    order = before.by_stride()
    joined, single = order[:cut], order[cut:]
    names = {f"x{dim}": sizes[dim] for dim in single}
    terms = [(f"x{dim}", before.stride[dim]) for dim in single]
    if joined:
        steps = 1
        for dim in joined:
            steps *= sizes[dim]
        names["y"] = steps
        terms.append(("y", before.stride[joined[-1]]))
    index = Sum(tuple(terms), 0)
    text = written(flat_index(coordinates(index, before, ranges(**names)), after), "triton")
    moved = compile(text, "moved", "eval")
    was = compile(written(index, "triton"), "was", "eval")
    pairs = set()
    for values in product(*(range(n) for n in names.values())):
        variables = dict(zip(names, values, strict=True))
        flat = eval(was, {}, variables)  # noqa: S307 - this test made it
        place = []
        for dim in order:
            place.append((dim, flat // before.stride[dim] % sizes[dim]))
        assert eval(moved, {}, variables) == sum(at * after.stride[dim] for dim, at in place)  # noqa: S307
        pairs.add(flat)
    assert len(pairs) == before.extent


@pytest.mark.parametrize(
    "text",
    [
        "x1 + 3L*tmp32[x2_inner] + 1368L*x0",
        "c10::div_floor_integer(static_cast<int64_t>(x0), static_cast<int64_t>(24L)) + 3L*x1",
        "(x0 % 24L) + 24L*x1",
    ],
)
def test_cpp_indices_survive_being_read_and_written(text: str) -> None:
    once = written(sum_of(python_text(text, "cpp")), "cpp")
    assert once == written(sum_of(python_text(once, "cpp")), "cpp")
    assert sum_of(python_text(once, "cpp")) == sum_of(python_text(text, "cpp"))


def test_layouts_that_do_not_nest_are_told() -> None:
    assert not CHANNELS_LAST.overlaps()
    assert Layout((2, 3), (1, 1)).overlaps()
    assert Layout((2, 3), (0, 1)).overlaps()
    assert not Layout((2, 1, 3), (3, 0, 1)).overlaps(), "a dimension of size 1 has no steps"
