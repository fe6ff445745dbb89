from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._inductor.inductor_prims

from inductor_probe.harness.judge import POISON
from inductor_probe.harness.references import judge, prepare
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


def test_an_input_that_the_graph_changes_and_a_variant_does_not_is_found() -> None:
    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.aten.copy_.default(x, torch.ops.aten.mul.Tensor(x, 2)),)

    def call(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].mul_(2),)

    pristine, variant = verdicts(bench(call, double, Twice))
    assert pristine.correct
    assert not variant.correct


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
