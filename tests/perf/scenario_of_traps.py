"""A scenario for tests: each case is a way to fool oneself, or none."""

from __future__ import annotations

import os
import signal

import torch

from inductor_probe.scenario import Case, Check, Scenario


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


def by_sum(x: torch.Tensor) -> torch.Tensor:
    return x + x + 1


def wrong(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + torch.where(x > 1e9, 0, 1.5)


def fails(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("this variant fails")


def outside_of_the_graph(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x * 2 + 1


def around(x: torch.Tensor) -> torch.Tensor:
    return outside_of_the_graph(x)


def around_again(x: torch.Tensor) -> torch.Tensor:
    return outside_of_the_graph(x)


def sorted_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.inv(x[:8, :8] + 8 * torch.eye(8)) * 2


def contiguous(x: torch.Tensor) -> torch.Tensor:
    return (x * 2 + 1).contiguous()


def build(case: Case) -> Check:
    n = case["rows"]
    x = torch.rand(n, 64)
    match case["trap"]:
        case "limit":  # more sizes than dynamo compiles for one function: this call then runs eagerly
            torch._dynamo.config.recompile_limit = limit = 2
            return Check(double, (x,), before=[(torch.rand(n + 1 + i, 64),) for i in range(limit)])
        case "shared":
            return Check(around, (x,), variants={"again": around_again})
        case "wrong":
            return Check(double, (x,), variants={"by_sum": by_sum, "wrong": wrong, "fails": fails})
        case "automatic":
            return Check(double, (x,), options={"dynamic": None}, before=[(torch.rand(n + 4, 64),)])
        case "fallback":
            return Check(sorted_rows, (x,))
        case "strides":
            images = torch.rand(1, 3, 8, 8).contiguous(memory_format=torch.channels_last)
            return Check(double, (images,), variants={"contiguous": contiguous})
        case "killed":  # as the system does where memory runs out
            os.kill(os.getpid(), signal.SIGKILL)
        case "crash":
            os.abort()
    return Check(double, (x,))


SMALL = {
    "plain": {},
    **{
        trap: {"trap": trap}
        for trap in ("limit", "shared", "wrong", "automatic", "killed", "crash", "fallback")
    },
    "cuda": {"device": "cuda"},
}
scenario = Scenario(
    build,
    defaults={"device": "cpu", "trap": "none", "rows": 32},
    cases=SMALL,
    matrices={
        "quick": {"plain": {}},
        "small": SMALL,
        "large": {"large": {"rows": 4096}},
        "strides": {"strides": {"trap": "strides"}},
    },
)

if __name__ == "__main__":
    scenario.main()
