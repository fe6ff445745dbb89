"""Checkpointed layers of a linear, a layer norm and a gelu: pytorch/pytorch#120381, smaller and on a CPU."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    """A layer whose results are computed once more in the backward."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.mods = nn.Sequential(nn.Linear(size, size), nn.LayerNorm([size]), nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        """Return the result of the layer."""
        return cast("Tensor", checkpoint(self.mods, x, use_reentrant=False))


torch.manual_seed(0)
network = nn.Sequential(*[Layer(128) for _ in range(4)]).to(torch.bfloat16)
compiled, images = torch.compile(network), torch.randn(1024, 128, dtype=torch.bfloat16)
for _ in range(2):
    compiled(images).sum().backward()
