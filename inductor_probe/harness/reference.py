"""The reference: what the graph of aten operations gives, in float64 and as it is."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.checks import Check, Slack, compare, is_float, slack_of
from inductor_probe.harness.inputs import changed, clone

Reference: TypeAlias = "tuple[list[int], list[Any], Check]"  # see `expect`

NARROW = (torch.float16, torch.bfloat16, torch.float32)
# Eager sums pairwise, kernels one by one in each lane. Where n numbers cancel, rounding grows as sqrt(n), not
# as sqrt(log2 n) (Higham, The Accuracy of Floating Point Summation, 1993): 77 times as much for n = 100,000.
EAGER = 100.0


def expect(bench: Bench, inputs: list[Any], seed: int, outputs: list[Any], after: list[Any]) -> Reference:
    """Check the pristine call's outputs, and inputs `after` it, against the graph in float64, else as it is.

    Return which inputs the graph changes, its outputs and those inputs, and the check.
    """
    plain, plain_after = run_graph(bench, inputs, seed)
    mutated, mode = changed(inputs, plain_after), bench.namespace.get("float64", Float64)()
    plain += [plain_after[index] for index in mutated]
    pristine = outputs + [after[index] for index in mutated]
    by_eager = compare("call", pristine, plain, [Slack()] * len(plain))
    try:
        wide, wide_after = run_graph(bench, inputs, seed, mode)
    except Exception as error:  # any operation may refuse float64 in its own way
        by_eager.remarks.append(("reference not in float64: {error}", {"error": first_line(error)}))
        return mutated, plain, by_eager
    wide += [wide_after[index] for index in mutated]
    check = compare("call", pristine, wide, slack_in_float64(plain, wide, mode))
    if check.correct:
        return mutated, wide, check
    if mode.unlike:
        why = ("only probe bench-kernel compares {operator} with float64", {"operator": mode.unlike})
        return mutated, pristine, Check("call", remarks=[why])
    by_eager.remarks.append(("reference not in float64: the graph computes something else in it", {}))
    return (mutated, plain, by_eager) if by_eager.correct else (mutated, wide, check)


def run_graph(bench: Bench, inputs: list[Any], seed: int, mode: Any = None) -> tuple[list[Any], list[Any]]:
    """Run the graph eagerly on copies of `inputs`; return its outputs, and the inputs after it."""
    graph, after = bench.aten_graph(), clone(inputs)  # type: ignore[misc]
    if isinstance(mode, Float64):
        graph, after = graph.double(), tree_map(mode.widen, after)
    torch.manual_seed(seed)
    with torch.no_grad(), mode or nullcontext():
        return list(graph(*after)), after


def widen(value: Any) -> Any:
    """Return a narrow float tensor, or a narrow float dtype, as float64."""
    if isinstance(value, torch.Tensor):
        value = value.to_dense() if value.is_mkldnn else value
        return value.double() if value.dtype in NARROW else value
    return torch.float64 if isinstance(value, torch.dtype) and value in NARROW else value


class Float64(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Runs every operation in float64 where the graph asks for less; `used` is whether any did.

    `unlike` names an operation that gives something else each time: random numbers, memory not yet written.
    """

    supports_higher_order_operators = True
    used, unlike, widen = False, "", staticmethod(widen)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()) or "empty" in str(func):
            self.unlike = str(func)
        args, kwargs = tree_map(self.widen, (args, kwargs or {}))
        result = func(*args, **kwargs)
        self.used |= torch.float64 in {getattr(leaf, "dtype", None) for leaf in tree_leaves((args, result))}
        return result


def slack_in_float64(plain: list[Any], wide: list[Any], mode: Float64) -> list[Slack]:
    """Return how far a result may be off: EAGER times as far as eager is; integers made of floats, by one."""
    slack = [slack_of(value, precise, EAGER) for value, precise in zip(plain, wide, strict=True)]
    for one, value in zip(slack, plain, strict=True):
        one.absolute = one.absolute if is_float(value) else max(one.absolute, float(mode.used))
    return slack


def first_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message: `ValueError: no such size`."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ": ".join([type(error).__name__, *lines[:1]])
