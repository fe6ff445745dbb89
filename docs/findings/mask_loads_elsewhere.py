"""Other programs that load a bool tensor: masks that are easier to predict, types, and what a mask is for."""

import torch

torch._dynamo.config.recompile_limit = 100


@torch.compile(dynamic=False)
def masked(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return `scores`, with 3 where `mask` is."""
    return scores.masked_fill(mask, 3)


@torch.compile(dynamic=False)
def attended(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return what attention does to its scores: masked, and a softmax of each row."""
    return scores.masked_fill(mask, float("-inf")).softmax(-1)


@torch.compile(dynamic=False)
def undropped(gradient: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return what dropout's backward does: the gradient of what was kept."""
    return gradient * mask * 1.25


@torch.compile(dynamic=False)
def either(mask: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Combine two masks."""
    return mask | other


@torch.compile(dynamic=False)
def counted(mask: torch.Tensor) -> torch.Tensor:
    """Count what is masked of each row."""
    return mask.sum(-1)


torch.manual_seed(0)
# Of masks that differ in their values alone each has other rows: a graph of its own.
masked(torch.randn(60, 512), torch.rand(60, 512) < 0.1)
masked(torch.randn(68, 512), torch.zeros(68, 512, dtype=torch.bool))
masked(torch.randn(256, 256), torch.ones(256, 256, dtype=torch.bool).triu(1))
random = torch.rand(64, 512) < 0.5
for dtype in (torch.bfloat16, torch.int64, torch.uint8):
    masked(torch.ones(64, 512, dtype=dtype), random)
attended(torch.randn(64, 512), random)
undropped(torch.randn(64, 512), torch.rand(64, 512) < 0.8)
either(random, torch.rand(64, 512) < 0.5)
counted(random)
