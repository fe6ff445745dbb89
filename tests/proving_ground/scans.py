"""Whether several blocks of a GPU scan a row together, and why: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from tests.proving_ground.programs import Program
from tests.proving_ground.tensors import floats_on_gpu

SCAN = ("split-scan", "whole-scan")
Pair = tuple[torch.Tensor, torch.Tensor]


def running_sum(values: torch.Tensor) -> torch.Tensor:
    """Return sums of each row up to each of its elements."""
    return values.cumsum(-1)


def recurrence(values: torch.Tensor) -> torch.Tensor:
    """Return the states of a linear recurrence along each row: a scan of two values."""
    from torch._higher_order_ops.associative_scan import associative_scan  # noqa: PLC0415 - torch has it late

    def combined(first: Pair, second: Pair) -> Pair:
        return first[0] * second[0], second[0] * first[1] + second[1]

    pairs = values.sigmoid(), values * 2
    states: torch.Tensor = associative_scan(combined, pairs, 1, combine_mode="pointwise")[1]
    return states


PROGRAMS = {
    "split_scan": Program(
        code="work-for-processors",
        function=running_sum,
        inputs=lambda: floats_on_gpu(2, 1048576),
        among=SCAN,
        operands={"elements": 1048576, "outputs": 2},
        flipped_inputs=lambda: floats_on_gpu(2, 8192),
        turned=("whole-scan", "short-reduction"),
        device="cuda",
    ),
    "scan_of_two_values": Program(
        code="several-values",
        function=recurrence,
        inputs=lambda: floats_on_gpu(2, 1048576),
        among=SCAN,
        operands={"elements": 1048576, "outputs": 2, "values": 2},
        flipped_inputs=lambda: floats_on_gpu(2, 8192),
        turned=("whole-scan", "short-reduction"),
        device="cuda",
    ),
    "scan_of_many_rows": Program(
        code="enough-outputs",
        function=running_sum,
        inputs=lambda: floats_on_gpu(512, 65536),
        among=SCAN,
        operands={"outputs": 512},
        flipped_inputs=lambda: floats_on_gpu(2, 65536),
        turned=("split-scan", "work-for-processors"),
        device="cuda",
    ),
}
