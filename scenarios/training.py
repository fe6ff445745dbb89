"""Steps that call a function as training does: forward, then backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import torch


def train(function: Callable[..., torch.Tensor], *inputs: Any) -> tuple[torch.Tensor, ...]:
    """Return the result of all inputs but the last, and the gradients of those of them that are floats.

    The last input is the gradient that comes from above, of the result's shape. A compiled function has its
    forward graph compiled by the call, and its backward graph by autograd.
    """
    *arguments, above = inputs
    arguments = [x.detach().requires_grad_() if is_float(x) else x for x in arguments]
    result = function(*arguments)
    return (result.detach(), *torch.autograd.grad(result, [x for x in arguments if is_float(x)], above))


def train_first(
    function: Callable[..., torch.Tensor], x: torch.Tensor, *inputs: Any, dtype: torch.dtype | None = None
) -> tuple[torch.Tensor, ...]:
    """Do so with the gradient of the first alone; it and what comes from above are in `dtype` if given."""
    *arguments, above = inputs
    x, above = x.to(dtype or x.dtype), above.to(dtype or above.dtype)
    return train(lambda first: function(first, *arguments), x, above)


def infer(function: Callable[..., torch.Tensor], *inputs: object) -> torch.Tensor:
    """Return the result alone, for the same inputs: nothing asks for a gradient."""
    return function(*inputs[:-1])


def train_in_float64(function: Callable[..., torch.Tensor], *inputs: object) -> tuple[torch.Tensor, ...]:
    """Return what `train` does, of inputs in float64: by autograd of a definition."""
    return train(function, *(x.double() if is_float(x) else x for x in inputs))


def is_float(x: object) -> TypeGuard[torch.Tensor]:
    """Whether `x` is a tensor of floats: what has a gradient."""
    return isinstance(x, torch.Tensor) and x.is_floating_point()
