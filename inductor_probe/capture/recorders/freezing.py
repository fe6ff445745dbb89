"""Whether parameters were made constants of the graph, and what was computed of them ahead of time.

`freeze` is asked for by `config.freezing`, where no gradients are; it runs before the graph has a folder.
Its causes are events, not tests: `replace_params_with_constants` goes through the parameters in a loop, of
which a watched function has the last turn alone; `compile_fx` tests both settings before there are any.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from inductor_probe.capture.recorders.askers import operator_of
from inductor_probe.capture.recorders.decision_log import DecisionLog, place_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "freezing"


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._folded = 0

    def around_replace(self, replace: Callable[..., Any]) -> Callable[..., Any]:
        """Return `replace_node_with_constant` so that what is folded of frozen parameters is recorded."""
        place = place_of(replace)

        def replace_and_record(gm: Any, node: Any, *args: Any, **kwargs: Any) -> Any:
            operator, is_parameter = operator_of(node), node.op == "placeholder"
            name = node.name
            result = replace(gm, node, *args, **kwargs)
            if not is_parameter:
                self._log.safely(self._fold, place, name, operator)
            return result

        return replace_and_record

    def _fold(self, place: TorchFrame, name: str, operator: str) -> None:
        self._folded += 1
        self._log.record(
            KIND, ((name,),), "folded", "frozen-inputs", place,
            operands={"nodes": (name,), "operators": (operator,)}, subject_type="fx", waits=True,
        )  # fmt: skip

    def around_freeze(self, freeze: Callable[..., Any]) -> Callable[..., Any]:
        """Return `freeze` so that it is recorded which inputs became constants, and what was folded."""
        place = place_of(freeze)

        def freeze_and_record(dynamo: Any, graph: Any, inputs: Any) -> Any:
            self._folded = 0
            attributes = len({node.target for node in graph.graph.nodes if _is_parameter(node)})
            result = freeze(dynamo, graph, inputs)
            self._log.safely(self._frozen, place, len(inputs), len(result[1]), attributes)
            return result

        return freeze_and_record

    def _frozen(self, place: TorchFrame, inputs: int, kept: int, attributes: int) -> None:
        operands: dict[str, Operand] = {"constants": inputs - kept, "inputs": kept, "folded": self._folded}
        cause: CauseCode = "parameters" if inputs > kept else "no-parameters"
        if attributes and cause == "no-parameters":
            cause, operands = "attributes", {**operands, "attributes": attributes}
        self._log.record(
            KIND, (), "not-frozen" if cause == "no-parameters" else "frozen", cause, place,
            operands=operands, subject_type="graph", waits=True,
        )  # fmt: skip

    def kept(self, place: TorchFrame, preserved: Any, graph: Any, parameters: Any, metadata: Any) -> None:
        """Record each parameter or buffer that `replace_params_with_constants` left an input."""
        names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        for name, index in zip(names, preserved, strict=True):
            if index < len(parameters):
                mutation = metadata.input_info[index].mutation_type.name
                operands: dict[str, Operand] = {"changed": mutation != "NOT_MUTATED"}
                self._log.record(
                    KIND, ((name,),), "not-frozen", "kept-parameter", place, operands=operands,
                    subject_type="buffer", waits=True,
                )  # fmt: skip

    def around_main(self, compile_main: Callable[..., Any]) -> Callable[..., Any]:
        """Return `compile_fx` so that freezing that was asked for in vain is seen."""
        place = place_of(compile_main)

        def compile_and_record(*args: Any, **kwargs: Any) -> Any:
            self._log.safely(self._asked, place)
            return compile_main(*args, **kwargs)

        return compile_and_record

    def _asked(self, place: TorchFrame) -> None:
        if sys.modules["torch._inductor.config"].freezing and sys.modules["torch"].is_grad_enabled():
            self._log.record(
                KIND, (), "not-frozen", "gradients-enabled", place, operands={}, subject_type="graph",
                waits=True, key="graph",
            )  # fmt: skip


def _is_parameter(node: Any) -> bool:
    """Whether it is an attribute that came with the graph, and no constant that dynamo met in the code."""
    return node.op == "get_attr" and not str(node.target).startswith("_tensor_constant")


_recorder = functools.cache(_Recorder)
"""One a log, for the three modules that it hooks."""


def _hook_freezing(freezing: Any, log: DecisionLog) -> None:
    wrap(freezing, "freeze", _recorder(log).around_freeze)
    wrap(freezing, "replace_params_with_constants", log.observed(_recorder(log).kept))


HOOKS = {
    "torch._inductor.constant_folding": lambda module, log: wrap(
        module, "replace_node_with_constant", _recorder(log).around_replace
    ),
    "torch._inductor.freezing": _hook_freezing,
    "torch._inductor.compile_fx": lambda module, log: wrap(module, "compile_fx", _recorder(log).around_main),
}
