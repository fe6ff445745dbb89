"""The judge: a float64 run of the graph, the pristine code next to it, and how far a variant may be off."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._pytree import tree_map

from inductor_probe.rewrite.harness.bench import Bench, Variant
from inductor_probe.rewrite.harness.checks import (
    Check,
    Float64,
    Slack,
    compare,
    poisoned,
    slack_of,
    widen,
)
from inductor_probe.rewrite.harness.inputs import changed, clone
from inductor_probe.rewrite.harness.random_numbers import Draws

POISON = (0x7F, 0)  # one a round, so that no value is right in both by luck
PRISTINE = 2.0  # a variant may be so many times further from the reference than the pristine call
# And that so many times further than eager, which sums pairwise; kernels add up one by one in each lane.
# Where n numbers cancel, rounding grows as sqrt(n) instead of sqrt(log2 n) (Higham, The Accuracy of Floating
# Point Summation, 1993): 77 times as much for n = 100,000. A false alarm would end the run, and wrong code is
# off by far more.
EAGER = 100.0


@dataclass
class Round:
    """Inputs of one check, with what must come out: outputs, then the inputs that the graph changes.

    `scratch` are inputs whose memory the pristine call uses again: a backward graph may do that with what was
    saved for it, and it means nothing what they hold afterwards.
    """

    seed: int
    pattern: int
    inputs: list[Any]
    mutated: list[int]
    scratch: list[int]
    pristine: list[Any]
    expected: list[Any]
    slack: list[Slack]


@dataclass
class Reference:
    """What the graph of aten operations gives, and how far from it the same result may be."""

    outputs: list[Any]
    after: list[Any]
    slack: list[Slack]
    note: str | None = None
    others: list[str] = field(default_factory=list)

    def of(self, mutated: list[int]) -> tuple[list[Any], list[Slack]]:
        """Return values and slack of the outputs, then of the inputs at `mutated`."""
        first = len(self.outputs)
        after, slack = [self.after[at] for at in mutated], [self.slack[first + at] for at in mutated]
        return self.outputs + after, self.slack[:first] + slack


def run_call(
    bench: Bench, variant: Variant, inputs: list[Any], seed: int, pattern: int
) -> tuple[list[Any], list[Any]]:
    """Run `variant` on copies of `inputs` in poisoned memory; return its outputs, and the inputs after it."""
    after = clone(inputs)
    torch.manual_seed(seed)
    with poisoned(bench.namespace, pattern):
        outputs = variant.run(bench, after)
    return outputs, after


def run_graph(graph: Any, inputs: list[Any], seed: int, mode: Draws) -> tuple[list[Any], list[Any]]:
    """Run the graph of aten operations eagerly on copies of `inputs`; return what `run_call` does."""
    after = clone(inputs)
    if isinstance(mode, Float64):
        graph, after = graph.double(), tree_map(widen, after)
    torch.manual_seed(seed)
    with torch.no_grad(), mode:
        outputs = graph(*after)
    return list(outputs), after


def references(bench: Bench, inputs: list[Any], seed: int) -> list[Reference]:
    """Run the graph in float64 and as it is; return both, the better first. Each has slack for all values.

    Integers that come from floats may be off by one.
    """
    draws = Draws()
    outputs, after = run_graph(bench.aten_graph(), inputs, seed, draws)  # type: ignore[misc]
    exactly = [Slack()] * (len(outputs) + len(after))
    plain = Reference(outputs, after, exactly, others=sorted(draws.others))
    mode = Float64()
    try:
        wide = Reference(*run_graph(bench.aten_graph(), inputs, seed, mode), [])  # type: ignore[misc]
    except Exception as error:  # any operation may refuse float64 in its own way
        return [replace(plain, note=f"reference not in float64: {_said(error)}")]
    floor = 1.0 if mode.used else 0.0
    for value, precise in zip((*outputs, *after), (*wide.outputs, *wide.after), strict=True):
        slack = slack_of(value, precise, EAGER)
        wide.slack.append(slack if _is_float(value) else Slack(max(slack.absolute, floor)))
    return [wide, replace(plain, note="reference not in float64: the graph takes other decisions there")]


def prepare(bench: Bench, seed: int, pattern: int) -> tuple[Round, Check]:
    """Make the inputs of `seed` and run pristine code and reference; return the round, pristine's check."""
    inputs = bench.inputs(seed)
    outputs, after = run_call(bench, Variant("call"), inputs, seed, pattern)
    touched = changed(inputs, after)
    mutated, found, note = touched, [], bench.no_reference
    if bench.aten_graph is not None:
        try:
            found = references(bench, inputs, seed)
        except Exception as error:  # an operation of another torch version, or one that needs another device
            note = f"the graph does not run eagerly: {_said(error)}"
        else:
            mutated = changed(inputs, found[-1].after)
    pristine = outputs + [after[at] for at in mutated]
    check, expected = Check("call"), pristine
    if found:
        checks = [compare("call", pristine, *each.of(mutated)) for each in found]
        best = next((at for at, each in enumerate(checks) if each.correct), 0)
        if checks[best].correct or not found[-1].others:
            check, expected, note = checks[best], found[best].of(mutated)[0], found[best].note or ""
        else:
            note = f"eager draws other random numbers: {', '.join(found[-1].others)}"
    check.note = check.note or note or None
    expected = [
        wanted if _is_float(value) else value for value, wanted in zip(pristine, expected, strict=False)
    ]
    slack = [slack_of(value, wanted, PRISTINE) for value, wanted in zip(pristine, expected, strict=False)]
    scratch = [at for at in touched if at not in mutated]
    return Round(seed, pattern, inputs, mutated, scratch, pristine, expected, slack), check


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
        if spilled := set(changed(each.inputs, after)) - {*each.mutated, *each.scratch}:
            check.correct, check.note = False, f"changes input {min(spilled)}, which call leaves alone"
        for at, (value, wanted) in enumerate(zip(values, each.pristine, strict=False)):
            if form(value) != form(wanted):
                check.correct, check.first_bad_output = False, at
                check.note = f"output {at} is {form(value)} instead of {form(wanted)}"
        if not check.correct:
            break
    return check


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
