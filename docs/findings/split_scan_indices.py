"""A cumulative sum that several blocks share: with 2**31 elements and more, its indices are int64."""

import sys

import torch


@torch.compile
def scanned(values: torch.Tensor) -> torch.Tensor:
    """Return the cumulative sum."""
    return torch.cumsum(values, 0)


scanned(torch.ones(int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 24, device="cuda"))
