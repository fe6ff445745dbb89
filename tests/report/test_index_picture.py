"""The picture of a layout against the memory itself: numpy says which element is where."""

from __future__ import annotations

import re

import numpy as np
import pytest

from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.report.plots.index_picture import index_picture, small_picture
from tests.report.harmless import checked


def row(size: tuple[Dim, ...], stride: tuple[Dim, ...], order: tuple[int, ...] | None) -> LayoutRow:
    layout = BufferLayout("FixedLayout", "cpu", "float32", size, stride)
    return LayoutRow("g", "buf0", "intermediate", layout, "other", order, None, "op0", None, (), (), None)


def cells(html: str) -> list[str]:
    """Return the texts above the lines: indices of the fastest dimension, in the order of memory."""
    return [
        text
        for y, text in re.findall(r'<text x="[\d.]+" y="(\d+)" text-anchor="middle">([^<]*)<', html)
        if y == "14"
    ]


@pytest.mark.parametrize(
    ("size", "order"),
    [
        ((2, 3, 5, 4), (0, 2, 3, 1)),
        ((2, 3, 5, 4), (0, 1, 2, 3)),
        ((2, 3, 5, 4), (0, 2, 1, 3)),
        ((6, 4), (1, 0)),
        ((1, 3, 1, 6), (0, 2, 3, 1)),
        ((5,), (0,)),
    ],
)
def test_cells_stand_as_elements_do_in_memory(size: tuple[int, ...], order: tuple[int, ...]) -> None:
    stride, step = [0] * len(size), 1
    for dim in reversed(order):
        stride[dim], step = step, step * size[dim]
    place = sum(index * step for index, step in zip(np.indices(size), stride, strict=True)).ravel()
    found = row(size, tuple(stride), order)
    fastest = next(dim for dim in reversed(order) if size[dim] > 1)
    in_memory = np.indices(size)[fastest].ravel()[np.argsort(place)]
    shown = cells(index_picture(found))
    assert shown == [str(index) for index in in_memory[: len(shown)]]
    assert len(shown) >= min(len(in_memory), 5)
    assert f"dim {fastest} runs fastest" in checked(small_picture(found)).text


def test_a_long_run_is_shown_by_its_ends() -> None:
    shown = cells(index_picture(row((4, 3, 345, 456), (471960, 157320, 456, 1), (0, 1, 2, 3))))
    assert shown[:5] == ["0", "1", "2", "…", "455"]


def test_symbolic_sizes_have_a_picture() -> None:
    found = index_picture(row(("s77", 3, "s27"), ("3*s27", "s27", 1), (0, 1, 2)))
    assert cells(found)[:5] == ["0", "1", "2", "…", "last"]
    assert "s27 steps of stride 1" in checked(found).text


def test_what_is_odd_about_a_layout_is_said() -> None:
    padded = index_picture(row((4, 5), (8, 1), (0, 1)))
    assert "left empty" in padded
    assert "stroke-dasharray" in padded
    assert "3 elements are skipped" in index_picture(row((4, 5), (20, 4), (0, 1)))
    assert "all indices of dim 0 are the same element" in index_picture(row((4, 5), (0, 1), (0, 1)))


@pytest.mark.parametrize(
    "found",
    [
        row((4, 5), (5, 1), None),
        row((), (), ()),
        row((1, 1), (1, 1), (0, 1)),
        row((4, 5), (5,), (0, 1)),
        row((0, 5), (5, 1), (0, 0)),
    ],
)
def test_what_has_no_order_has_no_picture(found: LayoutRow) -> None:
    assert index_picture(found) == small_picture(found) == ""
