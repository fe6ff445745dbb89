"""What the nodes of a graph give for some inputs, computed in order, as far as they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from inductor_probe.accuracy_checks.shadow import Shadow
from inductor_probe.accuracy_checks.stages import cloned


@dataclass
class Value:
    """What a node gives: in its dtype, and in float64."""

    eager: torch.Tensor
    reference: torch.Tensor


class Values:
    """Runs a graph on copies of its inputs, node by node, and keeps what `kept` nodes give.

    Random numbers are drawn from a state of its own: what else runs beside it draws the same ones.
    """

    def __init__(self, graph: Any, inputs: list[Any], kept: Iterable[str]) -> None:
        self._random = random_state()
        self._interpreter = Interpreter(graph)
        self._wanted = {*kept}
        self._left = list(graph.graph.nodes)
        self._inputs = iter(cloned(inputs))
        self._users: dict[Any, int] = {node: len(node.users) for node in self._left}
        self._kept: dict[str, torch.Tensor] = {}

    def value(self, name: str) -> torch.Tensor | None:
        """Return what a node gives, a tensor; None where it gives something else, or is none of the graph."""
        while name not in self._kept and self._left:
            self._step()
        return self._kept.get(name)

    def all(self) -> dict[str, torch.Tensor]:
        """Run to the end, and return all that was kept."""
        while self._left:
            self._step()
        return self._kept

    def _step(self) -> None:
        node = self._left.pop(0)
        env = self._interpreter.env
        if node.op == "placeholder":
            value = next(self._inputs)
        else:
            outside = random_state()
            set_random_state(self._random)
            try:
                with torch.no_grad():
                    value = self._interpreter.run_node(node)
                self._random = random_state()
            finally:
                set_random_state(outside)
        env[node] = value
        if isinstance(value, torch.Tensor) and node.name in self._wanted and node.op != "output":
            self._kept[node.name] = value.detach().clone()  # it may be written in place later
        for operand in node.all_input_nodes:
            self._users[operand] -= 1
            if not self._users[operand]:
                env.pop(operand, None)


class Interpreter(torch.fx.Interpreter):  # type: ignore[misc] # mypy does not follow torch
    """Runs a graph; where memory lies otherwise than it did while the graph was traced, views are copies."""

    def __init__(self, graph: Any) -> None:
        super().__init__(graph)
        self.env: dict[Any, Any] = {}

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call what a node calls."""
        if target is torch.ops.aten.view.default:
            return torch.ops.aten.reshape.default(*args, **kwargs)
        return super().call_function(target, args, kwargs)


def random_state() -> list[Any]:
    """Return the state of torch's random numbers."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else ())]


def set_random_state(state: list[Any]) -> None:
    """Set the state of torch's random numbers."""
    torch.set_rng_state(state[0])
    if len(state) > 1:
        torch.cuda.set_rng_state_all(state[1:])


def values_of(graph: Any, inputs: list[Any], noise: int | None = None) -> dict[str, Value]:
    """Run a graph on copies of inputs; return what each node gives that gives a tensor."""
    mode, copies, state = Shadow(noise), cloned(inputs), random_state()
    keeping = _Keeping(graph, mode)
    with torch.no_grad(), mode:
        keeping.run(*copies)
    set_random_state(state)
    return keeping.values


class _Keeping(Interpreter):
    def __init__(self, graph: Any, mode: Shadow) -> None:
        super().__init__(graph)
        self._mode = mode
        self.values: dict[str, Value] = {}

    def run_node(self, n: Any) -> Any:
        """Run a node, and keep what it gives."""
        result = super().run_node(n)
        if isinstance(result, torch.Tensor) and n.op != "output":
            with _disable_current_modes():
                reference = self._mode.of(result.detach()).clone()
                self.values[n.name] = Value(result.detach().clone(), reference)
        return result


def outputs_of(graph: Any, inputs: list[Any], noise: int | None = None) -> list[Value | None]:
    """Run a graph on copies of inputs; return its outputs, and the inputs after it.

    Each time it draws the same random numbers.
    """
    mode, copies, state = Shadow(noise), cloned(inputs), random_state()
    with torch.no_grad(), mode:
        outputs = Interpreter(graph).run(*copies)
    set_random_state(state)
    flat = [*outputs] if isinstance(outputs, (tuple, list)) else [outputs]
    flat += copies
    return [
        Value(one.detach().clone(), mode.of(one.detach()).clone()) if isinstance(one, torch.Tensor) else None
        for one in flat
    ]
