"""Triton kernels as users write them, for `models.py`: apart, because CPU installations lack Triton."""

from __future__ import annotations

import torch  # noqa: TID253 - a file of torch programs
import triton  # noqa: TID253 - as above
import triton.language as tl  # noqa: TID253 - as above


@triton.jit
def scaled_sum(left, right, out, count, BLOCK: tl.constexpr):  # noqa: N803 - a constant is in capitals
    """Add two vectors after scaling one."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(left + at, at < count) * 0.5 + tl.load(right + at, at < count)
    tl.store(out + at, value, at < count)


@triton.autotune([triton.Config({"BLOCK": 128}, num_warps=w) for w in (2, 4)], key=["count"])
@triton.jit
def square(values, out, count, BLOCK: tl.constexpr):  # noqa: N803 - as above
    """Square a vector; tuned when it is first called."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(values + at, at < count)
    tl.store(out + at, value * value, at < count)


def both(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Call both kernels, with torch's own work before, between and after."""
    count = left.numel()
    total, squared = torch.empty_like(left), torch.empty_like(left)
    scaled_sum[(triton.cdiv(count, 64),)](left.sin(), right, total, count, BLOCK=64)
    square[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](total + 1, squared, count)
    return squared.cos() + total
