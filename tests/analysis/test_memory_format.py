"""Memory formats in words, checked against torch's own notion where torch has one."""

from __future__ import annotations

from itertools import product
from operator import mul

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.analysis.memory_format import memory_format, orders_differ, size_bytes
from inductor_probe.model.ir import BufferLayout, Dim


def layout(size: tuple[Dim, ...], stride: tuple[Dim, ...], dtype: str = "float32") -> BufferLayout:
    return BufferLayout("FixedLayout", "cpu", dtype, size, stride)


@pytest.mark.parametrize(
    ("size", "stride", "name", "order"),
    [
        ((4, 3, 5, 6), (90, 30, 6, 1), "contiguous", (0, 1, 2, 3)),
        ((4, 3, 5, 6), (90, 1, 18, 3), "channels_last", (0, 2, 3, 1)),
        ((1, 3, 5, 6), (90, 1, 18, 3), "channels_last", (0, 2, 3, 1)),
        ((4, 1, 5, 6), (30, 1, 6, 1), "contiguous", (0, 1, 2, 3)),
        ((2, 3, 4, 5, 6), (360, 1, 90, 18, 3), "channels_last", (0, 2, 3, 4, 1)),
        ((4, 3, 345, 256), (264960, 256, 768, 1), "transposed", (0, 2, 1, 3)),
        ((8, 4), (1, 8), "transposed", (1, 0)),
        ((2, 3, 4), (1, 8, 2), "other", (1, 2, 0)),
        ((8, 4), (4, 1), "contiguous", (0, 1)),
        ((), (), "contiguous", ()),
        ((1, 3, 224, 224), (180810, 60270, 246, 1), "padded", (0, 1, 2, 3)),
        ((8, 4), (0, 1), "broadcast", None),
        ((2, 32, 1, 1), (32, 1, 32, 32), "contiguous", (0, 1, 2, 3)),
        ((0, 3, 5, 6), (90, 1, 18, 3), "contiguous", (0, 1, 2, 3)),
        ((4, 0), (0, 1), "contiguous", (0, 1)),
        ((3, 0, 2), (1, 7, 9), "contiguous", (0, 1, 2)),
        ((8, 4), (2, 1), "other", (0, 1)),
        (("s77", "s27"), ("s27", 1), "contiguous", (0, 1)),
        (("s77", 3, "s27", "s27"), ("3*s27**2", 1, "3*s27", 3), "channels_last", (0, 2, 3, 1)),
        (("s77", "s27"), (1, "s77"), "transposed", (1, 0)),
        ((2, "u0"), ("f(u0)", 1), "unknown", None),
    ],
)
def test_names(
    size: tuple[Dim, ...], stride: tuple[Dim, ...], name: str, order: tuple[int, ...] | None
) -> None:
    found = memory_format(layout(size, stride))
    assert (found.name, found.dim_order) == (name, order)


@given(st.lists(st.integers(2, 7), min_size=4, max_size=4), st.permutations(range(4)))
def test_a_dense_layout_gives_back_the_order_it_was_made_in(size: list[int], order: list[int]) -> None:
    stride, step = [0] * 4, 1
    for dim in reversed(order):
        stride[dim], step = step, step * size[dim]
    found = memory_format(layout(tuple(size), tuple(stride)))
    assert found.dim_order == tuple(order)
    assert (found.name == "channels_last") == (list(order) == [0, 2, 3, 1])


@given(st.lists(st.integers(0, 4), min_size=4, max_size=5), st.booleans())
def test_channels_last_agrees_with_torch(size: list[int], last: bool) -> None:

    wanted = {4: torch.channels_last, 5: torch.channels_last_3d}[len(size)]
    tensor = torch.empty(size).contiguous(memory_format=wanted if last else torch.contiguous_format)
    found = memory_format(layout(tuple(tensor.shape), tuple(tensor.stride())))
    is_last = tensor.is_contiguous(memory_format=wanted) and not tensor.is_contiguous()
    assert found.name == ("channels_last" if is_last else "contiguous")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_a_buffer_without_elements_is_contiguous_as_torch_says(size: list[int], data: st.DataObject) -> None:
    stride = data.draw(st.lists(st.integers(0, 9), min_size=len(size), max_size=len(size)))
    size[data.draw(st.integers(0, len(size) - 1))] = 0
    assert torch.empty_strided(size, stride).is_contiguous()
    assert memory_format(layout(tuple(size), tuple(stride))).name == "contiguous"


@given(st.integers(2, 5), st.data())
def test_two_orders_differ_where_their_elements_do(rank: int, data: st.DataObject) -> None:
    sizes, strides = [], []
    for _ in range(2):
        size = data.draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
        stride, step = [0] * rank, 1
        for dim in data.draw(st.permutations(range(rank))):
            stride[dim], step = step, step * size[dim]
        sizes.append(size)
        strides.append(stride)
    one, other = (layout(tuple(s), tuple(t)) for s, t in zip(sizes, strides, strict=True))
    common = [range(min(pair)) for pair in zip(*sizes, strict=True)]
    in_memory = [
        sorted(product(*common), key=lambda at, by=stride: sum(map(mul, at, by))) for stride in strides
    ]
    assert orders_differ(one, other) == (in_memory[0] != in_memory[1])


def test_a_broadcast_dimension_has_no_place_in_the_order() -> None:
    assert not orders_differ(layout((8, 4), (0, 1)), layout((8, 4), (4, 1)))
    assert not orders_differ(layout((8, 4), (1, 0)), layout((8, 4), (4, 1)))


@pytest.mark.parametrize("other", [(2048, 64, 8, 1), (2048, 1, 256, 32)])
def test_a_weight_gradient_of_a_1x1_convolution_is_in_the_order_of_every_image(
    other: tuple[int, ...],
) -> None:
    for stride in ((32, 1, 1, 1), (32, 1, 32, 32)):
        assert not orders_differ(layout((2, 32, 1, 1), stride), layout((2, 32, 8, 8), other))


@pytest.mark.parametrize(
    ("given_layout", "size"),
    [
        (layout((4, 3, 345, 256), (264960, 256, 768, 1)), 4239360),
        (layout((1, 3, 224, 224), (180810, 60270, 246, 1), "uint8"), 175622),
        (layout((8, 4), (0, 1)), 16),
        (layout((0, 4), (4, 1)), 0),
        (layout(("s17 + s77", "s27"), ("s27", 1)), "4*(s17 + s77)*s27"),
        (layout((2,), (1,), "some_new_dtype"), None),
        (None, None),
    ],
)
def test_bytes(given_layout: BufferLayout | None, size: Dim | None) -> None:
    assert size_bytes(given_layout) == size
