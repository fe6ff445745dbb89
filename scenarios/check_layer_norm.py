"""A training step of layer norm: a forward graph, and a backward graph with reductions along both axes.

With x_hat = (x - mean) rstd of each row, y = x_hat weight + bias. For a gradient g that comes from above, and
h = g weight,

    dx = rstd (h - mean(h) - x_hat mean(h x_hat)),  dweight = sum of g x_hat over rows,  dbias = sum of g over
    rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from rounding import kernel, total
from tensors import FLOATS, dtype_of, normal
from training import infer, train

from inductor_probe.scenario import Case, Check, Scenario

EPS = 1e-5


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return `x` normalised along its last axis."""
    return F.layer_norm(x, weight.shape, weight, bias, EPS)


def in_float64(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, above: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return the result and all gradients by the formulas above."""
    x, weight, bias, above = x.double(), weight.double(), bias.double(), above.double()
    rstd = (x.var(-1, correction=0, keepdim=True) + EPS).rsqrt()
    x_hat = (x - x.mean(-1, keepdim=True)) * rstd
    h = above * weight
    dx = rstd * (h - h.mean(-1, keepdim=True) - x_hat * (h * x_hat).mean(-1, keepdim=True))
    return x_hat * weight + bias, dx, (above * x_hat).sum(0), above.sum(0)


def of_one_size(results: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Divide the sums over rows by the root of how many there are: all results have a deviation of 1 or 2
    then."""
    y, dx, dweight, dbias = results
    return y, dx, dweight.double() / len(y) ** 0.5, dbias.double() / len(y) ** 0.5


def build(case: Case) -> Check:
    """Make rows, parameters and a gradient of deviation 1.

    A result is up to 20, the product of two of the largest, made in some 10 roundings. A parameter's gradient
    is the sum of `rows` terms.
    """
    rows, columns = case["rows"], case["columns"]
    x, above = normal(case, rows, columns), normal(case, rows, columns)
    training = case["backward"]
    return Check(
        layer_norm,
        (x, normal(case, columns), normal(case, columns), above),
        references={"float64": lambda *inputs: of_one_size(in_float64(*inputs))[: 4 if training else 1]},
        tolerance=kernel(dtype_of(case), 10, largest=20) + total(dtype_of(case), rows, rows**-0.5),
        options={"dynamic": case["dynamic"]},
        step=(lambda *inputs: of_one_size(train(*inputs))) if training else infer,
    )


scenario = Scenario(
    build,
    defaults={
        "device": "cpu", "dtype": "float32", "backward": True, "rows": 128, "columns": 384, "dynamic": False,
    },
    cases={
        "training": {},
        "inference": {"backward": False},
        "cuda_training": {"device": "cuda", "rows": 16384, "columns": 1024},
        "cuda_training_wide": {"device": "cuda", "rows": 4096, "columns": 8192},
        "cuda_training_bfloat16": {"device": "cuda", "dtype": "bfloat16", "rows": 16384, "columns": 1024},
        "cuda_inference": {"device": "cuda", "backward": False, "rows": 16384, "columns": 1024},
    },
    choices={"dtype": FLOATS},
)  # fmt: skip

if __name__ == "__main__":
    scenario.main()
