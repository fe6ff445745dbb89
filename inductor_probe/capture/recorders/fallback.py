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

import inspect
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.capture.branches import CallPath, running
from inductor_probe.capture.recorders.askers import decomposition_of
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees, watches
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    cause_of_test,
    fx_in_lowering,
    hint_of,
    inner_path,
    place_of,
    stack,
    tests_of,
    virtual_graph,
)
from inductor_probe.model.decision import CauseCode, TorchFrame

_GRAPH = "torch._inductor.graph"
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


@dataclass
class _Node:
    """What was asked while an FX node was lowered. `missing`: a feature that the backend does not have."""

    node: Any = None
    missing: Operands = field(default_factory=dict)
    unsupported: tuple[Cause, TorchFrame] | None = None


@watches("torch._inductor.lowering", *_HELPERS)
@watches("torch._inductor.ir", "Scan.create", "Sort.create")
class Fallback(Recorder):
    """Records calls of torch's own kernels.

    `_implicit` are operators without a lowering; `_declined` those with a decomposition that said no to them.
    """

    KIND = "fallback"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._implicit: set[Any] = set()
        self._declined: dict[Any, Any] = {}
        self._current = _Node()
        self._types: dict[str, None] = {}

    def _asked(self) -> _Node:
        """Return what was asked about the FX node that is being lowered now."""
        node = fx_in_lowering()
        if self._current.node is not node:
            self._current = _Node(node)
        return self._current

    @sees(_GRAPH, "fallback_node_due_to_unsupported_type")
    def type_checked(self, call: Call, node: Any, *_: Any, **__: Any) -> None:
        """See whether the values of a node are of a type that no code is generated for."""
        types, self._types = tuple(self._types), {}
        if call.result:
            # Asked before run_node's other questions, and for nodes of patterns, too: it goes with its node.
            unsupported = Cause("unsupported-type", {"types": types}), call.place
            self._current = _Node(node, unsupported=unsupported)
            return
        lowering: Any = inspect.unwrap(_lowerings().get(node.target, virtual_graph))
        if getattr(lowering, "__name__", "") in _LOWERINGS:
            self.log.watch(sys.modules[lowering.__module__], lowering.__name__)

    @sees("torch._inductor.lowering", "unsupported_input_tensor")
    def tensor_checked(self, call: Call, value: Any, *_: Any, **__: Any) -> None:
        """See a value that no code is generated for."""
        if call.result:
            self._types |= dict.fromkeys(_types_of(value)[-1:])

    @sees(_GRAPH, "make_fallback")
    def made_implicit(self, _: Call, target: Any, *__: Any, **___: Any) -> None:
        """See that `GraphLowering.call_function` found no lowering for an operator."""
        self._implicit.add(target)

    @sees("torch.fx.experimental.proxy_tensor", "maybe_handle_decomp")
    def decomposed(self, call: Call, mode: Any, operator: Any, *_: Any) -> None:
        """See that a decomposition returned NotImplemented, so that its operator stays in the FX graph."""
        is_declined = call.result is NotImplemented
        if is_declined and (decomposition := decomposition_of(mode, operator)) is not None:
            self._declined[operator] = decomposition

    @sees(_GRAPH, "GraphLowering.has_feature")
    def feature_asked(self, call: Call, _: Any, device: Any, feature: Any) -> None:
        """See that a lowering asked for something that the backend does not have."""
        if not call.result:
            self._asked().missing = {"feature": feature.name, "device": _graph_device(device)}

    @sees(
        "torch._inductor.ir", "FallbackKernel.create", "ScatterFallback.__init__", "IndexPutFallback.__init__"
    )
    def made(self, call: Call, *_: Any, **__: Any) -> Iterator[None]:
        """Record a kernel that calls torch, with its cause."""
        graph = virtual_graph()
        before = len(graph.operations)
        yield
        made = [operation for operation in graph.operations[before:] if _calls_torch(operation)]
        node = graph.current_node
        if not made or node is None:
            return
        operation, frames = made[0], [*stack(sys._getframe(1))]
        kernel = getattr(operation, "op_overload", None) or node.target
        cause, place = self._cause(node, call.place, frames)
        cause = cause.behind({"operator": str(kernel), "fx": node.name})
        self.record("extern", cause, place, (operation.get_operation_name(),))

    def _cause(self, node: Any, place: TorchFrame, frames: Sequence[TorchFrame]) -> tuple[Cause, TorchFrame]:
        """Return why a kernel calls torch, and the function that decided."""
        asked = self._asked()
        if asked.unsupported is not None:
            return asked.unsupported
        called = _last(frames, "GraphLowering.call_function", place)
        if node.target in self._implicit and node.target in self._declined:
            declined = place_of(self._declined[node.target])
            return Cause("decomposition-declined", {"types": _computed(node)}), declined
        if node.target in self._implicit:
            return Cause("no-lowering"), called
        lowering: Any = sys.modules["torch._inductor.lowering"]
        decompositions: Any = sys.modules.get("torch._decomp.decompositions_for_rng")
        random = getattr(decompositions, "extra_random_decomps", ())
        if lowering.config.fallback_random and node.target in random:
            return Cause("fallback-random"), called
        inside = _lowering_frames(frames)
        for frame in inside:
            if (path := running(frame.function)) is not None:
                return _in_lowering(path.at(frame.line), node, asked.missing), inside[0]
        if getattr(_lowerings().get(node.target), "_is_fallback_handler", False):
            return Cause("registered-fallback"), called
        if inside and inside[0].function == "index":  # where an exception says that an index is a mask
            return Cause("boolean-index", {"dtypes": _dtypes(node.args[1])}), inside[0]
        return Cause("in-lowering"), inside[0] if inside else place


def _in_lowering(path: CallPath, node: Any, missing: Operands) -> Cause:
    """Return why a lowering calls a fallback, by where it stands, or where what it asked before returned."""
    asked = next(filter(None, (inner_path(path.inner, function) for function in _ANSWERS)), None)
    for one in filter(None, (path, asked)):
        for tests in one.reasons():
            for known in (cause_of_test("fallback", "", test) for test in tests):
                if known is not None:
                    operands = known[1] or _operands(known[0], one, node) or missing
                    return Cause(known[0], operands, tests_of(one))
    unlisted = tests_of(asked or path)
    return Cause("unlisted-test" if unlisted else "in-lowering", {}, unlisted)


def _operands(cause: CauseCode, path: CallPath, node: Any) -> Operands:
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


def _split(path: CallPath, node: Any) -> Operands:
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
