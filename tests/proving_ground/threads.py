"""Whether a C++ nest is divided among threads: a program for each cause, with its flip.

How many threads there are is set, so that the causes are the same on every machine.
"""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_one, floats


def outer_product(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return two loops that are not one: each reads an operand of its own."""
    return rows[:, None] * columns


def planes(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return three loops, all of which may be divided, and the second is 2048 times the first."""
    return values * rows


def sum_rows(values: torch.Tensor) -> torch.Tensor:
    """Return a reduction over the inner loop."""
    return values.sum(1)


def sum_columns(values: torch.Tensor) -> torch.Tensor:
    """Return a reduction whose outer loop is vectorised."""
    return values.sum(0)


def add_columns(values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return a sum of two operands, one of which is read by columns: it is computed in tiles."""
    return values + others.t()


FOUR = {"cpp.threads": 4}
DIVIDED = ("parallel", "loops-divided")

PROGRAMS = {
    "divided": Program(
        code="loops-divided",
        function=add_one,
        inputs=lambda: floats(65536),
        about=("op0",),
        operands={"threads": 4, "work": 65536, "loops": ("x0",), "depth": 1, "iterations": 65536},
        settings=FOUR,
        flip={"cpp.threads": 1},
        turned=("one-thread", "one-thread-set"),
    ),
    "one_thread": Program(
        code="one-thread-set",
        function=add_one,
        inputs=lambda: floats(65536),
        about=("op0",),
        operands={"cpp_threads": 1},
        settings={"cpp.threads": 1},
        flip=FOUR,
        turned=DIVIDED,
    ),
    "little_work": Program(
        code="little-work",
        function=add_one,
        inputs=lambda: floats(256),
        about=("op0",),
        operands={"work": 256, "threads": 4, "work_per_thread": 64, "min_chunk_size": 512},
        settings=FOUR,
        flip={"cpp.min_chunk_size": 16},
        turned=DIVIDED,
    ),
    "no_loop": Program(
        code="no-loop-to-divide",
        function=add_one,
        inputs=floats,
        about=("op0",),
        settings=FOUR,
        flipped_inputs=lambda: floats(65536),
        turned=DIVIDED,
    ),
    "dynamic": Program(
        code="dynamic-threads",
        function=add_one,
        inputs=lambda: floats(256),
        about=("op0",),
        settings={**FOUR, "cpp.dynamic_threads": True},
        flip={"cpp.dynamic_threads": False},
        turned=("one-thread", "little-work"),
    ),
    "few_rows": Program(
        code="little-work-per-iteration",
        function=outer_product,
        inputs=lambda: (torch.ones(4), torch.ones(2000)),
        about=("op0",),
        operands={"threads": 8, "iterations": 4, "work_per_thread": 1000, "work_of_next_loop": 250},
        settings={"cpp.threads": 8},
        flip={"cpp.min_chunk_size": 100},
        turned=DIVIDED,
    ),
    "long_second_loop": Program(
        code="loops-divided",
        function=planes,
        inputs=lambda: (torch.ones(2, 4096, 32), torch.ones(2, 1, 32)),
        about=("op0",),
        operands={"loops": ("x0",), "iterations": 2, "threads": 2, "outer_steps": None},
        settings={"cpp.threads": 2},
        flip={"cpp.threads": 1},
        turned=("one-thread", "one-thread-set"),
    ),
    "reduction_boundary": Program(
        code="reduction-boundary",
        function=sum_rows,
        inputs=lambda: floats(2, 4096),
        about=("op0",),
        operands={"iterations": 2, "threads": 4, "next_loop": "x1", "outer_steps": 2, "ratio_limit": 300},
        settings=FOUR,
        flipped_inputs=lambda: floats(64, 4096),
        turned=DIVIDED,
    ),
    "few_tiles": Program(
        code="few-vector-steps",
        function=add_columns,
        inputs=lambda: (*floats(8, 4096), *floats(4096, 8)),
        about=("op0",),
        operands={"iterations": 8, "steps": 1, "threads": 4, "loops": ("x0",)},
        settings=FOUR,
        flipped_inputs=lambda: (*floats(256, 4096), *floats(4096, 256)),
        turned=DIVIDED,
    ),
    "long_reduction": Program(
        code="inner-loop-longer",
        function=sum_rows,
        inputs=lambda: floats(2, 65536),
        about=("op0",),
        operands={"loops": ("x1",), "outer_steps": 2, "is_reduction": True},
        settings=FOUR,
        flipped_inputs=lambda: floats(64, 4096),
        turned=DIVIDED,
    ),
    "four_heads": Program(
        code="outer-loops-rounded",
        function=sum_rows,
        inputs=lambda: floats(64, 512, 4),
        about=("op0",),
        operands={"loops": ("x2",), "outer_steps": 0, "starts": 64, "rounded_loops": ("x1 (4)",)},
        settings=FOUR,
        flipped_inputs=lambda: floats(64, 512, 16),
        turned=DIVIDED,
        until="2.14",
    ),
    "reduction_under_vectors": Program(
        code="reduction-under-vector-loop",
        function=sum_columns,
        inputs=lambda: floats(65536, 20),
        about=("op0",),
        operands={"loops": ("x0",), "inner_steps": 65536, "is_reduction": False},
        settings={**FOUR, "cpp.enable_loop_tail_vec": False},
        flip={"cpp.enable_loop_tail_vec": True},
        turned=("parallel", "inner-loop-longer"),
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
