"""Which operators are called instead of compiled, and why: `FallbackKernel` and its like.

An FX node ends as a call of torch's own kernel in one of these ways, of which only the second is logged:

1. `GraphLowering.run_node`: `fallback_node_due_to_unsupported_type(node)`: complex, sparse, some float8.
2. `GraphLowering.call_function`: the target has no lowering, so that `make_fallback` gives it one.
3. The lowering is one that `make_fallback` registered when inductor was imported.
4. A lowering calls a fallback itself: the backend lacks a feature, a scatter is not compiled, ...

Lowerings that do so are watched, and what they ask: when the kernel is made, such a lowering still runs, and
the branch that it stands in says why. For example `x.cumsum(0)` on a CPU: `cumsum` stands below `result is
None`, since `Scan.create` returned that below `not V.graph.has_feature(device, BackendFeature.SCAN)`.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from inductor_probe.capture.branches import CallPath, running
from inductor_probe.capture.recorders.askers import decomposition_of
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    cause_of_test,
    hint_of,
    inner_path,
    place_of,
    stack,
    tests_of,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame, TorchTest

KIND: DecisionKind = "fallback"

_HANDLERS = ("handler", "fallback_handler.<locals>.handler")  # its co_name, and its co_qualname
_IR = "torch/_inductor/ir.py"
_WRAPPERS = ("_register_lowering.<locals>.wrapped", "wrapped")
_HELPERS = ("_avg_poolnd", "index_put_impl_", "scatter_fallback", "sort_stable", "use_scatter_fallback")
_LOWERINGS = (
    "_adaptive_avg_pool2d", "adaptive_max_pool2d", "avg_pool2d_backward", "avg_pool3d_backward", "bucketize",
    "cat", "convolution_backward_lowering", "cummax", "cummin", "cumprod", "cumsum", "kthvalue",
    "logcumsumexp", "max_pool2d_with_indices_backward", "median_default", "median_dim", "mode_default",
    "native_dropout", "pow", "rand", "randn", "searchsorted", "topk",
)  # fmt: skip
"""Lowerings that may call torch, which are watched when one of them is met, and what others call for that."""
_ANSWERS = ("use_scatter_fallback", "Scan.create", "Sort.create")
"""What lowerings ask: where one says no, its branch is the cause, and not that of the lowering."""
_WINDOW, _THREADS, _SPLIT = "window_size > ?", "parallel_num_threads() != ?", "num_splits > ?"
_VALUES, _ELEMENTS = "len(dtypes) == ?", "sizevars.statically_known_true(sympy.Le(?"
Cause = tuple[CauseCode, TorchFrame, dict[str, Operand]]


@dataclass
class _Node:
    """What was asked while an FX node was lowered. `missing`: a feature that the backend does not have."""

    node: Any = None
    missing: dict[str, Operand] = field(default_factory=dict)
    unsupported: Cause | None = None


@dataclass
class _Recorder:
    log: DecisionLog
    implicit: set[Any] = field(default_factory=set)
    declined: dict[Any, Any] = field(default_factory=dict)  # operators, with the decomposition of each
    current: _Node = field(default_factory=_Node)
    types: dict[str, None] = field(default_factory=dict)

    def _asked(self) -> _Node:
        """Return what was asked about the FX node that is being lowered now."""
        node = _graph().current_node
        if self.current.node is not node:
            self.current = _Node(node)
        return self.current

    def type_checked(self, place: TorchFrame, is_unsupported: bool, node: Any, *_: Any, **__: Any) -> None:
        """See whether the values of a node are of a type that no code is generated for."""
        types, self.types = tuple(self.types), {}
        if is_unsupported:
            # Asked before run_node's other questions, and for nodes of patterns, too: it goes with its node.
            self.current = _Node(node, unsupported=("unsupported-type", place, {"types": types}))
            return
        lowering: Any = inspect.unwrap(_lowerings().get(node.target, _graph))
        if getattr(lowering, "__name__", "") in _LOWERINGS:
            self.log.watch(sys.modules[lowering.__module__], lowering.__name__)

    def tensor_checked(self, _: TorchFrame, is_unsupported: bool, value: Any, *__: Any, **___: Any) -> None:
        """See a value that no code is generated for."""
        if is_unsupported:
            self.types |= dict.fromkeys(_types_of(value)[-1:])

    def made_implicit(self, _: TorchFrame, __: object, target: Any, *___: Any, **____: Any) -> None:
        """See that `GraphLowering.call_function` found no lowering for an operator."""
        self.implicit.add(target)

    def decomposed(self, _: TorchFrame, result: Any, mode: Any, operator: Any, *__: Any) -> None:
        """See that a decomposition returned NotImplemented, so that its operator stays in the FX graph."""
        if result is NotImplemented and (decomposition := decomposition_of(mode, operator)) is not None:
            self.declined[operator] = decomposition

    def feature_asked(self, _: TorchFrame, has_it: bool, _graph: Any, device: Any, feature: Any) -> None:
        """See that a lowering asked for something that the backend does not have."""
        if not has_it:
            self._asked().missing = {"feature": feature.name, "device": _graph_device(device)}

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
        (cause, decided, operands), tests = self._cause(node, kernel, place, list(stack(caller)))
        self.log.record(
            KIND, ((operation.get_operation_name(),),), "extern", cause, decided,
            operands={"operator": str(kernel), "fx": node.name, **operands}, tests=tests,
        )  # fmt: skip

    def _cause(
        self, node: Any, kernel: Any, place: TorchFrame, frames: Sequence[TorchFrame]
    ) -> tuple[Cause, tuple[TorchTest, ...]]:
        asked = self._asked()
        if asked.unsupported is not None:
            return asked.unsupported, ()
        called = _last(frames, "GraphLowering.call_function", place)
        if node.target in self.implicit and node.target in self.declined:
            declined = place_of(self.declined[node.target])
            return ("decomposition-declined", declined, {"types": _computed(node)}), ()
        if node.target in self.implicit:
            return ("no-lowering", called, {}), ()
        lowering: Any = sys.modules["torch._inductor.lowering"]
        decompositions: Any = sys.modules.get("torch._decomp.decompositions_for_rng")
        random = getattr(decompositions, "extra_random_decomps", ())
        if lowering.config.fallback_random and node.target in random:
            return ("fallback-random", called, {}), ()
        inside = _lowering_frames(frames)
        for frame in inside:
            if (path := running(frame.function)) is not None:
                return _in_lowering(path.at(frame.line), node, inside[0], asked.missing)
        if getattr(_lowerings().get(node.target), "_is_fallback_handler", False):
            return ("registered-fallback", called, {}), ()
        if inside and inside[0].function == "index":  # where an exception says that an index is a mask
            return ("boolean-index", inside[0], {"dtypes": _dtypes(node.args[1])}), ()
        return ("in-lowering", inside[0] if inside else place, {}), ()


def _in_lowering(
    path: CallPath, node: Any, place: TorchFrame, missing: dict[str, Operand]
) -> tuple[Cause, tuple[TorchTest, ...]]:
    """Return why a lowering calls a fallback, by where it stands, or where what it asked before returned."""
    asked = next(filter(None, (inner_path(path.inner, function) for function in _ANSWERS)), None)
    for one in filter(None, (path, asked)):
        for tests in one.reasons():
            for cause in (cause_of_test(KIND, "", test) for test in tests):
                if cause is not None:
                    operands = cause[1] or _operands(cause[0], one, node) or missing
                    return (cause[0], place, operands), tests_of(one)
    unlisted = tests_of(asked or path)
    return ("unlisted-test" if unlisted else "in-lowering", place, {}), unlisted


def _operands(cause: CauseCode, path: CallPath, node: Any) -> dict[str, Operand]:
    """Return what a cause needs to know of the node beside what torch compared."""
    match cause:
        case "scatter-sum-threads":
            threads = path.tested(_THREADS)
            count = threads.values[0] if threads is not None else sys.modules["torch"].get_num_threads()
            return {"threads": count}
        case "boolean-index":
            return {"dtypes": _dtypes(node.args[1])}
        case "byte-concatenation":
            return {"dtypes": _types(node)}
        case "integer-power":
            return {"dtype": _types(node)[-1]}
        case "sort-decomposition-off" | "no-template":
            return {"device": _device(node)}
        case "tuple-scan-split":
            return _split(path, node)
    return {}


def _split(path: CallPath, node: Any) -> dict[str, Operand]:
    """Return what `Scan.create` saw of a scan of several values that was to be split."""
    seen = [path.tested(text) for text in (_ELEMENTS, _VALUES, _SPLIT)]
    elements, values, parts = (one.values[0] if one is not None else 0 for one in seen)
    first, *_ = _leaves(node)
    outputs = math.prod(hint_of(length, 1) for length in first.shape)
    if isinstance(elements, int) and elements:
        outputs //= elements
    return {"elements": elements, "outputs": outputs, "values": values, "parts": parts}


def _lowerings() -> Any:
    return sys.modules["torch._inductor.lowering"].lowerings


def _graph() -> Any:
    return sys.modules["torch._inductor.virtualized"].V.graph


def _graph_device(device: Any) -> str:
    """Return the device type of what `has_feature` was asked about: a device, or a node of the IR."""
    get_device = getattr(device, "get_device", None)
    return str(getattr(get_device() if get_device else device, "type", device))


def _calls_torch(operation: Any) -> bool:
    ir = sys.modules["torch._inductor.ir"]
    return isinstance(operation, (ir.FallbackKernel, ir.ScatterFallback, ir.IndexPutFallback))


def _leaves(node: Any) -> list[Any]:
    """Return the tensors that a node makes."""
    value = node.meta.get("val")
    leaves = value if isinstance(value, (list, tuple)) else [value]
    return [leaf for leaf in leaves if hasattr(leaf, "dtype") and hasattr(leaf, "layout")]


def _types_of(value: Any) -> list[str]:
    """Return the dtype of a tensor, and its layout if that is not strided."""
    torch: Any = sys.modules["torch"]
    named = [value.dtype, *([value.layout] if value.layout is not torch.strided else [])]
    return [str(one).removeprefix("torch.") for one in named]


def _types(node: Any) -> tuple[str, ...]:
    """Return the dtypes, and layouts that are not strided, of the values that a node takes and makes."""
    leaves = (leaf for one in (*node.all_input_nodes, node) for leaf in _leaves(one))
    return tuple(dict.fromkeys(name for leaf in leaves for name in _types_of(leaf)))


def _computed(node: Any) -> tuple[str, ...]:
    """Return the types that a node computes with; int64 beside another one is that of indices."""
    types = _types(node)
    return tuple(name for name in types if name != "int64") or types


def _lowering_frames(frames: Sequence[TorchFrame]) -> list[TorchFrame]:
    """Return the frames of the lowering that calls a fallback, not of what is wrapped around it."""
    inside: list[TorchFrame] = []
    for frame in frames:
        if frame.function in _WRAPPERS:
            break
        if frame.file != _IR and frame.function not in _HANDLERS:
            inside.append(frame)
    return inside


def _device(node: Any) -> str:
    values = (one.meta.get("val") for one in node.all_input_nodes)
    return next((str(value.device.type) for value in values if hasattr(value, "device")), "?")


def _dtypes(nodes: Iterable[Any]) -> tuple[str, ...]:
    """Return the dtypes of indices, which are nodes; a slice is none."""
    values = [node.meta["val"] for node in nodes if node is not None]
    return tuple(dict.fromkeys(str(value.dtype).removeprefix("torch.") for value in values))


def _last(frames: Sequence[TorchFrame], function: str, default: TorchFrame) -> TorchFrame:
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
    for place in _HELPERS:
        log.watch(lowering, place)
    wrap(lowering, "unsupported_input_tensor", log.observed(_recorder(log).tensor_checked))


def _hook_ir(ir: Any, log: DecisionLog) -> None:
    for place in ("Scan.create", "Sort.create"):
        log.watch(ir, place)
    for name in ("FallbackKernel.create", "ScatterFallback.__init__", "IndexPutFallback.__init__"):
        wrap(ir, name, _recorder(log).around)


def _hook_tracing(tracing: Any, log: DecisionLog) -> None:
    wrap(tracing, "maybe_handle_decomp", log.observed(_recorder(log).decomposed))


HOOKS = {
    "torch.fx.experimental.proxy_tensor": _hook_tracing,
    "torch._inductor.graph": _hook_graph,
    "torch._inductor.lowering": _hook_lowering,
    "torch._inductor.ir": _hook_ir,
}
