"""Functions and inputs that programs of several kinds share."""

from __future__ import annotations

import torch


def add_one(values: torch.Tensor) -> torch.Tensor:
    """Return a pointwise operation of one read and one write."""
    return values + 1


def add_transposed(values: torch.Tensor) -> torch.Tensor:
    """Return what reads one operand by rows, and one by columns."""
    return values + values.t()


def busy(values: torch.Tensor) -> torch.Tensor:
    """Return ten operations on a value, so that a single access is a small share of them."""
    for _ in range(5):
        values = torch.cos(torch.sin(values))
    return values


def numbers(dtype: torch.dtype, *size: int) -> tuple[torch.Tensor, ...]:
    """Return a tensor of ones."""
    return (torch.ones(size, dtype=dtype),)


def floats(*size: int) -> tuple[torch.Tensor, ...]:
    """Return a tensor of float32 ones."""
    return numbers(torch.float32, *size)
