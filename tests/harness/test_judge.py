from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._inductor.inductor_prims

from inductor_probe.harness.judge import POISON
from inductor_probe.harness.references import RepeatedRound, expect, judge, prepare
from tests.bench_file.judged import bench, double, reasons, verdicts


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
    assert said is None or said in reasons(variant)


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
    assert reasons(pristine) == "none here"
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


def test_an_edit_that_is_right_for_one_seed_only_is_caught_by_the_second() -> None:
    subject = bench(double, None)
    (first,) = subject.inputs(0)

    def call_v2(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0] * (2 if torch.equal(args[0], first) else 2.01),)

    subject.namespace["call_v2"] = call_v2
    _, variant = verdicts(subject)
    assert not variant.correct
    rounds = [prepare(subject, 0, POISON[0])[0]]
    assert judge("call_v2", rounds).correct, "the first seed alone shows nothing"


def test_memory_of_an_input_that_the_wrapper_uses_again_is_no_output() -> None:
    def call(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].mul_(2),)

    pristine, variant = verdicts(bench(call, double))
    assert (pristine.correct, pristine.elements) == (True, 8)
    assert variant.correct, "a variant need not use it again"


@pytest.mark.parametrize(("donated", "correct"), [((), False), ((0,), True)])
def test_a_variant_may_write_to_a_donated_input(donated: tuple[int, ...], correct: bool) -> None:
    """Of a backward graph, inductor reuses inputs that nothing reads any more: that was called wrong."""
    subject = bench(double, lambda args: (args[0].mul_(2),))
    subject.donated = {*donated}
    pristine, variant = verdicts(subject)
    assert (pristine.correct, variant.correct) == (True, correct)


def test_an_input_that_the_graph_changes_and_a_variant_does_not_is_found() -> None:
    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.aten.copy_.default(x, torch.ops.aten.mul.Tensor(x, 2)),)

    def call(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].mul_(2),)

    pristine, variant = verdicts(bench(call, double, Twice))
    assert pristine.correct
    assert not variant.correct


@pytest.mark.parametrize(("off", "correct"), [(0.0, True), (1e3, False)])
def test_a_copy_is_not_wrong_where_the_call_itself_adds_in_another_order_each_time(
    off: float, correct: bool
) -> None:
    # The backward of a U-Net on two threads, whose atomics add in any order: each kernel of B was WRONG,
    # whatever its text, as one run of A was taken for all that A may be off by.
    order = torch.Generator().manual_seed(1)
    half = torch.randn(128, generator=order) * 1e6
    numbers = torch.cat([half, -half, torch.ones(1)])  # they cancel: what is left of 1e6 is its rounding

    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.aten.add.Tensor(x, torch.ops.aten.sum.default(numbers.to(x.dtype))),)

    def summed(off: float) -> Any:
        def call(args: list[Any]) -> tuple[torch.Tensor]:
            total = torch.zeros(())
            for index in torch.randperm(len(numbers), generator=order).tolist():
                total += numbers[index]
            return (args[0] + total + off,)

        return call

    subject = bench(summed(0.0), None, Sum)
    subject.namespace["call_v2"] = summed(off)
    rounds = [RepeatedRound(subject, seed, pattern, expect) for seed, pattern in enumerate(POISON)]
    assert all(prepared.check.correct for prepared in rounds)
    once = [prepared.slack[0].absolute for prepared in rounds]
    checks = [prepared.judge("call_v2") for prepared in rounds for _ in range(20)]
    assert [check.correct for check in checks] == [correct] * len(checks)
    assert any(prepared.varies for prepared in rounds)
    assert any(prepared.slack[0].absolute > first for prepared, first in zip(rounds, once, strict=True))
    assert any("call varies" in reasons(check) for check in checks)


@pytest.mark.parametrize(
    ("off", "correct"),
    [(lambda total: total, True), (lambda total: total * 1.0001, False), (lambda total: total + 3e-4, False)],
)
def test_a_copy_is_not_wrong_where_it_adds_the_same_numbers_in_another_order(off: Any, correct: bool) -> None:
    # The weight's gradient of a layer norm on an H200: sums of 4096 rows in one part, and in 16.
    numbers = torch.randn(4096, 1024, generator=torch.Generator().manual_seed(1))

    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            total = torch.ops.aten.sum.dim_IntList(numbers.to(x.dtype), [0])
            return (torch.ops.aten.add.Tensor(total, torch.ops.aten.select.int(x, 0, 0) * 0),)

    def summed(parts: int, off: Any = lambda total: total) -> Any:
        def call(args: list[Any]) -> tuple[torch.Tensor]:
            total = torch.zeros(parts, 1024)
            for row in numbers.view(parts, -1, 1024).unbind(1):
                total += row  # one by one, as a lane does
            return (off(total.sum(0)),)

        return call

    subject = bench(summed(16), summed(1, off), Sum)
    pristine, variant = verdicts(subject)
    assert pristine.correct
    assert variant.correct is correct
    assert ("rounds otherwise" in reasons(variant)) is correct


@pytest.mark.parametrize(("times", "correct"), [(1.0, True), (1.05, False)])
def test_a_copy_is_not_wrong_where_it_rounds_what_the_call_fuses(times: float, correct: bool) -> None:
    # sigmoid(a @ b) in bfloat16 on an H200: Triton's template fuses it, the extern call stores the product.
    seeded = torch.Generator().manual_seed(1)
    a, b = (torch.randn(64, 1024, generator=seeded).mul(2).bfloat16() for _ in range(2))

    class Sigmoid(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            result = torch.ops.aten.sigmoid(torch.ops.aten.mul.Tensor(a.to(x.dtype), b.to(x.dtype)))
            return (torch.ops.aten.add.Tensor(result, torch.ops.aten.select.int(x, 0, 0) * 0),)

    def fused(args: list[Any]) -> tuple[torch.Tensor]:
        return (torch.sigmoid(a.float() * b.float()).bfloat16(),)

    def stored(args: list[Any]) -> tuple[torch.Tensor]:
        return (torch.sigmoid(a * b) * times,)

    pristine, variant = verdicts(bench(fused, stored, Sigmoid, torch.bfloat16))
    assert pristine.correct
    assert variant.correct is correct
    assert ("as eager does" in reasons(variant)) is correct


def test_nan_passes_only_where_the_reference_has_it() -> None:
    class Log(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.aten.log.default(x),)

    def call(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].log(),)

    def call_v2(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].log().nan_to_num(0.0),)

    def call_v3(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].log() * torch.nan,)

    pristine, zeros = verdicts(bench(call, call_v2, Log))
    assert pristine.correct
    assert not zeros.correct
    assert not verdicts(bench(call, call_v3, Log))[1].correct
