"""What the nodes of a graph give for some inputs, computed in order, as far as they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from inductor_probe.accuracy.judgement import Judged, judge
from inductor_probe.accuracy.shadow import Shadow
from inductor_probe.accuracy.stages import cloned


@dataclass
class Value:
    """What a node gives: in its dtype, and in float64 from exact operands."""

    eager: torch.Tensor
    reference: torch.Tensor


class Values:
    """Runs a graph on copies of its inputs, node by node.

    Args:
        graph: of which `stored` nodes are kept until they are asked for, and count as exact for what
            follows: what a kernel reads from memory is what eager has there.
        noise: seed of roundings; see `Shadow`. random: the state that random numbers are drawn from; None
            for that of now. It is the graph's own: what else runs beside it draws the same numbers.
    """

    def __init__(
        self,
        graph: Any,
        inputs: list[Any],
        stored: Iterable[str],
        noise: int | None = None,
        random: Any = None,
    ) -> None:
        self.random = random_state() if random is None else random
        self._random = self.random
        self._interpreter = _Interpreter(graph)
        self._mode = Shadow(noise)
        self._stored = {*stored}
        self._left = list(graph.graph.nodes)
        self._kept: dict[str, Value] = {}
        self._inputs = iter(cloned(inputs))
        self._users: dict[Any, int] = {node: len(node.users) for node in self._left}
        self.refused = self._mode.refused

    def value(self, name: str) -> Value | None:
        """Return what a node gives, a tensor; None where it gives something else, or is none of the graph."""
        while name not in self._kept and self._left:
            self._step()
        return self._kept.get(name)

    def all(self) -> dict[str, Value]:
        """Run to the end, and return all that was kept."""
        while self._left:
            self._step()
        return self._kept

    def drop(self, name: str) -> None:
        """Free a value that is not asked for again."""
        self._kept.pop(name, None)

    def _step(self) -> None:
        node = self._left.pop(0)
        env = self._interpreter.env
        if node.op == "placeholder":
            value = next(self._inputs)
        else:
            outside = random_state()
            set_random_state(self._random)
            try:
                with torch.no_grad(), self._mode:
                    value = self._interpreter.run_node(node)
                self._random = random_state()
            finally:
                set_random_state(outside)
        env[node] = value
        if isinstance(value, torch.Tensor) and node.name in self._stored and node.op != "output":
            with torch.no_grad():
                self._kept[node.name] = Value(value.detach().clone(), self._mode.of(value.detach()).clone())
            self._mode.forget(value)
        for operand in node.all_input_nodes:
            self._users[operand] -= 1
            if not self._users[operand]:
                env.pop(operand, None)


class _Interpreter(torch.fx.Interpreter):  # type: ignore[misc] # mypy does not follow torch
    def __init__(self, graph: Any) -> None:
        super().__init__(graph, garbage_collect_values=False)
        self.env: dict[Any, Any] = {}


def random_state() -> list[Any]:
    """Return the state of torch's random numbers."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else ())]


def set_random_state(state: list[Any]) -> None:
    """Set the state of torch's random numbers."""
    torch.set_rng_state(state[0])
    if len(state) > 1:
        torch.cuda.set_rng_state_all(state[1:])


def outputs_of(graph: Any, inputs: list[Any], noise: int | None = None) -> list[Value | None]:
    """Run a graph on copies of inputs; return its outputs. Each time it draws the same random numbers."""
    mode, copies, state = Shadow(noise), cloned(inputs), random_state()
    with torch.no_grad(), mode:
        outputs = torch.fx.Interpreter(graph).run(*copies)
    set_random_state(state)
    flat = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    return [
        Value(one.detach().clone(), mode.of(one.detach()).clone()) if isinstance(one, torch.Tensor) else None
        for one in flat
    ]


def judge_value(right: Value, compiled: torch.Tensor, noisy: Any = None) -> Judged:
    """Judge a compiled value beside what its node gives."""
    return judge(right.eager, compiled, right.reference, noisy)
