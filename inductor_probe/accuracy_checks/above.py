"""Who made other graphs of a program than it is: dynamo, AOTAutograd, or neither.

The program is compiled with backends of torch.compile that stop earlier, and the operators that they run are
compared with those of the user's function, in order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from inductor_probe.model.accuracy import FREEZING

GRAPHS = (("eager", "dynamo"), ("aot_eager", "joint-graph"))
"""Backends of torch.compile, and whose work they add: `torch/_dynamo/backends/debugging.py`."""


def of_graphs(call: CheckedCall) -> Iterator[Fault]:
    """Yield what dynamo or AOTAutograd makes of the program that is wrong: the first operator that is."""
    steps = [("program, eager", "", RIGHT)]
    for backend, layer in GRAPHS:
        recorded = _Recorded(backend)
        with _compiled_by(call, recorded):
            try:
                judged = call.again()
            except Exception as error:  # a backend may refuse what inductor takes
                steps.append((f"backend {backend}", type(error).__name__, "unknown"))
                continue
            wrong = [name for name, one in judged.items() if one.verdict == WRONG]
            steps.append((f"backend {backend}", ", ".join(wrong), WRONG if wrong else RIGHT))
            if not wrong:
                continue
            fault = _first_difference(call, recorded) or Fault(layer, "", judged[wrong[0]])
            fault.layer, fault.steps = layer, steps
            yield fault
            return


def of_all(call: CheckedCall) -> Fault:
    """Return what is known of a wrong call in which nothing was found: what of inductor adds the fault."""
    steps = [("program, eager", "", RIGHT)]
    worst = next(one for one in call.judged.values() if one.verdict == WRONG)
    backend = "aot_eager_decomp_partition"
    with _compiled_by(call, _Recorded(backend)):
        try:
            wrong = [name for name, one in call.again().items() if one.verdict == WRONG]
            steps.append((f"backend {backend}", ", ".join(wrong), WRONG if wrong else RIGHT))
        except Exception as error:  # a backend may refuse what inductor takes
            wrong = []
            steps.append((f"backend {backend}", type(error).__name__, "unknown"))
    if wrong:
        return Fault("decomposition", "", worst, steps=steps)
    steps.append(("backend inductor", "", WRONG))
    layer, cause = ("pass", FREEZING) if _is_frozen() else ("codegen", "")
    return Fault(layer, "", worst, steps=steps, cause=cause)


def _is_frozen() -> bool:
    """Whether parameters became constants, whose later changes compiled code does not see."""
    config: Any = sys.modules["torch._inductor.config"]
    return bool(config.freezing)


class _Recorded:
    """A backend of torch.compile that lists the operators that it runs, where `mode` asks for that."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mode: _Calls | None = None

    def __call__(self, graph: Any, inputs: Any, **options: Any) -> Callable[..., Any]:
        from torch._dynamo.backends.registry import lookup_backend  # noqa: PLC0415 - dynamo is there now

        run = lookup_backend(self.name)(graph, inputs, **options)

        def call(*args: Any) -> Any:
            if self.mode is None:
                return run(*args)
            with self.mode:
                return run(*args)

        return call


@contextmanager
def _compiled_by(call: CheckedCall, backend: Any) -> Iterator[None]:
    """Let the compiled side of a call be that of another backend."""
    compiled = call.own.functions[COMPILED]
    torch._dynamo.reset()
    call.own.functions[COMPILED] = torch.compile(call.own.functions[EAGER], backend=backend)
    try:
        yield
    finally:
        call.own.functions[COMPILED] = compiled
        torch._dynamo.reset()


@dataclass
class _Called:
    """An operator that was called, with what it gave."""

    name: str
    values: list[torch.Tensor]
    user: tuple[str, int] | None


class _Calls(TorchDispatchMode):  # type: ignore[misc] # mypy does not follow torch
    """Lists the operators that are called, and give a tensor."""

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


def _first_difference(call: CheckedCall, recorded: _Recorded) -> Fault | None:
    """Return the first operator that gives something else, or is another one, in the compiled program."""
    mine, other = _Calls(), _Calls()
    call.run(EAGER, mine)
    recorded.mode = other
    call.run(COMPILED)
    recorded.mode = None
    names = [[one.name for one in mode.called] for mode in (mine, other)]
    pairs = SequenceMatcher(None, names[0], names[1], autojunk=False)
    for kind, a, b, c, d in pairs.get_opcodes():
        if kind == "insert":  # a copy, an alias: nothing of the program's is missing
            continue
        if kind != "equal":
            at = mine.called[a]
            value = other.called[c].values[:1] if c < d else []
            judged = judge(at.values[0], value[0]) if value else Judged(WRONG)
            if judged.verdict == WRONG and kind == "replace":
                return Fault("dynamo", at.name, judged, user=at.user)
            continue
        for one, two in zip(mine.called[a:b], other.called[c:d], strict=True):
            for right, made in zip(one.values, two.values, strict=False):
                judged = judge(right, made)
                if judged.verdict == WRONG:
                    return Fault("dynamo", one.name, judged, user=one.user)
    return None
