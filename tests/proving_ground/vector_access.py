"""Which accesses of a vectorised C++ loop are done lane by lane: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_one, add_transposed, busy, floats


def busy_on_every_second(values: torch.Tensor) -> torch.Tensor:
    """Return what reads with stride 2."""
    return busy(values[::2])


def busy_on_columns(values: torch.Tensor) -> torch.Tensor:
    """Return one loop that reads a matrix by its columns: the index is divided by their length."""
    return busy(values.t().reshape(-1)) + values.reshape(-1)


def busy_on_rows(values: torch.Tensor) -> torch.Tensor:
    """Return the same by rows."""
    return busy(values.reshape(-1)) + values.reshape(-1)


def busy_on_chosen(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return what reads elements that another tensor chooses."""
    return busy(table[index])


def busy_on_table(table: torch.Tensor, _index: torch.Tensor) -> torch.Tensor:
    """Return what reads the table in order."""
    return busy(table)


def add_to_chosen(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return additions to elements that another tensor chooses, some more than once."""
    return table.index_put((index,), table, accumulate=True)


def table_and_index() -> tuple[torch.Tensor, ...]:
    """Return a table, and places in it."""
    return torch.ones(256), torch.arange(256).remainder(64)


CONTIGUOUS = ("contiguous", "contiguous-accesses")

PROGRAMS = {
    "contiguous": Program(
        code="contiguous-accesses",
        function=busy,
        inputs=lambda: floats(256),
        about=("op0",),
        flipped_function=busy_on_every_second,
        turned=("lane-by-lane", "constant-stride"),
    ),
    "constant_stride": Program(
        code="constant-stride",
        function=busy_on_every_second,
        inputs=lambda: floats(256),
        about=("op0",),
        operands={"by_lane": 1, "nodes": ("op0",), "buffers": ("arg0_1",), "strides": ("2",)},
        flipped_function=busy,
        turned=CONTIGUOUS,
    ),
    "varying_stride": Program(
        code="varying-stride",
        function=busy_on_columns,
        inputs=lambda: floats(7, 11),
        about=("op0",),
        operands={"by_lane": 1, "buffers": ("arg0_1",)},
        flipped_function=busy_on_rows,
        turned=CONTIGUOUS,
    ),
    "indirect": Program(
        code="indirect-access",
        function=busy_on_chosen,
        inputs=table_and_index,
        about=("op0",),
        operands={"buffers": ("", "arg0_1"), "node_operations": ("index_expr", "load")},
        flipped_function=busy_on_table,
        turned=CONTIGUOUS,
    ),
    "atomic": Program(
        code="atomic-access",
        function=add_to_chosen,
        inputs=table_and_index,
        about=("op1",),
        settings={"cpp.threads": 2},
        flip={"cpp.threads": 1},
        turned=("lane-by-lane", "indirect-access"),
    ),
    "transposed": Program(
        code="transposed-access",
        function=add_transposed,
        inputs=lambda: floats(64, 64),
        about=("op0",),
        operands={"by_lane": 0, "transposed": 1},
        flipped_function=add_one,
        turned=CONTIGUOUS,
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
