"""Checks: is every element of every output right?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from inductor_probe.harness.random_numbers import Draws
from inductor_probe.harness.remarks import Remark, remark

NARROW = (torch.float16, torch.bfloat16, torch.float32)
ANYTHING: Any = object()  # expected where nothing is: memory that the graph does not write to
ALLOCATORS = ("empty", "empty_strided", "empty_strided_cpu", "empty_strided_cpu_pinned", "empty_strided_cuda")


@dataclass
class Check:
    """What comparing the outputs of one variant found. `unedited`: it says what its original says."""

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


@dataclass
class Slack:
    """How far an output may be off where its dtype's tolerance is too narrow: see `differences`."""

    absolute: float = 0.0
    tolerances: float = 1.0


class Float64(Draws):
    """Runs every operation in float64 where the graph asks for less; `used` tells whether any did."""

    used = False

    def draw(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation on widened arguments."""
        result = super().draw(func, tree_map(widen, args), tree_map(widen, kwargs))
        self.used = self.used or any(
            isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float64
            for leaf in tree_leaves((args, result))
        )
        return result


def widen(value: Any) -> Any:
    """Return a narrow float tensor, or a narrow float dtype, as float64."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype in NARROW else value
    return torch.float64 if isinstance(value, torch.dtype) and value in NARROW else value


def in_double(value: torch.Tensor) -> torch.Tensor:
    """Return a float tensor in a type that every operation knows: those of 8 bits know few."""
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


@contextmanager
def poisoned(namespace: dict[str, Any], pattern: int) -> Iterator[None]:
    """Hand out memory full of NaN or `pattern`: what is not written cannot be right by luck."""

    def poisoning(allocate: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def allocate_poison(*args: Any, **kwargs: Any) -> torch.Tensor:
            tensor = allocate(*args, **kwargs)
            everything = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            everything.set_(tensor.untyped_storage())
            everything.fill_(float("nan") if everything.dtype.is_floating_point else pattern)
            return tensor

        return allocate_poison

    kept = {name: namespace[name] for name in ALLOCATORS if name in namespace}
    namespace.update({name: poisoning(allocate) for name, allocate in kept.items()})
    try:
        yield
    finally:
        namespace.update(kept)


def tolerance(dtype: torch.dtype) -> tuple[float, float]:
    """Return (rtol, atol) of `torch.testing.assert_close` for `dtype`."""
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    return rtol, atol


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
    """Return how far each element may be off by the tolerance of `dtype`."""
    rtol, atol = tolerance(dtype)
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
    if not (value.dtype.is_floating_point or value.dtype.is_complex):
        return Slack(largest)
    return Slack(largest, times * (error / allowed(exact, value.dtype))[counted].max().item())


def compare(name: str, values: list[Any], expected: list[Any], slack: list[Slack]) -> Check:
    """Compare outputs one by one; sizes and dtypes count as well, strides are the caller's business."""
    check = Check(name)
    if len(values) != len(expected):
        other = remark("output-count", name, values=len(values), expected=len(expected))
        return Check(name, correct=False, remarks=[other])
    for output, (value, wanted) in enumerate(zip(values, expected, strict=True)):
        if wanted is ANYTHING:
            continue
        if not isinstance(wanted, torch.Tensor) or not isinstance(value, torch.Tensor):
            if type(value) is not type(wanted) or value != wanted:
                other = remark("output-value", name, value=repr(value), expected=repr(wanted))
                return Check(name, correct=False, first_bad_output=output, remarks=[other])
            continue
        if value.shape != wanted.shape:
            sizes = (str(tuple(each.shape)) for each in (value, wanted))
            other = remark("output-size", name, size=next(sizes), expected=next(sizes))
            return Check(name, correct=False, first_bad_output=output, remarks=[other])
        bad, error = differences(value, wanted, slack[output])
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
            check.expected = wanted[check.first_bad].item()
    return check
