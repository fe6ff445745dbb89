"""Where boxes are drawn: none upon another, arrows downwards, nothing outside."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.report.plots.placing import Placed, place

NAMES = [f"b{at}" for at in range(9)]
SIZES = {name: (40.0 + 17 * at % 90, 20.0 + 7 * at % 30) for at, name in enumerate(NAMES)}
ARROWS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=16)


def assert_apart(placed: Placed, sizes: dict[str, tuple[float, float]]) -> None:
    for (first, (x, y)), (second, (x2, y2)) in combinations(placed.corners.items(), 2):
        (width, height), (width2, height2) = sizes[first], sizes[second]
        beside = x + width <= x2 + 1e-6 or x2 + width2 <= x + 1e-6
        above = y + height <= y2 + 1e-6 or y2 + height2 <= y + 1e-6
        assert beside or above, (first, second)
    for name, (x, y) in placed.corners.items():
        assert x >= 0
        assert y >= 0
        assert x + sizes[name][0] <= placed.width + 1e-6
        assert y + sizes[name][1] <= placed.height + 1e-6


@given(ARROWS)
def test_boxes_never_lie_upon_each_other_in_circles_either(arrows: list[tuple[str, str]]) -> None:
    placed = place(SIZES, arrows)
    assert_apart(placed, SIZES)
    assert set(placed.routes) == {arrow for arrow in arrows if arrow[0] != arrow[1]}


@given(ARROWS)
def test_arrows_point_down_and_meet_their_boxes(arrows: list[tuple[str, str]]) -> None:
    downwards = [(first, second) for first, second in arrows if first < second]
    placed = place(SIZES, downwards)
    for (first, second), points in placed.routes.items():
        assert [y for _, y in points] == sorted(y for _, y in points)
        assert points[0][1] < points[-1][1]
        for name, (x, y), edge in ((first, points[0], SIZES[first][1]), (second, points[-1], 0.0)):
            left, top = placed.corners[name]
            assert left < x < left + SIZES[name][0]
            assert y == top + edge


def test_a_long_arrow_goes_around_what_is_between() -> None:
    sizes = dict.fromkeys("abc", (100.0, 20.0))
    placed = place(sizes, [("a", "b"), ("b", "c"), ("a", "c")])
    left, top = placed.corners["b"]
    beside = [x for x, y in placed.routes["a", "c"] if top <= y <= top + 20]
    assert len(beside) == 2
    assert all(x < left or x > left + 100 for x in beside)


def test_an_input_stands_just_above_who_needs_it() -> None:
    placed = place(dict.fromkeys("abcx", (50.0, 20.0)), [("a", "b"), ("b", "c"), ("x", "c")])
    assert placed.corners["x"][1] == placed.corners["b"][1]


def test_nothing_is_an_empty_drawing() -> None:
    assert place({}, []).corners == {}
