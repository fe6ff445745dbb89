"""Reductions of rows of several lengths: some read a row again after its reduction, some do not."""

import sys

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

torch._dynamo.config.recompile_limit = 100
LENGTHS = [*map(int, sys.argv[1:])] or [1536, 2048, 4096, 5120, 8192]
ELEMENTS = 1 << 26
"""Of each input, nearly: several times what the L2 of a GPU holds."""


@torch.compile(dynamic=False)
def softmax(rows: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row."""
    return torch.softmax(rows, -1)


@torch.compile(dynamic=False)
def capped(rows: torch.Tensor) -> torch.Tensor:
    """Return the softmax of scores between -20 and 20: a tanh of each element before it."""
    return torch.softmax(torch.tanh(rows) * 20, -1)


@torch.compile(dynamic=False)
def rms_norm(rows: torch.Tensor) -> torch.Tensor:
    """Return each row divided by its root mean square."""
    return F.rms_norm(rows, rows.shape[-1:], eps=1e-6)


@torch.compile(dynamic=False)
def layer_norm(rows: torch.Tensor) -> torch.Tensor:
    """Return each row with mean 0 and deviation 1."""
    return F.layer_norm(rows, rows.shape[-1:])


@torch.compile(dynamic=False)
def squares(rows: torch.Tensor) -> torch.Tensor:
    """Return the sum of the squares of each row: nothing is read again after it."""
    return rows.square().sum(-1)


@torch.compile(dynamic=False)
def running_sum(rows: torch.Tensor) -> torch.Tensor:
    """Return the cumulative sums of each row."""
    return rows.cumsum(-1)


def rows_of(length: int, dtype: torch.dtype) -> torch.Tensor:
    """Return random rows of a length."""
    return torch.randn(ELEMENTS // length, length, device="cuda", dtype=dtype)


for program in (softmax, capped, rms_norm, layer_norm, squares):
    for length in LENGTHS:
        program(rows_of(length, torch.bfloat16))
for program in (softmax, rms_norm, running_sum):
    for length in LENGTHS:
        program(rows_of(length, torch.float32))
