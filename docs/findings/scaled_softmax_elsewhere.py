"""Other softmaxes of what is scaled: along rows, by a tensor, of other types and lengths, their logarithm."""

import torch

torch._dynamo.config.recompile_limit = 100


@torch.compile(dynamic=False)
def softmax(scores: torch.Tensor, dim: int) -> torch.Tensor:
    """Return the softmax of half of `scores`."""
    return torch.softmax(scores * 0.5, dim)


@torch.compile(dynamic=False)
def log_softmax(scores: torch.Tensor) -> torch.Tensor:
    """Return its logarithm, of each row, with a temperature of 2."""
    return torch.log_softmax(scores / 2, -1)


@torch.compile(dynamic=False)
def by_tensor(scores: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row, scaled by a tensor of one value."""
    return torch.softmax(scores * scale, -1)


@torch.compile(dynamic=False)
def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return attention with capped scores, which inductor has no fused kernel for."""
    scores = torch.tanh(query @ key.transpose(-2, -1) / 50) * 50
    return torch.softmax(scores * 0.125, -1) @ value


torch.manual_seed(0)
softmax(torch.randn(500, 64), 0)
softmax(torch.randn(64, 500), 1)
softmax(torch.randn(1024, 1024), 1)
softmax(torch.randn(1024, 1024), 0)
softmax(torch.randn(64, 500).bfloat16(), 1)
softmax(torch.randn(64, 500).bfloat16(), 0)
log_softmax(torch.randn(64, 500))
by_tensor(torch.randn(64, 500), torch.tensor([3.0]))
attention(*torch.randn(3, 1, 8, 256, 64).unbind())
