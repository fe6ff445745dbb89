"""Fused attention of CUDA in float64, for the reference of a check: its kernels know no such type.

Each operator returns the result, the logarithm of each row's sum of exponentials, and what only its own
backward pass reads: states of generators, sizes. Those are what the operator itself gives in bfloat16. The
formulas are those of `_scaled_dot_product_attention_math` and its derivative; the mask of `is_causal`
begins at the first query and the first key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_map

from inductor_probe.harness.random_numbers import IN_FLOAT64, bound_arguments

_ATEN = torch.ops.aten
_AT_ONCE = 1 << 27
"""Elements of scores that are held at once: 1 GiB in float64."""


def _narrow(value: Any) -> Any:
    wide = isinstance(value, torch.Tensor) and value.dtype == torch.float64
    return value.bfloat16() if wide else value


def _scale(call: dict[str, Any]) -> float:
    return float(1 / math.sqrt(call["query"].shape[-1]) if call["scale"] is None else call["scale"])


def _heads(call: dict[str, Any]) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield parts of the batch and heads, laid in a row, with their scores after scale, bias and mask."""
    query, key = (call[name].flatten(0, 1) for name in ("query", "key"))
    key = key.repeat_interleave(query.shape[0] // key.shape[0], 0)
    bias = call.get("attn_bias")
    if bias is not None:
        bias = bias.expand(*call["query"].shape[:2], *bias.shape[-2:]).flatten(0, 1)
    later = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool, device=query.device).triu(1)
    step = max(1, _AT_ONCE // later.numel())
    for first in range(0, query.shape[0], step):
        part = slice(first, first + step)
        scores = query[part] @ key[part].mT * _scale(call)
        if bias is not None:
            scores += bias[part]
        if call["is_causal"]:
            scores.masked_fill_(later, -math.inf)
        yield part, scores


def _forward(operator: Any, *args: Any, **kwargs: Any) -> Any:
    call = bound_arguments(operator, args, kwargs)
    if call["dropout_p"] != 0.0:  # which of its numbers are dropped, the operator alone knows
        return operator(*args, **kwargs)
    result = list(operator(*tree_map(_narrow, args), **tree_map(_narrow, kwargs)))
    value = call["value"].flatten(0, 1)
    value = value.repeat_interleave(call["query"].shape[:2].numel() // value.shape[0], 0)
    out = torch.empty(*call["query"].flatten(0, 1).shape[:2], value.shape[-1]).to(value)
    sums = torch.empty(out.shape[:2]).to(value)
    for part, scores in _heads(call):
        sums[part] = scores.logsumexp(-1)
        out[part] = scores.softmax(-1) @ value[part]
    result[0] = result[0].double().copy_(out.view_as(result[0]))  # laid out as the operator does
    if result[1] is not None and result[1].numel():  # it is left out where no backward pass follows
        result[1] = result[1].double()
        rows = result[1].squeeze(-1) if result[1].dim() == call["query"].dim() else result[1]
        rows[..., : sums.shape[-1]] = sums.view(*call["query"].shape[:3])  # more rows may be there
    return tuple(result)


def _backward(operator: Any, *args: Any, **kwargs: Any) -> Any:
    call = bound_arguments(operator, args, kwargs)
    if call["dropout_p"] != 0.0:
        return operator(*args, **kwargs)
    gradient = call["grad_out"] if "grad_out" in call else call["grad_out_"]
    query, key, value, out = (call[name].flatten(0, 1) for name in ("query", "key", "value", "out"))
    if key.shape[0] != query.shape[0] or call.get("grad_input_mask", [False])[-1]:
        raise NotImplementedError("gradients of shared heads, or of a bias, in float64")
    gradient = gradient.flatten(0, 1)
    sums = call["logsumexp"].reshape(query.shape[0], -1)[:, : query.shape[1], None]
    of_query, of_key, of_value = (torch.empty_like(each) for each in (query, key, value))
    for part, scores in _heads(call):
        weights = (scores - sums[part]).exp()
        of_value[part] = weights.mT @ gradient[part]
        along = (gradient[part] * out[part]).sum(-1, keepdim=True)
        of_scores = weights * (gradient[part] @ value[part].mT - along) * _scale(call)
        of_query[part], of_key[part] = of_scores @ key[part], of_scores.mT @ query[part]
    gradients = [
        wide.view_as(call[name]) for wide, name in ((of_query, "query"), (of_key, "key"), (of_value, "value"))
    ]
    return (*gradients, None) if "grad_input_mask" in call else tuple(gradients)


OPERATORS: dict[str, Callable[..., Any]] = {
    f"aten.{name}{suffix}.default": partial(compute, getattr(_ATEN, f"{name}{suffix}").default)
    for name in (
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
    )
    for suffix, compute in (("", _forward), ("_backward", _backward))
    if hasattr(_ATEN, f"{name}{suffix}")
}
"""What they compute, by their names."""
IN_FLOAT64.update(OPERATORS)
