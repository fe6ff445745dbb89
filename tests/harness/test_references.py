from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.inductor_prims

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.casts import float64
from inductor_probe.harness.judge import POISON, Round
from inductor_probe.harness.random_numbers import Draws
from inductor_probe.harness.reference import expect as expect_alone
from inductor_probe.harness.references import (
    CheckBesideEager,
    RepeatedRound,
    check_all,
    expect,
    plain_check,
)
from tests.bench_file.judged import bench, double, reasons, verdicts


def test_a_graph_that_decides_differently_in_float64_is_compared_as_it_is() -> None:
    class Bits(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.aten.view.dtype(x, torch.int32),)

    def call(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].view(torch.int32),)

    pristine, variant = verdicts(bench(call, call, Bits))
    assert pristine.correct
    assert variant.correct
    assert "not in float64" in reasons(pristine)


def test_a_graph_that_does_not_run_is_said() -> None:
    class Broken(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> None:
            raise RuntimeError("no such operation")

    pristine, variant = verdicts(bench(double, double, Broken))
    assert pristine.correct
    assert variant.correct
    assert "does not run eagerly: RuntimeError: no such operation" in reasons(pristine)


class Dropout(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        seeds = torch.ops.prims.inductor_seeds.default(1, torch.device("cpu"))
        seed = torch.ops.prims.inductor_lookup_seed.default(seeds, 0)
        drawn = torch.ops.prims.inductor_random.default([8], seed, "rand")
        return (torch.ops.aten.mul.Tensor(x, drawn),)


def test_a_graph_that_draws_random_numbers_is_given_those_of_the_kernels() -> None:
    def call(args: list[Any]) -> tuple[torch.Tensor]:
        seeds = torch.empty(1, dtype=torch.int64)
        torch.ops.aten.randint.low_out(-(2**63), 2**63 - 1, [1], out=seeds)
        with Draws():
            return (args[0] * torch.ops.prims.inductor_random.default([8], seeds[0], "rand"),)

    pristine, variant = verdicts(bench(call, call, Dropout))
    assert (pristine.correct, pristine.remarks) == (True, [])
    assert variant.correct
    other = bench(call, lambda args: (args[0] * torch.rand(8),), Dropout)
    assert not verdicts(other)[1].correct


def test_other_random_numbers_than_those_of_the_kernels_are_said_not_judged() -> None:
    class Draw(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.aten.bernoulli.p(x, 0.5),)

    def call(args: list[Any]) -> tuple[torch.Tensor]:
        torch.rand(3)
        return (torch.bernoulli(args[0], 0.5),)

    pristine, variant = verdicts(bench(call, call, Draw))
    assert pristine.correct
    assert variant.correct
    assert "eager draws other random numbers: aten.bernoulli.p" in reasons(pristine)


def test_memory_that_the_graph_never_writes_is_not_compared() -> None:
    class Empty(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            unwritten = torch.ops.aten.empty.memory_format([8])
            zeroed = torch.ops.aten.empty.memory_format([8], dtype=torch.float64)
            return torch.ops.aten.mul.Tensor(x, 2), unwritten.view(2, 4), torch.ops.aten.zero_.default(zeroed)

    def call(args: list[Any]) -> tuple[torch.Tensor, ...]:
        return args[0] * 2, torch.full((2, 4), 7.0), torch.zeros(8, dtype=torch.float64)

    def wrong(args: list[Any]) -> tuple[torch.Tensor, ...]:
        return args[0] * 2, torch.full((2, 4), 8.0), torch.ones(8, dtype=torch.float64)

    pristine, variant = verdicts(bench(call, wrong, Empty))
    assert (pristine.correct, pristine.elements) == (True, 16)
    assert reasons(pristine) == "outputs that the graph does not write to are not compared"
    assert (variant.correct, variant.first_bad_output) == (False, 2)


def test_an_operation_that_is_wrong_below_a_mode_is_run_without_one() -> None:
    """Torch's pinv of complex numbers loses a conjugation there (seen on torch 2.13)."""

    class Pinv(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            lengths = [torch.tensor(value, dtype=torch.float64) for value in (0.0, 1e-15)]
            return (
                torch.ops.aten.linalg_pinv.atol_rtol_tensor(x.view(2, 4), atol=lengths[0], rtol=lengths[1]),
            )

    def call(args: list[Any]) -> tuple[torch.Tensor]:
        return (torch.linalg.pinv(args[0].view(2, 4), rtol=1e-15),)

    pristine, variant = verdicts(bench(call, call, Pinv, torch.complex64))
    assert (pristine.correct, variant.correct) == (True, True), pristine
    off, _ = verdicts(bench(lambda args: (call(args)[0] * 1.01,), call, Pinv, torch.complex64))
    assert not off.correct


def test_values_that_leave_the_range_of_their_dtype_are_not_compared() -> None:
    """Random values do in the backward graph of a deep network: infinity, and NaN where two meet."""

    class Powers(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return torch.ops.aten.mul.Tensor(x, 1e30) * 1e30, torch.ops.aten.mul.Tensor(x, 2)

    def call(args: list[Any]) -> tuple[torch.Tensor, ...]:
        large = args[0] * 1e30 * 1e30
        return torch.where(torch.arange(8) % 2 == 0, large, large - large), args[0] * 2

    def wrong(args: list[Any]) -> tuple[torch.Tensor, ...]:
        return call(args)[0], args[0] * 2.01

    pristine, variant = verdicts(bench(call, wrong, Powers))
    assert pristine.correct, pristine
    assert reasons(pristine) == (
        "with these inputs, 8 of 16 elements leave the range of their dtype, "
        "and are compared with those of the pristine call only"
    )
    assert (variant.correct, variant.first_bad_output) == (False, 1)


def test_what_is_finite_after_an_infinity_is_not_known() -> None:
    """One of 14.7 million elements of a deep backward graph was called wrong in the pristine call.

    Its sum was finite in the kernel's order, and infinite in eager's and beyond the range in float64.
    """

    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            large = torch.ops.aten.mul.Tensor(torch.ops.aten.abs.default(x), 1e30) * 1e30
            return large, torch.ops.aten.reciprocal.default(large), torch.ops.aten.mul.Tensor(x, 2)

    def call(args: list[Any]) -> tuple[torch.Tensor, ...]:
        large = args[0].abs() * 1e30 * 1e30
        return large.index_fill(0, torch.tensor([3]), 3e38), 1 / large, args[0] * 2

    def wrong(args: list[Any]) -> tuple[torch.Tensor, ...]:
        return *call(args)[:2], args[0] * 2.01

    pristine, variant = verdicts(bench(call, wrong, Sum))
    assert pristine.correct, pristine
    assert "8 of 24 elements leave the range" in reasons(pristine)
    assert (variant.correct, variant.first_bad_output) == (False, 2)


def test_a_view_that_eager_cannot_take_of_its_own_layout_is_copied() -> None:
    """Inductor may be told other strides than eager gives a convolution."""

    class Viewed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.aten.view.default(torch.ops.aten.view.default(x, [2, 4]).t(), [8]),)

    def call(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].view(2, 4).t().reshape(8),)

    pristine, _ = verdicts(bench(call, call, Viewed))
    assert (pristine.correct, pristine.remarks) == (True, [])


@pytest.mark.parametrize(
    "made",
    [
        lambda: torch._efficientzerotensor((8,)),
        lambda: torch.ones(4).to_sparse(),
        lambda: torch.ones(2, 0),
    ],
)
def test_values_without_memory_are_none_that_nobody_wrote(made: Any) -> None:
    with Draws() as draws:
        torch.empty(8)
        torch.ops.aten.empty.memory_format([0])
        value = made()
    assert not draws.is_unwritten(value)


def test_floats_of_eight_bits_are_compared() -> None:
    """They know neither isfinite nor abs."""

    class Narrowed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.prims.convert_element_type.default(x, torch.float8_e4m3fn),)

    def call(args: list[Any]) -> tuple[torch.Tensor]:
        return (args[0].to(torch.float8_e4m3fn),)

    pristine, _ = verdicts(bench(call, call, Narrowed))
    assert (pristine.correct, pristine.elements) == (True, 8)


COPIES = """
import torch
calls = []


def k1(x):
    return x + 1


def k2(x):
    return x * 2


def k1_v2(x):
    return x + 1


def k2_v2(x):
    return x * 2


def k2_v3(x):
    return x * 3


def call(args):
    calls.append([k1.__name__, k2.__name__])
    return (k2(k1(args[0])),)


def call_v2(args):
    calls.append([k1_v2.__name__, k2_v2.__name__])
    return (k2_v2(k1_v2(args[0])),)
"""


@pytest.mark.parametrize("wrong", [False, True])
def test_unedited_copies_are_checked_in_one_run_if_that_is_right(tmp_path: Path, wrong: bool) -> None:
    path = tmp_path / "bench.py"
    path.write_text(COPIES)
    names: dict[str, Any] = {"__file__": str(path)}
    exec(compile(COPIES, str(path), "exec"), names)  # noqa: S102 - the text above
    if wrong:  # as if its text were that of the original, and what was compiled of it was not
        names["k1_v2"] = lambda x: x + 2
    names |= {"GRAPH": "g", "KERNELS": ["k1", "k2"], "NO_REFERENCE": "none"}
    names["make_inputs"] = lambda inputs: [torch.arange(8.0)]
    subject = Bench(names)
    _, pristine, checks = check_all(subject, 0)
    assert pristine.correct
    right = {check.name: check.correct for check in checks}
    assert right == {"call_v2": not wrong, "k1_v2": not wrong, "k2_v2": True, "k2_v3": False}
    both = names["calls"].count(["k1_v2", "k2_v2"])
    one = names["calls"].count(["k1_v2", "k2"])
    assert (both, one) == ((4, 0) if not wrong else (0, 0))
    assert {check.name for check in checks if check.unedited} == {"call_v2", "k1_v2", "k2_v2"}


class Ties(torch.nn.Module):
    """Compares sums of the same numbers in another order, and each number with its neighbour."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tied = torch.stack([compared(x * scale) for scale in range(1, 33)])
        return (tied, (x > x.roll(1)).to(torch.int64))


def compared(x: torch.Tensor) -> torch.Tensor:
    forwards = backwards = x.new_zeros(())
    for index in range(len(x)):
        forwards, backwards = forwards + x[index], backwards + x[len(x) - 1 - index]
    return (forwards > backwards).to(torch.int64)


def test_integers_that_rounding_decides_may_be_others() -> None:
    """One offset of a max pool was another one, and a whole U-Net WRONG."""

    def call(args: list[Any]) -> Any:
        return Ties()(args[0])

    def otherwise(args: list[Any]) -> Any:
        tied, neighbours = call(args)
        return (torch.zeros_like(tied), neighbours)  # no sum is larger than itself

    def wrong(args: list[Any]) -> Any:
        tied, neighbours = call(args)
        neighbours[3] = 1 - neighbours[3]
        return (tied, neighbours)

    pristine, variant = verdicts(bench(call, otherwise, Ties))
    assert pristine.correct
    assert variant.correct
    assert "consistent with ties that rounding decides" in reasons(variant)
    assert not verdicts(bench(call, wrong, Ties))[1].correct


CAST = torch.ops.prims.convert_element_type.default


class Residue(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return (torch.ops.aten.sub.Tensor(x, CAST(CAST(x, torch.float16), torch.float32)),)


class Rounded(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return (torch.ops.aten.mul.Tensor(CAST(CAST(x, torch.bfloat16), torch.float32), 3),)


class ResidueOfHalf(torch.nn.Module):
    """Of bfloat16, as the end of an operation in it is."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        wide = torch.ops.aten.mul.Tensor(CAST(x, torch.float32), 1.1)
        return (torch.ops.aten.sub.Tensor(CAST(CAST(wide, torch.bfloat16), torch.float32), wide),)


@pytest.mark.parametrize("expected", [expect, expect_alone])
@pytest.mark.parametrize(
    ("graph", "dtype", "elided"),
    [
        (Residue, torch.float32, lambda x: x - x),
        (Rounded, torch.float32, lambda x: x * 3),
        (ResidueOfHalf, torch.bfloat16, lambda x: x.float() * 0),
    ],
)
def test_a_cast_of_the_graph_rounds_in_the_reference(
    graph: Any, dtype: torch.dtype, elided: Any, expected: Any
) -> None:
    """F2: the reference kept it wide, so that code without the cast was right, and eager further off."""

    def by_graph(args: list[Any]) -> Any:
        return graph()(args[0])

    subject = bench(lambda args: (elided(args[0]),), by_graph, graph, dtype)

    def prepared(subject: Bench) -> Round:
        subject.namespace["float64"] = float64  # as a bench file has it
        kind = Round if expected is expect_alone else RepeatedRound
        return kind(subject, 0, POISON[0], expected)

    found = prepared(subject)
    if expected is expect_alone and graph is ResidueOfHalf:  # the file alone takes it as rounding
        assert found.check.correct
        return
    assert not found.check.correct
    assert prepared(bench(by_graph, by_graph, graph, dtype)).check.correct
    if isinstance(found.check, CheckBesideEager):
        eager = by_graph(found.inputs)[0]
        assert found.check.eager == pytest.approx(eager[found.check.first_bad].item())
        assert found.judge("call_v2").correct


@pytest.mark.parametrize("calls", ["elided", "as-the-graph"])
def test_the_cast_at_the_end_of_an_operation_is_rounding(calls: str) -> None:
    """Gelu and a norm of bfloat16, fused: the result of gelu is not rounded between the two."""

    def norm(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows = x.view(-1, 64)
        middle = rows.mean(-1, True)
        scale = ((rows - middle) ** 2).mean(-1, True).add(1e-5).rsqrt()
        return CAST((rows - middle) * scale, torch.bfloat16), middle, scale

    class Norm(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            activated = CAST(torch.ops.aten.gelu.default(CAST(x, torch.float32)), torch.bfloat16)
            return norm(CAST(activated, torch.float32))

    def elided(args: list[Any]) -> tuple[torch.Tensor, ...]:
        return norm(torch.nn.functional.gelu(args[0].float()))

    def as_the_graph(args: list[Any]) -> tuple[torch.Tensor, ...]:
        return Norm()(args[0])  # type: ignore[no-any-return]

    both = [elided, as_the_graph] if calls == "elided" else [as_the_graph, elided]
    subject = bench(*both, Norm, torch.bfloat16)
    size = (1 << 14,)
    subject.namespace["make_inputs"] = lambda inputs: [inputs.tensor("x", size, (1,), torch.bfloat16, "cpu")]
    pristine, variant = verdicts(subject)
    assert pristine.correct
    assert variant.correct


class Extremes(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.ops.aten.amin.default(x), torch.ops.aten.argmin.default(x)


def test_a_copy_of_a_wrong_call_is_judged_by_the_graph() -> None:
    """F1: the smallest of 37 numbers was 0, eager had 40, and a copy with 40 was WRONG: "expected 0"."""
    subject = bench(lambda args: (args[0].amin() * 0, args[0].argmin()), None, Extremes, torch.uint8)
    subject.namespace["make_inputs"] = lambda inputs: [
        inputs.tensor("x", (37,), (1,), torch.uint8, "cpu", low=40, high=100)
    ]
    subject.namespace["call_v2"] = subject.namespace["call"]
    subject.namespace["call_v3"] = lambda args: (args[0].amin(), args[0].argmin())
    subject.namespace["call_v4"] = lambda args: (args[0].amin() * 0 + 1, args[0].argmin())
    prepared = RepeatedRound(subject, 0, POISON[0], expect)
    smallest = int(prepared.inputs[0].min())
    checks = [prepared.check, *(prepared.judge(f"call_v{number}") for number in (2, 3, 4))]
    assert [(check.correct, check.value, plain_check(check).get("eager")) for check in checks] == [
        (False, 0, smallest),
        (False, 0, smallest),
        (True, None, None),
        (False, 1, smallest),
    ]
