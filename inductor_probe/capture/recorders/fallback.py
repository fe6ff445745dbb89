"""Which operators are called instead of compiled, and why: `FallbackKernel` and its like.

An FX node ends as a call of torch's own kernel in one of these ways, of which only the second is logged:

1. `GraphLowering.run_node`: `fallback_node_due_to_unsupported_type(node)`: complex, sparse, some float8.
2. `GraphLowering.call_function`: the target has no lowering, so that `make_fallback` gives it one.
3. The lowering is one that `make_fallback` registered when inductor was imported.
4. A lowering calls a fallback itself: the backend lacks a feature, a scatter is not compiled, ...

For example `x.cumsum(0)` on a CPU: `Scan.create` asks `has_feature(cpu, SCAN)`, and returns None.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from inductor_probe.capture.recorders.askers import decomposition_of
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    hint_of,
    inductor_caller,
    named,
    place_of,
    size_of,
    stack,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "fallback"

_LOWERING = "torch/_inductor/lowering.py"
_HANDLERS = ("handler", "fallback_handler.<locals>.handler")  # its co_name, and its co_qualname
_IR = "torch/_inductor/ir.py"
_WRAPPERS = ("_register_lowering.<locals>.wrapped", "wrapped")
_SORTS = "decompose_sort_ops"
_MOST_SORTED = 512
"""Elements that one block of a GPU sorts: ir.py, `Sort.create`."""
_MOST_WINDOW = 25
"""Elements of a window of a pool that code is generated for: lowering.py, `_adaptive_avg_pool2d`."""
_BOOLEAN = ("torch.bool", "torch.uint8")
_DETERMINISTIC = "are_deterministic_algorithms_enabled"
_NEEDED = ("BUCKETIZE", "MASKED_SCATTER_WITH_INDEX", "SCAN", "SORT", "TUPLE_REDUCTION")
"""Features without which a lowering calls torch; what others are asked for is how code is generated."""

Cause = tuple[CauseCode, TorchFrame, dict[str, Operand]]


@dataclass
class _Node:
    """What was asked while an FX node was lowered. `refusal`: the last answer against generated code."""

    node: Any = None
    refusal: Cause | None = None
    unsupported: Cause | None = None


@dataclass
class _Recorder:
    log: DecisionLog
    implicit: set[Any] = field(default_factory=set)
    declined: dict[Any, Any] = field(default_factory=dict)  # operators, with the decomposition of each
    current: _Node = field(default_factory=_Node)

    def _asked(self) -> _Node:
        """Return what was asked about the FX node that is being lowered now."""
        node = _graph().current_node
        if self.current.node is not node:
            self.current = _Node(node)
        return self.current

    def type_checked(self, place: TorchFrame, is_unsupported: bool, node: Any, *_: Any, **__: Any) -> None:
        """See whether the values of a node are of a type that no code is generated for."""
        if is_unsupported:
            # Asked before run_node's other questions, and for nodes of patterns, too: it goes with its node.
            self.current = _Node(node, unsupported=("unsupported-type", place, {"types": _uncompiled(node)}))

    def made_implicit(self, _: TorchFrame, __: object, target: Any, *___: Any, **____: Any) -> None:
        """See that `GraphLowering.call_function` found no lowering for an operator."""
        self.implicit.add(target)

    def decomposed(self, _: TorchFrame, result: Any, mode: Any, operator: Any, *__: Any) -> None:
        """See that a decomposition returned NotImplemented, so that its operator stays in the FX graph."""
        if result is NotImplemented and (decomposition := decomposition_of(mode, operator)) is not None:
            self.declined[operator] = decomposition

    def feature_asked(self, _: TorchFrame, has_it: bool, _graph: Any, device: Any, feature: Any) -> None:
        """See that a lowering asked for something that the backend does not have."""
        if not has_it and feature.name in _NEEDED:
            asker = next(stack(sys._getframe(1)), None)
            if asker is not None:
                name = _graph_device(device)
                operands: dict[str, Operand] = {"feature": feature.name, "device": name}
                self._asked().refusal = "no-backend-feature", asker, operands

    def scan_split(self, _: TorchFrame, answer: Any, *__: Any, **asked: Any) -> None:
        """See a scan of several values that is to be split: ir.py, `Scan.create`, splits those of one."""
        parts = answer[1]
        scan = inductor_caller()
        dtypes = scan.f_locals["dtypes"]
        if not isinstance(parts, int) or parts <= 1:
            return
        if len(dtypes) == 1:
            torch: Any = sys.modules["torch"]
            if _DETERMINISTIC in scan.f_code.co_names and torch.are_deterministic_algorithms_enabled():
                self._asked().refusal = "deterministic-algorithms", next(stack(scan)), {}
            return
        outputs = math.prod(hint_of(length, 1) for length in asked["pointwise_ranges"])
        operands: dict[str, Operand] = {
            "elements": size_of(asked["scan_numel"]), "outputs": outputs, "values": len(dtypes),
            "parts": parts,
        }  # fmt: skip
        self._asked().refusal = "tuple-scan-split", next(stack(scan)), operands

    def scatter_asked(self, place: TorchFrame, is_fallback: bool, *arguments: Any) -> None:
        """Repeat the conditions of torch/_inductor/utils.py, `use_scatter_fallback`, in their order."""
        if not is_fallback:
            return
        torch: Any = sys.modules["torch"]
        op_overload, reduction_type, self_dtype, src_dtype, src_device_type, src_is_tensor = arguments
        packet = op_overload.overloadpacket
        sum_name = "add" if packet == torch.ops.aten.scatter_ else "sum"
        dtype = str(self_dtype).removeprefix("torch.")
        cpp = sys.modules["torch._inductor.config"].cpp
        threads = torch.get_num_threads() if cpp.threads < 1 else cpp.threads
        is_cpu_sum = packet == torch.ops.aten.scatter_reduce_ and reduction_type == "sum" and src_is_tensor
        is_left_to_torch = cpp.fallback_scatter_reduce_sum and (cpp.dynamic_threads or threads != 1)
        if reduction_type not in (None, sum_name):
            cause: Cause = "scatter-reduction", place, {"reduction": str(reduction_type)}
        elif is_cpu_sum and src_device_type == "cpu" and is_left_to_torch:
            cause = "scatter-sum-threads", place, {"threads": threads}
        elif reduction_type == sum_name and str(self_dtype) in ("torch.bool", "torch.int64"):
            cause = "atomic-add-dtype", place, {"dtype": dtype}
        elif torch.are_deterministic_algorithms_enabled():
            cause = "deterministic-algorithms", place, {}
        else:
            source = str(src_dtype).removeprefix("torch.")
            cause = "atomic-add-dtype", place, {"dtype": source}
        self._asked().refusal = cause

    def around_index_put(self, put: Callable[..., Any]) -> Callable[..., Any]:
        """Return `index_put_fallback` so that its cause is known before it makes its kernel."""

        def ask_and_put(target: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
            self.log.safely(self._index_put, sys._getframe(1), target, indices, *args, **kwargs)
            return put(target, indices, *args, **kwargs)

        return ask_and_put

    def _index_put(self, caller: FrameType, target: Any, indices: Any, _values: Any, accumulate: Any) -> None:
        """Repeat the conditions of torch/_inductor/lowering.py, `index_put_impl_`, in their order."""
        torch: Any = sys.modules["torch"]
        place = next(stack(caller))
        dtypes = [str(index.get_dtype()) for index in indices if index is not None]
        if torch.are_deterministic_algorithms_enabled():
            cause: Cause = "deterministic-algorithms", place, {}
        elif any(dtype in _BOOLEAN for dtype in dtypes):
            cause = "boolean-index", place, {"dtypes": tuple(name.removeprefix("torch.") for name in dtypes)}
        elif accumulate and _lacks_atomic_add(target):
            dtype = str(target.get_dtype()).removeprefix("torch.")
            cause = "atomic-add-dtype", place, {"dtype": dtype}
        else:
            return  # indices that cannot be broadcast, of which the lowering does not say why
        self._asked().refusal = cause

    def around(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """Return what makes a kernel that calls torch, so that each of them is recorded with its cause."""
        place = place_of(make)

        def make_and_record(*args: Any, **kwargs: Any) -> Any:
            before = len(_graph().operations)
            result = make(*args, **kwargs)
            self.log.safely(self._record, place, before, sys._getframe(1))
            return result

        return make_and_record

    def _record(self, place: TorchFrame, before: int, caller: FrameType) -> None:
        graph = _graph()
        made = [operation for operation in graph.operations[before:] if _calls_torch(operation)]
        node = graph.current_node
        if not made or node is None:
            return
        operation = made[0]
        kernel = getattr(operation, "op_overload", None) or node.target
        cause, decided, operands = self._cause(node, kernel, place, caller)
        self.log.record(
            KIND, ((operation.get_operation_name(),),), "extern", cause, decided,
            operands={"operator": str(kernel), "fx": node.name, **operands},
        )  # fmt: skip

    def _cause(self, node: Any, kernel: Any, place: TorchFrame, caller: FrameType) -> Cause:
        asked = self._asked()
        if asked.unsupported is not None:
            return asked.unsupported
        if asked.refusal is not None:
            return asked.refusal
        frames = list(stack(caller))
        if node.target in self.implicit and node.target in self.declined:
            operands: dict[str, Operand] = {"types": _computed(node)}
            return "decomposition-declined", place_of(self.declined[node.target]), operands
        if node.target in self.implicit:
            return "no-lowering", _last(frames, "GraphLowering.call_function", place), {}
        lowering: Any = sys.modules["torch._inductor.lowering"]
        decompositions: Any = sys.modules.get("torch._decomp.decompositions_for_rng")
        if lowering.config.fallback_random and node.target in getattr(
            decompositions, "extra_random_decomps", ()
        ):
            return "fallback-random", _last(frames, "GraphLowering.call_function", place), {}
        if getattr(lowering.lowerings.get(node.target), "_is_fallback_handler", False):
            return "registered-fallback", _last(frames, "GraphLowering.call_function", place), {}
        inside = _lowering_frames(frames)
        if lowering.config.fallback_random and inside and _asks_for_eager_random(inside[0].function, caller):
            return "fallback-random", inside[0], {}
        known = _known(inside[0].function, node, caller) if inside else None
        code, operands = known or ("in-lowering", {})
        return code, inside[0] if inside else place, operands


def _lacks_atomic_add(target: Any) -> bool:
    """Return whether `index_put_impl_` takes a dtype for one without atomic additions.

    On a CPU it does not since torch 2.14: `accumulate and is_gpu(...) and needs_fallback_...`.
    """
    lowering: Any = sys.modules["torch._inductor.lowering"]
    of_gpu_alone = "is_gpu" in inspect.unwrap(lowering.index_put_impl_).__code__.co_names
    if of_gpu_alone and not lowering.is_gpu(target.get_device().type):
        return False
    return bool(lowering.needs_fallback_due_to_atomic_add_limitations(target.get_dtype()))


def _graph() -> Any:
    return sys.modules["torch._inductor.virtualized"].V.graph


def _graph_device(device: Any) -> str:
    """Return the device type of what `has_feature` was asked about: a device, or a node of the IR."""
    get_device = getattr(device, "get_device", None)
    return str(getattr(get_device() if get_device else device, "type", device))


def _calls_torch(operation: Any) -> bool:
    ir = sys.modules["torch._inductor.ir"]
    return isinstance(operation, (ir.FallbackKernel, ir.ScatterFallback, ir.IndexPutFallback))


def _types(node: Any) -> tuple[str, ...]:
    """Return the dtypes, and layouts that are not strided, of the values that a node takes and makes."""
    values = [one.meta.get("val") for one in (*node.all_input_nodes, node)]
    leaves = [leaf for value in values for leaf in (value if isinstance(value, (list, tuple)) else [value])]
    names: dict[str, None] = {}
    for leaf in leaves:
        if hasattr(leaf, "dtype") and hasattr(leaf, "layout"):
            names[str(leaf.dtype).removeprefix("torch.")] = None
            if "strided" not in str(leaf.layout):
                names[str(leaf.layout).removeprefix("torch.")] = None
    return tuple(names)


def _uncompiled(node: Any) -> tuple[str, ...]:
    """Return those types of a node that no code is generated for, as far as their names tell."""
    types = _types(node)
    at_fault = tuple(name for name in types if name.startswith(("complex", "float8", "sparse", "_mkldnn")))
    return at_fault or types


def _computed(node: Any) -> tuple[str, ...]:
    """Return the types that a node computes with; int64 beside another one is that of indices."""
    types = _types(node)
    return tuple(name for name in types if name != "int64") or types


def _lowering_frames(frames: list[TorchFrame]) -> list[TorchFrame]:
    """Return the frames of the lowering that calls a fallback, not of what is wrapped around it."""
    inside: list[TorchFrame] = []
    for frame in frames:
        if frame.function in _WRAPPERS:
            break
        if frame.file != _IR and frame.function not in _HANDLERS:
            inside.append(frame)
    return inside


def _asks_for_eager_random(function: str, caller: FrameType) -> bool:
    """Whether a lowering asks for `fallback_random`, and not before that for a generator of the user's."""
    frame = _frame_of(function, caller)
    if frame is None or "fallback_random" not in frame.f_code.co_names:
        return False
    return frame.f_locals.get("kwargs", {}).get("generator") is None


def _known(function: str, node: Any, caller: FrameType) -> tuple[CauseCode, dict[str, Operand]] | None:
    """Return the cause of a fallback inside of a lowering that has one condition for it, None for others."""
    frame = _frame_of(function, caller)
    if frame is None:
        return None
    names = frame.f_locals
    if function == "sort_stable":
        return _sort(size_of(names["dim_size"]))
    if _SORTS in frame.f_code.co_names:
        return "sort-decomposition-off", {"device": _device(node)}
    if function == "cat":
        return "byte-concatenation", {"dtypes": _dtypes(names["inputs"])}
    if function == "index":
        return "boolean-index", {"dtypes": _dtypes(index for index in names["indices"] if index is not None)}
    if function == "convolution_backward_lowering" and names["input"].get_device().type == "cpu":
        return "no-template", {"device": "cpu"}
    window = names.get("window_size")
    if "pool" in function and window is not None and window > _MOST_WINDOW:
        return "pooling-window", {"window": size_of(window), "window_limit": _MOST_WINDOW}
    if function.startswith("pow") and names.get("is_integer_pow"):
        return "integer-power", {"dtype": _types(node)[-1]}
    return None


def _sort(elements: int | str) -> tuple[CauseCode, dict[str, Operand]] | None:
    """Return why a sort is not generated on a backend that has sorts: ir.py, `Sort.create`."""
    triton = sys.modules["torch._inductor.config"].triton
    if getattr(triton, _SORTS, False) or not triton.persistent_reductions:
        return None
    if isinstance(elements, int) and elements <= _MOST_SORTED:
        return None
    return "sort-too-long", {"elements": elements, "elements_limit": _MOST_SORTED}


def _frame_of(function: str, caller: FrameType) -> FrameType | None:
    frame: FrameType | None = caller
    while frame is not None and named(frame.f_code)[1] != function:
        frame = frame.f_back
    return frame


def _device(node: Any) -> str:
    values = (one.meta.get("val") for one in node.all_input_nodes)
    return next((str(value.device.type) for value in values if hasattr(value, "device")), "?")


def _dtypes(operands: Iterable[Any]) -> tuple[str, ...]:
    names = (str(operand.get_dtype()).removeprefix("torch.") for operand in operands)
    return tuple(dict.fromkeys(names))


def _last(frames: list[TorchFrame], function: str, default: TorchFrame) -> TorchFrame:
    """Return the frame of `function`; where Python has no qualified names (3.10), of its last part."""
    names = (function, function.rpartition(".")[2])
    return next((frame for frame in frames if frame.function in names), default)


_recorder = functools.cache(_Recorder)
"""One a log: its hooks are called when each module is imported, in an order that is torch's own."""


def _hook_graph(graph: Any, log: DecisionLog) -> None:
    recorder = _recorder(log)
    wrap(graph, "fallback_node_due_to_unsupported_type", log.observed(recorder.type_checked))
    wrap(graph, "make_fallback", log.observed(recorder.made_implicit))
    wrap(graph, "GraphLowering.has_feature", log.observed(recorder.feature_asked))


def _hook_lowering(lowering: Any, log: DecisionLog) -> None:
    recorder = _recorder(log)
    wrap(lowering, "use_scatter_fallback", log.observed(recorder.scatter_asked))
    wrap(lowering, "index_put_fallback", recorder.around_index_put)


def _hook_ir(ir: Any, log: DecisionLog) -> None:
    for name in ("FallbackKernel.create", "ScatterFallback.__init__", "IndexPutFallback.__init__"):
        wrap(ir, name, _recorder(log).around)
    wrap(ir, "Scan.num_splits", log.observed(_recorder(log).scan_split))


def _hook_tracing(tracing: Any, log: DecisionLog) -> None:
    wrap(tracing, "maybe_handle_decomp", log.observed(_recorder(log).decomposed))


HOOKS = {
    "torch.fx.experimental.proxy_tensor": _hook_tracing,
    "torch._inductor.graph": _hook_graph,
    "torch._inductor.lowering": _hook_lowering,
    "torch._inductor.ir": _hook_ir,
}
