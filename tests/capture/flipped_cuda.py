"""Functions for a GPU whose decisions `test_flips.py` turns."""

from __future__ import annotations

from collections.abc import Callable

import torch


def rows(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Graphs 0 to 2: two reductions, by their sizes in one tile, in loops, or split."""
    return x.sum(1), y.amax(1)


def fused(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Graph 3: a pair that is fused."""
    a = x + 1
    return a, a.sum(1)


def large(x: torch.Tensor) -> torch.Tensor:
    """Graph 4: more elements than int32 can count, all of them one in memory, and a small result."""
    return x.sum(1)


def any_size(x: torch.Tensor) -> torch.Tensor:
    """Graph 5: a reduction of a size that is not known."""
    return x.sum(1)


def compiled(function: Callable[..., object], *inputs: torch.Tensor) -> None:
    """Compile a function anew for these inputs, not as another version of a graph."""
    torch.compiler.reset()
    torch.compile(function, dynamic=False)(*inputs)


if __name__ == "__main__":
    for sizes in ((64, 512), (64, 1000)), ((512, 4096), (512, 5000)), ((2, 1 << 20), (3, 1 << 20)):
        compiled(rows, *(torch.empty(size, device="cuda") for size in sizes))
    compiled(fused, torch.empty(64, 512, device="cuda"))
    compiled(large, torch.empty(1, 1, device="cuda").expand(1 << 16, 1 << 16))
    torch.compiler.reset()
    torch.compile(any_size, dynamic=True)(torch.empty(64, 500, device="cuda"))
