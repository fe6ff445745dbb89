"""A softmax of scaled scores, along columns: inductor looks for infinite scores by another reduction."""

import torch


@torch.compile
def softmax(scores: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each column of half of `scores`."""
    return torch.softmax(scores * 0.5, 0)


softmax(torch.randn(64, 500))
