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
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from inductor_probe.capture.branches import CallPath, SeenTest, matches
from inductor_probe.capture.recorders.askers import Asker, asker, operator_of, users_of_buffers
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    decides,
    place_of,
    tests_of,
    virtual_graph,
)
from inductor_probe.model.decision import CauseCode, TorchFrame

_IR, _GRAPHS = "torch._inductor.ir", "torch._inductor.graph"
_LOWERING = "torch/_inductor/lowering.py"
_HEAVY, _LARGE, _READS = "x in opcount.used_ops", "self.has_large_inner_fn()", "self.num_reads() > ?"
_BYTES, _USERS = "self.has_accumulated_enough_reads_by_size(?", "users > config.?"
_COUNTED = "opcount.num_ops > ?"
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


class _Reason(NamedTuple):
    """Why torch said that a value is to be realised; it is recorded if that happens."""

    cause: Cause
    place: TorchFrame
    function: object


@dataclass
class _Graph:
    """What is known of a graph in lowering.

    Attributes:
        buffers: number and operands of the decision about each buffer.
        values: FX nodes with the box of their value, if it was no buffer when the node had been lowered.
    """

    buffers: dict[str, tuple[int | None, Operands]] = field(default_factory=dict)
    values: list[tuple[Any, Any]] = field(default_factory=list)


class Buffers(Recorder):
    """Keeps why torch said last that a value is to be realised, and what it found to be large."""

    KIND = "realization"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._reason: _Reason | None = None
        self._large: tuple[object, SeenTest] | None = None
        self._graphs: weakref.WeakKeyDictionary[Any, _Graph] = weakref.WeakKeyDictionary()

    @property
    def _ir(self) -> Any:
        return sys.modules[_IR]

    @sees(_IR, "Loops.has_large_inner_fn", watches=True)
    def sized(self, call: Call, data: Any, *_: Any, **__: Any) -> None:
        """Remember what has more operations than a limit."""
        if call.result and call.path is not None:
            self._large = data.inner_fn, call.path.all()[0]

    @sees(_IR, "StorageBox.should_realize_on_reuse", "StorageBox.has_exceeded_max_reads", watches=True)
    def asked(self, call: Call, box: Any, users: int | None = None, **_: Any) -> None:
        """Remember why torch says yes: by the tests that decided."""
        if call.result and call.path is not None:
            cause = self._why(call.path, box.data).also({} if users is None else {"users": int(users)})
            self._reason = _Reason(cause, call.place, box.data.inner_fn)

    def _why(self, path: CallPath, data: Any) -> Cause:
        if decides(path, _HEAVY):
            texts = {*_texts(inspect.unwrap(self._ir.StorageBox.should_realize_on_reuse).__code__.co_consts)}
            return Cause(
                "heavy-operations", {"heavy": tuple(sorted(texts & {*data.inner_fn_opcount().used_ops}))}
            )
        if decides(path, _LARGE):
            return Cause("operations", self._operations(data))
        for seen in path.deciding():
            setting = path.source(seen.text.rpartition(" > ")[2]).rpartition("config.")[2].strip("()")
            if matches(seen.text, _READS):
                accumulated = path.sites.function.endswith("max_reads")
                limit: Operands = {"reads": seen.values[0], "reads_limit": seen.values[1], "setting": setting}
                return Cause("accumulated-reads" if accumulated else "reads", limit)
            if matches(seen.text, _BYTES):
                limit = {"reads": data.num_reads(), "bytes_limit": seen.values[0], "setting": setting}
                return Cause("accumulated-reads", limit)
            if matches(seen.text, _USERS):  # since torch 2.14 a CPU repeats less for many users
                counted = path.tested(_COUNTED)
                values = counted.values if counted is not None else ()
                sizes: Operands = dict(zip(("operations", "operations_limit"), values, strict=False))
                return Cause("operations", {**sizes, "users_limit": seen.values[1], "setting": setting})
        return Cause("unlisted-test", {}, tests_of(path))

    @sees(_IR, "StorageBox.realize")
    def realised(self, _: Call, box: Any) -> Iterator[None]:
        """Record a value that became a buffer."""
        before = box.data
        yield
        if box.data is before:
            return
        graph = virtual_graph()
        node = getattr(graph, "current_node", None)
        cause, place = self._cause(before, asker(sys._getframe(1), graph), node)
        origin = before.get_origin_node() or node
        name, cause = box.data.name, cause.behind({"node": str(getattr(origin, "name", None))})
        number = self.record("realised", cause, place, (name,), subject_type="buffer")
        self._of(graph).buffers[name] = number, {**cause.operands}

    def _cause(self, data: Any, asking: Asker | None, node: Any) -> tuple[Cause, TorchFrame]:
        reason, self._reason = self._reason, None
        if asking is None:
            raise LookupError("realize was called from outside of inductor")
        if not isinstance(data, self._ir.Pointwise):
            return Cause("reduction", {"type": type(data).__name__, **asking.operands()}), asking.place
        trail = asking.trail
        if reason is not None and reason.function is not data.inner_fn:
            reason = None
        is_run_node = trail[-1] == "run_node"
        asked_by_number = "mark_reuse" in trail or asking.code == "channels-last-preferred"
        hinted = "realize_hint" in trail
        if reason is not None and (asked_by_number or (is_run_node and hinted)):
            is_repeated = asking.place.file == _LOWERING and "users" in reason.cause.operands
            # `expand`, `repeat` and `unfold`
            repeated: Operands = {"repeated_by": asking.place.function} if is_repeated else {}
            return reason.cause.also(repeated), reason.place
        if is_run_node and hinted:
            users = users_of_buffers(node)
            user = operator_of(users[0]) if users else "?"
            return Cause("user-needs-buffer", {"users": len(node.users), "user": user}), asking.place
        if is_run_node and "copy_input" not in trail and self._large and self._large[0] is data.inner_fn:
            limit = self._large[1].values[1]
            return Cause("operations", {**self._operations(data), "operations_limit": limit}), asking.place
        code = "hint" if hinted and asking.code == "lowering" else _BUFFER_FOR.get(asking.code, "lowering")
        return Cause(code, asking.operands()), asking.place

    @sees(_GRAPHS, "GraphLowering.run_node")
    def node_lowered(self, call: Call, lowering: Any, node: Any) -> None:
        """Remember a value that is no buffer yet."""
        box = getattr(call.result, "data", None)
        is_value = isinstance(box, self._ir.StorageBox) and isinstance(box.data, self._ir.Pointwise)
        if node.op == "call_function" and is_value:
            self._of(lowering).values.append((node, box))

    @sees(_GRAPHS, "GraphLowering.finalize")
    def lowered(self, _: Call, lowering: Any) -> None:
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
        graph, place = self._of(lowering), place_of(self._ir.StorageBox.should_realize_on_reuse)
        for node, box in graph.values:
            users = len(node.users)
            data = box.data
            if not isinstance(data, self._ir.Pointwise) or users == 0 or node not in into:
                continue
            # Origins are all that a buffer's value comes from, through other buffers, too.
            computing = called.get(id(data.inner_fn)) or into[node]
            operands: Operands = {"node": node.name, "users": users, "into": tuple(computing)}
            if users > 1:
                operands |= {
                    "reads": data.num_reads(),
                    "reads_limit": self._ir.config.realize_reads_threshold,
                    **self._operations(data),
                }
            cause = Cause("cheap" if users > 1 else "single-user", operands)
            self.record("inlined", cause, place, (node.name,), subject_type="fx")
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

    @sees(_GRAPHS, "GraphLowering.codegen")
    def generated(self, _: Call, lowering: Any) -> None:
        """Add to each buffer whether it has memory."""
        removed = set(lowering.removed_buffers)
        for name, (number, operands) in self._of(lowering).buffers.items():
            self.log.revise(number, operands=(*operands.items(), ("stored", name not in removed)))

    def _of(self, lowering: Any) -> _Graph:
        return self._graphs.setdefault(lowering, _Graph())

    def _operations(self, data: Any) -> Operands:
        limit, setting = self._limit("realize_opcount_threshold", data)
        count = int(data.inner_fn_opcount().num_ops)
        return {"operations": count, "operations_limit": limit, "setting": setting}

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
