from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from inductor_probe.harness.checks import Slack, allowed, compare, slack_of
from inductor_probe.harness.inputs import Inputs, changed, clone
from inductor_probe.harness.judge import poisoned
from inductor_probe.harness.reference import Float64
from tests.bench_file.judged import reasons

NAN, INF = math.nan, math.inf
EXACT = Slack()


def one(
    value: list[Any], expected: list[Any], slack: Slack = EXACT, dtype: torch.dtype = torch.float32
) -> Any:
    wide = torch.float64 if dtype.is_floating_point else dtype
    return compare("v", [torch.tensor(value, dtype=dtype)], [torch.tensor(expected, dtype=wide)], [slack])


@pytest.mark.parametrize(
    ("value", "expected", "correct"),
    [
        ([1.0, NAN], [1.0, NAN], True),
        ([1.0, NAN], [1.0, 2.0], False),
        ([1.0, 2.0], [1.0, NAN], False),
        ([INF], [INF], True),
        ([-INF], [INF], False),
        ([INF], [1.0], False),
        ([1.0], [INF], False),
        ([INF], [1e300], True),  # float32 cannot hold it
        ([1.0 + 1e-6], [1.0], True),
        ([1.0 + 1e-4], [1.0], False),
        ([1e-6], [0.0], True),
    ],
)
def test_what_a_float_may_be(value: list[float], expected: list[float], correct: bool) -> None:
    assert one(value, expected).correct is correct


def test_slack_widens_the_tolerance_but_lets_no_nan_through() -> None:
    assert one([1.01], [1.0], slack=Slack(0.02, INF)).correct
    assert not one([1.03], [1.0], slack=Slack(0.02, INF)).correct
    assert not one([NAN], [1.0], slack=Slack(INF, INF)).correct
    assert not one([1.0], [NAN], slack=Slack(INF, INF)).correct


def test_large_errors_of_large_elements_are_no_excuse_for_small_elements() -> None:
    expected = torch.tensor([1e6, 1e-3], dtype=torch.float64)
    slack = slack_of(torch.tensor([1e6 + 0.5, 1e-3]), expected, 2.0)
    assert slack.absolute == 1.0
    assert slack.tolerances < 1
    assert compare("v", [torch.tensor([1e6 + 0.6, 1e-3])], [expected], [slack]).correct
    assert not compare("v", [torch.tensor([1e6, 2e-3])], [expected], [slack]).correct


def test_slack_is_twice_what_the_pristine_code_is_off_and_no_more() -> None:
    expected = torch.zeros(3, dtype=torch.float64)
    slack = slack_of(torch.tensor([1e-3, 0.0, 0.0]), expected, 2.0)
    assert compare("v", [torch.tensor([0.0, 1.9e-3, 0.0])], [expected], [slack]).correct
    assert not compare("v", [torch.tensor([0.0, 2.1e-3, 0.0])], [expected], [slack]).correct


def test_slack_is_not_spoilt_by_nan_where_both_have_it() -> None:
    expected = torch.tensor([NAN, 1.0], dtype=torch.float64)
    value = torch.tensor([NAN, 1.0 + 1e-7])
    assert compare("v", [value], [expected], [slack_of(value, expected, 2.0)]).correct


def test_integers_are_exact_even_where_float64_is_not() -> None:
    assert one([2**60 + 1], [2**60 + 1], dtype=torch.int64).correct
    assert not one([2**60 + 1], [2**60], dtype=torch.int64).correct
    assert one([3], [4], slack=Slack(1.0), dtype=torch.int32).correct
    assert not one([True], [False], dtype=torch.bool).correct


def test_the_first_bad_element_is_named() -> None:
    value = torch.zeros(2, 3)
    value[1, 2] = 5
    value[1, 1] = math.nan
    check = compare("v", [torch.ones(4), value], [torch.ones(4), torch.zeros(2, 3)], [EXACT, EXACT])
    assert (check.correct, check.mismatches, check.elements) == (False, 2, 10)
    assert (check.first_bad_output, check.first_bad) == (1, (1, 1))
    assert math.isnan(check.value or 0)
    assert check.expected == 0
    assert check.max_error == 5


def test_sizes_counts_and_numbers_must_agree() -> None:
    assert "size [2] instead of size [3]" in reasons(compare("v", [torch.ones(2)], [torch.ones(3)], [EXACT]))
    assert "returns 1 values" in reasons(compare("v", [1], [1, 2], [EXACT, EXACT]))
    assert compare("v", [None, 3], [None, 3], [EXACT, EXACT]).correct
    assert not compare("v", [3], [4], [EXACT]).correct
    assert compare("v", [torch.ones(0)], [torch.ones(0)], [EXACT]).correct


def test_tolerances_are_those_of_torch_testing() -> None:
    exact = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert allowed(exact, torch.float32).tolist() == pytest.approx([1e-5, 1e-5 + 1.3e-6])
    assert allowed(exact, torch.bfloat16).tolist() == pytest.approx([1e-5, 1e-5 + 1.6e-2])


def test_float64_mode_widens_operations_and_dtypes_asked_for() -> None:
    third = torch.tensor(1.0) / 3
    with Float64() as mode:
        assert (third * 1).dtype == torch.float64
        assert torch.ops.aten.full.default([2], 1, dtype=torch.float32).dtype == torch.float64
        assert torch.ops.prims.convert_element_type.default(third, torch.bfloat16).dtype == torch.float64
        assert mode.used
    with Float64() as mode:
        assert (torch.tensor([1, 2]) + 1).dtype == torch.int64
        assert not mode.used


def test_poison_fills_all_memory_and_is_taken_back() -> None:
    namespace: dict[str, Any] = {"empty_strided": torch.empty_strided, "other": 1}
    with poisoned(namespace, 0x7F):
        assert namespace["empty_strided"]((2, 3), (8, 2)).isnan().all()
        whole = namespace["empty_strided"]((2,), (3,), dtype=torch.uint8).untyped_storage()
        assert set(whole.tolist()) == {0x7F}
    assert namespace == {"empty_strided": torch.empty_strided, "other": 1}


def test_inputs_have_their_layout_range_and_seed() -> None:
    def make(seed: int) -> torch.Tensor:
        return Inputs(seed).tensor("x", (4, 5), (1, 7), torch.int32, "cpu", low=3, high=6, offset=2)

    made = make(0)
    assert (made.stride(), made.storage_offset(), made.dtype) == ((1, 7), 2, torch.int32)
    assert set(made.unique().tolist()) <= {3, 4, 5, 6}
    assert torch.equal(made, make(0))
    assert not torch.equal(made, make(1))
    assert Inputs(0).tensor("x", (0, 3), (3, 1), torch.float32, "cpu").numel() == 0
    assert Inputs(0).tensor("x", (), (), torch.float32, "cpu").shape == ()


def test_clones_keep_layout_and_shared_memory() -> None:
    base = torch.arange(12.0)
    view, wide = base.as_strided((2, 3), (1, 4), 1), torch.ones(1).expand(3, 4)
    copied_base, copied_view, number, copied_wide = clone([base, view, 7, wide])
    copied_base[1] = 100
    assert copied_view[0, 0] == 100
    assert view[0, 0] == 1
    assert (copied_view.stride(), copied_view.storage_offset(), number) == ((1, 4), 1, 7)
    assert copied_wide.stride() == (0, 0)


def test_changed_sees_bits_not_values() -> None:
    before = [torch.tensor([NAN, 1.0]), 3, torch.zeros(2, 2).t()]
    after = clone(before)
    assert changed(before, after) == []
    after[2][0, 1] = -0.0
    assert changed(before, after) == [2]
