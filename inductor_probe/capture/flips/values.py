"""Values that are realised or inlined, and how a buffer lies in memory; torch/_inductor/graph.py and ir.py.

- `realize`: when `GraphLowering.run_node` has lowered the FX node, its value is realised, as torch does with
  one that it thinks too expensive to compute again. A view has no value of its own.
- `inline`: `StorageBox.should_realize_on_reuse`, `has_exceeded_max_reads` and `realize_hint` decide about
  cost alone: of the subject they say no. Whoever needs a buffer calls `StorageBox.realize`, which stays.
- `layout`: a buffer has its strides from the moment on when it is realised, before anybody asks for others.
  Who then requires others gets a copy from torch, as of any buffer that somebody else asked for first. Where
  it is realised in order to have certain strides (`ExternKernel.copy_input`), these stand.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from inductor_probe.capture.flips.turns import Flips, Turn, next_names
from inductor_probe.capture.recorders.base import Call, sees
from inductor_probe.capture.recorders.decision_log import named, place_of, virtual_graph
from inductor_probe.capture.recorders.extern_kernels import kernel_name
from inductor_probe.model.decision import Decision, Outcome, TorchFrame
from inductor_probe.model.flip import CHANNELS_LAST_RANKS

_IR, _GRAPH = "torch._inductor.ir", "torch._inductor.graph"
_REALISED: frozenset[Outcome] = frozenset(("realised", "inlined"))
_LAYOUTS: frozenset[Outcome] = frozenset(("contiguous", "channels-last", "permuted", "padded"))
_WITH_STRIDES = ("copy_input", "realize_into")
"""Functions that realise a value so that it lies as somebody needs it."""


class Realize(Flips):
    """Realises values that torch would inline."""

    @sees(_GRAPH, "GraphLowering.run_node")
    def lowered(self, call: Call, lowering: Any, node: Any) -> None:
        """Realise the value of an FX node."""
        for turn in self.turns.of("realize"):
            if turn.means(node):
                self._realize(turn, call.place, lowering, call.result)

    def _realize(self, turn: Turn, place: TorchFrame, lowering: Any, result: Any) -> None:
        ir = sys.modules[_IR]
        box = getattr(result, "data", None)
        if not isinstance(result, ir.TensorBox):
            turn.refuse("not-a-value")
        elif not isinstance(box, ir.StorageBox):
            turn.refuse("a-view")
        elif isinstance(box.data, ir.Buffer):
            turn.is_so = True
        elif isinstance(box.data, (ir.Pointwise, ir.Reduction, ir.Scan, ir.Sort)):
            name, _ = next_names(lowering)
            turn.turned(place, (name,), "inlined", "realised")
            self.log.turn("realization", (name,), _REALISED, turn.flip)
            result.realize()
        else:
            turn.refuse("not-a-value")


class Inline(Flips):
    """Inlines values that torch would realise for what they cost."""

    @sees(_IR, "StorageBox.should_realize_on_reuse", "StorageBox.has_exceeded_max_reads")
    def asked(self, call: Call, box: Any, *_: Any, **__: Any) -> None:
        """Answer a question about cost with no for the subject."""
        call.result = bool(call.result) and not self._turn(box, call.place)

    @sees(_IR, "StorageBox.realize_hint")
    def hinted(self, call: Call, box: Any) -> Iterator[None]:
        """Do nothing to the subject."""
        data = box.data
        wants = hasattr(data, "inner_fn_opcount") and data.inner_fn_opcount().nontrivial_read_count > 1
        if wants and self._turn(box, call.place):
            call.answer(None)
        yield

    def _turn(self, box: Any, place: TorchFrame) -> bool:
        graph = virtual_graph()
        if not isinstance(box.data, sys.modules[_IR].Pointwise):
            return False
        origin = box.data.get_origin_node() or getattr(graph, "current_node", None)
        for turn in self.turns.of("inline"):
            if origin is not None and turn.means(origin, *next_names(graph)):
                turn.value = origin.name
                turn.turned(place, (origin.name,), "realised", "inlined")
                self.log.turn("realization", (origin.name,), _REALISED, turn.flip)
                return True
        return False

    @sees(_GRAPH, "GraphLowering.finalize")
    def ended(self, _: Call, lowering: Any) -> None:
        """See whether the subject is a buffer all the same."""
        for turn in self.turns.of("inline"):
            self.log.safely(_look, turn, lowering)


def _look(turn: Turn, lowering: Any) -> None:
    subject = turn.flip.subjects[0]
    value = turn.value or (turn.flip.origins[0][0] if turn.flip.origins and turn.flip.origins[0] else None)
    for buffer in lowering.buffers:
        origin = getattr(buffer.get_origin_node(), "name", None)
        if (origin == value) if value is not None else subject in (buffer.get_name(), origin):
            name = buffer.get_name()
            turn.times = 0
            turn.refuse("needed-as-buffer", buffer=name)
            turn.cause = functools.partial(_cause, name)
            if isinstance(buffer, sys.modules[_IR].ExternKernel):
                turn.refuse("extern-kernel", subject=name, kernel=kernel_name(buffer))
            return
    if value is None and any(node.name == subject for node in lowering.graph.nodes):
        turn.is_so = True  # an FX node whose value is in no buffer


def _cause(buffer: str, decisions: Sequence[Decision]) -> Decision | None:
    """Return why a value was realised all the same, as it was recorded."""
    about = (one for one in reversed(decisions) if one.kind == "realization")
    return next((one for one in about if (buffer,) in one.subjects), None)


class Layout(Flips):
    """Gives buffers their strides before anybody asks for others."""

    @sees(_IR, "StorageBox.realize")
    def realised(self, _: Call, box: Any) -> Iterator[None]:
        """Give strides to what became a buffer."""
        before, ir = box.data, sys.modules[_IR]
        yield
        buffer = box.data
        for turn in self.turns.of("layout") if buffer is not before else ():
            origin = buffer.get_origin_node() or getattr(ir.V.graph, "current_node", None)
            if not turn.times and turn.means(origin, buffer.name, buffer.operation_name or ""):
                self._lay(turn, ir, buffer)

    @sees(_GRAPH, "GraphLowering.finalize")
    def ended(self, _: Call, lowering: Any) -> None:
        """See whether the layout of a subject was fixed from the beginning."""
        for turn in self.turns.of("layout"):
            names = {buffer.get_name() for buffer in lowering.buffers}
            if not turn.times and turn.refusal is None and turn.flip.subjects[0] in names:
                turn.refuse("layout-fixed", buffer=turn.flip.subjects[0])

    def _lay(self, turn: Turn, ir: Any, buffer: Any) -> None:
        dimensions = len(buffer.get_size())
        wants: Outcome = "channels-last" if turn.flip.value == "channels_last" else "contiguous"
        if wants == "channels-last" and dimensions not in CHANNELS_LAST_RANKS:
            turn.refuse("layout-of-another-rank", dimensions=dimensions)
        elif not isinstance(buffer.layout, ir.FlexibleLayout):
            turn.refuse("layout-fixed", buffer=buffer.name)
        elif (asking := _realised_for_strides(sys._getframe(1))) is not None:
            turn.refuse("layout-required", buffer=buffer.name, function=asking)
        else:
            self.log.turn("layout", (buffer.name,), _LAYOUTS, turn.flip)
            order = list(range(dimensions))[::-1]  # of each dimension its rank from the smallest stride
            if wants == "channels-last":
                order = [dimensions - 1, 0, *range(dimensions - 2, 0, -1)]
            buffer.freeze_layout_with_stride_order(order)
            turn.turned(place_of(ir.Buffer.freeze_layout_with_stride_order), (buffer.name,), None, wants)


def _realised_for_strides(frame: FrameType | None) -> str | None:
    """Return the function that needs the strides of what is being realised in a frame, if one does."""
    while frame is not None:
        file, name = named(frame.f_code)
        last = name.rpartition(".")[2]
        if file is not None and last in _WITH_STRIDES:
            return name
        if file is not None and last in ("run_node", "call_function", "finalize"):
            return None
        frame = frame.f_back
    return None
