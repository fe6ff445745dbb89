"""Attention as the library's call, as the textbook's formula, and with capped scores, which no library call
has.

Inductor recognises the textbook's formula and puts the library's call in its place. It does not recognise
scores that a tanh keeps within a cap: what becomes of them are two products, and kernels for what lies
between.
"""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from rounding import steps, total
from tensors import FLOATS, dtype_of, indices, normal
from training import infer, train

from inductor_probe.scenario import Case, Check, Scenario

CAP = 20.0


def library(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the attention of (batch, heads, length, width) tensors."""
    return F.scaled_dot_product_attention(query, key, value)


def textbook(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the same, written out."""
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return torch.softmax(scores, -1) @ value


def capped(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Return the attention with scores between -CAP and CAP to the first `lengths[i]` keys of sequence i."""
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    scores = torch.tanh(scores / CAP) * CAP
    there = torch.arange(scores.shape[-1], device=scores.device) < lengths[:, None, None, None]
    return torch.softmax(torch.where(there, scores, float("-inf")), -1) @ value


KINDS = {"library": library, "textbook": textbook, "capped": capped}


def in_float64(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, lengths: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the definition: values weighted by exp(score), divided by the weights' sum; capped with
    `lengths`."""
    scores = torch.einsum("bhid,bhjd->bhij", query.double(), key.double()) * query.shape[-1] ** -0.5
    weights = scores.exp() if lengths is None else (CAP * (scores / CAP).tanh()).exp()
    if lengths is not None:
        weights = weights * (torch.arange(key.shape[-2], device=key.device) < lengths[:, None, None, None])
    return torch.einsum("bhij,bhjd->bhid", weights / weights.sum(-1, keepdim=True), value.double())


def build(case: Case) -> Check:
    """Make queries, keys, values and a gradient of deviation 1: scores have it too.

    A score is a sum of `width` products, rounded three times, and an error in it is a relative error of a
    weight; the weight and the result are rounded as well. A result averages at least half the values, with
    weights whose squares add up to e / n: it is some sqrt(e / n), and 10 times that at most. So are
    gradients.
    """
    dtype, length = dtype_of(case), case["length"]
    tensors = [normal(case, case["batch"], case["heads"], length, case["width"]) for _ in range(4)]
    if case["kind"] == "capped":
        tensors.insert(3, length // 2 + indices(case, length // 2 + 1, case["batch"]))
    step = train if case["backward"] else infer
    largest = 10 * (math.e / (length / 2)) ** 0.5
    return Check(
        KINDS[case["kind"]],
        tuple(tensors),
        references={"float64": partial(step, in_float64)},
        tolerance=steps(dtype, 5, largest) + total(dtype, case["width"], largest / case["width"]),
        options={"dynamic": case["dynamic"]},
        step=step,
    )


CUDA = {"device": "cuda", "dtype": "bfloat16", "batch": 2, "heads": 16, "length": 2048}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "float32",
        "kind": "capped",
        "backward": False,
        "batch": 2,
        "heads": 2,
        "length": 48,
        "width": 64,
        "dynamic": False,
    },
    cases={
        "capped": {},
        "textbook": {"kind": "textbook"},
        "library": {"kind": "library"},
        "capped_training": {"backward": True},
        "cuda_capped": {**CUDA},
        "cuda_textbook": {**CUDA, "kind": "textbook"},
        "cuda_library": {**CUDA, "kind": "library"},
        "cuda_capped_training": {**CUDA, "backward": True},
    },
    choices={"dtype": FLOATS, "kind": tuple(KINDS)},
)

if __name__ == "__main__":
    scenario.main()
