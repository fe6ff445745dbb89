"""Guards: the wrapper behind what dynamo checks before each call."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from inductor_probe.harness.inputs import clone


class Guarded:
    """The pristine wrapper behind dynamo's guards on its inputs; nothing is compiled but those.

    Dynamo traces a function that passes its arguments to one opaque call; the backend puts the wrapper in the
    place of that. So any graph will do, and guards are those of plain arguments: a user's program may have
    more, and what AOTAutograd adds is left out.

    Attributes:
        times_compiled: 1 as long as its guards held.
        times_called: how often the wrapper ran in the first call.

    Raises:
        RuntimeError: dynamo made something else, or did not run the wrapper.
    """

    def __init__(self, entry: Callable[[list[Any]], Any], inputs: list[Any]) -> None:
        self.times_compiled = self.times_called = 0
        self.entry: Callable[[list[Any]], Any] = self._counting
        self._pristine = entry
        outputs = list(entry(clone(inputs)))
        self._stub: Callable[[list[Any]], Any] = lambda _: outputs
        self._kept = [at for at, output in enumerate(outputs) if isinstance(output, torch.Tensor)]
        kept = [outputs[at] for at in self._kept]
        forms = [(each.size(), each.stride(), each.dtype, each.device) for each in kept]
        self._nothing = torch.empty(0)
        self._inputs = inputs

        def opaque(*_: Any) -> Any:
            if not forms:
                return (torch.empty(0),)
            return tuple(torch.empty_strided(*each[:2], dtype=each[2], device=each[3]) for each in forms)

        self._opaque = torch.compiler.allow_in_graph(opaque)

        def program(*values: Any) -> Any:
            return opaque(*values)

        # Dynamo counts the compiles of a code object: a new one is not charged for those of other inputs.
        program.__code__ = program.__code__.replace()
        self.run = torch.compile(program, backend=self._backend, fullgraph=True, dynamic=False)
        self.run(*clone(inputs))
        if (self.times_called, self.times_compiled) != (1, 1):
            raise RuntimeError(f"the wrapper ran {self.times_called} times behind dynamo, not once")

    def whole(self, *values: Any) -> Any:
        """Call the wrapper behind its guards."""
        self.entry = self._pristine
        return self.run(*values)

    def only(self, *values: Any) -> Any:
        """Do the same without the wrapper: what it returned is returned."""
        self.entry = self._stub
        return self.run(*values)

    def direct(self, *values: Any) -> Any:
        """Do the same without guards: what `only` takes more is theirs."""
        self.entry = self._stub
        return tuple(self.entry(list(values)))

    def _counting(self, args: list[Any]) -> Any:
        self.times_called += 1
        return self._pristine(args)

    def _backend(self, traced: Any, _: list[Any]) -> Callable[..., Any]:
        self.times_compiled += 1
        nodes = list(traced.graph.nodes)
        calls = [node for node in nodes if node.op == "call_function" and node.target is self._opaque]
        given = [node for node in nodes if node.op == "placeholder"]
        returned = nodes[-1].args[0]
        if len(calls) != 1 or not all(node.target is operator.getitem for node in returned):
            raise RuntimeError("dynamo made another graph than one call")
        order = [given.index(arg) if isinstance(arg, torch.fx.Node) else None for arg in calls[0].args]
        picked = [node.args[1] for node in returned]
        if order == list(range(len(given))) and self._kept == picked:
            return lambda *args: tuple(self.entry(list(args)))

        def run(*args: Any) -> tuple[Any, ...]:
            pairs = zip(order, self._inputs, strict=True)
            outputs = self.entry([value if at is None else args[at] for at, value in pairs])
            return tuple(outputs[self._kept[at]] if self._kept else self._nothing for at in picked)

        return run
