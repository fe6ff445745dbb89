"""The judge: the pristine code beside its reference, and how far a variant may be off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from inductor_probe.harness.bench import Bench, Variant
from inductor_probe.harness.checks import ANYTHING, Check, Slack, compare, poisoned, slack_of
from inductor_probe.harness.inputs import changed, clone
from inductor_probe.harness.references import is_float, references, said, unwatched
from inductor_probe.harness.remarks import remark

POISON = (0x7F, 0)  # one a round, so that no value is right in both by luck
PRISTINE = 2.0  # a variant may be so many times further from the reference than the pristine call


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


def run_call(
    bench: Bench, variant: Variant, inputs: list[Any], seed: int, pattern: int
) -> tuple[list[Any], list[Any]]:
    """Run `variant` on copies of `inputs` in poisoned memory; return its outputs, and the inputs after it."""
    after = clone(inputs)
    torch.manual_seed(seed)
    with poisoned(bench.namespace, pattern):
        outputs = variant.run(bench, after)
    return outputs, after


def prepare(bench: Bench, seed: int, pattern: int) -> tuple[Round, Check]:
    """Make the inputs of `seed` and run pristine code and reference; return the round, pristine's check."""
    inputs = bench.inputs(seed)
    outputs, after = run_call(bench, Variant("call"), inputs, seed, pattern)
    touched = changed(inputs, after)
    mutated, found = touched, []
    remarks = [remark("no-reference", reason=bench.no_reference)] if bench.no_reference else []
    if bench.aten_graph is not None:
        try:
            found = references(bench, inputs, seed)
        except Exception as error:  # an operation of another torch version, or one that needs another device
            remarks = [remark("reference-fails", error=said(error))]
        else:
            mutated = changed(inputs, found[-1].after)
    pristine = outputs + [after[at] for at in mutated]
    check, expected = Check("call"), pristine
    if found:
        found = [each.within_range(pristine, mutated) for each in found]
        checks = [compare("call", pristine, *each.of(mutated)) for each in found]
        if not any(each.correct for each in checks) and not (found[-1].others or found[-1].drawn):
            try:
                found.append(unwatched(bench, inputs, seed))
            except Exception as error:  # an operation that runs below a mode only: what was found is said
                found[0].remarks.append(remark("unwatched-fails", error=said(error)))
            else:
                checks.append(compare("call", pristine, *found[-1].of(mutated)))
        best = next((at for at, each in enumerate(checks) if each.correct), 0)
        if checks[best].correct or not found[-1].others:
            check, expected, remarks = checks[best], found[best].of(mutated)[0], found[best].remarks
        else:
            remarks = [remark("other-random-numbers", operators=", ".join(found[-1].others))]
    if any(each is ANYTHING for each in expected):
        remarks = [*remarks, remark("outputs-not-written")]
    expected = [
        wanted if wanted is ANYTHING or is_float(value) else value
        for value, wanted in zip(pristine, expected, strict=False)
    ]
    check.remarks = check.remarks or remarks
    slack = [slack_of(value, wanted, PRISTINE) for value, wanted in zip(pristine, expected, strict=False)]
    scratch = [at for at in touched if at not in mutated]
    return Round(seed, pattern, inputs, mutated, scratch, pristine, expected, slack), check


def judge(bench: Bench, variant: Variant, rounds: list[Round]) -> Check:
    """Check `variant` in every round; return the first failure, or the last pass."""
    check = Check(variant.name)
    for each in rounds:
        try:
            outputs, after = run_call(bench, variant, each.inputs, each.seed, each.pattern)
        except Exception as error:  # whatever an edit may raise is wrong with that edit
            return Check(
                variant.name, correct=False, remarks=[remark("raises", variant.name, error=said(error))]
            )
        values = outputs + [after[at] for at in each.mutated]
        check = compare(variant.name, values, each.expected, each.slack)
        if spilled := set(changed(each.inputs, after)) - {*each.mutated, *each.scratch}:
            check.correct, check.remarks = False, [remark("input-changed", variant.name, input=min(spilled))]
        for at, (value, wanted) in enumerate(zip(values, each.pristine, strict=False)):
            if form(value) != form(wanted):
                check.correct, check.first_bad_output = False, at
                forms = {"form": form(value), "expected": form(wanted)}
                check.remarks = [remark("output-form", variant.name, output=at, **forms)]
        if not check.correct:
            break
    return check


def form(value: Any) -> str:
    """Say dtype, size and stride of a tensor."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype} {list(value.shape)} with stride {list(value.stride())}"
