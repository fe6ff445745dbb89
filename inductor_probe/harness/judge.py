"""The judge: the pristine call beside its reference, and every copy beside the pristine call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from inductor_probe.harness.bench import Bench, replaced
from inductor_probe.harness.checks import ANYTHING, Check, Slack, compare, is_float, slack_of
from inductor_probe.harness.inputs import changed, clone
from inductor_probe.harness.reference import Reference, first_line

POISON = (0x7F, 0)  # one a round, so that no value is right in both by luck
PRISTINE = 2.0  # a variant may be so many times further from the reference than the pristine call
ALLOCATORS = ("empty", "empty_strided", "empty_strided_cpu", "empty_strided_cpu_pinned", "empty_strided_cuda")


@dataclass
class Round:
    """Inputs of one check, with what must come out: outputs, then the inputs that the graph changes.

    What the inputs in `scratch` hold then means nothing: the pristine call uses their memory again.
    """

    seed: int
    pattern: int
    inputs: list[Any]
    mutated: list[int]
    scratch: set[int]
    pristine: list[Any]
    expected: list[Any]
    slack: list[Slack]


def prepare_all(bench: Bench, seed: int, expect: Callable[..., Reference]) -> tuple[list[Round], Check]:
    """Return the rounds of a check, and the check of the pristine call."""
    prepared = [prepare(bench, seed + number, pattern, expect) for number, pattern in enumerate(POISON)]
    rounds, checks = [expected for expected, _ in prepared], [check for _, check in prepared]
    return rounds, next((check for check in checks if not check.correct), checks[-1])


def prepare(bench: Bench, seed: int, pattern: int, expect: Callable[..., Reference]) -> tuple[Round, Check]:
    """Run pristine code and reference on inputs of `seed`; return the round, and pristine's check."""
    inputs, check = bench.inputs(seed), Check("call")
    outputs, after = run_call(bench, "call", inputs, seed, pattern)
    touched = mutated = changed(inputs, after)
    expected = outputs + [after[index] for index in touched]
    if bench.aten_graph is None:
        check.remarks = [("{reason}", {"reason": bench.no_reference})]
    else:
        try:
            mutated, expected, check = expect(bench, inputs, seed, outputs, after)
        except Exception as error:  # an operation of another torch version, or one that needs another device
            check.remarks = [("the graph does not run eagerly: {error}", {"error": first_line(error)})]
    pristine = outputs + [after[index] for index in mutated]
    pairs = list(zip(pristine, expected, strict=False))
    expected = [right if right is ANYTHING or is_float(value) else value for value, right in pairs]
    slack = [slack_of(value, right, PRISTINE) for value, right in zip(pristine, expected, strict=False)]
    return Round(seed, pattern, inputs, mutated, {*touched} - {*mutated}, pristine, expected, slack), check


def judge(bench: Bench, name: str, rounds: list[Round]) -> Check:
    """Check a variant in every round; return the first failure, or the last pass."""
    check = Check(name)
    for expected in rounds:
        try:
            outputs, after = run_call(bench, name, expected.inputs, expected.seed, expected.pattern)
        except Exception as error:  # whatever an edit may raise is wrong with that edit
            return Check(name, correct=False, remarks=[("raises {error}", {"error": first_line(error)})])
        values = outputs + [after[index] for index in expected.mutated]
        check = compare(name, values, expected.expected, expected.slack)
        if stray := {*changed(expected.inputs, after)} - {*expected.mutated} - expected.scratch:
            check.remarks = [("changes input {input}, which call leaves alone", {"input": min(stray)})]
        for output, forms in enumerate(zip(map(form, values), map(form, expected.pristine), strict=False)):
            if forms[0] != forms[1]:
                numbers = {"output": output, "form": forms[0], "expected": forms[1]}
                check.remarks = [("output {output} is {form} instead of {expected}", numbers)]
                check.first_bad_output = output
        check.correct = check.correct and not check.remarks
        if not check.correct:
            break
    return check


def run_call(
    bench: Bench, name: str, inputs: list[Any], seed: int, pattern: int
) -> tuple[list[Any], list[Any]]:
    """Run a variant on copies of `inputs` in poisoned memory; return its outputs, and the inputs after it."""
    after = clone(inputs)
    torch.manual_seed(seed)
    with poisoned(bench.namespace, pattern):
        return bench.run(name, after), after


def poisoned(namespace: dict[str, Any], pattern: int) -> AbstractContextManager[None]:
    """Fill new memory with NaN or `pattern` for a while: what is not written cannot be right by luck then."""

    def poison(allocate: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        tensor = allocate(*args, **kwargs)
        memory = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
        memory.fill_(float("nan") if memory.dtype.is_floating_point else pattern)
        return tensor

    allocators = {name: partial(poison, namespace[name]) for name in ALLOCATORS if name in namespace}
    return replaced(namespace, allocators)


def form(value: Any) -> str:
    """Say dtype, size and stride of a tensor."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype)[6:]} {list(value.shape)} with stride {list(value.stride())}"
