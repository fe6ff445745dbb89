"""A wrong call in whose graphs nothing is wrong: who made other graphs of the program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from inductor_probe.accuracy_checks.calls import CheckedCall
from inductor_probe.accuracy_checks.faults import Fault, calling_line, operator_of
from inductor_probe.accuracy_checks.judgement import RIGHT, WRONG, Judged, judge
from inductor_probe.harness.own_calls import COMPILED, EAGER

BACKENDS = (
    ("eager", "dynamo"),
    ("aot_eager", "joint-graph"),
    ("aot_eager_decomp_partition", "decomposition"),
)
"""Backends of torch.compile, and whose work they add: `torch/_dynamo/backends/debugging.py`."""


FREEZING = "freezing"


def above(call: CheckedCall) -> Iterator[Fault]:
    """Compile the program with backends that stop earlier; yield the layer that is wrong first, if one is."""
    steps = [("program, eager", "", RIGHT)]
    compiled = call.own.functions[COMPILED]
    worst = next(iter([one for one in call.judged.values() if one.verdict == WRONG]))
    try:
        for backend, layer in BACKENDS:
            torch._dynamo.reset()
            call.own.functions[COMPILED] = torch.compile(call.own.functions[EAGER], backend=backend)
            try:
                judged = call.again()
            except Exception as error:
                steps.append((f"backend {backend}", type(error).__name__, "unknown"))
                continue
            wrong = {name: one for name, one in judged.items() if one.verdict == WRONG}
            steps.append((f"backend {backend}", ", ".join(wrong), WRONG if wrong else RIGHT))
            if wrong:
                fault = _first_difference(call) or Fault(layer, "", next(iter(wrong.values())))
                fault.layer, fault.steps = layer, steps
                yield fault
                return
    finally:
        call.own.functions[COMPILED] = compiled
        torch._dynamo.reset()
    steps.append(("backend inductor", "", WRONG))
    layer, cause = ("pass", FREEZING) if _is_frozen() else ("codegen", "")
    yield Fault(layer, "", worst, steps=steps, cause=cause)


def _is_frozen() -> bool:
    """Whether parameters became constants, whose later changes compiled code does not see."""
    config: Any = sys.modules["torch._inductor.config"]
    return bool(config.freezing)


@dataclass
class _Called:
    """An operator that was called, with what it gave."""

    name: str
    values: list[torch.Tensor]
    user: tuple[str, int] | None


class _Calls(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Lists the operators that are called."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.called: list[_Called] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        values = [one.detach().clone() for one in tree_leaves(result) if isinstance(one, torch.Tensor)]
        if values:
            self.called.append(_Called(operator_of(func), values, calling_line()))
        return result


def _first_difference(call: CheckedCall) -> Fault | None:
    """Return the first operator that gives something else, or is another one, in the compiled program."""
    lists: list[list[_Called]] = []
    for side in (EAGER, COMPILED):
        mode = _Calls()
        call.run(side, mode)
        lists.append(mode.called)
    mine, other = lists
    names = [[one.name for one in calls] for calls in lists]
    pairs = SequenceMatcher(None, names[0], names[1], autojunk=False)
    for kind, a, b, c, d in pairs.get_opcodes():
        if kind != "equal":
            at = mine[a] if a < len(mine) else mine[-1]
            value = other[c].values[:1] if c < d else []
            judged = judge(at.values[0], value[0]) if at.values and value else Judged(WRONG)
            return Fault("dynamo", at.name, judged, user=at.user)
        for one, two in zip(mine[a:b], other[c:d], strict=True):
            for right, made in zip(one.values, two.values, strict=False):
                judged = judge(right, made)
                if judged.verdict == WRONG:
                    return Fault("dynamo", one.name, judged, user=one.user)
    return None
