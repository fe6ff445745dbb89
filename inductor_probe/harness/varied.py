"""Other arguments for a call: sizes at the borders of vectors, other memory, values that hide less.

A vectorised loop has a body of whole vectors and a tail: a fault may be in one of them, or where there is no
body (15 elements), or nothing at all. Extremes hide a wrong start of a reduction where a value reaches it:
the smallest of numbers that hold a 0 is right in code that begins with 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

SIZES = (0, 1, 15, 16, 17, 37)
"""Around the lanes of a vector of 512 bits in float32; of 8 bits 37 are more than half of one."""
LOW, HIGH = 40, 100
"""Values of integers, which 8 bits hold: none of them is 0, or an extreme of its dtype."""


def varied(args: Any, kwargs: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield other arguments of the same kinds, each with what is other about them.

    Values are those of the arguments, repeated: an index stays one. Sizes change wherever the arguments have
    the same one: of a matrix product both.
    """
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if _plain(leaf)]
    for name, change in _changes(tensors):

        def changed(leaf: Any, change: Any = change) -> Any:
            return change(leaf) if _plain(leaf) else leaf

        yield (
            name,
            *tree_map(lambda leaf, change=change: change(leaf) if _plain(leaf) else leaf, (args, kwargs)),
        )


def _changes(tensors: list[torch.Tensor]) -> Iterator[tuple[str, Callable[[torch.Tensor], torch.Tensor]]]:
    if any(not one.is_floating_point() and not one.is_complex() for one in tensors):
        yield "values without 0", _without_zero
    if any(one.is_floating_point() for one in tensors):
        yield "random values", _random
    if any(one.dim() for one in tensors):
        yield "offset in memory", _offset
        yield "every second element of memory", _strided
    largest = max(tensors, key=lambda one: one.numel(), default=None)
    if largest is None or not largest.dim():
        return
    for dimension in dict.fromkeys((largest.dim() - 1, 0)):
        size = largest.shape[dimension]
        for other in SIZES:
            if size and other != size:
                yield f"size {other} for {size}", lambda one, a=size, b=other: _resized(one, a, b)  # type: ignore[misc]


def _plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and type(value) is torch.Tensor


def _like(made: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    return made.detach().requires_grad_(tensor.requires_grad)


def _without_zero(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool or not tensor.numel():
        return tensor
    if tensor.dtype.itemsize > 2:  # it may be an index
        return tensor
    return (tensor.detach().abs() % (HIGH - LOW) + LOW).to(tensor.dtype)


def _random(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    generator = torch.Generator().manual_seed(tensor.numel())
    return _like(torch.randn(tensor.shape, generator=generator).to(tensor.device, tensor.dtype), tensor)


def _offset(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.dim():
        return tensor
    made = tensor.new_empty(tensor.numel() + 1)[1:].view(tensor.shape)
    return _like(made.copy_(tensor.detach()), tensor)


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.dim():
        return tensor
    made = tensor.new_empty(*tensor.shape[:-1], tensor.shape[-1], 2)[..., 0]
    return _like(made.copy_(tensor.detach()), tensor)


def _resized(tensor: torch.Tensor, size: int, other: int) -> torch.Tensor:
    made = tensor.detach()
    for dimension, length in enumerate(tensor.shape):
        if length == size:
            places = torch.arange(other, device=tensor.device) % size
            made = made.index_select(dimension, places)
    return _like(made, tensor)
