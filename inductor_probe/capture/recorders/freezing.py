"""Whether parameters were made constants of the graph, and what was computed of them ahead of time.

`freeze` is asked for by `config.freezing`, where no gradients are; it runs before the graph has a folder.
Its causes are events, not tests: `replace_params_with_constants` goes through the parameters in a loop, of
which a watched function has the last turn alone; `compile_fx` tests both settings before there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from inductor_probe.capture.recorders.askers import operator_of
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import DecisionLog


class Freezing(Recorder):
    """Counts what is folded while a graph is frozen."""

    KIND = "freezing"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._folded = 0

    @sees("torch._inductor.constant_folding", "replace_node_with_constant")
    def folded(self, call: Call, _: Any, node: Any, *__: Any, **___: Any) -> Iterator[None]:
        """Record what is folded of frozen parameters: a node, as it is before."""
        name, operator, is_parameter = node.name, operator_of(node), node.op == "placeholder"
        yield
        if not is_parameter:
            self._folded += 1
            cause = Cause("frozen-inputs", {"nodes": (name,), "operators": (operator,)})
            self.record("folded", cause, call.place, (name,), subject_type="fx", waits=True)

    @sees("torch._inductor.freezing", "freeze")
    def frozen(self, call: Call, _: Any, graph: Any, inputs: Any) -> Iterator[None]:
        """Record how many inputs became constants, and how much was folded."""
        self._folded = 0
        attributes = len({node.target for node in graph.graph.nodes if _is_parameter(node)})
        given = len(inputs)
        yield
        kept = len(call.result[1])
        operands: Operands = {"constants": given - kept, "inputs": kept, "folded": self._folded}
        cause = Cause("parameters" if given > kept else "no-parameters", operands)
        if attributes and given <= kept:
            cause = Cause("attributes", {**operands, "attributes": attributes})
        outcome: Any = "not-frozen" if cause.code == "no-parameters" else "frozen"
        self.record(outcome, cause, call.place, subject_type="graph", waits=True)

    @sees("torch._inductor.freezing", "replace_params_with_constants")
    def kept(self, call: Call, graph: Any, parameters: Any, metadata: Any) -> None:
        """Record each parameter or buffer that stays an input."""
        names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        for name, index in zip(names, call.result, strict=True):
            if index < len(parameters):
                mutation = metadata.input_info[index].mutation_type.name
                cause = Cause("kept-parameter", {"changed": mutation != "NOT_MUTATED"})
                self.record("not-frozen", cause, call.place, (name,), subject_type="buffer", waits=True)

    @sees("torch._inductor.compile_fx", "compile_fx")
    def asked(self, call: Call, *_: Any, **__: Any) -> Iterator[None]:
        """Record freezing that is asked for in vain, before there is a graph."""
        if sys.modules["torch._inductor.config"].freezing and sys.modules["torch"].is_grad_enabled():
            cause = Cause("gradients-enabled")
            self.record("not-frozen", cause, call.place, subject_type="graph", waits=True, key="graph")
        yield


def _is_parameter(node: Any) -> bool:
    """Whether it is an attribute that came with the graph, and no constant that dynamo met in the code."""
    return node.op == "get_attr" and not str(node.target).startswith("_tensor_constant")
