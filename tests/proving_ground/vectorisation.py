"""Whether a C++ loop nest is vectorised, along which loop and how: a program for each cause, with its flip.

The sizes leave the same tails with 16 lanes as with 8.
"""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import add_one, add_transposed, busy, floats, numbers


def hflip(image: torch.Tensor) -> torch.Tensor:
    """Return the image mirrored left to right."""
    return image.flip(-1)


def add_one_and_hflip(image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two results of one read: they share a loop nest, and one reads backwards."""
    return image + image[..., :1], image + image.flip(-1)


def channels_first() -> tuple[torch.Tensor, ...]:
    """Return a uint8 image as the origin of this project has it."""
    return (
        torch.arange(3 * 64 * 64, dtype=torch.int32).remainder(251).to(torch.uint8).reshape(1, 3, 64, 64),
    )


def channels_last() -> tuple[torch.Tensor, ...]:
    """Return the same image, its channels innermost."""
    return (channels_first()[0].contiguous(memory_format=torch.channels_last),)


def half_channels_last() -> tuple[torch.Tensor, ...]:
    """Return 3 channels of 16 bits: fewer than a quarter of a vector with AVX2 as well as with AVX-512."""
    return (torch.zeros(1, 3, 64, 64, dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last),)


def wide_channels_last() -> tuple[torch.Tensor, ...]:
    """Return an image of 64 channels, innermost."""
    return (torch.zeros(1, 64, 8, 8, dtype=torch.uint8).contiguous(memory_format=torch.channels_last),)


def add_to_rows(values: torch.Tensor) -> torch.Tensor:
    """Return two loops, the inner of which is contiguous in every access."""
    return values + values[:, :1]


def add_rotated(values: torch.Tensor) -> torch.Tensor:
    """Return three loops, each of which is contiguous in some access, and strided in others."""
    return values + values.permute(1, 2, 0) + values.permute(2, 0, 1)


def sum_every_second(values: torch.Tensor) -> torch.Tensor:
    """Return a sum that reads with stride 2, and writes one number."""
    return values[::2].sum()


def sum_all(values: torch.Tensor) -> torch.Tensor:
    """Return the same with stride 1."""
    return values.sum()


def select(values: torch.Tensor) -> torch.Tensor:
    """Return a pointwise operation with a mask."""
    return torch.where(values > 0, values, values * 2)


def select_transposed(values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return the same of two operands, one of which is read by columns."""
    return torch.where(values > 0, values, others.t() * 2)


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


NO_HEURISTIC = {"cpp.enable_tiling_heuristics": False}
NO_MASKED_TAIL = {"cpp.enable_loop_tail_vec": False}
ONLY = ("vectorised", "contiguous-only-loop")
MOST = ("vectorised", "most-contiguous-loop")
TWO = ("vectorised", "two-contiguous-loops")
SCALAR = ("scalar", "no-vector-isa")
MASKED = ("masked-tail", "partial-vector")

SCALAR_PROGRAMS = {
    "hflip_channels_first": Program(
        code="non-contiguous-accesses",
        function=hflip,
        inputs=channels_first,
        about=("op0",),
        operands={
            "operations": 2,
            "non_contiguous": 1,
            "loads": 1,
            "share": 0.5,
            "share_limit": 0.12,
            "nodes": ("op0",),
            "node_operations": ("load",),
            "buffers": ("arg0_1",),
            "strides": ("-1",),
        },
        flip=NO_HEURISTIC,
        turned=MOST,
    ),
    "hflip_spoils_its_partner": Program(
        code="non-contiguous-accesses",
        function=add_one_and_hflip,
        inputs=channels_first,
        about=("op0", "op1"),
        operands={"non_contiguous": 1, "nodes": ("op1",), "contiguous_nodes": ("op0",)},
        flip=NO_HEURISTIC,
        turned=MOST,
    ),
    "hflip_channels_last": Program(
        code="short-inner-range",
        function=hflip,
        inputs=half_channels_last,
        about=("op0",),
        operands={"range": 3, "operations": 2, "operations_limit": 10, "loop_cause": "contiguous-only-loop"},
        flip=NO_HEURISTIC,
        turned=("underfilled", "range-below-vector"),
    ),
    "hflip_wide_channels_last": Program(
        code="short-inner-range",
        function=hflip,
        inputs=half_channels_last,
        about=("op0",),
        flipped_inputs=wide_channels_last,
        turned=ONLY,
    ),
    "int16": Program(
        code="dtype-not-vectorisable",
        function=add_one,
        inputs=lambda: numbers(torch.int16, 256),
        about=("op0",),
        operands={
            "dtypes": ("int16",),
            "nodes": ("op0",) * 4,
            "node_operations": ("load", "constant", "add", "store"),
        },
        flipped_inputs=lambda: numbers(torch.int32, 256),
        turned=ONLY,
    ),
    "scalar_tensor": Program(
        code="no-loops",
        function=add_one,
        inputs=lambda: numbers(torch.float32),
        about=("op0",),
        flipped_inputs=lambda: numbers(torch.float32, 256),
        turned=ONLY,
    ),
    "no_vectors": Program(
        code="no-vector-isa",
        function=add_one,
        inputs=lambda: numbers(torch.float32, 256),
        about=("op0",),
        settings={"cpp.simdlen": 1},
        operands={"simdlen": "1"},
        flip={"cpp.simdlen": None},
        turned=ONLY,
    ),
    "short_loop_with_masks": Program(
        code="tail-not-worthwhile",
        function=select,
        inputs=lambda: floats(4),
        about=("op0",),
        operands={"masks": 1, "full_vectors": ("0",), "tails": ("4",)},
        flipped_inputs=lambda: floats(256),
        turned=ONLY,
        since="2.12",
    ),
    "short_tiles_with_masks": Program(
        code="tail-not-worthwhile",
        function=select_transposed,
        inputs=lambda: (*floats(2, 258), *floats(258, 2)),
        about=("op0",),
        operands={"masks": 1, "operations": 7, "tails": ("2", "2")},
        flipped_inputs=lambda: (*floats(2, 271), *floats(271, 2)),
        turned=("underfilled", "range-below-vector"),
        since="2.12",
    ),
    "short_loop_without_masks": Program(
        code="tail-vectorisation-off",
        function=add_one,
        inputs=lambda: floats(6),
        about=("op0",),
        operands={"full_vectors": ("0",), "tails": ("6",)},
        settings=NO_MASKED_TAIL,
        flip={"cpp.enable_loop_tail_vec": True},
        turned=("underfilled", "range-below-vector"),
    ),
}
LOOP_PROGRAMS = {
    "one_loop": Program(
        code="contiguous-only-loop",
        function=add_one,
        inputs=lambda: floats(256),
        about=("op0",),
        operands={
            "loops": ("x0",),
            "ranges": ("256",),
            "operations": 3,
            "non_contiguous": 0,
            "dtypes": ("float32",),
            "vectors": ("1",),
        },
        flip={"cpp.simdlen": 1},
        turned=SCALAR,
    ),
    "bytes_fill_a_quarter": Program(
        code="contiguous-only-loop",
        function=add_one,
        inputs=lambda: numbers(torch.uint8, 256),
        about=("op0",),
        operands={"dtypes": ("uint8",), "vectors": ("0.25",)},
        flip={"cpp.simdlen": 1},
        turned=SCALAR,
    ),
    "contiguous_only": Program(
        code="contiguous-only-loop",
        function=add_to_rows,
        inputs=lambda: floats(64, 64),
        about=("op0",),
        operands={
            "loops": ("x1",),
            "all_loops": ("x0", "x1"),
            "all_ranges": ("64", "64"),
            "contiguous": ("0", "2"),
            "constant_stride": ("true", "false"),
        },
        flipped_function=add_transposed,
        turned=TWO,
    ),
    "two_contiguous": Program(
        code="two-contiguous-loops",
        function=add_transposed,
        inputs=lambda: floats(64, 64),
        about=("op0",),
        operands={"loops": ("x0", "x1"), "contiguous": ("1", "2"), "constant_stride": ("true", "true")},
        flipped_function=add_to_rows,
        turned=ONLY,
    ),
    "most_contiguous": Program(
        code="most-contiguous-loop",
        function=add_rotated,
        inputs=lambda: floats(16, 16, 16),
        about=("op0",),
        settings=NO_HEURISTIC,
        operands={"loops": ("x2",), "contiguous": ("1", "1", "2")},
        flipped_function=add_transposed,
        flipped_inputs=lambda: floats(64, 64),
        turned=TWO,
    ),
    "no_contiguous": Program(
        code="no-contiguous-loop",
        function=sum_every_second,
        inputs=lambda: floats(4096),
        about=("op0",),
        settings=NO_HEURISTIC,
        operands={"loops": ("x0",), "contiguous": ("0",), "constant_stride": ("true",)},
        flipped_function=sum_all,
        turned=ONLY,
    ),
    "range_below_vector": Program(
        code="range-below-vector",
        function=add_one,
        inputs=lambda: floats(6),
        about=("op0",),
        operands={"full_vectors": ("0",), "tails": ("6",)},
        flipped_inputs=lambda: floats(256),
        turned=ONLY,
    ),
    "hflip_channels_last_avx2": Program(
        code="range-below-vector",
        function=hflip,
        inputs=channels_last,
        about=("op0",),
        operands={"factor": 8, "full_vectors": ("0",), "tails": ("3",)},
        settings={"cpp.simdlen": 256},
        flipped_inputs=wide_channels_last,
        turned=ONLY,
    ),
}
VECTOR_PROGRAMS = {
    "short_bfloat16": Program(
        code="short-low-precision-range",
        function=add_one,
        inputs=lambda: numbers(torch.bfloat16, 12),
        about=("op0",),
        operands={"ranges": ("12",)},
        flipped_inputs=lambda: numbers(torch.bfloat16, 256),
    ),
    "partial_vector": Program(
        code="partial-vector",
        function=add_one,
        inputs=lambda: floats(258),
        about=("op0",),
        operands={"tails": ("2",)},
        flipped_inputs=lambda: floats(256),
    ),
    "not_worthwhile": Program(
        code="tail-not-worthwhile",
        function=select,
        inputs=lambda: floats(258),
        about=("op0",),
        operands={"masks": 1, "operations": 7, "share": 1 / 7, "share_limit": 0.12, "weighed_tail": 4},
        flipped_inputs=lambda: floats(271),
        turned=MASKED,
        since="2.12",
    ),
    "vectorisation_off": Program(
        code="tail-vectorisation-off",
        function=add_one,
        inputs=lambda: floats(258),
        about=("op0",),
        settings=NO_MASKED_TAIL,
        flip={"cpp.enable_loop_tail_vec": True},
        turned=MASKED,
    ),
    "constant_stride": Program(
        code="constant-stride",
        function=busy_on_every_second,
        inputs=lambda: floats(256),
        about=("op0",),
        operands={"by_lane": 1, "nodes": ("op0",), "buffers": ("arg0_1",), "strides": ("2",)},
        flipped_function=busy,
    ),
    "varying_stride": Program(
        code="varying-stride",
        function=busy_on_columns,
        inputs=lambda: floats(7, 11),
        about=("op0",),
        operands={"by_lane": 1, "buffers": ("arg0_1",)},
        flipped_function=busy_on_rows,
    ),
    "indirect": Program(
        code="indirect-access",
        function=busy_on_chosen,
        inputs=table_and_index,
        about=("op0",),
        operands={"buffers": ("", "arg0_1"), "node_operations": ("index_expr", "load")},
        flipped_function=busy_on_table,
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
    ),
}
PROGRAMS = {**SCALAR_PROGRAMS, **LOOP_PROGRAMS, **VECTOR_PROGRAMS}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
