"""Which values become buffers, and which are computed within their users: torch logs neither.

torch/_inductor/ir.py: a value is a `StorageBox` of a `Pointwise`, whose function its users call (inlined),
until `StorageBox.realize` makes it a `ComputedBuffer`. `GraphLowering.run_node` asks for that by the number
of users and reads, lowerings and extern kernels as they need it. For example, `y = exp(x)` with two users on
a CPU: `mark_reuse(2)`, `should_realize_on_reuse` sees `exp` among its heavy operations, `buf0` is made.
`y = x + 1` with two users is inlined in both.

A buffer is not memory: one that is fused into its only readers is removed again by the code generator. What
was removed is known when the code is generated, and stands in the operand `stored`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.capture.recorders.askers import Asker, asker, operator_of, users_of_buffers
from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError, place_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "realization"
_LOWERING = "torch/_inductor/lowering.py"
_LARGE_BODY = 100
"""`GraphLowering.run_node` realises a value of more operations in any case."""
_ASSEMBLY = "inline_asm_elementwise"
"""An operation that torch 2.14 repeats for no second user, on any device."""
_FEW_USERS = "realize_opusers_threshold"
"""Since torch 2.14: with more users than that, a CPU repeats less than `realize_opcount_threshold` says."""
_LESS_FOR_MANY_USERS = 2
_BUFFER_FOR: dict[str, CauseCode] = {
    "output": "output",
    "as-strided-input": "as-strided-input",
    "convolution": "extern-operand",
    "operator-constraint": "extern-operand",
    "extern-operand": "extern-operand",
    "template": "extern-operand",
    "concatenation": "concatenation",
    "mutation": "mutation",
    "reduction-layers": "split-reduction",
}
"""Askers that need a buffer for what they are."""


@dataclass
class _Reason:
    """Why torch said that a value is to be realised; it is recorded if that happens."""

    cause: CauseCode
    operands: dict[str, Operand]
    place: TorchFrame
    function: object


@dataclass
class _Graph:
    """What is known of a graph in lowering.

    Attributes:
        buffers: number and operands of the decision about each buffer.
        values: FX nodes with the box of their value, if it was no buffer when the node had been lowered.
    """

    buffers: dict[str, tuple[int | None, dict[str, Operand]]] = field(default_factory=dict)
    values: list[tuple[Any, Any]] = field(default_factory=list)


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._ir: Any = None
        self._reason: _Reason | None = None
        self._graphs: weakref.WeakKeyDictionary[Any, _Graph] = weakref.WeakKeyDictionary()
        self._reuse_place: TorchFrame | None = None

    def hook_ir(self, ir: Any, log: DecisionLog) -> None:
        """Wrap what decides, and what makes a buffer."""
        self._ir = ir
        self._heavy = frozenset(
            _texts(inspect.unwrap(ir.StorageBox.should_realize_on_reuse).__code__.co_consts)
        )
        self._reuse_place = place_of(ir.StorageBox.should_realize_on_reuse)
        wrap(ir, "StorageBox.should_realize_on_reuse", log.observed(self._reuse_asked))
        wrap(ir, "StorageBox.has_exceeded_max_reads", log.observed(self._reads_asked))
        wrap(ir, "StorageBox.realize", self._around_realize)

    def hook_graph(self, graph: Any, log: DecisionLog) -> None:
        """Wrap where an FX node, all of them, and the code of the graph are complete."""
        wrap(graph, "GraphLowering.run_node", log.observed(self._node_lowered))
        wrap(graph, "GraphLowering.finalize", log.observed(self._lowered))
        wrap(graph, "GraphLowering.codegen", log.observed(self._generated))

    def _around_realize(self, realize: Callable[..., Any]) -> Callable[..., Any]:
        def realize_and_record(box: Any) -> Any:
            before = box.data
            result = realize(box)
            if box.data is not before:
                self._log.safely(self._realised, box, before)
            return result

        return realize_and_record

    def _reuse_asked(self, place: TorchFrame, result: bool, box: Any, users: int, **options: Any) -> None:
        """Remember why `should_realize_on_reuse` says yes: its conditions, in its order."""
        if not result:
            return
        data = box.data
        used = {"users": int(users)}
        count = data.inner_fn_opcount()
        self._reason = None
        if _ASSEMBLY in count.used_ops:
            raise UnknownPathError(f"{_ASSEMBLY} for {users} users")
        heavy = sorted(self._heavy & set(count.used_ops))
        if _is_cpu(data) and heavy:
            self._reason = _Reason("heavy-operations", {"heavy": tuple(heavy), **used}, place, data.inner_fn)
        elif options.get("graph_reuse", True) and (limits := self._limits_of_many_users(data, users)):
            operands = {"operations": int(count.num_ops), **limits, **used}
            self._reason = _Reason("operations", operands, place, data.inner_fn)
        elif data.has_large_inner_fn():
            operands = {**self._operations(data), **used}
            self._reason = _Reason("operations", operands, place, data.inner_fn)
        else:
            limit = {
                "reads_limit": self._ir.config.realize_reads_threshold,
                "setting": "realize_reads_threshold",
            }
            operands = {"reads": data.num_reads(), **limit, **used}
            self._reason = _Reason("reads", operands, place, data.inner_fn)

    def _limits_of_many_users(self, data: Any, users: int) -> dict[str, Operand] | None:
        """Return the limits that a value of many users exceeds on a CPU; None where it does not."""
        few = getattr(self._ir.config, _FEW_USERS, None)
        if few is None or users <= few or not (_is_cpu(data) and isinstance(data, self._ir.Pointwise)):
            return None
        limit = max(0, self._limit("realize_opcount_threshold", data)[0] - _LESS_FOR_MANY_USERS)
        if data.inner_fn_opcount().num_ops <= limit:
            return None
        return {"operations_limit": limit, "users_limit": int(few), "setting": _FEW_USERS}

    def _reads_asked(self, place: TorchFrame, result: bool, box: Any) -> None:
        """Remember why `has_exceeded_max_reads` says yes."""
        if not result:
            return
        data = box.data
        limit, setting = self._limit("realize_acc_reads_threshold", data)
        if data.num_reads() > limit:
            operands: dict[str, Operand] = {
                "reads": data.num_reads(),
                "reads_limit": limit,
                "setting": setting,
            }
            self._reason = _Reason("accumulated-reads", operands, place, data.inner_fn)
        elif data.has_large_inner_fn():
            self._reason = _Reason("operations", self._operations(data), place, data.inner_fn)
        else:
            size = "realize_acc_reads_size_threshold"
            bytes_limit = getattr(self._ir.config, size)
            operands = {"reads": data.num_reads(), "bytes_limit": bytes_limit, "setting": size}
            self._reason = _Reason("accumulated-reads", operands, place, data.inner_fn)

    def _realised(self, box: Any, before: Any) -> None:
        graph = self._ir.V.graph
        name = box.data.name
        asking = asker(sys._getframe(1), graph)
        node = getattr(graph, "current_node", None)
        cause, operands, place = self._cause(before, asking, node)
        origin = before.get_origin_node() or node
        operands = {"node": str(getattr(origin, "name", None)), **operands}
        number = self._log.record(
            KIND, ((name,),), "realised", cause, place, operands=operands, subject_type="buffer"
        )
        self._of(graph).buffers[name] = number, operands

    def _cause(
        self, data: Any, asking: Asker | None, node: Any
    ) -> tuple[CauseCode, dict[str, Operand], TorchFrame]:
        reason, self._reason = self._reason, None
        if asking is None:
            raise LookupError("realize was called from outside of inductor")
        if not isinstance(data, self._ir.Pointwise):
            return "reduction", {"type": type(data).__name__, **asking.operands()}, asking.place
        trail = asking.trail
        if reason is not None and reason.function is not data.inner_fn:
            reason = None
        is_run_node = trail[-1] == "run_node"
        asked_by_number = "mark_reuse" in trail or asking.code == "channels-last-preferred"
        hinted = "realize_hint" in trail
        if reason is not None and (asked_by_number or (is_run_node and hinted)):
            operands = reason.operands
            if asking.place.file == _LOWERING and "users" in operands:  # `expand`, `repeat` and `unfold`
                operands = {**operands, "repeated_by": asking.place.function}
            return reason.cause, operands, reason.place
        if is_run_node and hinted:
            users = users_of_buffers(node)
            user = operator_of(users[0]) if users else "?"
            return "user-needs-buffer", {"users": len(node.users), "user": user}, asking.place
        if is_run_node and "copy_input" not in trail and data.inner_fn_opcount().num_ops > _LARGE_BODY:
            return "operations", self._operations(data, _LARGE_BODY), asking.place
        cause = "hint" if hinted and asking.code == "lowering" else _BUFFER_FOR.get(asking.code, "lowering")
        return cause, asking.operands(), asking.place

    def _node_lowered(self, _: TorchFrame, result: Any, lowering: Any, node: Any) -> None:
        """Remember a value that is no buffer yet."""
        box = getattr(result, "data", None)
        is_value = isinstance(box, self._ir.StorageBox) and isinstance(box.data, self._ir.Pointwise)
        if node.op == "call_function" and is_value:
            self._of(lowering).values.append((node, box))

    def _lowered(self, _: TorchFrame, result: Any, lowering: Any) -> None:
        """Record the values that never became buffers, with the buffers that compute them."""
        into: dict[Any, list[str]] = {}
        called: dict[int, list[str]] = {}
        for buffer in lowering.buffers:
            if buffer.name is None:  # of a score_mod: its text becomes part of a template
                continue
            for origin in getattr(buffer, "origins", ()):
                into.setdefault(origin, []).append(buffer.get_name())
            if isinstance(buffer, self._ir.ComputedBuffer):
                for function in self._functions(buffer.data):
                    called.setdefault(function, []).append(buffer.get_name())
        graph = self._of(lowering)
        for node, box in graph.values:
            users = len(node.users)
            data = box.data
            if not isinstance(data, self._ir.Pointwise) or users == 0 or node not in into:
                continue
            # Origins are all that a buffer's value comes from, through other buffers, too.
            computing = called.get(id(data.inner_fn)) or into[node]
            operands: dict[str, Operand] = {"node": node.name, "users": users, "into": tuple(computing)}
            cause: CauseCode = "single-user"
            if users > 1:
                cause = "cheap"
                operands |= {
                    "reads": data.num_reads(),
                    "reads_limit": self._ir.config.realize_reads_threshold,
                    **self._operations(data),
                }
            if self._reuse_place is not None:
                self._log.record(
                    KIND, ((node.name,),), "inlined", cause, self._reuse_place, operands=operands,
                    subject_type="fx",
                )  # fmt: skip
        graph.values.clear()

    def _functions(self, body: Any) -> set[int]:
        """Return what the body of a loop calls, by `id`: a function holds those of its operands."""
        functions: set[int] = set()
        waiting, seen = [body], set[int]()
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, types.FunctionType):
                functions.add(id(one))
                waiting += _held(one)
            elif isinstance(one, types.MethodType):
                waiting += [one.__func__, one.__self__]
            elif isinstance(one, functools.partial):
                waiting += [one.func, *one.args, *one.keywords.values()]
            elif isinstance(one, list | tuple):
                waiting += one
            elif isinstance(one, dict):
                waiting += one.values()
            elif isinstance(one, self._ir.Loops):
                waiting += [one.inner_fn, getattr(one, "output_indexer", None)]
            elif isinstance(one, self._ir.MutableBox | self._ir.BaseView):
                waiting.append(one.data)
        return functions

    def _generated(self, _: TorchFrame, result: Any, lowering: Any) -> None:
        """Add to each buffer whether it has memory."""
        removed = set(lowering.removed_buffers)
        for name, (number, operands) in self._of(lowering).buffers.items():
            self._log.revise(number, operands=(*operands.items(), ("stored", name not in removed)))

    def _of(self, lowering: Any) -> _Graph:
        return self._graphs.setdefault(lowering, _Graph())

    def _operations(self, data: Any, least: int = 0) -> dict[str, Operand]:
        limit, setting = self._limit("realize_opcount_threshold", data)
        count = int(data.inner_fn_opcount().num_ops)
        return {"operations": count, "operations_limit": max(limit, least), "setting": setting}

    def _limit(self, name: str, data: Any) -> tuple[int, str]:
        """Return a threshold and the setting that has it.

        Before torch 2.13 `realize_opcount_threshold` is a number. Since then it is None, and then
        `realize_cpu_opcount_threshold` counts for a CPU, `_realize_opcount_threshold_default` for a GPU.
        """
        config = self._ir.config
        limit = getattr(config, name)
        if limit is not None:
            return int(limit), name
        other = name.replace("realize_", "realize_cpu_") if _is_cpu(data) else f"_{name}_default"
        return int(getattr(config, other)), other


def _is_cpu(data: Any) -> bool:
    device = data.get_device()
    return device is not None and device.type == "cpu"


def _held(function: types.FunctionType) -> Iterator[Any]:
    """Yield what a function holds of where it was defined: loaders of its operands."""
    yield from function.__defaults__ or ()
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty one
            yield cell.cell_contents


def _texts(constants: tuple[object, ...]) -> Iterator[str]:
    """Yield the texts among a function's constants: its heavy operations stand there and nowhere else."""
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from _texts(constant)


def _hook_ir(ir: Any, log: DecisionLog) -> None:
    _recorder(log).hook_ir(ir, log)


def _hook_graph(graph: Any, log: DecisionLog) -> None:
    _recorder(log).hook_graph(graph, log)


_recorder = functools.cache(_Recorder)
"""One a log: the modules of torch that it hooks share it."""

HOOKS = {"torch._inductor.ir": _hook_ir, "torch._inductor.graph": _hook_graph}
