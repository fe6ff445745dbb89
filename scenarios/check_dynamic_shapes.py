"""One graph for inputs of several sizes: sizes are symbols, in shapes and in what is computed from them.

The step calls the function with three sizes, and the second and third may not compile anything. `all` lets
dynamo treat every size as a symbol; `batch` marks the first axis alone, within bounds that inductor may rely
on. On CUDA the mean of rows of known length is a persistent reduction, that of others a loop.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from rounding import steps
from tensors import FLOATS, dtype_of, normal

from inductor_probe.scenario import Case, Check, Scenario


def centred(x: torch.Tensor) -> torch.Tensor:
    """Return rows without their means, their first halves in reverse after them, weighted by place."""
    rows = x - x.mean(1, keepdim=True)
    rows = torch.cat([rows, rows[:, : x.shape[1] // 2].flip(1)], 1)
    return rows * (torch.arange(rows.shape[1], device=x.device) + 1) / rows.shape[1]


def in_float64(*inputs: torch.Tensor) -> list[torch.Tensor]:
    """Return the same for each input."""
    return [centred(x.double()) for x in inputs]


def one_after_the_other(
    function: Callable[[torch.Tensor], torch.Tensor], *inputs: torch.Tensor
) -> list[torch.Tensor]:
    """Return the result for each input; torch raises an error if any but the first is compiled for."""
    first, *others = inputs
    results = [function(first)]
    with torch.compiler.set_stance("fail_on_recompile"):
        return results + [function(x) for x in others]


def build(case: Case) -> Check:
    """Make three inputs of deviation 1, with as many rows, half of them, and three more than that.

    Values are up to 6 in size and see 5 roundings; the error of a mean is far below theirs.
    """
    rows, columns, every = case["rows"], case["columns"], case["symbols"] == "all"
    sizes = [(rows, columns), (rows // 2, columns), (rows + 3, columns)]
    if every:
        sizes = [(m, n) for (m, _), n in zip(sizes, (columns, columns + 5, columns // 3), strict=True)]
    inputs = tuple(normal(case, m, n) for m, n in sizes)
    if not every:
        torch._dynamo.mark_dynamic(inputs[0], 0, min=2, max=4 * rows)
    return Check(
        centred,
        inputs,
        references={"float64": in_float64},
        tolerance=steps(dtype_of(case), 5, largest=6),
        options={"dynamic": True if every else None},
        step=one_after_the_other,
    )


scenario = Scenario(
    build,
    defaults={"device": "cpu", "dtype": "float32", "rows": 24, "columns": 100, "symbols": "all"},
    cases={
        "all": {},
        "batch": {"symbols": "batch"},
        "cuda_all": {"device": "cuda", "rows": 4096, "columns": 1000},
        "cuda_batch": {"device": "cuda", "rows": 4096, "columns": 1000, "symbols": "batch"},
    },
    choices={"dtype": FLOATS, "symbols": ("all", "batch")},
)

if __name__ == "__main__":
    scenario.main()
