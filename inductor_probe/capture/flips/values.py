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
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from inductor_probe.capture.flips.turns import Turn, Turns, next_names
from inductor_probe.capture.recorders.decision_log import named, place_of
from inductor_probe.capture.recorders.extern_kernels import kernel_name
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import Decision, Outcome
from inductor_probe.model.flip import CHANNELS_LAST_RANKS

_REALISED: frozenset[Outcome] = frozenset(("realised", "inlined"))
_LAYOUTS: frozenset[Outcome] = frozenset(("contiguous", "channels-last", "permuted", "padded"))
_WITH_STRIDES = ("copy_input", "realize_into")
"""Functions that realise a value so that it lies as somebody needs it."""


def _hook_realize(graph: Any, turns: Turns) -> None:
    def around(run_node: Callable[..., Any]) -> Callable[..., Any]:
        place = place_of(run_node)

        def run_and_realize(lowering: Any, node: Any) -> Any:
            result = run_node(lowering, node)
            for turn in turns.of("realize"):
                if turn.means(node):
                    _realize(turns, turn, place, lowering, result)
            return result

        return run_and_realize

    wrap(graph, "GraphLowering.run_node", around)


def _realize(turns: Turns, turn: Turn, place: Any, lowering: Any, result: Any) -> None:
    ir = sys.modules["torch._inductor.ir"]
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
        turns.log.turn("realization", (name,), _REALISED, turn.flip)
        result.realize()
    else:
        turn.refuse("not-a-value")


class _Inline:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def around_question(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        """Return a question about cost, with the answer no for the subject."""
        place = place_of(ask)

        def ask_or_turn(box: Any, *args: Any, **kwargs: Any) -> Any:
            answer = ask(box, *args, **kwargs)
            return bool(answer) and not self._turn(box, place)

        return ask_or_turn

    def around_hint(self, hint: Callable[..., Any]) -> Callable[..., Any]:
        """Return `realize_hint` so that it does nothing to the subject."""
        place = place_of(hint)

        def hint_or_not(box: Any) -> Any:
            data = box.data
            wants = hasattr(data, "inner_fn_opcount") and data.inner_fn_opcount().nontrivial_read_count > 1
            return None if wants and self._turn(box, place) else hint(box)

        return hint_or_not

    def _turn(self, box: Any, place: Any) -> bool:
        ir = sys.modules["torch._inductor.ir"]
        graph = ir.V.graph
        if not isinstance(box.data, ir.Pointwise):
            return False
        origin = box.data.get_origin_node() or getattr(graph, "current_node", None)
        for turn in self._turns.of("inline"):
            if origin is not None and turn.means(origin, *next_names(graph)):
                turn.value = origin.name
                turn.turned(place, (origin.name,), "realised", "inlined")
                self._turns.log.turn("realization", (origin.name,), _REALISED, turn.flip)
                return True
        return False

    def around_end(self, finalize: Callable[..., Any]) -> Callable[..., Any]:
        """Return the end of lowering, at which it is known whether the subject is a buffer all the same."""

        def finalize_and_look(lowering: Any) -> Any:
            result = finalize(lowering)
            for turn in self._turns.of("inline"):
                self._turns.log.safely(_look, turn, lowering)
            return result

        return finalize_and_look


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
            if isinstance(buffer, sys.modules["torch._inductor.ir"].ExternKernel):
                turn.refuse("extern-kernel", subject=name, kernel=kernel_name(buffer))
            return
    if value is None and any(node.name == subject for node in lowering.graph.nodes):
        turn.is_so = True  # an FX node whose value is in no buffer


def _cause(buffer: str, decisions: Sequence[Decision]) -> Decision | None:
    """Return why a value was realised all the same, as it was recorded."""
    about = (one for one in reversed(decisions) if one.kind == "realization")
    return next((one for one in about if (buffer,) in one.subjects), None)


def _hook_inline_ir(ir: Any, turns: Turns) -> None:
    inline = _Inline(turns)
    wrap(ir, "StorageBox.should_realize_on_reuse", inline.around_question)
    wrap(ir, "StorageBox.has_exceeded_max_reads", inline.around_question)
    wrap(ir, "StorageBox.realize_hint", inline.around_hint)


def _hook_layout_ir(ir: Any, turns: Turns) -> None:
    freeze = place_of(ir.Buffer.freeze_layout_with_stride_order)

    def around(realize: Callable[..., Any]) -> Callable[..., Any]:
        def realize_and_lay(box: Any) -> Any:
            before = box.data
            result = realize(box)
            buffer = box.data
            if buffer is before:
                return result
            for turn in turns.of("layout"):
                origin = buffer.get_origin_node() or getattr(ir.V.graph, "current_node", None)
                if not turn.times and turn.means(origin, buffer.name, buffer.operation_name or ""):
                    _lay(turns, turn, freeze, ir, buffer)
            return result

        return realize_and_lay

    wrap(ir, "StorageBox.realize", around)


def _lay(turns: Turns, turn: Turn, place: Any, ir: Any, buffer: Any) -> None:
    dimensions = len(buffer.get_size())
    wants: Outcome = "channels-last" if turn.flip.value == "channels_last" else "contiguous"
    if wants == "channels-last" and dimensions not in CHANNELS_LAST_RANKS:
        turn.refuse("layout-of-another-rank", dimensions=dimensions)
    elif not isinstance(buffer.layout, ir.FlexibleLayout):
        turn.refuse("layout-fixed", buffer=buffer.name)
    elif (asking := _realised_for_strides(sys._getframe(2))) is not None:
        turn.refuse("layout-required", buffer=buffer.name, function=asking)
    else:
        turns.log.turn("layout", (buffer.name,), _LAYOUTS, turn.flip)
        order = list(range(dimensions))[::-1]  # of each dimension its rank from the smallest stride
        if wants == "channels-last":
            order = [dimensions - 1, 0, *range(dimensions - 2, 0, -1)]
        buffer.freeze_layout_with_stride_order(order)
        turn.turned(place, (buffer.name,), None, wants)


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


def _hook_inline_graph(graph: Any, turns: Turns) -> None:
    wrap(graph, "GraphLowering.finalize", _Inline(turns).around_end)


def _hook_layout_graph(graph: Any, turns: Turns) -> None:
    def around(finalize: Callable[..., Any]) -> Callable[..., Any]:
        def finalize_and_look(lowering: Any) -> Any:
            result = finalize(lowering)
            for turn in turns.of("layout"):
                names = {buffer.get_name() for buffer in lowering.buffers}
                if not turn.times and turn.refusal is None and turn.flip.subjects[0] in names:
                    turn.refuse("layout-fixed", buffer=turn.flip.subjects[0])
            return result

        return finalize_and_look

    wrap(graph, "GraphLowering.finalize", around)


REALIZE = {"torch._inductor.graph": _hook_realize}
INLINE = {"torch._inductor.ir": _hook_inline_ir, "torch._inductor.graph": _hook_inline_graph}
LAYOUT = {"torch._inductor.ir": _hook_layout_ir, "torch._inductor.graph": _hook_layout_graph}
