"""Values of inputs in an order."""

from __future__ import annotations

import torch


def arrange(view: torch.Tensor, form: str, high: int) -> None:
    """Put values into an order: sorted, sorted from zero, parts of `high`, or a positive definite matrix.

    `true` makes all but the first `high` of those that are not zero zero.
    """
    if form == "positive definite":
        view.copy_(view @ view.mH + view.shape[-1] * torch.eye(view.shape[-1], dtype=view.dtype))
    elif form == "true":
        view.mul_(((view != 0).flatten().cumsum(0) <= high).view(view.shape))
    else:
        view.copy_(view.sort(-1).values)
    if form == "offsets":
        view[..., 0] = 0
    elif form == "parts":
        view[..., -1] = high
        view.copy_(view.diff(dim=-1, prepend=torch.zeros_like(view[..., :1])))
