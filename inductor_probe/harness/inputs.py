"""Inputs: seeded, laid out as they were, fresh for every run."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from inductor_probe.harness.orders import arrange


class Inputs:
    """Makes the inputs of a graph, one after the other, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def tensor(self, name: str, size: Any, stride: Any, dtype: Any, device: str, **how: Any) -> torch.Tensor:
        """Return a tensor of that layout; `how`: `offset`, bounds, `mean`, `deviation`, `form`, `file`."""
        offset = how.get("offset", 0)
        flat = self.values(offset + span(size, stride), dtype, how.get("low"), how.get("high", 0))
        if "form" in how:
            arrange(flat.as_strided(size, stride, offset), how["form"], how.get("high", 0))
        flat = flat * how.get("deviation", 1) + how.get("mean", 0)
        return flat.to(device, dtype).as_strided(size, stride, offset)

    def values(self, count: int, dtype: torch.dtype, low: int | None, high: int) -> torch.Tensor:
        """Return normal floats, or numbers from `low` to `high`, in a wide type."""
        inexact = dtype.is_floating_point or dtype.is_complex
        real = torch.float64 if dtype == torch.float64 else torch.float32
        wide = torch.complex128 if dtype.is_complex else real
        if inexact:
            draw, low, high = (torch.randn, 0, 1) if low is None else (torch.rand, low, high)
            return low + (high - low) * draw(count, dtype=wide, generator=self.generator)
        low, high = (0, 1) if dtype == torch.bool else (low or 0, high)
        return torch.randint(low, high + 1, (count,), generator=self.generator)


def span(size: Any, stride: Any) -> int:
    """Return how many elements of memory a tensor of that layout reaches over."""
    return sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1 if all(size) else 0


def clone(values: Any) -> Any:
    """Copy all tensors in `values`, with strides, offsets, and memory that they share."""
    memo: dict[int, Any] = {}
    copies = {id(tensor): deepcopy(tensor, memo) for tensor in tensors_of(values)}
    return tree_map(lambda value: copies.get(id(value), value), values)


def tensors_of(values: Any) -> list[Any]:
    """Return the tensors in `values` that have memory: those that a library packed do not."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and not leaf.is_mkldnn]


def changed(before: list[Any], after: list[Any]) -> list[int]:
    """Return the positions of tensors whose bits differ."""
    positions = []
    for index, pair in enumerate(zip(before, after, strict=True)):
        if isinstance(pair[0], torch.Tensor):
            plain = (tensor.resolve_conj().resolve_neg().contiguous().view(-1) for tensor in pair)
            positions += [] if torch.equal(*(tensor.view(torch.uint8) for tensor in plain)) else [index]
    return positions
