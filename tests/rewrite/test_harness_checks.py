from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from inductor_probe.rewrite.harness.bench import Bench, Variant
from inductor_probe.rewrite.harness.checks import Float64, compare, poisoned, tolerance
from inductor_probe.rewrite.harness.inputs import changed, clone, make_tensor
from inductor_probe.rewrite.harness.judge import POISON, judge, prepare

NAN, INF = math.nan, math.inf


def one(value: list[Any], expected: list[Any], slack: float = 0.0, dtype: torch.dtype = torch.float32) -> Any:
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
    assert one([1.01], [1.0], slack=0.02).correct
    assert not one([1.03], [1.0], slack=0.02).correct
    assert not one([NAN], [1.0], slack=INF).correct
    assert not one([1.0], [NAN], slack=INF).correct


def test_integers_are_exact_even_where_float64_is_not() -> None:
    assert one([2**60 + 1], [2**60 + 1], dtype=torch.int64).correct
    assert not one([2**60 + 1], [2**60], dtype=torch.int64).correct
    assert one([3], [4], slack=1.0, dtype=torch.int32).correct
    assert not one([True], [False], dtype=torch.bool).correct


def test_the_first_bad_element_is_named() -> None:
    value = torch.zeros(2, 3)
    value[1, 2] = 5
    value[1, 1] = math.nan
    check = compare("v", [torch.ones(4), value], [torch.ones(4), torch.zeros(2, 3)], [0.0, 0.0])
    assert (check.correct, check.mismatches, check.elements) == (False, 2, 10)
    assert (check.first_bad_output, check.first_bad) == (1, (1, 1))
    assert math.isnan(check.value or 0)
    assert check.expected == 0
    assert check.max_error == 5


def test_sizes_counts_and_numbers_must_agree() -> None:
    assert "size (2,)" in (compare("v", [torch.ones(2)], [torch.ones(3)], [0.0]).note or "")
    assert "returns 1 values" in (compare("v", [1], [1, 2], [0.0, 0.0]).note or "")
    assert compare("v", [None, 3], [None, 3], [0.0, 0.0]).correct
    assert not compare("v", [3], [4], [0.0]).correct
    assert compare("v", [torch.ones(0)], [torch.ones(0)], [0.0]).correct


def test_tolerances_are_those_of_torch_testing() -> None:
    assert tolerance(torch.float32) == (1.3e-6, 1e-5)
    assert tolerance(torch.bfloat16) == (1.6e-2, 1e-5)


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
        generator = torch.Generator().manual_seed(seed)
        return make_tensor((4, 5), (1, 7), torch.int32, "cpu", generator, low=3, high=6, offset=2)

    made = make(0)
    assert (made.stride(), made.storage_offset(), made.dtype) == ((1, 7), 2, torch.int32)
    assert set(made.unique().tolist()) <= {3, 4, 5, 6}
    assert torch.equal(made, make(0))
    assert not torch.equal(made, make(1))
    assert make_tensor((0, 3), (3, 1), torch.float32, "cpu", torch.Generator()).numel() == 0
    assert make_tensor((), (), torch.float32, "cpu", torch.Generator()).shape == ()


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


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return (torch.ops.aten.mul.Tensor(x, 2),)


def bench(call: Any, call_v2: Any, aten_graph: Any = Double, dtype: torch.dtype = torch.float32) -> Bench:
    def make_inputs(seed: int) -> list[Any]:
        return [make_tensor((8,), (1,), dtype, "cpu", torch.Generator().manual_seed(seed), high=50)]

    namespace = {"empty_strided": torch.empty_strided, "call": call, "call_v2": call_v2}
    return Bench("g", [], make_inputs, aten_graph, "none here", namespace)


def verdicts(subject: Bench) -> tuple[Any, Any]:
    prepared = [prepare(subject, at, pattern) for at, pattern in enumerate(POISON)]
    variant = judge(subject, Variant("call_v2", "call_v2"), [each for each, _ in prepared])
    return next((check for _, check in prepared if not check.correct), prepared[0][1]), variant


def double(args: list[Any]) -> tuple[Any, ...]:
    (x,) = args
    args.clear()
    return (x * 2,)


def test_a_copy_that_computes_the_same_is_right() -> None:
    pristine, variant = verdicts(bench(double, double))
    assert (pristine.correct, variant.correct) == (True, True)


def test_a_pristine_call_that_is_wrong_is_found() -> None:
    pristine, _ = verdicts(bench(lambda args: (args[0] * 2.001,), double))
    assert not pristine.correct
    assert pristine.first_bad == (0,)


@pytest.mark.parametrize(
    ("call_v2", "said"),
    [
        (lambda args: (args[0] * 2.001,), None),
        (lambda args: (args[0].double() * 2,), "float64 [8] with stride [1] instead of float32"),
        (lambda args: ((args[0] * 2).expand(1, 8),), "float32 [1, 8] with stride [8, 1] instead"),
        (lambda args: ((args[0] * 2).repeat(2)[::2],), None),
        (lambda args: ((args[0] * 2).repeat_interleave(2)[::2],), "stride [2] instead of"),
        (lambda args: (args[0].mul_(2),), "changes input 0"),
        (lambda args: args[1], "raises IndexError"),
    ],
)
def test_a_copy_that_does_not_is_wrong(call_v2: Any, said: str | None) -> None:
    _, variant = verdicts(bench(double, call_v2))
    assert not variant.correct
    assert said is None or said in (variant.note or "")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.uint8, torch.bool])
def test_a_copy_that_leaves_output_unwritten_is_wrong_in_every_dtype(dtype: torch.dtype) -> None:
    subject = bench(None, None, None, dtype)

    def writer(count: int) -> Any:
        def call(args: list[Any]) -> tuple[torch.Tensor]:
            out: torch.Tensor = subject.namespace["empty_strided"]((8,), (1,), dtype=dtype)
            out[:count] = args[0][:count]
            return (out,)

        return call

    subject.namespace.update(call=writer(8), call_v2=writer(7))
    pristine, variant = verdicts(subject)
    assert pristine.note == "none here"
    assert (pristine.correct, variant.correct, variant.first_bad) == (True, False, (7,))


def test_mutated_inputs_count_as_outputs() -> None:
    class AddOne(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[()]:
            torch.ops.aten.copy_.default(x, torch.ops.aten.add.Tensor(x, 1))
            return ()

    def call(args: list[Any]) -> tuple[()]:
        args[0].add_(1)
        return ()

    pristine, variant = verdicts(bench(call, lambda _: (), AddOne))
    assert (pristine.correct, pristine.elements) == (True, 8)
    assert (variant.correct, variant.mismatches) == (False, 8)


def test_a_graph_that_decides_differently_in_float64_is_compared_as_it_is() -> None:
    class Bits(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.aten.view.dtype(x, torch.int32),)

    def call(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].view(torch.int32),)

    pristine, variant = verdicts(bench(call, call, Bits))
    assert pristine.correct
    assert variant.correct
    assert "not in float64" in (pristine.note or "")


def test_a_graph_that_does_not_run_is_said() -> None:
    class Broken(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> None:
            raise RuntimeError("no such operation")

    pristine, variant = verdicts(bench(double, double, Broken))
    assert pristine.correct
    assert variant.correct
    assert "does not run eagerly: RuntimeError: no such operation" in (pristine.note or "")
