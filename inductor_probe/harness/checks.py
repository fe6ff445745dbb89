"""Checks: is every element of every output right?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from inductor_probe.harness.remarks import Remark, remark, sentences

ANYTHING: Any = object()  # expected of memory that the graph does not write to


@dataclass
class Check:
    """The result of comparing the outputs of one variant. `unedited`: its text is that of its original."""

    name: str
    correct: bool = True
    max_error: float | None = None
    mismatches: int = 0
    elements: int = 0
    first_bad: tuple[int, ...] | None = None
    first_bad_output: int | None = None
    value: float | None = None
    expected: float | None = None
    remarks: list[Remark] = field(default_factory=list)
    unedited: bool = False

    def sentence(self) -> str:
        """Say whether the variant is right, or where it is not."""
        error = "" if self.max_error is None else f", max error {self.max_error:.3g}"
        if self.correct:
            correct = "correct, an unedited copy" if self.unedited else "correct"
            reasons = f" ({sentences(self.remarks)})" if self.remarks else ""
            return f"{self.name}: {correct}{error}{reasons}"
        text = f"{self.name}: WRONG"
        if self.mismatches:
            text += f", {self.mismatches} of {self.elements} elements{error}"
        if self.first_bad is not None:
            index = ", ".join(map(str, self.first_bad))
            values = f"{self.value} instead of {self.expected}"
            text += f"; first at output {self.first_bad_output}[{index}]: {values}"
        return text + (f"; {sentences(self.remarks)}" if self.remarks else "")

    def plain(self) -> dict[str, Any]:
        """Return it for JSON, which has neither NaN nor infinity nor complex numbers: they become text."""

        def in_json(value: Any) -> bool:
            return not isinstance(value, complex | float) or (
                isinstance(value, float) and math.isfinite(value)
            )

        return {key: value if in_json(value) else str(value) for key, value in asdict(self).items()}


@dataclass
class Slack:
    """How far an output may be off where its dtype's tolerance is too narrow: see `differences`."""

    absolute: float = 0.0
    tolerances: float = 1.0


def is_float(value: Any) -> bool:
    """Tell whether a value is a tensor of floats or of complex numbers."""
    return isinstance(value, torch.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)


def in_double(value: torch.Tensor) -> torch.Tensor:
    """Return a float tensor in a type that every operation knows: those of 8 bits know few."""
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def differences(
    value: torch.Tensor, expected: torch.Tensor, slack: Slack
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which elements are wrong, and the error of each.

    A float may be off by the tolerance of its dtype; by `slack.tolerances` times that, if it stays within
    `slack.absolute`: large errors of large elements are no excuse for small elements. NaN is right only where
    NaN is expected, infinity only where infinity is. An integer is wrong beyond `slack.absolute`.
    """
    dtype = value.dtype
    wide = torch.complex128 if dtype.is_complex else torch.float64
    rounded, exact = expected.to(dtype).to(wide), expected.to(wide)
    error = (value.to(wide) - exact).abs()
    if not (dtype.is_floating_point or dtype.is_complex):
        unequal = value != expected
        return (unequal & (error > slack.absolute) if slack.absolute else unequal), error
    value = value.to(wide)
    same = (value == exact) | (value == rounded) | (value.isnan() & exact.isnan())
    limit = allowed(exact, dtype)
    limit = torch.maximum(limit, (limit * slack.tolerances).clamp(max=slack.absolute))
    return ~same & ~(exact.isfinite() & (error <= limit)), error.masked_fill(same, 0.0)


def allowed(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return how far each element may be off by the tolerance of `torch.testing.assert_close` for `dtype`."""
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    return atol + rtol * exact.abs()


def slack_of(value: Any, expected: Any, times: float) -> Slack:
    """Return the slack that lets through what is `times` further from `expected` than `value` is."""
    comparable = isinstance(value, torch.Tensor) and isinstance(expected, torch.Tensor)
    if not comparable or value.shape != expected.shape:
        return Slack()
    error = differences(value, expected, Slack())[1]
    exact = in_double(expected)
    counted = error.isfinite() & exact.isfinite()
    if not counted.any():
        return Slack()
    largest = times * error[counted].max().item()
    if not is_float(value):
        return Slack(largest)
    return Slack(largest, times * (error / allowed(exact, value.dtype))[counted].max().item())


def compare(name: str, values: list[Any], expected: list[Any], slack: list[Slack]) -> Check:
    """Compare outputs one by one; sizes and dtypes count as well, strides are the caller's business."""
    check = Check(name)
    if len(values) != len(expected):
        reason = remark("output-count", name, values=len(values), expected=len(expected))
        return Check(name, correct=False, remarks=[reason])
    for output, (value, right) in enumerate(zip(values, expected, strict=True)):
        if right is ANYTHING:
            continue
        if not isinstance(right, torch.Tensor) or not isinstance(value, torch.Tensor):
            if type(value) is not type(right) or value != right:
                reason = remark("output-value", name, value=repr(value), expected=repr(right))
                return Check(name, correct=False, first_bad_output=output, remarks=[reason])
            continue
        if value.shape != right.shape:
            sizes = {"size": str(tuple(value.shape)), "expected": str(tuple(right.shape))}
            reason = remark("output-size", name, **sizes)
            return Check(name, correct=False, first_bad_output=output, remarks=[reason])
        bad, error = differences(value, right, slack[output])
        finite = error[error.isfinite()]
        if finite.numel():
            check.max_error = max(check.max_error or 0.0, finite.max().item())
        check.elements += value.numel()
        check.mismatches += int(bad.sum())
        if check.correct and bad.any():
            check.correct = False
            check.first_bad_output = output
            check.first_bad = tuple(bad.nonzero()[0].tolist())
            check.value = value[check.first_bad].item()
            check.expected = right[check.first_bad].item()
    return check
