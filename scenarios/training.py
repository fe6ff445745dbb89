"""Steps that call a function as training does: forward, then backward."""

from __future__ import annotations

from collections.abc import Callable

import torch


def train(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the result of all inputs but the last, and the gradients of those of them that are floats.

    The last input is the gradient that comes from above, of the result's shape. A compiled function has its
    forward graph compiled by the call, and its backward graph by autograd.
    """
    *arguments, above = inputs
    arguments = [x.detach().requires_grad_() if x.is_floating_point() else x for x in arguments]
    result = function(*arguments)
    return (result.detach(), *torch.autograd.grad(result, [x for x in arguments if x.requires_grad], above))


def infer(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Return the result alone, for the same inputs: nothing asks for a gradient."""
    return function(*inputs[:-1])
