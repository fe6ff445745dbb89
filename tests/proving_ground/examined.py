"""Programs as people write them, whose causes were first found with a line tracer in torch's own source.

Other modules prove each cause by a program of its own; here it is one of many, in a real function.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import floats

Tensors = tuple[torch.Tensor, ...]


def softmax_of_classes(scores: torch.Tensor) -> torch.Tensor:
    """Return shares of classes, which are the second of four dimensions."""
    return scores.softmax(1)


def softmax_of_rows(scores: torch.Tensor) -> torch.Tensor:
    """Return shares along the contiguous dimension."""
    return scores.softmax(-1)


def states_of_a_solver(state: torch.Tensor) -> Tensors:
    """Return every state of seventy steps."""
    states = []
    for _ in range(70):
        state = state + 0.01 * torch.sin(state)
        states.append(state)
    return tuple(states)


def scaled_copies(values: torch.Tensor) -> Tensors:
    """Return twenty results of one input."""
    return tuple(values * factor + 1 for factor in range(1, 21))


def apart(values: torch.Tensor, matrix: torch.Tensor, steps: int) -> Tensors:
    """Return two uses of one input, with matrix products between them."""
    product = matrix
    for _ in range(steps):
        product = product @ matrix
    return torch.sin(values), product, torch.cos(values) + product[0, 0]


def far_apart(values: torch.Tensor, matrix: torch.Tensor) -> Tensors:
    """Return the same with more products than torch looks across."""
    return apart(values, matrix, 70)


def near(values: torch.Tensor, matrix: torch.Tensor) -> Tensors:
    """Return the same with few."""
    return apart(values, matrix, 20)


def sampled(images: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Return images turned by a computed grid."""
    grid = functional.affine_grid(turns, [2, 3, 24, 24], align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def shuffled(values: torch.Tensor) -> torch.Tensor:
    """Return pixels from channels, as networks do that enlarge images."""
    return functional.pixel_shuffle(functional.relu(values), 2) * 1.5


def not_shuffled(values: torch.Tensor) -> torch.Tensor:
    """Return the same in the order of the input."""
    return functional.relu(values) * 1.5


def scaled_points(points: torch.Tensor, scale: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """Return points, each axis scaled, each point moved."""
    return points * scale + offset


def with_short_copy(values: torch.Tensor) -> Tensors:
    """Return a result, and another of 16 bits."""
    return values * 2 + 1, (values * 100).to(torch.int16)


def with_int_copy(values: torch.Tensor) -> Tensors:
    """Return the same with 32 bits."""
    return values * 2 + 1, (values * 100).to(torch.int32)


def echo(sound: torch.Tensor) -> torch.Tensor:
    """Return sound with an echo of itself, a hundred samples later."""
    return sound + 0.5 * torch.roll(sound, 100, -1)


def select_transposed(columns: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return a choice that reads one operand by columns, one by rows."""
    return torch.where(columns.t() > 0, rows, rows * 2)


def select_rows(count: int) -> Callable[[], Tensors]:
    """Return operands of `select_transposed`: rows of 900, whose tail is short for vectors of any width."""
    return lambda: (torch.ones(900, count), torch.ones(count, 900))


def heads(*maps: torch.Tensor) -> Tensors:
    """Return three uses of a sum of seven maps."""
    total = maps[0] + maps[1] * maps[2] + maps[3] * maps[4] + maps[5] * maps[6]
    return total.sum(1), total.sum(0), total * 2


def positions(values: torch.Tensor) -> torch.Tensor:
    """Return a product with a computed, not with a read index."""
    return values * (torch.arange(960) // 3).float()


def points(axes: int) -> Callable[[], Tensors]:
    """Return points, scales and offsets."""
    return lambda: (torch.ones(5000, axes), torch.ones(axes), torch.ones(5000, 1))


ONLY = ("vectorised", "contiguous-only-loop")
MOST = ("vectorised", "most-contiguous-loop")
NO_HEURISTIC = {"cpp.enable_tiling_heuristics": False}

EXAMINED: dict[str, tuple[str, Program]] = {
    "softmax_of_classes": (
        "fusion",
        Program(
            code="loop-order-differs",
            function=softmax_of_classes,
            inputs=lambda: floats(4, 19, 64, 64),
            about=(("op0",), ("op1",)),
            operands={"buffer": "arg0_1", "first_ranges": "c0: 4, c1: 4096, c2: 19", "cpu": True},
            flipped_function=softmax_of_rows,
            turned=("fused", "outer-loops"),
        ),
    ),
    "states_of_a_solver": (
        "fusion",
        Program(
            code="fusion-size-limit",
            function=states_of_a_solver,
            inputs=lambda: floats(4096),
            about=(("op63",), ("op64",)),
            operands={"nodes": 70, "limit": 64},
            flip={"max_fusion_size": 70},
            turned=("fused", "producer-and-consumer"),
        ),
    ),
    "scaled_copies": (
        "fusion",
        Program(
            code="horizontal-size-limit",
            function=scaled_copies,
            inputs=lambda: floats(64, 64),
            about=(("op0",), ("op19",)),
            operands={"nodes": 20, "limit": 16},
            flip={"cpp.max_horizontal_fusion_size": 20},
            turned=("fused", "common-buffer"),
        ),
    ),
    "far_apart": (
        "fusion",
        Program(
            code="distant-nodes",
            function=far_apart,
            inputs=lambda: (torch.ones(512), torch.eye(8)),
            about=(("op0",), ("op71",)),
            operands={"distance": 71, "limit": 64},
            flipped_function=near,
            flipped_about=(("op0",), ("op21",)),
            turned=("fused", "common-buffer"),
        ),
    ),
    "sampled": (
        "realization",
        Program(
            code="operations",
            function=sampled,
            inputs=lambda: (torch.ones(2, 3, 32, 32), torch.ones(2, 2, 3)),
            about=("buf0",),
            operands={"setting": "realize_cpu_opcount_threshold", "operations_limit": 50, "stored": True},
            flip={"realize_cpu_opcount_threshold": 1000},
            turned=("realised", "reads"),
            since="2.13",
        ),
    ),
    "heads": (
        "realization",
        Program(
            code="reads",
            function=heads,
            inputs=lambda: tuple(torch.ones(64, 48) for _ in range(7)),
            about=("buf0",),
            operands={"reads": 7, "reads_limit": 4, "users": 3},
            flip={"realize_reads_threshold": 7},
            turned=("realised", "reduction"),
        ),
    ),
    "gathered": (
        "vectorisation",
        Program(
            code="non-contiguous-accesses",
            function=sampled,
            inputs=lambda: (torch.ones(2, 3, 32, 32), torch.ones(2, 2, 3)),
            about=("op1", "op2"),
            operands={"share_limit": None, "count_limit": 35, "range": 576},
            flip=NO_HEURISTIC,
            turned=MOST,
            since="2.12",  # before, its nodes have other names
        ),
    ),
    "shuffled": (
        "vectorisation",
        Program(
            code="non-contiguous-accesses",
            function=shuffled,
            inputs=lambda: floats(2, 12, 24, 24),
            about=("op0",),
            operands={"operations": 4, "non_contiguous": 1, "share": 0.25, "nodes": ("op0",)},
            flipped_function=not_shuffled,
            turned=ONLY,
        ),
    ),
    "scaled_points": (
        "vectorisation",
        Program(
            code="short-inner-range",
            function=scaled_points,
            inputs=points(3),
            flipped_inputs=points(16),
            operands={"range": 3, "operations": 6, "operations_limit": 10},
            about=("op0",),
            turned=ONLY,
        ),
    ),
    "with_short_copy": (
        "vectorisation",
        Program(
            code="dtype-not-vectorisable",
            function=with_short_copy,
            inputs=lambda: floats(64, 64),
            about=("op0", "op1"),
            operands={"dtypes": ("int16",), "nodes": ("op1", "op1")},
            flipped_function=with_int_copy,
            turned=ONLY,
        ),
    ),
    "echo": (
        "vectorisation",
        Program(
            code="non-contiguous-accesses",
            function=echo,
            inputs=lambda: floats(8, 44100),
            about=("op0",),
            operands={"operations": 6, "non_contiguous": 1, "loads": 1},
            flip=NO_HEURISTIC,
            turned=MOST,
        ),
    ),
    "positions": (
        "vectorisation",
        Program(
            code="non-contiguous-accesses",
            function=positions,
            inputs=lambda: floats(32, 960),
            about=("op0",),
            operands={"operations": 4, "index_exprs": 1, "indices": ("(x1//3)",)},
            flip=NO_HEURISTIC,
            turned=ONLY,
        ),
    ),
    "no_full_tile": (
        "vectorisation",
        Program(
            code="tail-not-worthwhile",
            function=select_transposed,
            inputs=select_rows(4),
            about=("op0",),
            operands={"masks": 1},
            flipped_inputs=select_rows(32),
            turned=("vectorised", "two-contiguous-loops"),
            since="2.12",
        ),
    ),
}
PROGRAMS = {name: program for name, (_, program) in EXAMINED.items()}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
