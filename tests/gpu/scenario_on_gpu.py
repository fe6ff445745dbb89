"""A scenario for tests on a GPU: whoever builds a case holds a lock until its process ends."""

from __future__ import annotations

import fcntl
import os
from functools import cache
from typing import IO

import torch

from inductor_probe.scenario import Case, Check, Scenario


def two_kernels(x: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x.sin() + 1, -1)
    return y.sum(0)


def loss(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() * x).square().sum()


def step(function: object, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    assert callable(function)
    return torch.autograd.grad(function(x), (x,))


@cache
def held() -> IO[str]:
    """Take the lock, which a fork would share: no process does that once it has built a case."""
    file = open(os.environ["LOCK_OF_THE_GPU"], "w")  # noqa: SIM115, PTH123 - it is closed as the process ends
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def build(case: Case) -> Check:
    held()
    x = torch.randn(1 << 13, 1 << 12, device="cuda", requires_grad=case["backward"])
    if case["backward"]:
        return Check(loss, (x,), step=step, tolerance=1e-3)
    return Check(two_kernels, (x,), tolerance=1e-3)


scenario = Scenario(
    build,
    {"device": "cuda", "backward": False},
    {"forward": {}, "training": {"backward": True}, "again": {}},
)
