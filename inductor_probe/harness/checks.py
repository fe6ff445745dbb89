"""Checks: is every element of every output right?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

Reason: TypeAlias = "tuple[str, dict[str, Any]]"  # a sentence, and the values of the names in it
ANYTHING: Any = object()  # expected of memory that the graph does not write to


@dataclass
class Check:
    """The result of comparing the outputs of one variant, with the first element that is wrong."""

    name: str
    correct: bool = True
    max_error: float | None = None
    mismatches: int = 0
    elements: int = 0
    first_bad: tuple[int, ...] | None = None
    first_bad_output: int | None = None
    value: float | None = None
    expected: float | None = None
    remarks: list[Reason] = field(default_factory=list)

    def sentence(self) -> str:
        """Say whether the variant is right, or where it is not."""
        text = f"{self.name}: {'correct' if self.correct else 'WRONG'}"
        if self.mismatches:
            text += f", {self.mismatches} of {self.elements} elements"
        if self.max_error is not None and (self.correct or self.mismatches):
            text += f", max error {self.max_error:.3g}"
        if self.first_bad is not None:
            place = f"output {self.first_bad_output}{list(self.first_bad)}"
            text += f"; first at {place}: {self.value} instead of {self.expected}"
        return "; ".join([text, *(reason.format(**values) for reason, values in self.remarks)])


@dataclass
class Slack:
    """How far an output may be off where its dtype's tolerance is too narrow: see `differences`."""

    absolute: float = 0.0
    tolerances: float = 1.0


def compare(name: str, values: list[Any], expected: list[Any], slack: list[Slack], like: Any = None) -> Check:
    """Compare outputs one by one: every element, and the size, or the dtype, size and stride of `like`."""
    check = Check(name)
    if len(values) != len(expected):
        counts = {"values": len(values), "expected": len(expected)}
        return Check(name, correct=False, remarks=[("returns {values} values instead of {expected}", counts)])
    for output, (value, right, form) in enumerate(zip(values, expected, like or expected, strict=True)):
        if right is ANYTHING:
            continue
        forms = [form_of(value, like is not None), form_of(form, like is not None)]
        if forms[0] != forms[1]:
            numbers = {"output": output, "form": forms[0], "expected": forms[1]}
            check.remarks = [("output {output} is {form} instead of {expected}", numbers)]
            check.first_bad_output = output
        elif isinstance(value, torch.Tensor):
            bad, error = differences(value, right, slack[output])
            if (finite := error[error.isfinite()]).numel():
                check.max_error = max(check.max_error or 0.0, finite.max().item())
            check.elements += value.numel()
            check.mismatches += int(bad.sum())
            if check.first_bad is None and bad.any():
                check.first_bad, check.first_bad_output = tuple(bad.nonzero()[0].tolist()), output
                check.value, check.expected = value[check.first_bad].item(), right[check.first_bad].item()
    check.correct = not (check.remarks or check.mismatches)
    return check


def form_of(value: Any, strided: bool) -> str:
    """Say the size of a tensor; `strided`: dtype, size and stride. Say any other value as it is."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    dtype, size, stride = str(value.dtype)[6:], list(value.shape), list(value.stride())
    return f"{dtype} {size} with stride {stride}" if strided else f"size {size}"


def differences(value: Any, expected: Any, slack: Slack) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which elements are wrong, and the error of each.

    A float may be off by the tolerance of its dtype; by `slack.tolerances` times that, if it stays within
    `slack.absolute`: large errors of large elements are no excuse for small elements. NaN is right only where
    NaN is expected, infinity only where infinity is. An integer is wrong beyond `slack.absolute`.
    """
    wide, exact, rounded = in_double(value), in_double(expected), in_double(expected.to(value.dtype))
    error = (wide - exact).abs()
    if not is_float(value):
        return (value != expected) & ((error > slack.absolute) | (slack.absolute == 0)), error
    same = (wide == exact) | (wide == rounded) | (wide.isnan() & exact.isnan())
    limit = allowed(exact, value.dtype)
    limit = torch.maximum(limit, (limit * slack.tolerances).clamp(max=slack.absolute))
    return ~same & ~(exact.isfinite() & (error <= limit)), error.masked_fill(same, 0.0)


def slack_of(value: Any, expected: Any, times: float) -> Slack:
    """Return the slack that lets through what is `times` further from `expected` than `value` is."""
    if not isinstance(value, torch.Tensor) or value.shape != getattr(expected, "shape", None):
        return Slack()
    error, exact = differences(value, expected, Slack())[1], in_double(expected)
    counted = error.isfinite() & exact.isfinite()
    if not counted.any():
        return Slack()
    relative = (error / allowed(exact, value.dtype))[counted].max().item() if is_float(value) else 1 / times
    return Slack(times * error[counted].max().item(), times * relative)


def allowed(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return how far each element may be off by the tolerance of `torch.testing.assert_close` for `dtype`."""
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    return atol + rtol * exact.abs()


def is_float(value: Any) -> bool:
    """Tell whether a value is a tensor of floats or of complex numbers."""
    return isinstance(value, torch.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)


def in_double(value: torch.Tensor) -> torch.Tensor:
    """Return a tensor in a type that every operation knows: floats of 8 bits know few."""
    return value.to(torch.complex128 if value.is_complex() else torch.float64)
