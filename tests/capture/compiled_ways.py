"""A script that compiles small functions in many ways, and prints which guards came of it.

    python compiled_ways.py cpu|cuda

Recorders must change neither the code nor a guard: `test_recorders.py` dumps this with and without them. It
prints a line of JSON: of each `ShapeEnv` its guards, symbols and what they were replaced with, of each
compiled frame the number of dynamo's guards.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.guards import CheckFunctionManager
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.nn import functional

DEVICE = sys.argv[1]


def instances(cls: Any) -> list[Any]:
    """Return a list that will have each instance of a class that is made from now on."""
    made: list[Any] = []
    initialise = cls.__init__

    def initialise_and_keep(self: Any, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        made.append(self)

    cls.__init__ = initialise_and_keep
    return made


def guards_of(environment: Any) -> dict[str, list[str]]:
    """Return what the compiler assumed of symbolic sizes."""
    return {
        "guards": [str(guard.expr) for guard in environment.guards],
        "ranges": [f"{symbol}: {values}" for symbol, values in environment.var_to_range.items()],
        "replacements": [f"{symbol}: {value}" for symbol, value in environment.replacements.items()],
        "asserts": [
            str(value) for values in environment.deferred_runtime_asserts.values() for value in values
        ],
    }


def flipped(image: torch.Tensor) -> torch.Tensor:
    """Reverse the innermost dimension of an image."""
    return image.flip(-1)


def shares(values: torch.Tensor) -> torch.Tensor:
    """Return shares of columns: three nodes, of which the loops differ."""
    return values.softmax(0)


def cut(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Compare and divide sizes, so that symbolic ones need guards."""
    half = values[: values.shape[0] // 2]
    if half.shape[0] > 3:
        half = torch.cat([half, half * 2])
    return (half.unsqueeze(-1) * weight).sum(1) + weight.mean()


def product(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return a matrix product and what follows it."""
    return functional.relu(first @ second) + 1


def train() -> None:
    """Compile a training step: a graph forward, one backward, and an optimizer of lists of tensors."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU()).to(DEVICE)
    torch.compile(model)(torch.ones(4, 8, device=DEVICE)).square().mean().backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)
    torch.compile(optimizer.step)()


def main() -> None:
    """Compile in each way."""
    environments, frames = instances(ShapeEnv), instances(CheckFunctionManager)
    image = torch.ones(2, 3, 16, 16, dtype=torch.uint8, device=DEVICE)
    torch.compile(flipped)(image.contiguous(memory_format=torch.channels_last))
    torch.compile(shares)(torch.ones(64, 48, device=DEVICE))
    dynamic: Callable[..., Any] = torch.compile(cut, dynamic=True)
    for rows, columns in ((16, 5), (6, 7)):
        dynamic(torch.ones(rows, columns, device=DEVICE), torch.ones(9, device=DEVICE))
    torch.compile(product, dynamic=True)(torch.ones(6, 12, device=DEVICE), torch.ones(12, 10, device=DEVICE))
    operands = torch.ones(64, 64, device=DEVICE), torch.eye(64, device=DEVICE)
    torch.compile(product, mode="max-autotune-no-cudagraphs")(*operands)
    train()
    layer = torch.nn.Linear(16, 32, device=DEVICE).eval()
    with torch.no_grad():
        torch.compile(layer, options={"freezing": True})(torch.ones(4, 16, device=DEVICE))
    sizes = [guards_of(environment) for environment in environments]
    counts = [len(str(frame.guard_manager).splitlines()) for frame in frames]
    print(json.dumps({"sizes": [one for one in sizes if any(one.values())], "frames": counts}))


main()
