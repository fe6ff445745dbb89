"""How concatenations are lowered: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of

MANY = 12


def two(device: str = "cuda") -> tuple[torch.Tensor, ...]:
    """Return two matrices."""
    return torch.zeros(64, 32, device=device), torch.ones(64, 32, device=device)


def doubled(values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return what a pointwise operator makes of a concatenation, one of whose operands is computed."""
    return torch.cat((values.sin(), others), -1) * 2


def doubled_with_other_reader(values: torch.Tensor, others: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the same, and what another operator makes of the operand."""
    sine = values.sin()
    return torch.cat((sine, others), -1) * 2, sine + 1


def both_computed(values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return two results side by side."""
    return torch.cat((values.sin(), others.cos()), -1)


def beside_sum(values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return a result and a sum side by side."""
    return torch.cat((values.sin(), others.sum(0, keepdim=True)), 0)


def beside_sum_doubled(values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return the same, read by a pointwise operator."""
    return beside_sum(values, others) * 2


def sums_doubled(values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return two sums side by side, doubled."""
    return torch.cat((values.sum(0), others.sum(0)), -1) * 2


def many_doubled(values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return many results side by side, doubled."""
    return torch.cat([values + others * number for number in range(MANY)], -1) * 2


PROGRAMS = {
    "on_cpu": Program(
        code="on-cpu",
        function=doubled,
        inputs=lambda: two("cpu"),
        operands={"operands": 2},
        flip={"force_pointwise_cat": True},
        turned=("element-by-element", "pointwise-cat-forced"),
    ),
    "forced": Program(
        code="pointwise-cat-forced",
        function=both_computed,
        inputs=lambda: two("cpu"),
        settings={"force_pointwise_cat": True},
        flip={"force_pointwise_cat": False},
        turned=("in-parts", "on-cpu"),
    ),
    "read_pointwise": Program(
        code="read-pointwise",
        function=doubled,
        inputs=two,
        flipped_function=sums_doubled,
        turned=("in-parts", "operands-in-memory"),
        device="cuda",
    ),
    "all_computed": Program(
        code="all-computed",
        function=both_computed,
        inputs=two,
        flipped_function=beside_sum,
        turned=("in-parts", "not-read-pointwise"),
        device="cuda",
    ),
    "operand_read_elsewhere": Program(
        code="operand-read-elsewhere",
        function=doubled_with_other_reader,
        inputs=two,
        operands={"shared": ("sin",)},
        flip={"force_pointwise_cat": True},
        turned=("element-by-element", "pointwise-cat-forced"),
        device="cuda",
        since="2.12",
    ),
    "many_operands": Program(
        code="many-operands",
        function=many_doubled,
        inputs=two,
        operands={"operands": MANY, "limit": 8},
        flip={"force_pointwise_cat": True},
        turned=("element-by-element", "pointwise-cat-forced"),
        device="cuda",
    ),
    "operands_in_memory": Program(
        code="operands-in-memory",
        function=sums_doubled,
        inputs=two,
        flipped_function=doubled,
        turned=("element-by-element", "read-pointwise"),
        device="cuda",
    ),
    "not_read_pointwise": Program(
        code="not-read-pointwise",
        function=beside_sum,
        inputs=two,
        flipped_function=beside_sum_doubled,
        turned=("element-by-element", "read-pointwise"),
        device="cuda",
    ),
}
scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
