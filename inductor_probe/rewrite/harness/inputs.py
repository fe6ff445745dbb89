"""Inputs: seeded, laid out as they were, fresh for every run."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_map


def make_tensor(
    size: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    device: str,
    generator: torch.Generator,
    *,
    low: int = 0,
    high: int = 1,
    offset: int = 0,
) -> torch.Tensor:
    """Return a tensor of that layout: normal floats, integers and booleans from `low` to `high`."""
    extent = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1 if all(size) else 0
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        data = torch.randn(offset + extent, dtype=wide, generator=generator)
    else:
        data = torch.randint(low, high + 1, (offset + extent,), generator=generator)
    return data.to(device, dtype).as_strided(size, stride, offset)


def clone(values: Any) -> Any:
    """Copy all tensors in `values`, keeping strides, offsets, and memory that they share."""
    storages: dict[Any, Any] = {}

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        memory = (storage.device, storage.data_ptr())
        if memory not in storages:
            storages[memory] = storage.clone()
        fresh = torch.empty(0, dtype=value.dtype, device=value.device)
        return fresh.set_(storages[memory], value.storage_offset(), value.size(), value.stride())

    return tree_map(copy, values)


def changed(before: list[Any], after: list[Any]) -> list[int]:
    """Return the positions of tensors whose bits differ."""
    return [
        at
        for at, (old, new) in enumerate(zip(before, after, strict=True))
        if isinstance(old, torch.Tensor) and not torch.equal(_bits(old), _bits(new))
    ]


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)
