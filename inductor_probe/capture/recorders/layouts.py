"""How each buffer lies in memory, and who asked for that: torch logs nothing of it.

torch/_inductor/ir.py: a buffer has a `FlexibleLayout` until one of `Buffer.freeze_layout*` fixes it.
Somebody requires an order of strides or exact ones (a convolution, the eager strides of an output, ...:
`askers.py` says who), or any fixed layout: then `ComputedBuffer.decide_layout` follows the strides of what
the buffer reads (`get_fill_order`, `pick_loop_order`). For example a buffer `(1, 3, 4, 4)` that reads
arg0_1 with strides `(48, 1, 12, 3)` is filled in the order 1, 3, 2, 0: channels-last, like arg0_1. The
reads vote about each pair of dimensions; where they are even, the later dimension has the smaller stride. A
gather has stride 0 along the dimension that it gathers, and with that votes for both of a pair.

Who asks first decides. `Reduction.num_splits` only asks for strides, and fixes layouts by asking.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from inductor_probe.capture.recorders.askers import Asker, asker, prefers_channels_last
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    place_of,
    printed,
)
from inductor_probe.capture.recorders.layout_opt import hook_layout_opt
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "layout"
_MOST_READS = 6
_IMAGE = 4
"""Dimensions of what a 2-D convolution takes."""
_ASKED: dict[str, CauseCode] = {
    "output": "output",
    "as-strided-input": "as-strided-input",
    "convolution": "convolution",
    "channels-last-preferred": "channels-last-preferred",
    "operator-constraint": "operator-constraint",
    "extern-operand": "extern-operand",
    "view": "view",
    "template": "extern-operand",
}
"""Askers that require an order of strides, as causes."""


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._ir: Any = None
        self._read_writes: Any = None
        self._stride_lengths: Sequence[Sequence[Any]] = ()
        self._suggested: tuple[str, ...] = ()
        self._votes: tuple[str, ...] = ()

    def hook_ir(self, ir: Any, log: DecisionLog) -> None:
        """Wrap what fixes a layout, and what suggests an order."""
        self._ir = ir
        wrap(ir, "ComputedBuffer.get_read_writes", log.observed(self._reads_known))
        wrap(ir, "ComputedBuffer.get_fill_order", log.observed(self._order_suggested))
        wrap(ir, "Buffer.freeze_layout", self._around_freeze)
        for request in ("stride_order", "fill_order", "same_order", "exact_strides"):
            wrap(ir, f"Buffer.freeze_layout_with_{request}", self._around_freeze)

    def hook_scheduler(self, scheduler: Any, log: DecisionLog) -> None:
        """Wrap what makes an order of strides."""
        wrap(scheduler, "pick_loop_order", log.observed(self._order_picked))

    def hook_graph(self, graph: Any, log: DecisionLog) -> None:
        """Wrap the end of lowering."""
        wrap(graph, "GraphLowering.finalize", log.observed(self._lowered))

    def _around_freeze(self, freeze: Callable[..., Any]) -> Callable[..., Any]:
        place = place_of(freeze)

        def freeze_and_record(buffer: Any, *args: Any, **kwargs: Any) -> Any:
            before = buffer.layout
            result = freeze(buffer, *args, **kwargs)
            if buffer.layout is not before and isinstance(before, self._ir.FlexibleLayout):
                self._log.safely(self._frozen, place, buffer, args)
            return result

        return freeze_and_record

    def _reads_known(self, _: TorchFrame, result: Any, buffer: Any) -> None:
        self._read_writes = result

    def _order_picked(
        self, _: TorchFrame, result: Any, stride_lengths: Any, sizes: Any, *args: Any, **kwargs: Any
    ) -> None:
        self._stride_lengths = stride_lengths
        self._votes = tuple(_votes(result, stride_lengths, sizes))

    def _order_suggested(self, _: TorchFrame, result: Any, buffer: Any) -> None:
        """Remember what `get_fill_order` saw: reads with an index, and their strides by dimension."""
        reads = getattr(self._read_writes, "reads", ())
        names = [read.name for read in reads if isinstance(read, sys.modules[_DEPENDENCIES].MemoryDep)]
        lengths = self._stride_lengths if result is not None else ()
        self._suggested = tuple(
            f"{name} ({', '.join(map(str, strides))})" for name, strides in zip(names, lengths, strict=False)
        )
        self._read_writes, self._stride_lengths = None, ()

    def _frozen(self, place: TorchFrame, buffer: Any, arguments: tuple[Any, ...]) -> None:
        asking = asker(sys._getframe(1), self._ir.V.graph)
        if asking is None or not buffer.name or not buffer.layout.size:
            return  # a single element has no order
        cause = self._cause(place, asking, buffer)
        operands: dict[str, Operand] = {**_strides(buffer.layout), **asking.operands()}
        if cause == "reads":
            operands["reads"] = self._suggested[:_MOST_READS]
            operands["votes"] = self._votes
        if arguments:  # `stride_order`, `fill_order`, `exact_strides`: what was asked for, as torch names it
            request = place.function.rpartition("_with_")[2]
            operands[request] = tuple(map(str, arguments[0]))
        if cause == "convolution":
            operands["layout_opt"] = True
        if cause == "extern-kernel":
            operands["kernel"] = kernel_of(buffer)
        self._suggested = ()
        outcome = _format(buffer.layout)
        config = self._ir.config
        if outcome == "padded" and config.comprehensive_padding and "exact_strides" not in operands:
            operands["padding_limit"] = int(config.padding_stride_threshold)
            operands["padding_bytes"] = int(config.padding_alignment_bytes)
        self._record(buffer.name, outcome, cause, asking.place, operands)

    def _cause(self, place: TorchFrame, asking: Asker, buffer: Any) -> CauseCode:
        request = place.function.rpartition(".")[2]
        if asking.trail[0] == "decide_layout" and not isinstance(buffer, self._ir.ComputedBuffer):
            return "extern-kernel"
        if asking.trail[0] == "decide_layout":
            is_computed = request == "freeze_layout_with_fill_order" or bool(self._suggested)
            if is_computed and not self._ir.config.pick_loop_orders:
                return "loop-orders-off"
            return "reads" if is_computed else "no-reads"
        if "convert_to_reinterpret_view" in asking.trail:
            return "view"
        graph = self._ir.V.graph
        if asking.code == "convolution" and not (graph.layout_opt and len(buffer.layout.size) == _IMAGE):
            return "extern-operand"  # only 2-D convolutions are made channels-last
        if asking.code == "output" and prefers_channels_last(graph.current_node, graph):
            return "channels-last-preferred"
        return _ASKED.get(asking.code, "lowering")

    def _lowered(self, place: TorchFrame, result: Any, lowering: Any) -> None:
        """Record the layouts that nobody froze: of extern kernels, and of what is written into another."""
        for buffer in lowering.buffers:
            if buffer.name is None:  # of a score_mod: its text becomes part of a template
                continue
            layout = buffer.layout
            layout_type = type(layout).__name__
            name = buffer.get_name()
            if layout_type == "NonOwningLayout":
                operands = {**_strides(layout), "into": layout.view.get_name()}
                self._record(name, "inside-another", "concatenation", place, operands)
            elif layout_type == "MutationLayoutSHOULDREMOVE":
                operands = {**_strides(layout), "into": layout.target.get_name()}
                self._record(name, "in-place", "mutation", place, operands)
            elif layout_type == "FixedLayout" and self._log.latest(KIND, name) is None and layout.size:
                if isinstance(buffer, self._ir.ComputedBuffer):
                    continue
                kernel = kernel_of(buffer)
                cause: CauseCode = "concatenation" if kernel == "ConcatKernel" else "extern-kernel"
                operands = {**_strides(layout), "kernel": kernel}
                self._record(name, _format(layout), cause, place, operands)

    def _record(
        self, name: str, outcome: Outcome, cause: CauseCode, place: TorchFrame, operands: dict[str, Operand]
    ) -> None:
        self._log.record(
            KIND, ((name,),), outcome, cause, place, operands=operands, subject_type="buffer", key=name
        )


_DEPENDENCIES = "torch._inductor.dependencies"


def _votes(order: Sequence[int], strides: Sequence[Sequence[Any]], sizes: Sequence[Any]) -> Iterator[str]:
    """Yield how the reads vote about dimensions that are neighbours in an order, as `pick_loop_order` does.

    `3 inside 1: 5 to 4`: five reads have the smaller stride along dimension 3, and four along dimension 1.
    A dimension of stride 0 counts for the other one as well.
    """
    for inner, outer in itertools.pairwise(order):
        if sizes[inner] == 1 or sizes[outer] == 1:
            continue
        pairs = [(abs(read[inner]), abs(read[outer])) for read in strides]
        for_inner = sum(bool(b == 0 or a < b) for a, b in pairs)
        for_outer = sum(bool(a == 0 or b < a) for a, b in pairs)
        yield f"{inner} inside {outer}: {for_inner} to {for_outer}"


def kernel_of(buffer: Any) -> str:
    """Return what a buffer that is no loop nest calls."""
    if type(buffer).__name__ == "MultiOutput":
        buffer = buffer.inputs[0]
    name = getattr(buffer, "python_kernel_name", None)
    return str(name or type(buffer).__name__)


def _strides(layout: Any) -> dict[str, Operand]:
    return {"size": tuple(map(printed, layout.size)), "stride": tuple(map(printed, layout.stride))}


def _format(layout: Any) -> Outcome:
    """Return what the strides are, dimensions of one element aside. Symbolic sizes are compared as they are.

    `(1, 3, 4, 4)` with strides `(48, 16, 4, 1)` is contiguous, with `(48, 1, 12, 3)` channels-last, with
    `(48, 16, 1, 4)` permuted, and with `(64, 20, 5, 1)` padded.
    """
    size, stride = list(layout.size), list(layout.stride)
    dimensions = [index for index in range(len(size)) if size[index] != 1]
    if _is_dense(size, stride, dimensions):
        return "contiguous"
    channels_last = [index for index in (0, *range(2, len(size)), 1) if index in dimensions]
    if len(size) in (4, 5) and _is_dense(size, stride, channels_last):
        return "channels-last"
    numbers = all(getattr(value, "is_number", True) for value in stride)
    by_stride = sorted(dimensions, key=lambda index: -int(stride[index])) if numbers else []
    return "permuted" if not numbers or _is_dense(size, stride, by_stride) else "padded"


def _is_dense(size: list[Any], stride: list[Any], dimensions: list[int]) -> bool:
    """Whether the dimensions, slowest first, follow each other without gaps."""
    step: Any = 1
    for index in reversed(dimensions):
        if stride[index] != step:
            return False
        step = step * size[index]
    return True


_recorder = functools.cache(_Recorder)
"""One a log: the modules of torch that it hooks share it."""


def _hook_graph(graph: Any, log: DecisionLog) -> None:
    _recorder(log).hook_graph(graph, log)
    hook_layout_opt(graph, log)


HOOKS = {
    "torch._inductor.ir": lambda ir, log: _recorder(log).hook_ir(ir, log),
    "torch._inductor.graph": _hook_graph,
    "torch._inductor.scheduler": lambda scheduler, log: _recorder(log).hook_scheduler(scheduler, log),
}
