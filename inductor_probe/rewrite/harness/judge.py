"""The judge: a float64 run of the graph, the pristine code next to it, and how far a variant may be off."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map

from inductor_probe.rewrite.harness.bench import Bench, Variant
from inductor_probe.rewrite.harness.checks import Check, Float64, compare, differences, poisoned, widen
from inductor_probe.rewrite.harness.inputs import changed, clone

POISON = (0x7F, 0)  # one a round, so that no value is right in both by luck
PRISTINE = 2.0  # a variant may be so many times further from the reference than the pristine call
EAGER = 10.0  # and that so many times further than eager: it sums in another order


@dataclass
class Round:
    """Inputs of one check, with what must come out: outputs, then the inputs that the graph changes."""

    seed: int
    pattern: int
    inputs: list[Any]
    mutated: list[int]
    pristine: list[Any]
    expected: list[Any]
    slack: list[float]


@dataclass
class Reference:
    """What the graph of aten operations gives, and how far from it the same result may be."""

    values: list[Any]
    slack: list[float]
    note: str | None = None


def run_call(
    bench: Bench, variant: Variant, inputs: list[Any], seed: int, pattern: int
) -> tuple[list[Any], list[Any]]:
    """Run `variant` on copies of `inputs` in poisoned memory; return its outputs, and the inputs after it."""
    after = clone(inputs)
    torch.manual_seed(seed)
    with poisoned(bench.namespace, pattern):
        outputs = variant.run(bench, after)
    return outputs, after


def run_graph(graph: Any, inputs: list[Any], mode: Float64 | None = None) -> tuple[list[Any], list[Any]]:
    """Run the graph of aten operations eagerly on copies of `inputs`; return what `run_call` does."""
    after = clone(inputs)
    if mode:
        graph, after = graph.double(), tree_map(widen, after)
    with torch.no_grad(), mode or nullcontext():
        outputs = graph(*after)
    return list(outputs), after


def references(bench: Bench, inputs: list[Any], mutated: list[int]) -> list[Reference]:
    """Run the graph in float64 and as it is; return both, the better first.

    Integers that come from floats may be off by one.
    """
    outputs, after = run_graph(bench.aten_graph(), inputs)  # type: ignore[misc]
    plain = outputs + [after[at] for at in mutated]
    exactly = [0.0] * len(plain)
    mode = Float64()
    try:
        outputs, after = run_graph(bench.aten_graph(), inputs, mode)  # type: ignore[misc]
    except Exception as error:  # any operation may refuse float64 in its own way
        return [Reference(plain, exactly, f"reference not in float64: {_said(error)}")]
    precise = outputs + [after[at] for at in mutated]
    floor = 1.0 if mode.used else 0.0
    slack = [
        max(twice, 0.0 if _is_float(value) else floor)
        for value, twice in zip(plain, off(plain, precise, EAGER), strict=True)
    ]
    return [
        Reference(precise, slack),
        Reference(plain, exactly, "reference not in float64: the graph takes other decisions there"),
    ]


def prepare(bench: Bench, seed: int, pattern: int) -> tuple[Round, Check]:
    """Make the inputs of `seed` and run pristine code and reference; return the round, pristine's check."""
    inputs = bench.make_inputs(seed)
    outputs, after = run_call(bench, Variant("call"), inputs, seed, pattern)
    mutated = changed(inputs, after)
    pristine = outputs + [after[at] for at in mutated]
    check, expected, note = Check("call"), pristine, bench.no_reference
    if bench.aten_graph is not None:
        try:
            found = references(bench, inputs, mutated)
        except Exception as error:  # an operation of another torch version, or one that needs another device
            note = f"the graph does not run eagerly: {_said(error)}"
        else:
            checks = [compare("call", pristine, each.values, each.slack) for each in found]
            best = next((at for at, each in enumerate(checks) if each.correct), 0)
            check, expected, note = checks[best], found[best].values, found[best].note or ""
    check.note = check.note or note or None
    expected = [
        wanted if _is_float(value) else value for value, wanted in zip(pristine, expected, strict=True)
    ]
    return Round(seed, pattern, inputs, mutated, pristine, expected, off(pristine, expected, PRISTINE)), check


def judge(bench: Bench, variant: Variant, rounds: list[Round]) -> Check:
    """Check `variant` in every round; return the first failure, or the last pass."""
    check = Check(variant.name)
    for each in rounds:
        try:
            outputs, after = run_call(bench, variant, each.inputs, each.seed, each.pattern)
        except Exception as error:  # whatever an edit may raise is a finding about that edit
            return Check(variant.name, correct=False, note=f"raises {_said(error)}")
        values = outputs + [after[at] for at in each.mutated]
        check = compare(variant.name, values, each.expected, each.slack)
        if spilled := set(changed(each.inputs, after)) - set(each.mutated):
            check.correct, check.note = False, f"changes input {min(spilled)}, which call leaves alone"
        for at, (value, wanted) in enumerate(zip(values, each.pristine, strict=False)):
            if form(value) != form(wanted):
                check.correct, check.first_bad_output = False, at
                check.note = f"output {at} is {form(value)} instead of {form(wanted)}"
        if not check.correct:
            break
    return check


def off(values: list[Any], expected: list[Any], times: float) -> list[float]:
    """Return the largest finite error of each output, that many times."""
    found = []
    for value, wanted in zip(values, expected, strict=False):
        comparable = isinstance(value, torch.Tensor) and isinstance(wanted, torch.Tensor)
        if not comparable or value.shape != wanted.shape:
            found.append(0.0)
            continue
        error = differences(value, wanted, 0.0)[1]
        error = error[error.isfinite()]
        found.append(times * error.max().item() if error.numel() else 0.0)
    return found


def form(value: Any) -> str:
    """Say dtype, size and stride of a tensor."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype} {list(value.shape)} with stride {list(value.stride())}"


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
