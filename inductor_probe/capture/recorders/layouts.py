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

import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from inductor_probe.capture.recorders.askers import Asker, asker, prefers_channels_last
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import DecisionLog, printed, virtual_graph
from inductor_probe.capture.recorders.extern_kernels import kernel_name
from inductor_probe.model.decision import CauseCode, Outcome, TorchFrame

_IR = "torch._inductor.ir"
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


class Layouts(Recorder):
    """Records who fixed a layout; what is kept is of the last order that torch made of reads."""

    KIND = "layout"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._read_writes: Any = None
        self._stride_lengths: Sequence[Sequence[Any]] = ()
        self._suggested: tuple[str, ...] = ()
        self._votes: tuple[str, ...] = ()

    @sees(_IR, "ComputedBuffer.get_read_writes")
    def reads_known(self, call: Call, _: Any) -> None:
        """Remember what a buffer reads."""
        self._read_writes = call.result

    @sees("torch._inductor.scheduler", "pick_loop_order")
    def order_picked(self, call: Call, stride_lengths: Any, sizes: Any, *_: Any, **__: Any) -> None:
        """Remember of what strides an order was made."""
        self._stride_lengths = stride_lengths
        self._votes = tuple(_votes(call.result, stride_lengths, sizes))

    @sees(_IR, "ComputedBuffer.get_fill_order")
    def order_suggested(self, call: Call, _: Any) -> None:
        """Remember what `get_fill_order` saw: reads with an index, and their strides by dimension."""
        reads = getattr(self._read_writes, "reads", ())
        names = [read.name for read in reads if isinstance(read, sys.modules[_DEPENDENCIES].MemoryDep)]
        lengths = self._stride_lengths if call.result is not None else ()
        self._suggested = tuple(
            f"{name} ({', '.join(map(str, strides))})" for name, strides in zip(names, lengths, strict=False)
        )
        self._read_writes, self._stride_lengths = None, ()

    @sees(_IR, "Buffer.freeze_layout", "Buffer.freeze_layout_with_stride_order",
        "Buffer.freeze_layout_with_fill_order", "Buffer.freeze_layout_with_same_order",
        "Buffer.freeze_layout_with_exact_strides")  # fmt: skip
    def frozen(self, call: Call, buffer: Any, *asked: Any, **_: Any) -> Iterator[None]:
        """Record who fixed the layout of a buffer, where it was flexible."""
        before, ir = buffer.layout, sys.modules[_IR]
        yield
        if buffer.layout is before or not isinstance(before, ir.FlexibleLayout):
            return
        asking = asker(sys._getframe(1), virtual_graph())
        if asking is None or not buffer.name or not buffer.layout.size:
            return  # a single element has no order
        code = self._cause(call.place, asking, buffer)
        operands: Operands = {**_strides(buffer.layout), **asking.operands()}
        if code == "reads":
            operands["reads"] = self._suggested[:_MOST_READS]
            operands["votes"] = self._votes
        if asked:  # `stride_order`, `fill_order`, `exact_strides`: what was asked for, as torch names it
            operands[call.place.function.rpartition("_with_")[2]] = tuple(map(str, asked[0]))
        if code == "convolution":
            operands["layout_opt"] = True
        if code == "extern-kernel":
            operands["kernel"] = kernel_name(buffer)
        self._suggested = ()
        outcome, config = _format(buffer.layout), ir.config
        if outcome == "padded" and config.comprehensive_padding and "exact_strides" not in operands:
            operands["padding_limit"] = int(config.padding_stride_threshold)
            operands["padding_bytes"] = int(config.padding_alignment_bytes)
        self._buffer(buffer.name, outcome, Cause(code, operands), asking.place)

    def _cause(self, place: TorchFrame, asking: Asker, buffer: Any) -> CauseCode:
        ir, graph = sys.modules[_IR], virtual_graph()
        if asking.trail[0] == "decide_layout" and not isinstance(buffer, ir.ComputedBuffer):
            return "extern-kernel"
        if asking.trail[0] == "decide_layout":
            is_computed = place.function.endswith("freeze_layout_with_fill_order") or bool(self._suggested)
            if is_computed and not ir.config.pick_loop_orders:
                return "loop-orders-off"
            return "reads" if is_computed else "no-reads"
        if "convert_to_reinterpret_view" in asking.trail:
            return "view"
        if asking.code == "convolution" and not (graph.layout_opt and len(buffer.layout.size) == _IMAGE):
            return "extern-operand"  # only 2-D convolutions are made channels-last
        if asking.code == "output" and prefers_channels_last(graph.current_node, graph):
            return "channels-last-preferred"
        return _ASKED.get(asking.code, "lowering")

    @sees("torch._inductor.graph", "GraphLowering.finalize")
    def lowered(self, call: Call, lowering: Any) -> None:
        """Record the layouts that nobody froze: of extern kernels, and of what is written into another."""
        for buffer in lowering.buffers:
            if buffer.name is None:  # of a score_mod: its text becomes part of a template
                continue
            layout, name = buffer.layout, buffer.get_name()
            match type(layout).__name__:
                case "NonOwningLayout":
                    cause = Cause("concatenation", {**_strides(layout), "into": layout.view.get_name()})
                    self._buffer(name, "inside-another", cause, call.place)
                case "MutationLayoutSHOULDREMOVE":
                    cause = Cause("mutation", {**_strides(layout), "into": layout.target.get_name()})
                    self._buffer(name, "in-place", cause, call.place)
                case "FixedLayout" if self.log.latest(self.KIND, name) is None and layout.size:
                    if not isinstance(buffer, sys.modules[_IR].ComputedBuffer):
                        kernel = kernel_name(buffer)
                        code = "concatenation" if kernel == "ConcatKernel" else "extern-kernel"
                        cause = Cause(code, {**_strides(layout), "kernel": kernel})
                        self._buffer(name, _format(layout), cause, call.place)

    def _buffer(self, name: str, outcome: Outcome, cause: Cause, place: TorchFrame) -> None:
        self.record(outcome, cause, place, (name,), subject_type="buffer", key=name)


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


def _strides(layout: Any) -> Operands:
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
