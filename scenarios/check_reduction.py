"""A ladder of reductions: one sum in each form that a kernel can have.

What inductor makes on CUDA of (rows, columns), and why, is in `_inductor/choices.py` and
`ir.Reduction.num_splits`:

    persistent        rows of up to 1024: held in registers, no loop
    inner             longer rows, enough of them to fill the GPU: a loop along the row
    outer             columns of more than 64, enough of them to fill the GPU: a loop down the column
    persistent_outer  columns of up to 64
    split             one long row: partial sums of its pieces, and a second kernel that adds them
    split_inner       a few long rows: the same
    split_outer       a few long columns: the same
    cooperative       a few long rows in one kernel whose blocks wait for each other; only done when told to

C++ has loops along and down, and splits what is long among threads. The other two operations reduce more than
one number at a time: a mean with its variance (Welford), a value with its index.
"""

from __future__ import annotations

from functools import partial

import torch
from rounding import steps, total
from tensors import FLOATS, dtype_of, normal

from inductor_probe.scenario import Case, Check, Scenario

DIMS = {"inner": (1,), "outer": (0,), "all": (0, 1)}


def sum_of_squares(x: torch.Tensor, dim: tuple[int, ...]) -> torch.Tensor:
    """Return the sums of x^2."""
    return (x * x).sum(dim)


def variance(x: torch.Tensor, dim: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return variances and means."""
    return torch.var_mean(x, dim)


def place_of_largest(x: torch.Tensor, dim: tuple[int, ...]) -> torch.Tensor:
    """Return the index of the largest x, in the flat tensor if `dim` is all of it."""
    return x.argmax(dim[0] if len(dim) == 1 else None)


OPS = {"sum": sum_of_squares, "variance": variance, "argmax": place_of_largest}


def in_float64(x: torch.Tensor, dim: tuple[int, ...], op: str) -> tuple[torch.Tensor, ...]:
    """Return the definition of `op`."""
    x = x.double()
    if op == "argmax":
        flat = x.flatten() if len(dim) == 2 else x.movedim(dim[0], -1)
        places = torch.arange(flat.shape[-1], device=x.device)
        return (torch.where(flat == flat.amax(-1, keepdim=True), places, flat.shape[-1]).amin(-1),)
    if op == "sum":
        return (x.square().sum(dim),)
    mean = x.mean(dim, keepdim=True)
    count = x.numel() // mean.numel()
    return (x - mean).square().sum(dim) / (count - 1), mean.squeeze(dim)


def build(case: Case) -> Check:
    """Make floats of deviation 1, of which x^2 has the mean 1.

    A sum of n squares is some n. In the variance the n terms and 3 roundings of each are divided by n.
    Indices are right or wrong, as long as the largest x is there once: take float32 or float64 for them.
    """
    dim, dtype = DIMS[case["dim"]], dtype_of(case)
    x = normal(case, case["rows"], case["columns"])
    terms = x.numel() // sum_of_squares(x, dim).numel()
    rounding = {
        "sum": steps(dtype, 1, largest=terms) + total(dtype, terms, positive=True),
        "variance": steps(dtype, 5) + total(dtype, terms, 1 / terms, positive=True),
        "argmax": 0.0,
    }
    options = {"triton.cooperative_reductions": True} if case["cooperative"] else {}
    return Check(
        OPS[case["op"]],
        (x, dim),
        references={"float64": partial(in_float64, op=case["op"])},
        tolerance=rounding[case["op"]],
        options={"dynamic": case["dynamic"], "options": options},
    )


CUDA = {"device": "cuda"}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "float32",
        "op": "sum",
        "dim": "inner",
        "rows": 64,
        "columns": 1000,
        "cooperative": False,
        "dynamic": False,
    },
    cases={
        "inner": {},
        "outer": {"dim": "outer", "rows": 1000, "columns": 60},
        "all": {"dim": "all", "rows": 500},
        "variance": {"op": "variance"},
        "variance_outer": {"op": "variance", "dim": "outer", "rows": 1000, "columns": 60},
        "argmax": {"op": "argmax"},
        "cuda_persistent": {**CUDA, "rows": 4096, "columns": 1000},
        "cuda_inner": {**CUDA, "rows": 4096, "columns": 8192},
        "cuda_outer": {**CUDA, "dim": "outer", "rows": 2048, "columns": 32768},
        "cuda_persistent_outer": {**CUDA, "dim": "outer", "rows": 64, "columns": 262144},
        "cuda_split": {**CUDA, "dim": "all", "rows": 4096, "columns": 4096},
        "cuda_split_inner": {**CUDA, "rows": 16, "columns": 1 << 20},
        "cuda_split_outer": {**CUDA, "dim": "outer", "rows": 65536, "columns": 256},
        "cuda_cooperative": {**CUDA, "rows": 8, "columns": 1 << 20, "cooperative": True},
        "cuda_variance": {**CUDA, "op": "variance", "rows": 4096, "columns": 8192},
        "cuda_variance_split": {**CUDA, "op": "variance", "rows": 16, "columns": 1 << 20},
        "cuda_argmax": {**CUDA, "op": "argmax", "rows": 4096, "columns": 50257},
    },
    choices={"dtype": FLOATS, "op": tuple(OPS), "dim": tuple(DIMS)},
)

if __name__ == "__main__":
    scenario.main()
