"""The judge: the pristine call beside its reference, and every copy beside the pristine call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch

from inductor_probe.harness.bench import Bench, replaced
from inductor_probe.harness.checks import ANYTHING, Check, compare, is_float, slack_of
from inductor_probe.harness.inputs import changed, clone
from inductor_probe.harness.reference import Reference, first_line

POISON = (0x7F, 0)  # one a round, so that no value is right in both by luck
PRISTINE = 2.0  # a variant may be so many times further from the reference than the pristine call
ALLOCATORS = ("empty", "empty_strided", "empty_strided_cpu", "empty_strided_cpu_pinned", "empty_strided_cuda")


class Round:
    """Inputs of a check, and what must come out of a call: outputs, then the inputs that the graph changes.

    Attributes:
        check: of the pristine call, against what `expect` says of the graph.
        mutated: the inputs that the graph changes.
        scratch: inputs whose memory the pristine call uses again, or may use: what they hold means nothing.
        pristine, expected: what the pristine call gives, and what is right, within `slack`.
    """

    def __init__(self, bench: Bench, seed: int, pattern: int, expect: Callable[..., Reference]) -> None:
        self.bench, self.seed, self.pattern = bench, seed, pattern
        self.inputs, self.check = bench.inputs(seed), Check("call")
        outputs, after = self.run("call")
        touched = self.mutated = changed(self.inputs, after)
        expected = outputs + [after[index] for index in touched]
        try:
            if bench.aten_graph is None:
                self.check.remarks = [("{reason}", {"reason": bench.no_reference})]
            else:
                self.mutated, expected, self.check = expect(bench, self.inputs, seed, outputs, after)
        except Exception as error:  # an operation of another torch version, or one that needs another device
            self.check.remarks = [("the graph does not run eagerly: {error}", {"error": first_line(error)})]
        self.scratch = ({*touched} | bench.donated) - {*self.mutated}
        self.pristine = outputs + [after[index] for index in self.mutated]
        pairs = list(zip(self.pristine, expected, strict=False))
        self.expected = [right if right is ANYTHING or is_float(value) else value for value, right in pairs]
        self.slack = [slack_of(*pair, PRISTINE) for pair in zip(self.pristine, self.expected, strict=False)]

    def run(self, name: str) -> tuple[list[Any], list[Any]]:
        """Run a variant on copies of the inputs in poisoned memory; return outputs, and inputs after it."""
        after = clone(self.inputs)
        torch.manual_seed(self.seed)
        with poisoned(self.bench.namespace, self.pattern):
            return self.bench.run(name, after), after

    def judge(self, name: str) -> Check:
        """Check a variant: values, forms, and that it leaves other inputs alone."""
        try:
            outputs, after = self.run(name)
        except Exception as error:  # whatever an edit may raise is wrong with that edit
            return Check(name, correct=False, remarks=[("raises {error}", {"error": first_line(error)})])
        values = outputs + [after[index] for index in self.mutated]
        check = compare(name, values, self.expected, self.slack, self.pristine)
        if stray := {*changed(self.inputs, after)} - {*self.mutated} - self.scratch:
            check.remarks = [("changes input {input}, which call leaves alone", {"input": min(stray)})]
        check.correct = check.correct and not stray
        return check


def poisoned(namespace: dict[str, Any], pattern: int) -> AbstractContextManager[None]:
    """Fill new memory with NaN or `pattern` for a while: what is not written cannot be right by luck then."""

    def poison(allocate: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        tensor = allocate(*args, **kwargs)
        memory = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
        memory.fill_(float("nan") if memory.dtype.is_floating_point else pattern)
        return tensor

    names = [name for name in ALLOCATORS if name in namespace]
    return replaced(namespace, {name: partial(poison, namespace[name]) for name in names})
