"""Reads at addresses that other reads give: embedding, the sum of a bag of them, gather; and embedding's
backward.

The indices decide what is read: whatever stands in for them must stay inside the table, and a kernel is as
fast as they are spread. The backward graph adds rows to the table's gradient atomically, where tokens repeat.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from rounding import steps, total
from tensors import FLOATS, dtype_of, indices, normal
from training import infer, train

from inductor_probe.scenario import Case, Check, Scenario


def embedding(table: torch.Tensor, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return a row of `table` for each of the (batch, length) tokens, scaled and with its position's row
    added."""
    return F.embedding(tokens, table) * table.shape[1] ** 0.5 + positions


def bag(table: torch.Tensor, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return the sum of that over each sequence: the rows are read by the reduction, and never written."""
    return embedding(table, tokens, positions).sum(1)


def gather(table: torch.Tensor, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return element (i, tokens[i, j]) of `table`, plus the first of position j's row."""
    return table.gather(1, tokens) + positions[:, 0]


OPS = {"embedding": embedding, "bag": bag, "gather": gather}


def in_float64(table: torch.Tensor, tokens: torch.Tensor, positions: torch.Tensor, op: str) -> torch.Tensor:
    """Return the same by selecting from the flat table."""
    table, positions = table.double(), positions.double()
    if op == "gather":
        row = torch.arange(len(tokens), device=tokens.device)[:, None] * table.shape[1]
        return torch.take(table, row + tokens) + positions[:, 0]
    rows = table.index_select(0, tokens.flatten()).view(*tokens.shape, -1)
    result = rows * table.shape[1] ** 0.5 + positions
    return result.sum(1) if op == "bag" else result


def build(case: Case) -> Check:
    """Make a table and positions of deviation 1; the gradient from above has it too.

    An element is up to 5, scaled by sqrt(width); that and the position are two roundings. A bag is a sum of
    `length` of them. A gradient is a sum over the places where a token stands, which are some
    batch * length / rows, 10 more than that for the most frequent one; a position's is a sum over the batch.
    """
    op, dtype = case["op"], dtype_of(case)
    rows, width, batch, length = case["rows"], case["width"], case["batch"], case["length"]
    if op == "gather":
        table, tokens = normal(case, batch, width), indices(case, width, batch, length)
    else:
        table, tokens = normal(case, rows, width), indices(case, rows, batch, length)
    shape = {"embedding": (batch, length, width), "bag": (batch, width), "gather": (batch, length)}[op]
    scale = 1.0 if op == "gather" else width**0.5
    terms = max(length if op == "bag" else 1, batch, batch * length // rows + 10)
    step = train if case["backward"] else infer
    return Check(
        OPS[op],
        (table, tokens, normal(case, length, width), normal(case, *shape)),
        references={"float64": partial(step, partial(in_float64, op=op))},
        tolerance=steps(dtype, 2, largest=5 * scale * terms**0.5) + total(dtype, terms, scale),
        options={"dynamic": case["dynamic"]},
        step=step,
    )


CUDA = {"device": "cuda", "rows": 50257, "width": 1024, "batch": 32, "length": 1024}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "float32",
        "op": "embedding",
        "backward": False,
        "rows": 1000,
        "width": 64,
        "batch": 4,
        "length": 50,
        "dynamic": False,
    },
    cases={
        "embedding": {},
        "bag": {"op": "bag"},
        "gather": {"op": "gather"},
        "embedding_training": {"backward": True},
        "cuda_embedding": {**CUDA},
        "cuda_bag": {**CUDA, "op": "bag"},
        "cuda_gather": {**CUDA, "op": "gather", "width": 50257},
        "cuda_embedding_training": {**CUDA, "backward": True},
    },
    choices={"dtype": FLOATS, "op": tuple(OPS)},
)

if __name__ == "__main__":
    scenario.main()
