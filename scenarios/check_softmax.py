"""Softmax of scaled scores: two reductions of a row and a pointwise pass, of which inductor makes one kernel.

On CUDA the row's length decides what the kernel is: up to 1024 it is held in registers (persistent), a longer
one is read once for maximum and sum together (online softmax) and once more for the result. Along columns the
reduction is strided.
"""

from __future__ import annotations

import torch
from rounding import kernel
from tensors import FLOATS, dtype_of, normal

from inductor_probe.scenario import Case, Check, Scenario


def softmax(scores: torch.Tensor, scale: float, dim: int) -> torch.Tensor:
    """Return the softmax of `scores` * `scale`."""
    return torch.softmax(scores * scale, dim)


def in_float64(scores: torch.Tensor, scale: float, dim: int) -> torch.Tensor:
    """Return the definition itself: exp(x) over its sum, which float64 holds without subtracting the
    maximum."""
    powers = (scores.double() * scale).exp()
    return powers / powers.sum(dim, keepdim=True)


def build(case: Case) -> Check:
    """Make scores of deviation 1, and halve them, which is exact.

    Of n results the largest is some 10 / n. exp turns the rounding of an argument, up to 5 in size with the
    maximum taken away, into a relative error of 5 u, and has some itself; a sum of n powers has some sqrt(n)
    u.
    """
    length = case["columns"] if case["dim"] else case["rows"]
    return Check(
        softmax,
        (normal(case, case["rows"], case["columns"]), 0.5, case["dim"]),
        references={"float64": in_float64},
        tolerance=kernel(dtype_of(case), 10 + length**0.5, largest=min(1, 10 / length)),
        options={"dynamic": case["dynamic"]},
    )


scenario = Scenario(
    build,
    defaults={"device": "cpu", "dtype": "float32", "rows": 64, "columns": 500, "dim": 1, "dynamic": False},
    cases={
        "rows": {},
        "columns": {"dim": 0},
        "rows_bfloat16": {"dtype": "bfloat16"},
        "cuda_rows": {"device": "cuda", "rows": 16384, "columns": 1000},
        "cuda_long_rows": {"device": "cuda", "rows": 4096, "columns": 50257},
        "cuda_columns": {"device": "cuda", "rows": 1024, "columns": 16384, "dim": 0},
        "cuda_rows_bfloat16": {"device": "cuda", "rows": 16384, "columns": 1000, "dtype": "bfloat16"},
    },
    choices={"dtype": FLOATS, "dim": (0, 1)},
)

if __name__ == "__main__":
    scenario.main()
