"""Seeded inputs that are not images, on a case's device."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Case

FLOATS = ("float32", "float64", "float16", "bfloat16")


def dtype_of(case: Case) -> torch.dtype:
    """Return the dtype that the knob `dtype` names."""
    dtype = getattr(torch, case["dtype"])
    assert isinstance(dtype, torch.dtype)
    return dtype


def normal(case: Case, *shape: int) -> torch.Tensor:
    """Return normally distributed floats of deviation 1, in the case's dtype.

    They are drawn in float32: not every device draws them in a shorter dtype.
    """
    return torch.randn(shape, device=case["device"]).to(dtype_of(case))


def indices(case: Case, bound: int, *shape: int) -> torch.Tensor:
    """Return int64 numbers from 0 to `bound` - 1, all equally likely."""
    return torch.randint(bound, shape, device=case["device"])
