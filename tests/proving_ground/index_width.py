"""Why a Triton kernel has int32 or int64 indices: a program for each cause, with its flip."""

from __future__ import annotations

from collections.abc import Callable

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of

MOST = 2**31 - 1


def largest(values: torch.Tensor) -> torch.Tensor:
    """Return the largest value of each of 65536 rows: few outputs of many elements."""
    return values.view(65536, -1).amax(-1)


def add_to_first(values: torch.Tensor) -> torch.Tensor:
    """Return a pointwise operation on a few elements of a buffer."""
    return values[:16] + 1


def count(values: torch.Tensor) -> torch.Tensor:
    """Return as many numbers as the first value says."""
    return torch.arange(values[0].item(), device=values.device) + values


def count_few(values: torch.Tensor) -> torch.Tensor:
    """Return the same, of which torch knows that they are few."""
    number = values[0].item()
    torch._check(number <= 4096)
    return torch.arange(number, device=values.device) + values


def capturing_scalars(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """Call a function while dynamo takes `item()` into the graph."""
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        return function(*inputs)


def zeros(size: int) -> tuple[torch.Tensor, ...]:
    """Return bytes on a GPU."""
    return (torch.zeros(size, dtype=torch.uint8, device="cuda"),)


PROGRAMS = {
    "small": Program(
        code="sizes-fit-int32",
        function=largest,
        inputs=lambda: zeros(65536 * 64),
        operands={"numel": 65536 * 64, "limit": MOST},
        flipped_inputs=lambda: zeros(MOST + 1),
        turned=("int64", "numel-exceeds-int32"),
        device="cuda",
    ),
    "large": Program(
        code="numel-exceeds-int32",
        function=largest,
        inputs=lambda: zeros(MOST + 1),
        operands={"numel": MOST + 1, "limit": MOST},
        flipped_inputs=lambda: zeros(65536 * 64),
        turned=("int32", "sizes-fit-int32"),
        device="cuda",
    ),
    "large_buffer": Program(
        code="buffer-exceeds-int32",
        function=add_to_first,
        inputs=lambda: zeros(MOST + 1),
        operands={"numel": 16, "buffer_elements": MOST + 1},
        flipped_inputs=lambda: zeros(1024),
        turned=("int32", "sizes-fit-int32"),
        device="cuda",
    ),
    "unknown": Program(
        code="symbolic-size",
        function=count,
        inputs=lambda: (torch.full((1,), 7, device="cuda"),),
        flipped_function=count_few,
        step=capturing_scalars,
        flipped_step=capturing_scalars,
        turned=("int32", "sizes-fit-int32"),
        device="cuda",
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
