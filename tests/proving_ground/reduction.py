"""How reductions are generated, and why: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of


def sum_last(values: torch.Tensor) -> torch.Tensor:
    """Return sums over the last dimension."""
    return values.sum(-1)


def sum_first(values: torch.Tensor) -> torch.Tensor:
    """Return sums over the first dimension."""
    return values.sum(0)


def sum_all(values: torch.Tensor) -> torch.Tensor:
    """Return one sum."""
    return values.sum()


def sum_rows_of_ones(values: torch.Tensor) -> torch.Tensor:
    """Return sums of what does not depend on any input."""
    return torch.ones(16, 64, device=values.device).sum(-1) + values


def count_rows(values: torch.Tensor) -> torch.Tensor:
    """Return sums that read each value once for all of the elements that they reduce."""
    return values[:, None].expand(16, 64).sum(-1)


def ones(*size: int, device: str = "cpu") -> tuple[torch.Tensor, ...]:
    """Return a tensor of ones."""
    return (torch.ones(size, device=device),)


def on_gpu(*size: int) -> tuple[torch.Tensor, ...]:
    """Return a tensor of ones on a GPU."""
    return ones(*size, device="cuda")


def sum_both(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return two sums in a kernel: one reads along the reduced dimension, one across."""
    return rows.sum(-1) + columns.t().sum(-1)


def rows_and_columns() -> tuple[torch.Tensor, ...]:
    """Return what `sum_both` takes."""
    return (torch.ones(64, 4096, device="cuda"), torch.ones(4096, 64, device="cuda"))


def normalised(values: torch.Tensor) -> torch.Tensor:
    """Return values by the sum of their row, in rows."""
    return values / values.sum(-1, keepdim=True)


def normalised_transposed(values: torch.Tensor) -> torch.Tensor:
    """Return the same, written by columns."""
    return normalised(values).t().contiguous()


PROGRAMS = {
    "one_element": Program(
        code="single-element",
        function=sum_last,
        inputs=lambda: ones(16, 1),
        operands={"elements": 1, "outputs": 16},
        flipped_inputs=lambda: ones(16, 64),
        turned=("not-split", "contiguous-reads"),
    ),
    "unrolled": Program(
        code="below-unroll-threshold",
        function=sum_last,
        inputs=lambda: ones(16, 4),
        operands={"elements": 4, "outputs": 16, "threshold": 8},
        flip={"unroll_reductions_threshold": 4},
        turned=("not-split", "few-elements"),
    ),
    "single_output": Program(
        code="single-output",
        function=sum_all,
        inputs=lambda: ones(16, 64),
        operands={"elements": 1024, "outputs": 1, "hint": "INNER", "parts": 1},
        flipped_function=sum_last,
        turned=("not-split", "contiguous-reads"),
    ),
    "few_elements": Program(
        code="few-elements",
        function=sum_last,
        inputs=lambda: ones(16, 32),
        operands={"elements": 32, "elements_limit": 32, "hint": "DEFAULT"},
        flipped_inputs=lambda: ones(16, 33),
        turned=("not-split", "contiguous-reads"),
    ),
    "many_outputs": Program(
        code="many-outputs",
        function=sum_last,
        inputs=lambda: ones(65536, 64),
        operands={"outputs": 65536, "hint": "DEFAULT"},
        flipped_inputs=lambda: ones(16, 64),
        turned=("not-split", "contiguous-reads"),
    ),
    "contiguous": Program(
        code="contiguous-reads",
        function=sum_last,
        inputs=lambda: ones(16, 64),
        operands={"strides": ("1",), "inner": 1, "reads": 1, "hint": "INNER"},
        flipped_function=sum_first,
        flipped_inputs=lambda: ones(64, 16),
        turned=("not-split", "strided-reads"),
    ),
    "strided": Program(
        code="strided-reads",
        function=sum_first,
        inputs=lambda: ones(64, 16),
        operands={"strides": ("16",), "inner": 0, "reads": 1, "hint": "OUTER"},
        flipped_function=sum_last,
        flipped_inputs=lambda: ones(16, 64),
        turned=("not-split", "contiguous-reads"),
    ),
    "broadcast": Program(
        code="no-strided-read",
        function=sum_rows_of_ones,
        inputs=lambda: ones(16),
        operands={"hint": "DEFAULT"},
        flipped_function=sum_last,
        flipped_inputs=lambda: ones(16, 64),
        turned=("not-split", "contiguous-reads"),
    ),
    "persistent_off": Program(
        code="persistent-reductions-off",
        function=sum_last,
        inputs=lambda: on_gpu(64, 512),
        settings={"triton.persistent_reductions": False},
        flip={"triton.persistent_reductions": True},
        turned=("persistent", "elements-fit-a-tile"),
        device="cuda",
    ),
    "persistent": Program(
        code="elements-fit-a-tile",
        function=sum_last,
        inputs=lambda: on_gpu(64, 512),
        operands={"elements": 512, "limit": 1024, "hint": "INNER"},
        flip={"triton.persistent_reductions": False},
        turned=("looped", "persistent-reductions-off"),
        device="cuda",
    ),
    "looped": Program(
        code="elements-exceed-a-tile",
        function=sum_last,
        inputs=lambda: on_gpu(64, 4096),
        operands={"elements": 4096, "limit": 1024, "hint": "INNER"},
        flipped_inputs=lambda: on_gpu(64, 512),
        turned=("persistent", "elements-fit-a-tile"),
        device="cuda",
    ),
    "symbolic": Program(
        code="symbolic-elements",
        function=sum_last,
        inputs=lambda: on_gpu(64, 512),
        dynamic=True,
        turned=("persistent", "elements-fit-a-tile"),
        device="cuda",
    ),
    "hint": Program(
        code="hint-of-its-reductions",
        function=sum_last,
        inputs=lambda: on_gpu(64, 4096),
        operands={"hints": ("INNER",)},
        flipped_function=sum_first,
        flipped_inputs=lambda: on_gpu(64, 65536),
        turned=("DEFAULT", "hint-of-its-reductions"),
        device="cuda",
    ),
    "hints_differ": Program(
        code="hints-differ",
        function=sum_both,
        inputs=rows_and_columns,
        flipped_function=sum_last,
        flipped_inputs=lambda: on_gpu(64, 4096),
        turned=("INNER", "hint-of-its-reductions"),
        device="cuda",
    ),
    "pointwise": Program(
        code="non-contiguous-pointwise",
        function=normalised_transposed,
        inputs=lambda: on_gpu(64, 4096),
        operands={"hints": ("INNER",)},
        flipped_function=normalised,
        turned=("INNER", "hint-of-its-reductions"),
        device="cuda",
    ),
    "coalesced": Program(
        code="coalesced-along-reduction",
        function=sum_last,
        inputs=lambda: on_gpu(262144, 64),
        operands={"hints": ("DEFAULT",)},
        flipped_function=sum_first,
        flipped_inputs=lambda: on_gpu(64, 262144),
        turned=("DEFAULT", "hint-of-its-reductions"),
        device="cuda",
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
