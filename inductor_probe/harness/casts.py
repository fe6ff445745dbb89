"""Casts of the graph in its float64 run: those that are no end of an operation round there, too.

A value stays wide where rounding of arithmetic explains what kernels have. A cast to a dtype that nothing in
a value had before rounds: `x.half()` of float32. Where something had it, the cast may be the end of an
operation in that dtype, which rounds as arithmetic does: softmax of float16 is a cast to float32, its
arithmetic, and a cast back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from inductor_probe.harness.checks import is_float
from inductor_probe.harness.reference import Float64, widen

CASTS = ("prims.convert_element_type.default", "aten._to_copy.default")


class Casts:
    """For a mode that runs in float64. `doubtful` is the largest epsilon of casts that may be such an end.

    Those round with `all_casts`. A tensor has in `had` the dtypes of all that it is made of.
    """

    all_casts, doubtful = False, 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.rounded(func, args, kwargs or {}, func)

    @staticmethod
    def widen(value: Any) -> Any:
        """Return a value as `widen` does, with the dtypes that it had."""
        wide = widen(value)
        if is_float(wide):
            wide.had = dtypes_in(value)
        return wide

    def rounded(self, func: Any, args: Any, kwargs: Any, run: Any) -> Any:
        """Run an operation in float64, by `run`, and round what it casts."""
        had = {dtype for leaf in tree_leaves((args, kwargs)) for dtype in dtypes_in(leaf)}
        to = kwargs.get("dtype", args[1] if len(args) > 1 else None) if str(func) in CASTS else None
        result = super().__torch_dispatch__(run, (), args, kwargs)  # type: ignore[misc]
        if to in (torch.float16, torch.bfloat16, torch.float32) and self.rounds(to, had):
            result, had = result.to(to).double(), {to}
        for leaf in filter(is_float, tree_leaves(result)):
            leaf.had = getattr(leaf, "had", set()) | had
        return result

    def rounds(self, to: torch.dtype, had: set[torch.dtype]) -> bool:
        """Tell whether a cast rounds a value that is made of values of these dtypes."""
        if to in had:
            self.doubtful = max(self.doubtful, torch.finfo(to).eps if to.itemsize < 4 else 0.0)
            return self.all_casts
        return to != torch.float32 or had <= {torch.float64}  # float32 holds whatever is narrower


def dtypes_in(value: Any) -> set[torch.dtype]:
    """Return of which dtypes the values are that a tensor of floats is made of."""
    return getattr(value, "had", {value.dtype}) if is_float(value) else set()


def float64() -> Any:
    """Return a mode that runs a graph in float64, in which casts round."""
    return type("Float64", (Casts, Float64), {})()
