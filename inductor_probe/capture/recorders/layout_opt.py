"""Whether the convolutions of a graph are made channels-last: graph.py, `GraphLowering.decide_layout_opt`.

It is asked once for a graph, before lowering, and answers by the first of its conditions that holds. These
are read again here, in its order, of the FX graph and the settings that it sees; where they do not lead to
its answer, nothing is recorded. For example, one convolution in inference on a GPU, of 8 channels to 8: all
its flops are those of small convolutions, which torch weighs 0.783: less than 1, so channels-last.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError, place_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import LayoutCause, Operand, TorchFrame

_FORWARD, _BACKWARD = "aten.convolution.default", "aten.convolution_backward.default"
_NODES_PER_CONVOLUTION = 300
_GROUPS_OF_BACKWARD = 9
_SMALL = 64
_WEIGHTS = {"grouped": 1.358, "in_out": 0.725, "small": 0.783, "default": 0.823}
"""What torch multiplies the flops of each sort of convolution by, in inference: below 1 is faster."""

Why = tuple[LayoutCause, bool, dict[str, Operand]]


def hook_layout_opt(graph: Any, log: DecisionLog) -> None:
    """Wrap what decides for an entire graph."""

    def around(decide: Callable[..., bool]) -> Callable[..., bool]:
        place = place_of(decide)

        def decide_and_record(module: Any, **options: Any) -> bool:
            result = decide(module, **options)
            log.safely(_decided, log, place, result, module, graph, bool(options.get("is_inference")))
            return result

        return decide_and_record

    wrap(graph, "GraphLowering.decide_layout_opt", around)


def _decided(  # noqa: PLR0917 - what torch was given, and answered
    log: DecisionLog, place: TorchFrame, result: bool, module: Any, graph: Any, is_inference: bool
) -> None:
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    named = [node for node in calls if "convolution" in str(node.target)]
    if not named:
        return
    is_packed = getattr(graph, "is_mkldnn_conv", lambda _: False)
    counted = {_FORWARD, *([_BACKWARD] if _counts_backward(graph) else [])}
    convolutions = [node for node in named if str(node.target) in counted or is_packed(node)]
    values = [node.args[0].meta["val"] for node in named]
    devices = {str(value.device.type) for value in values if hasattr(value, "device")}
    operands: dict[str, Operand] = {
        "convolutions": len(convolutions) or len(named),
        "device": ", ".join(sorted(devices)),
    }
    cause, answer, more = _why(convolutions, len(module.graph.nodes), devices, is_inference)
    if answer != result:
        raise UnknownPathError(f"decide_layout_opt: {cause}")
    log.record(
        "layout", (), "channels-last" if result else "unchanged", cause, place,
        operands={**operands, **more}, subject_type="graph", key="graph",
    )  # fmt: skip


def _why(convolutions: Sequence[Any], nodes: int, devices: set[str], is_inference: bool) -> Why:
    """Return the condition of torch that holds first, and what it answers."""
    config, mkldnn = sys.modules["torch._inductor.config"], sys.modules["torch"].backends.mkldnn
    if not config.layout_optimization:
        return "layout-optimisation-off", False, {}
    if config.force_layout_optimization:
        return "layout-optimisation-forced", True, {}
    if not convolutions:
        return "only-backward-convolutions", False, {}
    if mkldnn.enabled and mkldnn.is_available() and devices <= {"cpu", "xpu"}:
        return "mkldnn-convolutions", True, {}
    limit = _NODES_PER_CONVOLUTION * len(convolutions)
    if nodes >= limit:
        return "few-convolutions", False, {"nodes": nodes, "nodes_limit": limit}
    if any(_is_symbolic(value) for node in convolutions for value in _image_and_weight(node)):
        return "symbolic-convolution", False, {}
    sorts = [(node, _sorts(node)) for node in convolutions]
    if is_inference:
        return _by_flops(sorts)
    for sort, cause in _NOT_TRAINED.items():
        if of := [node.name for node, them in sorts if sort in them]:
            return cause, False, {"nodes_of_fx": tuple(of)}
    if all("small" in them for _, them in sorts):
        return "small-convolutions", False, {"channels_limit": _SMALL}
    return "convolution-channels", True, {}


_NOT_TRAINED: dict[str, LayoutCause] = {"grouped": "grouped-convolution", "in_out": "narrowing-convolution"}
"""Sorts of which one convolution is enough to leave the layouts of a training graph."""


def _by_flops(sorts: Sequence[tuple[Any, Sequence[str]]]) -> Why:
    """Weigh the flops of all convolutions by their sort, as torch does in inference."""
    flops: Counter[str] = Counter()
    for node, them in sorts:
        flops[next((one for one in ("grouped", "small", "in_out") if one in them), "default")] += _flops(node)
    weighted = sum(count * _WEIGHTS[sort] for sort, count in flops.items())
    shares = tuple(f"{sort} {count}" for sort, count in sorted(flops.items()))
    operands: dict[str, Operand] = {
        "flops": sum(flops.values()),
        "weighted_flops": round(weighted),
        "flops_of_sorts": shares,
    }
    return "convolution-flops", weighted <= sum(flops.values()), operands


def _sorts(node: Any) -> tuple[str, ...]:
    """Return what a convolution is, by the sizes of its weight: (outputs, inputs of a group, kernel...)."""
    outputs, inputs, first, *_ = (int(size) for size in _image_and_weight(node)[1].shape)
    groups = node.args[_GROUPS_OF_BACKWARD if str(node.target) == _BACKWARD else -1]
    return (
        *(["grouped"] if groups > 1 and inputs > 1 else ()),
        *(["in_out"] if outputs * 2 <= inputs and first > 1 else ()),
        *(["small"] if outputs <= _SMALL and inputs <= _SMALL else ()),
    )


def _counts_backward(graph: Any) -> bool:
    """Whether torch asks backward convolutions as well, as it does since 2.15."""
    decide = inspect.unwrap(graph.GraphLowering.decide_layout_opt).__code__
    inner = (constant for constant in decide.co_consts if isinstance(constant, CodeType))
    return any("convolution_backward" in code.co_names for code in (decide, *inner))


def _image_and_weight(node: Any) -> tuple[Any, Any]:
    """Return the values of a convolution's operands; a backward one has the gradient before them."""
    first = 1 if str(node.target) == _BACKWARD else 0
    return node.args[first].meta["val"], node.args[first + 1].meta["val"]


def _flops(node: Any) -> int:
    """Count multiplications and additions, as `torch.utils.flop_counter` does."""
    if str(node.target) == _BACKWARD:
        raise UnknownPathError("flops of a backward convolution in inference")
    image, weight, result = (node.args[0].meta["val"], node.args[1].meta["val"], node.meta["val"])
    is_transposed = bool(node.args[6])
    places = (image if is_transposed else result).shape[2:]
    return 2 * int(image.shape[0]) * math.prod(map(int, places)) * math.prod(map(int, weight.shape))


def _is_symbolic(value: Any) -> bool:
    return not all(isinstance(size, int) for size in (*value.shape, *value.stride()))
