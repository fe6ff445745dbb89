"""Why the loops of a node are in an order, merged, or apart: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_one, floats


def add_to_transposed(values: torch.Tensor) -> torch.Tensor:
    """Return what is read along its first dimension, and written so."""
    return values.t() + 1


def copy_transposed(values: torch.Tensor) -> torch.Tensor:
    """Return what is read along one dimension, and written along the other."""
    return values.t().contiguous()


def add_to_part(values: torch.Tensor) -> torch.Tensor:
    """Return an operation on rows that do not follow each other in memory."""
    return values[:, :100] + 1


def add_both(values: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two nodes that read the same values: the second needs a loop for rows."""
    return values + 1, values + rows[:, None]


def add_apart(values: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two nodes of which the second has other elements."""
    return values + 1, values[:, :100] + rows[:, None]


def values_and_rows() -> tuple[torch.Tensor, ...]:
    """Return what `add_both` takes."""
    return (*floats(64, 4096), *floats(64))


def add_groups(values: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """Return what reads one number for each 30 channels."""
    return values + groups[:, :, None].expand(2, 32, 30).reshape(2, 1, 960)


def add_channels(values: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """Return what reads one number for each image."""
    return values + groups[:, :1, None]


def add_and_copy_transposed(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two nodes that read the same values in loops of two orders."""
    return values + 1, values.t().contiguous() * 2


PROGRAMS = {
    "reordered": Program(
        code="strides-favour-order",
        function=add_to_transposed,
        inputs=lambda: floats(64, 128),
        operands={"order": ("d1", "d0"), "loops": ("64", "128"), "votes_to_swap": 2, "votes_to_keep": 0},
        flip={"pick_loop_orders": False},
        turned=("in-order", "loop-orders-off"),
    ),
    "in_order": Program(
        code="strides-in-order",
        function=add_one,
        inputs=lambda: floats(64, 128),
        operands={"order": ("d0", "d1"), "dimensions": ("d0", "d1"), "votes_to_swap": 0, "votes_to_keep": 2},
        flipped_function=add_to_transposed,
        turned=("reordered", "strides-favour-order"),
    ),
    "tied": Program(
        code="strides-tied",
        function=copy_transposed,
        inputs=lambda: floats(64, 128),
        operands={
            "accesses": ("write of buf0 (64, 1)", "read of arg0_1 (1, 128)"),
            "votes_to_swap": 1, "votes_to_keep": 1,
        },
        flipped_function=add_to_transposed,
        turned=("reordered", "strides-favour-order"),
    ),
    "off": Program(
        code="loop-orders-off",
        function=add_to_transposed,
        inputs=lambda: floats(64, 128),
        settings={"pick_loop_orders": False},
        flip={"pick_loop_orders": True},
        turned=("reordered", "strides-favour-order"),
    ),
    "merged": Program(
        code="contiguous-loops",
        function=add_one,
        inputs=lambda: floats(64, 128),
        operands={"sizes": ("64", "128"), "loops": ("8192",)},
        flipped_function=add_to_part,
        turned=("separate", "loops-not-contiguous"),
    ),
    "separate": Program(
        code="loops-not-contiguous",
        function=add_to_part,
        inputs=lambda: floats(64, 128),
        operands={
            "loops": ("64", "100"), "outer": "d0", "inner": "d1", "outer_stride": 128, "needed_stride": 100,
            "does": "read of", "buffer": "arg0_1", "index": "128*d0 + d1",
        },
        flipped_inputs=lambda: floats(64, 100),
        turned=("merged", "contiguous-loops"),
    ),
    "partner": Program(
        code="loops-of-partner",
        function=add_both,
        inputs=values_and_rows,
        about=("op0",),
        operands={"sizes": ("64", "4096"), "loops": ("64", "4096"), "partner": "op1", "index": "d0"},
        flipped_function=add_apart,
        turned=("merged", "contiguous-loops"),
    ),
    "divided": Program(
        code="divided-index",
        function=add_groups,
        inputs=lambda: (*floats(2, 96, 960), *floats(2, 32)),
        operands={"range": 960, "divisor": 30, "loops": ("2", "96", "32", "30")},
        flipped_function=add_channels,
    ),
    "partner_order": Program(
        code="order-of-partner",
        function=add_and_copy_transposed,
        inputs=lambda: (torch.ones(64, 128, device="cuda"),),
        about=("op0",),
        operands={"buffer": "arg0_1", "partner": "op1", "order": ("d1", "d0"), "loops": ("128", "64")},
        flip={"loop_ordering_after_fusion": False},
        turned=("in-order", "strides-in-order"),
        device="cuda",
    ),
}  # fmt: skip

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
