"""A running mean: a scan with something to do to each element before it and after it.

Triton kernels have scans: of rows that fill the GPU in one kernel with the rest fused into it, of one long
row as a split scan, whose blocks hand their sums on to each other through memory. C++ has none: there the sum
is a call of torch's own kernel, and the rest a kernel on each side of it.
"""

from __future__ import annotations

import torch
from rounding import steps, total
from tensors import dtype_of, normal

from inductor_probe.scenario import Case, Check, Scenario


def running_mean(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Return for each element the mean of the squares of those up to it along `dim`."""
    count = torch.arange(1, x.shape[dim] + 1, device=x.device)
    return (x * x).cumsum(dim) / (count if dim else count[:, None])


def in_float64(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Return the same, summed on the CPU one after the other."""
    return running_mean(x.double().cpu(), dim)


def build(case: Case) -> Check:
    """Make floats of deviation 1, of which x^2 has the mean 1, and is up to 30 where there are few of them.

    A mean of k is a sum of k positive terms, divided by k; its error is largest where all are summed.
    """
    dtype, dim = dtype_of(case), case["dim"]
    terms = case["columns"] if dim else case["rows"]
    return Check(
        running_mean,
        (normal(case, case["rows"], case["columns"]), dim),
        references={"float64": in_float64},
        tolerance=steps(dtype, 3, largest=30) + total(dtype, terms, 1 / terms, positive=True),
        options={"dynamic": case["dynamic"]},
    )


scenario = Scenario(
    build,
    defaults={"device": "cpu", "dtype": "float32", "rows": 32, "columns": 500, "dim": 1, "dynamic": False},
    cases={
        "rows": {},
        "columns": {"dim": 0, "rows": 500, "columns": 32},
        "cuda_rows": {"device": "cuda", "rows": 4096, "columns": 4096},
        "cuda_columns": {"device": "cuda", "dim": 0, "rows": 2048, "columns": 16384},
        "cuda_split": {"device": "cuda", "rows": 1, "columns": 1 << 24},
        "cuda_split_rows": {"device": "cuda", "rows": 16, "columns": 1 << 20},
    },
    # Sums of a shorter dtype grow past what it can count: x + 1 is x from 256 on in bfloat16.
    choices={"dtype": ("float32", "float64"), "dim": (0, 1)},
)

if __name__ == "__main__":
    scenario.main()
