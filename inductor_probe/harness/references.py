"""References: what the graph of aten operations gives, in float64 and as it is."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._pytree import tree_map

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.checks import ANYTHING, Float64, Slack, in_double, slack_of, widen
from inductor_probe.harness.inputs import clone
from inductor_probe.harness.random_numbers import Draws
from inductor_probe.harness.remarks import Remark, remark

# The pristine call may be so many times further from float64 than eager, which sums pairwise; kernels add up
# one by one in each lane. Where n numbers cancel, rounding grows as sqrt(n) instead of sqrt(log2 n) (Higham,
# The Accuracy of Floating Point Summation, 1993): 77 times as much for n = 100,000. A false alarm would end
# the run, and wrong code is off by far more.
EAGER = 100.0


@dataclass
class Reference:
    """What the graph of aten operations gives, and how far from it the same result may be.

    `others` are operations that drew random numbers as eager does; `drawn`: some were drawn as kernels do.
    """

    outputs: list[Any]
    after: list[Any]
    slack: list[Slack]
    remarks: list[Remark] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    drawn: bool = False

    def of(self, mutated: list[int]) -> tuple[list[Any], list[Slack]]:
        """Return values and slack of the outputs, then of the inputs at `mutated`."""
        first = len(self.outputs)
        after, slack = [self.after[at] for at in mutated], [self.slack[first + at] for at in mutated]
        return self.outputs + after, self.slack[:first] + slack

    def within_range(self, pristine: list[Any], mutated: list[int]) -> Reference:
        """Expect of a call that leaves the range of its dtype just what came: infinity, and NaN after it.

        Random values do that in a deep backward graph, where the real ones would not.
        """
        first, values = len(self.outputs), [*self.outputs, *self.after]
        places = [*range(first), *(first + at for at in mutated)]
        pairs = [(at, value, values[at]) for at, value in zip(places, pristine, strict=False)]
        if not any(is_float(value) and leaves_range(exact, value.dtype) for _, value, exact in pairs):
            return self
        for at, value, exact in pairs:
            if is_float(value) and exact is not ANYTHING and value.shape == exact.shape:
                values[at] = torch.where(in_double(value).isfinite(), exact, value)
        remarks = [*self.remarks, remark("range-exceeded")]
        return replace(self, outputs=values[:first], after=values[first:], remarks=remarks)


def leaves_range(exact: Any, dtype: torch.dtype) -> bool:
    """Tell whether a dtype cannot hold a result."""
    if not is_float(exact):
        return False
    size = in_double(exact).abs()
    return bool((size.isfinite() & (size > torch.finfo(dtype).max)).any())


def run_graph(graph: Any, inputs: list[Any], seed: int, mode: Draws | None) -> tuple[list[Any], list[Any]]:
    """Run the graph of aten operations eagerly on copies of `inputs`; return what `run_call` does."""
    after = clone(inputs)
    if isinstance(mode, Float64):
        graph, after = graph.double(), tree_map(widen, after)
    torch.manual_seed(seed)
    with torch.no_grad(), mode or nullcontext():
        outputs = graph(*after)
    if mode is not None:
        outputs = [ANYTHING if mode.unwritten.holds(value) else value for value in outputs]
    return list(outputs), after


def references(bench: Bench, inputs: list[Any], seed: int) -> list[Reference]:
    """Run the graph in float64 and as it is; return both, the better first. Each has slack for all values.

    Integers that come from floats may be off by one.
    """
    draws = Draws()
    outputs, after = run_graph(bench.aten_graph(), inputs, seed, draws)  # type: ignore[misc]
    exactly = [Slack()] * (len(outputs) + len(after))
    plain = Reference(outputs, after, exactly, others=sorted(draws.others), drawn=draws.answered)
    mode = Float64()
    try:
        wide = Reference(*run_graph(bench.aten_graph(), inputs, seed, mode), [])  # type: ignore[misc]
    except Exception as error:  # any operation may refuse float64 in its own way
        return [replace(plain, remarks=[remark("float64-fails", error=said(error))])]
    floor = 1.0 if mode.used else 0.0
    for value, precise in zip((*outputs, *after), (*wide.outputs, *wide.after), strict=True):
        slack = slack_of(value, precise, EAGER)
        wide.slack.append(slack if is_float(value) else Slack(max(slack.absolute, floor)))
    return [wide, replace(plain, remarks=[remark("float64-differs")])]


def unwatched(bench: Bench, inputs: list[Any], seed: int) -> Reference:
    """Run the graph without a mode, for operations that compute something else below one.

    Those of linalg that are made of others do for complex numbers: pinv does on torch 2.13.
    """
    outputs, after = run_graph(bench.aten_graph(), inputs, seed, None)  # type: ignore[misc]
    exactly = [Slack()] * (len(outputs) + len(after))
    return Reference(outputs, after, exactly, [remark("float64-unwatched")])


def is_float(value: Any) -> bool:
    """Tell whether a value is a tensor of floats or of complex numbers."""
    return isinstance(value, torch.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)


def said(error: Exception) -> str:
    """Say what was raised, in a line."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
