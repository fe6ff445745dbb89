"""The judge: the pristine code beside its reference, and every variant beside the pristine code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from inductor_probe.harness.bench import Bench, Variant, replaced, unedited
from inductor_probe.harness.checks import ANYTHING, Check, Slack, compare, is_float, slack_of
from inductor_probe.harness.inputs import changed, clone
from inductor_probe.harness.launches import record
from inductor_probe.harness.reference import Reference, references, without_mode
from inductor_probe.harness.remarks import first_line, remark

POISON = (0x7F, 0)  # one a round, so that no value is right in both by luck
PRISTINE = 2.0  # a variant may be so many times further from the reference than the pristine call
ALLOCATORS = ("empty", "empty_strided", "empty_strided_cpu", "empty_strided_cpu_pinned", "empty_strided_cuda")


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


@contextmanager
def watched_allocators(namespace: dict[str, Any], watch: Callable[[Any], None]) -> Iterator[None]:
    """Show `watch` every tensor that the allocators in `namespace` hand out."""

    def watched(allocate: Callable[..., Any]) -> Callable[..., Any]:
        def allocate_watched(*args: Any, **kwargs: Any) -> Any:
            tensor = allocate(*args, **kwargs)
            watch(tensor)
            return tensor

        return allocate_watched

    allocators = {name: watched(namespace[name]) for name in ALLOCATORS if name in namespace}
    with replaced(namespace, allocators):
        yield


def poison(tensor: torch.Tensor, pattern: int) -> None:
    """Fill its memory with NaN or `pattern`: what is not written then cannot be right by luck."""
    memory = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
    memory.fill_(float("nan") if memory.dtype.is_floating_point else pattern)


def run_call(
    bench: Bench, variant: Variant, inputs: list[Any], seed: int, pattern: int
) -> tuple[list[Any], list[Any]]:
    """Run `variant` on copies of `inputs` in poisoned memory; return its outputs, and the inputs after it."""
    after = clone(inputs)
    torch.manual_seed(seed)
    with watched_allocators(bench.namespace, lambda tensor: poison(tensor, pattern)):
        outputs = variant.run(bench, after)
    return outputs, after


def prepare(bench: Bench, seed: int, pattern: int) -> tuple[Round, Check]:
    """Make the inputs of `seed` and run pristine code and reference; return the round, pristine's check."""
    inputs = bench.inputs(seed)
    outputs, after = run_call(bench, Variant("call"), inputs, seed, pattern)
    touched = changed(inputs, after)
    mutated, candidates = touched, list[Reference]()
    remarks = [remark("no-reference", reason=bench.no_reference)] if bench.no_reference else []
    if bench.aten_graph is not None:
        try:
            candidates = references(bench, inputs, seed)
        except Exception as error:  # an operation of another torch version, or one that needs another device
            remarks = [remark("reference-fails", error=first_line(error))]
        else:
            mutated = changed(inputs, candidates[-1].after)
    pristine = outputs + [after[index] for index in mutated]
    check, expected = Check("call"), pristine
    if candidates:
        candidates = [candidate.within_range(pristine, mutated) for candidate in candidates]
        checks = [compare("call", pristine, *candidate.of(mutated)) for candidate in candidates]
        plain = candidates[-1]
        if not any(check.correct for check in checks) and not (plain.others or plain.drawn):
            try:
                candidates.append(without_mode(bench, inputs, seed))
            except Exception as error:  # an operation that runs below a mode only
                candidates[0].remarks.append(remark("unwatched-fails", error=first_line(error)))
            else:
                checks.append(compare("call", pristine, *candidates[-1].of(mutated)))
        best = next((index for index, check in enumerate(checks) if check.correct), 0)
        if checks[best].correct or not candidates[-1].others:
            check, expected = checks[best], candidates[best].of(mutated)[0]
            remarks = candidates[best].remarks
        else:
            remarks = [remark("other-random-numbers", operators=", ".join(candidates[-1].others))]
    if any(value is ANYTHING for value in expected):
        remarks = [*remarks, remark("outputs-not-written")]
    expected = [
        exact if exact is ANYTHING or is_float(value) else value
        for value, exact in zip(pristine, expected, strict=False)
    ]
    check.remarks = check.remarks or remarks
    slack = [slack_of(value, exact, PRISTINE) for value, exact in zip(pristine, expected, strict=False)]
    scratch = [index for index in touched if index not in mutated]
    return Round(seed, pattern, inputs, mutated, scratch, pristine, expected, slack), check


def judge(bench: Bench, variant: Variant, rounds: list[Round]) -> Check:
    """Check `variant` in every round; return the first failure, or the last pass."""
    check = Check(variant.name)
    for expected in rounds:
        try:
            outputs, after = run_call(bench, variant, expected.inputs, expected.seed, expected.pattern)
        except Exception as error:  # whatever an edit may raise is wrong with that edit
            raised = remark("raises", variant.name, error=first_line(error))
            return Check(variant.name, correct=False, remarks=[raised])
        values = outputs + [after[index] for index in expected.mutated]
        check = compare(variant.name, values, expected.expected, expected.slack)
        stray = set(changed(expected.inputs, after)) - {*expected.mutated, *expected.scratch}
        if stray:
            check.correct, check.remarks = False, [remark("input-changed", variant.name, input=min(stray))]
        for output, (value, pristine) in enumerate(zip(values, expected.pristine, strict=False)):
            if form(value) != form(pristine):
                check.correct, check.first_bad_output = False, output
                forms = {"form": form(value), "expected": form(pristine)}
                check.remarks = [remark("output-form", variant.name, output=output, **forms)]
        if not check.correct:
            break
    return check


def form(value: Any) -> str:
    """Say dtype, size and stride of a tensor."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype} {list(value.shape)} with stride {list(value.stride())}"


def check_all(bench: Bench, seed: int) -> tuple[list[Round], Check, list[Check]]:
    """Check the pristine call and every variant on two sets of inputs; return the rounds and checks."""
    prepared = [prepare(bench, seed + number, pattern) for number, pattern in enumerate(POISON)]
    rounds = [expected for expected, _ in prepared]
    pristine = next((check for _, check in prepared if not check.correct), prepared[-1][1])
    checks: dict[str, Check] = {}

    def launched_by_own_wrapper(variant: Variant) -> bool:
        return bool(record(bench, variant.wrapper, variant.name, rounds[0].inputs))

    for variant in bench.variants():
        wrapper = checks.get(variant.wrapper) if variant.swaps and variant.wrapper != "call_v2" else None
        if wrapper and launched_by_own_wrapper(variant):
            # Made for the buffers of its own wrapper: inside `call` it might write past the end of one.
            inside = [remark("own-wrapper", variant.name, wrapper=wrapper.name)]
            checks[variant.name] = replace(wrapper, name=variant.name, remarks=inside)
        else:
            checks[variant.name] = judge(bench, variant, rounds)
    for variant in bench.variants():
        wrapper = checks.get(variant.wrapper) if variant.swaps and not checks[variant.name].correct else None
        # It may need buffers that its own wrapper lays out differently, and be right as part of that.
        if wrapper and wrapper.correct and launched_by_own_wrapper(variant):
            needed = remark("own-wrapper-needed", variant.name, wrapper=wrapper.name)
            checks[variant.name] = Check(variant.name, remarks=[needed])
    same = unedited(bench)
    return rounds, pristine, [replace(check, unedited=name in same) for name, check in checks.items()]
