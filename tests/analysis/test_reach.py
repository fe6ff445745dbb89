"""What accesses are sure to reach, against elements that are counted one by one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.analysis.index import evaluate, parse_expression
from inductor_probe.analysis.reach import SECTOR_BYTES, least_bytes, pattern_of

SIZES = st.integers(1, 9)
TERMS = st.sampled_from(
    [
        "{k}*c0", "{k}*c1", "{k}*c2", "{k}*(c0//2)", "{k}*(c1//3)", "{k}*(ModularIndexing(c1, 1, 3))",
        "{k}*(ModularIndexing(c2, 2, 2))", "{k}*((c0 + c1)//2)", "{k}*(FloorDiv(c2, 4))", "-{k}*c1",
        "{k}*c0*c1",
    ]
)  # fmt: skip
INDICES = st.lists(st.tuples(TERMS, st.integers(1, 40)), min_size=1, max_size=4).map(
    lambda terms: " + ".join(["400", *(text.format(k=factor) for text, factor in terms)])
)
RANGES = st.fixed_dictionaries({"c0": SIZES, "c1": SIZES, "c2": SIZES})


def reached(index: str, ranges: dict[str, int]) -> set[int]:
    node = parse_expression(index)
    points = product(*(range(size) for size in ranges.values()))
    elements = {evaluate(node, dict(zip(ranges, point, strict=True))) for point in points}
    return {element for element in elements if element is not None}


def sectors(elements: set[int], item: int, shift: int) -> int:
    return len({(element * item + shift) // SECTOR_BYTES for element in elements}) * SECTOR_BYTES


@given(INDICES, RANGES, st.sampled_from([1, 2, 4, 8]), st.integers(0, 7))
def test_no_more_is_counted_than_is_reached(
    index: str, ranges: dict[str, int], item: int, shift: int
) -> None:
    pattern = pattern_of(index, ranges, {})
    assert pattern is not None
    elements = reached(index, ranges)
    assert pattern.count <= len(elements)
    assert pattern.sector_bytes(item) <= sectors(elements, item, shift * item)
    if not pattern.floats:
        assert min(elements) <= pattern.first <= pattern.last <= pattern.furthest


@given(
    st.lists(st.tuples(INDICES, RANGES), min_size=1, max_size=3),
    st.lists(st.integers(0, 30), min_size=1, max_size=4),
    st.sampled_from([1, 2, 4, 8]),
)
def test_no_more_is_counted_of_several_accesses(
    accesses: list[tuple[str, dict[str, int]]], moved: list[int], item: int
) -> None:
    texts = [(f"{index} + {step}", ranges) for index, ranges in accesses for step in moved]
    elements = set[int]().union(*(reached(index, ranges) for index, ranges in texts))
    patterns = [pattern for index, ranges in texts if (pattern := pattern_of(index, ranges, {}))]
    assert least_bytes(patterns, item, sectors=False) <= len(elements) * item
    assert least_bytes(patterns, item, sectors=True) <= sectors(elements, item, 0)


@pytest.mark.parametrize(
    ("index", "ranges", "count"),
    [
        ("c0", {"c0": 1000}, 1000),
        ("672*c0 - 3*c1 + c2 + 669", {"c0": 224, "c1": 224, "c2": 3}, 224 * 224 * 3),  # a channels-last flip
        ("c1", {"c0": 64, "c1": 32}, 32),  # broadcast along c0
        ("c0 + c1", {"c0": 100, "c1": 5}, 100),  # a window that slides over 104
        ("1000*(c0//8) + ModularIndexing(c0, 1, 8)", {"c0": 64}, 64),
        ("c0//2", {"c0": 9}, 5),  # each element is read twice
        ("tmp0 + 768*tmp1", {"c0": 512}, 1),  # a gather of single elements: all may be the same
        ("768*tmp0 + c1", {"c0": 512, "c1": 768}, 768),  # of rows: one at least
        ("s0*c0 + c1", {"c0": 4, "c1": 7}, 28),
        ("900*c0 + 30*c1 + c2 - 91", {"c0": 16, "c1": 37, "c2": 33}, 16 * 30 * 30),  # padded
    ],
)
def test_elements_that_are_counted(index: str, ranges: dict[str, int], count: int) -> None:
    pattern = pattern_of(index, ranges, {"s0": 7})
    assert pattern is not None
    assert pattern.count == count


@pytest.mark.parametrize(
    ("indices", "ranges", "item", "size"),
    [
        (["3*c0"], {"c0": 1000}, 1, 3008),  # one channel of three, each a byte: all sectors are reached
        (["64*c0"], {"c0": 100}, 4, 3200),  # a column: a sector for each element
        (["c0", "999 - c0"], {"c0": 1000}, 4, 4000),  # forwards and backwards: the same elements
        (["96*c0 + c1", "96*c0 + c1 + 32", "96*c0 + c1 + 64"], {"c0": 10, "c1": 32}, 4, 3840),  # q, k and v
        (["c0", "c0 + 4096"], {"c0": 1024}, 4, 8192),  # two halves of a tensor, with space between
        # A pooling window of 2 x 2 over 8 x 8: four accesses with steps of 2, all elements together.
        ([f"16*c0 + 2*c1 + {place}" for place in (0, 1, 8, 9)], {"c0": 4, "c1": 4}, 4, 256),
        (["768*tmp0 + c1", "768*tmp3 + c1"], {"c0": 512, "c1": 768}, 4, 3072),
    ],
)  # fmt: skip
def test_bytes_that_are_read(indices: list[str], ranges: dict[str, int], item: int, size: int) -> None:
    patterns = [pattern for index in indices if (pattern := pattern_of(index, ranges, {}))]
    assert least_bytes(patterns, item, sectors=True) == size


def test_an_index_that_cannot_be_parsed_is_not_known() -> None:
    assert pattern_of("c0 +", {"c0": 4}, {}) is None
