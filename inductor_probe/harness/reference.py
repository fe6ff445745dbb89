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

Held: TypeAlias = "tuple[list[Any], list[Slack]]"  # what may be right, and how far off it may be
Reference: TypeAlias = "tuple[list[int], list[Any], Check, list[Held]]"  # see `expect`

NARROW = (torch.float16, torch.bfloat16, torch.float32)
CASTS = ("prims.convert_element_type.default", "aten._to_copy.default")
# Eager sums pairwise, kernels one by one in each lane. Where n numbers cancel, rounding grows as sqrt(n), not
# as sqrt(log2 n) (Higham, The Accuracy of Floating Point Summation, 1993): 77 times as much for n = 100,000.
EAGER = 100.0


def expect(bench: Bench, inputs: list[Any], seed: int, outputs: list[Any], after: list[Any]) -> Reference:
    """Check the pristine call's outputs, and inputs `after` it, against the graph in float64, else as it is.

    Return which inputs the graph changes, its outputs and those inputs, the check, and all that the call was
    held against: as the graph gives it with its own dtypes comes last.
    """
    plain, plain_after = run_graph(bench, inputs, seed)
    mutated, mode = changed(inputs, plain_after), Float64()
    plain += [plain_after[index] for index in mutated]
    pristine = outputs + [after[index] for index in mutated]
    held: list[Held] = [(plain, [Slack()] * len(plain))]
    by_eager = compare("call", pristine, *held[0])
    try:
        wide, wide_after = run_graph(bench, inputs, seed, mode)
    except Exception as error:  # any operation may refuse float64 in its own way
        by_eager.remarks.append(("reference not in float64: {error}", {"error": first_line(error)}))
        return mutated, plain, by_eager, held
    wide += [wide_after[index] for index in mutated]
    held.insert(0, (wide, slack_in_float64(plain, wide, mode)))
    check = compare("call", pristine, *held[0])
    if check.correct:
        return mutated, wide, check, held
    if mode.unlike:
        why = ("only probe bench-kernel compares {operator} with float64", {"operator": mode.unlike})
        return mutated, pristine, Check("call", remarks=[why]), held
    by_eager.remarks.append(("reference not in float64: the graph computes something else in it", {}))
    return (mutated, plain, by_eager, held) if by_eager.correct else (mutated, wide, check, held)


def run_graph(bench: Bench, inputs: list[Any], seed: int, mode: Any = None) -> tuple[list[Any], list[Any]]:
    """Run the graph eagerly on copies of `inputs`; return its outputs, and the inputs after it."""
    graph, after = bench.aten_graph(), clone(inputs)  # type: ignore[misc]
    if isinstance(mode, Float64):
        graph, after = graph.double(), tree_map(widen, after)
    torch.manual_seed(seed)
    with torch.no_grad(), mode or nullcontext():
        return list(graph(*after)), after


class Float64(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Runs every operation in float64 where the graph asks for less; `used` is whether any did.

    A cast of the graph rounds all the same, where nothing in its value had that dtype before. Where something
    had, it may be the end of an operation in that dtype, which rounds as arithmetic does: softmax of float16
    is a cast to float32, arithmetic, and a cast back. Such casts round with `all_casts`; `doubtful` is the
    largest epsilon of one.

    `unlike` names an operation that gives something else each time: random numbers, memory not yet written.
    """

    supports_higher_order_operators = True
    used, unlike, all_casts, doubtful = False, "", False, 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.widened(func, args, kwargs or {}, func)

    def widened(self, func: Any, args: Any, kwargs: Any, run: Any) -> Any:
        """Run an operation, by `run`, on what it is passed in float64."""
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()) or "empty" in str(func):
            self.unlike = str(func)
        had = set().union(*(dtypes_in(leaf) for leaf in tree_leaves((args, kwargs))))
        to = kwargs.get("dtype", args[1] if len(args) > 1 else None) if str(func) in CASTS else None
        args, kwargs = tree_map(widen, (args, kwargs))
        result = run(*args, **kwargs)
        self.used |= torch.float64 in {getattr(leaf, "dtype", None) for leaf in tree_leaves((args, result))}
        if to in NARROW and self.rounds(to, had):
            result, had = result.to(to).double(), {to}
        for leaf in tree_leaves(result):
            if is_float(leaf):
                leaf.had = dtypes_in(leaf) | had if hasattr(leaf, "had") else had
        return result

    def rounds(self, to: torch.dtype, had: set[torch.dtype]) -> bool:
        """Tell whether a cast rounds a value that is made of values of these dtypes."""
        if to in had:
            self.doubtful = max(self.doubtful, torch.finfo(to).eps if to.itemsize < 4 else 0.0)
            return self.all_casts
        return to != torch.float32 or had <= {torch.float64}  # float32 holds whatever is narrower


def dtypes_in(value: Any) -> set[torch.dtype]:
    """Return of which dtypes the values are that a tensor of floats is made of: see `Float64`."""
    return getattr(value, "had", {value.dtype}) if is_float(value) else set()


def widen(value: Any) -> Any:
    """Return a narrow float tensor, or a narrow float dtype, as float64."""
    if isinstance(value, torch.Tensor):
        value = value.to_dense() if value.is_mkldnn else value
        if value.dtype not in NARROW:
            return value
        wide = value.double()
        wide.had = dtypes_in(value)
        return wide
    return torch.float64 if isinstance(value, torch.dtype) and value in NARROW else value


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
