"""Collectives of a stand-in process group of one rank: nothing is sent.

A reduction over ranks gives what this rank has, and what others would send is a copy of it. The operators
are those of torch/csrc/distributed/c10d/Functional.cpp, which look for a process group that is not here;
`wait_tensor` waits for nothing then.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

COLLECTIVES = "_c10d_functional"


def own(value: Any, *_: Any) -> Any:
    """Return what this rank has: of a reduction, a broadcast."""
    return [one.clone() for one in value] if isinstance(value, list) else value.clone()


def in_place(value: Any, *_: Any) -> Any:
    """Leave what this rank has where it is."""
    return value


def gathered(value: Any, size: int, _: Any, out: Any = None) -> Any:
    """Return the values of all ranks, one after the other."""
    if isinstance(value, list):
        return [gathered(one, size, _) for one in value]
    result = torch.cat([value] * size)
    return result if out is None else out.copy_(result)


def scattered(value: Any, how: str, size: int, _: Any, out: Any = None) -> Any:
    """Return this rank's part of a reduction, the first."""
    if isinstance(value, list):
        return [scattered(one, how, size, _) for one in value]
    part = value[: value.shape[0] // size]
    return part.clone() if out is None else out.copy_(part)


def exchanged(value: Any, received: list[int], *_: Any) -> Any:
    """Return as many rows as all ranks send to this one."""
    rows = torch.arange(sum(received), device=value.device)
    return value[rows % max(1, value.shape[0])]


def sent(kinds: list[str], ranks: list[int], tags: list[int], values: list[Any], _: Any) -> Any:
    """Return what this rank has for all that it sends and receives at once."""
    return own(values)


STAND_IN = {
    **dict.fromkeys(("all_reduce", "all_reduce_coalesced", "broadcast", "isend", "irecv"), own),
    "batch_p2p_ops": sent,
    **dict.fromkeys(("all_reduce_", "all_reduce_coalesced_", "broadcast_"), in_place),
    **{f"all_gather_into_tensor{ending}": gathered for ending in ("", "_coalesced", "_out")},
    **{f"reduce_scatter_tensor{ending}": scattered for ending in ("", "_coalesced", "_out")},
    "all_to_all_single": exchanged,
}


def stand_in() -> torch.library.Library:
    """Have the operators computed so in this process; they are that as long as the result is there."""
    library, operators = torch.library.Library(COLLECTIVES, "IMPL"), getattr(torch.ops, COLLECTIVES)
    for name in filter(partial(hasattr, operators), STAND_IN):  # torch 2.11 has no `isend`
        for key in ("CPU", "CUDA"):
            if not torch._C._dispatch_has_kernel_for_dispatch_key(f"{COLLECTIVES}::{name}", key):
                library.impl(name, STAND_IN[name], key)
    return library


ONE_RANK = stand_in()
