"""Writes at addresses that are read: `index_put` with and without accumulation, in place and into a copy.

With `accumulate` rows may be hit more than once, and each hit is an atomic addition: the order of the
additions, and with it the last bits of a float, differs from run to run. Without, all rows are different
ones.
"""

from __future__ import annotations

import torch
from rounding import steps
from tensors import FLOATS, dtype_of, indices, normal

from inductor_probe.scenario import Case, Check, Scenario, Tensors


def put(x: torch.Tensor, index: torch.Tensor, values: torch.Tensor, accumulate: bool) -> torch.Tensor:
    """Return `x` with 2 `values` put into the rows `index`."""
    return x.index_put((index,), values * 2, accumulate=accumulate)


def put_in_place(x: torch.Tensor, index: torch.Tensor, values: torch.Tensor, accumulate: bool) -> None:
    """Put 2 `values` into the rows `index` of `x` itself: the graph writes into its input."""
    x.index_put_((index,), values * 2, accumulate=accumulate)


def scatter_add(x: torch.Tensor, index: torch.Tensor, values: torch.Tensor, accumulate: bool) -> torch.Tensor:
    """Return the same by `scatter_add`, whose index has an entry for each element."""
    assert accumulate
    return x.scatter_add(0, index[:, None].expand(values.shape), values * 2)


OPS = {"put": put, "put_in_place": put_in_place, "scatter_add": scatter_add}


def returning_x(function: object, x: torch.Tensor, *inputs: Tensors) -> torch.Tensor:
    """Return `x` after the call."""
    assert callable(function)
    function(x, *inputs)
    return x


def by_sorted_rows(
    x: torch.Tensor, index: torch.Tensor, values: torch.Tensor, accumulate: bool
) -> torch.Tensor:
    """Return the same in float64 without a scatter: once sorted, values for one row are neighbours."""
    ordered, order = index.sort(stable=True)
    values = (values.double() * 2)[order]
    rows = torch.arange(len(x), device=x.device)
    start, stop = (torch.searchsorted(ordered, rows, right=right) for right in (False, True))
    if not accumulate:
        return torch.where((start < stop)[:, None], values[start.clamp(max=len(values) - 1)], x.double())
    sums = torch.cat([torch.zeros_like(values[:1]), values.cumsum(0)])
    return x.double() + sums[stop] - sums[start]


def build(case: Case) -> Check:
    """Make rows and values of deviation 1; twice a value is exact.

    Rows get some hits / rows values, 20 more than that if they are unlucky, and the sum is rounded at each,
    by atomics on CUDA in the dtype itself. Integers and writes without accumulation are exact.
    """
    rows, hits, accumulate = case["rows"], case["hits"], case["accumulate"]
    values = normal(case, hits, case["width"])
    x = normal(case, rows, case["width"])
    index = indices(case, rows, hits) if accumulate else torch.randperm(rows, device=case["device"])[:hits]
    terms = 2 * hits // rows + 20
    tolerance = steps(dtype_of(case), terms, largest=5 * terms**0.5) if accumulate else 0.0
    return Check(
        OPS[case["op"]],
        (x, index, values, accumulate),
        references={"float64": by_sorted_rows},
        tolerance=tolerance,
        options={"dynamic": case["dynamic"]},
        step=returning_x if case["op"] == "put_in_place" else None,
    )


CUDA = {"device": "cuda", "rows": 10000, "width": 512, "hits": 100000}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "float32",
        "op": "put",
        "accumulate": True,
        "rows": 100,
        "width": 32,
        "hits": 300,
        "dynamic": False,
    },
    cases={
        "accumulate": {},
        "in_place": {"op": "put_in_place"},
        "scatter_add": {"op": "scatter_add"},
        "replace": {"accumulate": False, "hits": 60},
        "cuda_accumulate": {**CUDA},
        "cuda_in_place": {**CUDA, "op": "put_in_place"},
        "cuda_scatter_add": {**CUDA, "op": "scatter_add"},
        "cuda_replace": {**CUDA, "accumulate": False, "hits": 6000},
    },
    choices={"dtype": FLOATS, "op": tuple(OPS)},
)

if __name__ == "__main__":
    scenario.main()
