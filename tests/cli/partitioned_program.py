"""Addition on a CPU in the middle of a GPU's program, which torch cuts out: pytorch/pytorch#147648."""

from __future__ import annotations

import torch
from torch import Tensor


def f(x: Tensor, y: Tensor) -> Tensor:
    """Return a sum, a part of which is computed on a CPU."""
    x1 = x + 1
    y1 = y + 1
    y_cpu = y1.cpu() + 1
    z = x @ y
    return x1 + y1 + z + y_cpu.cuda()


ones = [torch.ones(2, 2, device="cuda") for _ in range(2)]
torch.compile(f, mode="reduce-overhead")(*ones)
