"""Right, rounding and wrong: what second values in float64 are, and what rounding explains."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inductor_probe.accuracy_checks.judgement import RIGHT, ROUNDING, WRONG, judge
from inductor_probe.accuracy_checks.shadow import Shadow


def exact(
    function: object, *args: torch.Tensor, noise: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    with Shadow(noise) as mode:
        value = function(*args)  # type: ignore[operator]
    return value, mode.of(value)


def test_a_cast_of_the_program_rounds_in_the_reference_too() -> None:
    x = torch.rand(100) * 100
    value, reference = exact(lambda x: x - x.half().float(), x)
    assert torch.equal(value.double(), reference)
    assert value.abs().max() > 1e-3


def test_second_values_follow_views_and_writes_in_place() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        total = x / 3
        total[2:].mul_(total[:2])
        part = total.view(2, 2).t()
        part[0] += 0.1
        return total

    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    value, reference = exact(program, x)
    wide = program(x.double())
    assert (reference - wide).abs().max() < 1e-14
    assert (value.double() - wide).abs().max() > 1e-9


def test_decisions_are_those_of_eager() -> None:
    x = torch.tensor([1.0, 1e-9])
    value, reference = exact(lambda x: torch.where(x + 1 > 1, x, -x), x)
    assert value.tolist() == [1.0, -1e-9] or value.tolist() == pytest.approx([1.0, -1e-9])
    assert reference[1] < 0


def test_a_running_mean_has_a_second_value_though_its_schema_does_not_say_that_it_is_written() -> None:
    mean, variance, x = torch.zeros(3), torch.ones(3), torch.randn(4, 3)
    with Shadow() as mode:
        torch.nn.functional.batch_norm(x, mean, variance, training=True)
    wide = x.double().mean(0) * 0.1
    assert (mode.of(mean) - wide).abs().max() < 1e-9


def test_memory_that_is_set_anew_is_no_second_value() -> None:
    x = torch.tensor([1e-4, 0.5])
    with Shadow() as mode:
        copy = torch.empty(0).set_(x.untyped_storage(), 0, x.size(), x.stride())
        value = torch.atanh(copy)
    assert mode.of(value).tolist() == pytest.approx(torch.atanh(x.double()).tolist(), rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 4000),
    st.integers(0, 10_000),
    st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
)
def test_a_sum_in_another_order_is_never_wrong(length: int, seed: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3, length, generator=generator).to(dtype)

    def other(x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(3)
        for column in x.float().flip(1).unbind(1):
            total = total + column
        return total.to(dtype)

    value, reference = exact(lambda x: x.sum(1), x)
    judged = judge(value, other(x), reference, lambda seed: exact(lambda x: x.sum(1), x, noise=seed)[1])
    assert judged.verdict != WRONG, judged


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40), st.integers(0, 39), st.floats(0.02, 10)
)
def test_an_element_that_is_off_by_two_percent_is_wrong(values: list[float], place: int, off: float) -> None:
    x = torch.tensor(values)
    place %= len(values)
    value, reference = exact(lambda x: x + 0.5, x)
    other = value.clone()
    other[place] += max(abs(other[place].item()), 1.0) * off
    judged = judge(value, other, reference, lambda seed: exact(lambda x: x + 0.5, x, noise=seed)[1])
    assert (judged.verdict, judged.wrong, judged.index) == (WRONG, 1, (place,))


def test_places_of_nearly_equal_values_are_decided_by_rounding() -> None:
    x = torch.tensor([[0.3, 0.30000001, 0.1, 0.05]])

    def program(x: torch.Tensor) -> torch.Tensor:
        return (x * 3).argmax(1)

    value, reference = exact(program, x)
    other = 1 - value
    judged = judge(value, other, reference, lambda seed: exact(program, x, noise=seed)[1])
    assert (judged.verdict, judged.why) == (ROUNDING, "tied")
    far = torch.full_like(value, 3)
    judged = judge(value, far, reference, lambda seed: exact(program, x, noise=seed)[1])
    assert judged.verdict == WRONG


def test_digits_that_are_lost_in_all_small_values_are_wrong_within_an_absolute_tolerance() -> None:
    x = torch.tensor([1e-6, 2e-6, 3e-6, 4e-6])
    value, reference = exact(torch.atanh, x)
    other = 0.5 * torch.log((1 + x) / (1 - x))
    assert torch.allclose(value, other, atol=1e-5)
    judged = judge(value, other, reference, lambda seed: exact(torch.atanh, x, noise=seed)[1])
    assert judged.verdict == WRONG
    assert judged.compiled_error is not None
    assert judged.eager_error is not None
    assert judged.compiled_error[0] > 256 > judged.eager_error[0]


def test_not_a_number_and_infinity_have_to_be_where_they_are() -> None:
    value = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    assert judge(value, value.clone()).verdict == RIGHT
    for place, other in ((1, 0.0), (2, 3e38), (3, float("inf")), (0, float("nan"))):
        changed = value.clone()
        changed[place] = other
        judged = judge(value, changed)
        assert (judged.verdict, judged.index) == (WRONG, (place,))


def test_another_size_or_dtype_is_wrong() -> None:
    judged = judge(torch.ones(2, 3), torch.ones(3, 2))
    assert (judged.verdict, judged.why, judged.form) == (WRONG, "form", ("float32 [2, 3]", "float32 [3, 2]"))
    assert judge(torch.ones(2), torch.ones(2).half()).verdict == WRONG


def test_pixels_of_eight_bits_that_are_interpolated_may_be_off_by_one() -> None:
    image = torch.randint(0, 256, (1, 3, 9, 9), dtype=torch.uint8)

    def program(image: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(image, size=(5, 7), mode="bilinear") + 0

    value, reference = exact(program, image)

    def noise(seed: int) -> torch.Tensor:
        return exact(program, image, noise=seed)[1]

    by_one = (value.int() + 1).clamp(max=255).to(torch.uint8)
    by_two = (value.int() + 2).clamp(max=255).to(torch.uint8)
    assert judge(value, by_one, reference, noise).verdict == ROUNDING
    assert judge(value, by_two, reference, noise).verdict == WRONG
