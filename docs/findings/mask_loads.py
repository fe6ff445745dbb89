"""A masked fill: each lane of the mask is loaded by itself, behind a branch."""

import torch


@torch.compile
def masked(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return `scores`, with -1 where `mask` is."""
    return scores.masked_fill(mask, -1.0)


masked(torch.randn(64, 512), torch.rand(64, 512) < 0.5)
