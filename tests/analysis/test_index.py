"""Strides of index expressions, checked against stepping through the expression itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.analysis.index import (
    PIECEWISE,
    dims_sum,
    evaluate,
    parse_expression,
    parse_index,
    steady_run,
)


@pytest.mark.parametrize(
    ("text", "strides"),
    [
        ("672*p0 - 3*p1 + p2 + 669", {"p0": 672, "p1": -3, "p2": 1, "p3": 0}),
        ("3*indirect0 + 1368*p0 + p1", {"p0": 1368, "p1": 1, "indirect0": 3}),
        ("p0*s27 + p1", {"p0": "s27", "p1": 1}),
        ("s27*s77*p0 + 2*p0 + p1", {"p0": "s27*s77 + 2"}),
        ("(s17 + s77)*p0", {"p0": "s17 + s77"}),
        ("50176*((c2//3136)) + (ModularIndexing(c2, 1, 3136)) + c0", {"c0": 1, "c2": PIECEWISE}),
        ("p0**2 + p1", {"p0": PIECEWISE, "p1": 1}),
        ("223 - p1", {"p1": -1}),
        ("0", {"p0": 0}),
    ],
)
def test_strides(text: str, strides: dict[str, int | str]) -> None:
    index = parse_index(text)
    assert {name: index.stride(name) for name in strides} == strides


_linear = st.lists(
    st.tuples(st.integers(-(10**6), 10**6), st.sampled_from(["p0", "p1", "p2", ""])), min_size=1, max_size=8
)


@given(_linear, st.dictionaries(st.sampled_from(["p0", "p1", "p2"]), st.integers(0, 1000)))
def test_a_stride_is_what_one_step_adds(terms: list[tuple[int, str]], at: dict[str, int]) -> None:
    text = " + ".join(f"{factor}*{name}" if name else str(factor) for factor, name in terms)
    index, node = parse_index(text), parse_expression(text)
    here = {"p0": 0, "p1": 0, "p2": 0, **at}
    for name, value in here.items():
        before, after = evaluate(node, here), evaluate(node, {**here, name: value + 1})
        assert before is not None
        assert after is not None
        assert index.stride(name) == after - before


def test_a_piecewise_index_is_walked() -> None:
    index = parse_index("100*((p0//8)) + (ModularIndexing(p0, 1, 8))")
    assert steady_run(index, "p0", 64) == (1, 7 + 1)
    assert steady_run(parse_index("2*((p0//1))"), "p0", 64) == (2, 64)
    assert steady_run(parse_index("ModularIndexing(p0, 1, s77)"), "p0", 64) is None


@given(st.text(max_size=40))
def test_any_text_is_an_index_or_a_value_error(text: str) -> None:
    try:
        parse_index(text).stride("p0")
    except ValueError as error:
        assert "not an expression" in str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    "text",
    [
        "((a + b + c + d)**8)**8",
        "(((((((7**8)**8)**8)**8)**8)**8)**8)**8",
        "*".join(f"(a{at} + b{at})" for at in range(40)),
        "9" * 4000 + "*p0",
        f"{'9' * 30}*{'9' * 30}*p0",
    ],
)
def test_what_would_grow_without_end_is_not_multiplied_out(text: str) -> None:
    index = parse_index(text)
    assert len(index.terms) <= 1000
    assert all(value.bit_length() <= 128 for _, value in index.terms)


def test_a_power_of_powers_has_no_value() -> None:
    assert evaluate(parse_expression("((2**8)**8)**8"), {}) == 2**512
    assert evaluate(parse_expression("(((((2**8)**8)**8)**8)**8)**8"), {}) is None


@pytest.mark.parametrize(
    ("sizes", "total"),
    [
        (["4*s77", "4*s77*24", 8, "4*s77*s94", "s77*s94"], "5*s77*s94 + 100*s77 + 8"),
        (["4*(s0 + s1)*s2", "-4*s2*s1"], "4*s0*s2"),
        (["4*s0", "-4*s0", 3], 3),
        (["4*s0", "4*(s0//2)", 1], "4*s0 + 4*(s0//2) + 1"),
        ([1, 2], 3),
    ],
)
def test_like_terms_of_a_sum_of_sizes_are_added(sizes: list[int | str], total: int | str) -> None:
    """A summary said `4*s77 + 4*s77 + 4*s77*24` of the bytes of its buffers."""
    assert dims_sum(sizes) == total
