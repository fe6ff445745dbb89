"""Copies that only let the same values lie differently, or elsewhere: torch logs none of them.

torch/_inductor/ir.py: whoever needs an operand in an order of strides calls `ExternKernel.require_strides`.
Where the operand is a buffer with a `FlexibleLayout`, it takes that order; where it has that order, nothing
is done; else `copy_input` makes a second buffer. For example, a convolution under layout optimisation wants
`arg0_1` channels-last, the caller gave it contiguous, and `buf0` is the copy. `realize_input` copies a view
that strides cannot express, `ConcatKernel.realize_into` what cannot be computed in its place,
`MutationLayoutSHOULDREMOVE.realize_into` what goes into an input, and a `clone` of the FX graph is one where
it becomes a buffer of its own.

`copy_input` also runs for a value that is in memory nowhere yet: it is computed in the order that is wanted,
and nothing is copied. So only what was a buffer before counts here. A copy that is fused with what writes
its source, or with all that reads it, moves nothing either: this is known when the code is generated.

That strides are not those that are asked for is torch's test, seen in `require_strides`, which is watched.
What fixed them before is not tested there: torch looks at the type of the layout, the cause at its history.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from inductor_probe.capture.branches import matches, running
from inductor_probe.capture.recorders.askers import asker, prefers_channels_last
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, Tests, sees, watches
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    hint_of,
    place_of,
    test_at,
    virtual_graph,
)
from inductor_probe.capture.recorders.extern_kernels import kernel_name
from inductor_probe.model.decision import CauseCode, TorchFrame

_IR, _GRAPHS = "torch._inductor.ir", "torch._inductor.graph"
_CLONES = frozenset((
    "aten.clone.default", "aten.contiguous.default", "aten.copy.default", "aten.lift_fresh_copy.default",
    "prims.clone.default",
))  # fmt: skip
_REQUESTS = ("ExternKernel.require_strides", "ExternKernel.require_stride1", "ExternKernel.realize_input")
_REQUIRES = _REQUESTS[0]
_AS_ASKED = ("?.is_stride_ordered(?", "significant_strides_equal(?")
"""Tests of `require_strides` whether strides are those that are asked for."""


class _Source(Struct, frozen=True):
    """What is asked for, as it is before anything is done about it.

    Attributes:
        buffer: torch's, None where the value is no buffer yet.
        is_flexible: whether its layout is still to be fixed. is_view: whether it is asked for through a view.
    """

    buffer: Any
    is_flexible: bool
    is_view: bool


@dataclass
class _Request:
    """A call that may copy, from the outermost function on.

    Attributes:
        wanted: the strides or their order. source: None where it could not be looked at.
        is_answered: a copy was made, and is recorded.
        is_for_unit_stride: the operand needs stride 1 along one of its dimensions, and no order.
    """

    wanted: Operands
    source: _Source | None = None
    is_answered: bool = False
    is_for_unit_stride: bool = False


@dataclass
class _Copy:
    """A decision about a buffer that is to be completed when code is generated."""

    number: int | None
    operands: Operands
    source: str


@dataclass
class _Graph:
    """The copies of a graph by name, and its clones of a memory format: FX nodes with the box of a value."""

    copies: dict[str, _Copy] = field(default_factory=dict)
    clones: list[tuple[Any, Any]] = field(default_factory=list)


@watches(_IR, _REQUIRES)
class Copies(Recorder):
    """Keeps the request that is being answered, and the copies of each graph until its code is complete."""

    KIND = "copy"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._request: _Request | None = None
        self._writing = False
        self._graphs: weakref.WeakKeyDictionary[Any, _Graph] = weakref.WeakKeyDictionary()

    @property
    def _ir(self) -> Any:
        return sys.modules[_IR]

    @sees(_IR, *_REQUESTS)
    def requested(self, call: Call, _: Any, value: Any, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Record that nothing was copied, of a value that was a buffer and was asked for in an order."""
        if self._request is not None:  # these call each other
            return
        request = self._request = _Request(_wanted(args, kwargs))
        request.is_for_unit_stride = call.place.function.endswith("require_stride1")
        try:
            request.source = self._source(value)
            yield
            self._answered(call.place, request, call.result)
        finally:
            self._request = None

    @sees(_IR, "ExternKernel.copy_input")
    def copied(self, call: Call, value: Any) -> Iterator[None]:
        """Record a copy, if its operand was a buffer."""
        request = self._request or _Request({})
        source = request.source = request.source or self._source(value)
        yield
        request.is_answered = True
        if source.buffer is None:
            return
        had = _strides(value)
        if request.is_for_unit_stride and had:
            # `realize_inputs` of a product asks for a buffer first: what it was given then is now copied.
            if (asking := asker(sys._getframe(1), virtual_graph())) is not None:
                self.log.forget(self.KIND, (source.buffer.get_name(), "view-as-strides", asking.node))
            code = "no-unit-stride"
        else:
            code = self._cause(source, value)
        self._copied(source, call.result.data.data, code, had, request.wanted)

    @sees(_IR, "ConcatKernel.realize_into", "MutationLayoutSHOULDREMOVE.realize_into")
    def written(self, call: Call, _: Any, value: Any, *__: Any, **___: Any) -> Iterator[None]:
        """Record what is written into a part of another buffer, or into an input."""
        if self._writing:  # it calls itself with what it made of `value`
            return
        source = self._source(value)
        self._writing = True
        try:
            yield
        finally:
            self._writing = False
        if source.buffer is None:
            source = self._source(value)  # `realize_hint` may have made a buffer of it on the way
        if source.buffer is None or call.result is source.buffer:
            return  # computed in its place
        code = "part-of-a-view" if source.is_view else self._cause(source, value)
        is_mutation = call.function.startswith("Mutation")
        self._copied(source, call.result, "mutation" if is_mutation else code, _strides(value), {})

    @sees(_IR, "StorageBox.realize")
    def realised(self, _: Call, box: Any) -> Iterator[None]:
        """Record a clone that became a buffer, and reads another one without computing anything."""
        before = box.data
        yield
        if box.data is before or not isinstance(before, self._ir.Pointwise):
            return
        graph = virtual_graph()
        node = before.get_origin_node() or getattr(graph, "current_node", None)
        if node is None or str(node.target) not in _CLONES:
            return
        count = before.inner_fn_opcount()
        if set(count.used_ops) != {"load"} or len(set(count.read_buffers)) != 1:
            return
        read = graph.try_get_buffer(count.read_buffers[0])
        if read is None:
            return
        wanted: Operands = {"clone": node.name, "clone_operator": str(node.target)}
        if memory_format := node.kwargs.get("memory_format"):
            wanted["memory_format"] = str(memory_format)
        source = _Source(read, is_flexible=False, is_view=False)
        self._copied(source, box.data, "clone", _strides(read), wanted)

    def _source(self, value: Any) -> _Source:
        is_view = False
        while not isinstance(value, self._ir.Buffer):
            is_view = is_view or isinstance(value, self._ir.BaseView)
            if not isinstance(value, (self._ir.BaseView, self._ir.MutableBox)):
                return _Source(None, is_flexible=False, is_view=is_view)  # nothing has computed it
            value = value.data
        return _Source(value, isinstance(value.layout, self._ir.FlexibleLayout), is_view)

    def _answered(self, place: TorchFrame, request: _Request, result: Any) -> None:
        source = request.source
        if request.is_answered or source is None or source.buffer is None:
            return
        if not request.wanted and not source.is_view:  # any strides do
            return
        size = result.get_size()
        if sum(length != 1 for length in size) < 2:
            return  # no order to speak of
        asking = asker(sys._getframe(1), virtual_graph())
        if asking is None or asking.code in ("output", "view"):
            return  # what an output is says `layout`, and what is viewed is asked for the strides it has
        code = "strides-fit"
        if not request.wanted:
            code = "view-as-strides"
        elif source.is_flexible and not source.is_view:
            code = "strides-taken"
        name = source.buffer.get_name()
        cause = Cause(code, {
            "source": name, "had": _strides(result), "size": tuple(map(str, size)), **request.wanted,
            **asking.operands(),
        })  # fmt: skip
        key = (name, code, asking.node, *request.wanted.values())
        self.record("not-copied", cause, place, (name,), subject_type="buffer", key=key)

    def _cause(self, source: _Source, value: Any) -> CauseCode:
        """Return why a buffer could not be used as it is: what fixed its strides, in torch's order."""
        ir, buffer = self._ir, source.buffer
        while isinstance(value, ir.MutableBox):
            value = value.data
        if isinstance(value, ir.BaseView) and not isinstance(value, ir.ReinterpretView):
            return "view-not-strided"
        if isinstance(buffer, (ir.InputBuffer, ir.ConstantBuffer)):
            return "given-strides"
        if isinstance(buffer.layout, (ir.NonOwningLayout, ir.MutationLayoutSHOULDREMOVE)):
            return "inside-another"
        if isinstance(buffer, (ir.ComputedBuffer, ir.ConcatKernel)):
            fixed = self.log.latest("layout", buffer.get_name())
            is_for_view = fixed is not None and fixed.operand("asker") == "view"
            return "fixed-for-view" if is_for_view or source.is_flexible else "fixed-before"
        if isinstance(buffer, (ir.ExternKernel, ir.TemplateBuffer)):
            return "extern-result"
        return "unlisted-test"

    def _copied(
        self, source: _Source, buffer: Any, code: CauseCode, had: tuple[str, ...], more: Operands
    ) -> None:
        graph = virtual_graph()
        asking = asker(sys._getframe(1), graph)
        if asking is None:
            return  # not inductor's
        name, size = buffer.get_name(), buffer.get_size()
        before = source.buffer.get_name()
        operands: Operands = {"source": before, "size": tuple(map(str, size))}
        if source.is_view:
            operands["view"] = True
        if had:
            operands["had"] = had
        operands |= {**more, **asking.operands()}
        if code == "mutation":  # the end of the graph may write it, or a lowering
            operands["asker"] = "mutation"
        if asking.code == "output" and prefers_channels_last(graph.current_node, graph):
            operands["asker"] = "channels-last-preferred"
        if code == "extern-result":
            operands["kernel"] = kernel_name(source.buffer)
        if code == "fixed-before":
            operands |= self._fixed(source.buffer)
        lengths = [hint_of(length, 0) for length in size]
        if all(lengths):
            operands["bytes"] = math.prod(lengths) * buffer.get_dtype().itemsize
        cause = Cause(code, operands, _differing())
        number = self.record("copied", cause, asking.place, (name,), subject_type="buffer", key=name)
        self._of(graph).copies[name] = _Copy(number, operands, before)

    def _fixed(self, buffer: Any) -> Operands:
        """Return who fixed the layout of a buffer, where the recorder of layouts saw it."""
        if isinstance(buffer, self._ir.ConcatKernel):
            return {"fixed_by": "concatenation"}  # that recorder sees it at the end of lowering
        decision = self.log.latest("layout", buffer.get_name())
        if decision is None:
            return {}
        operands = dict(decision.operands)
        names = {"fixed_by": decision.cause, "fixed_for": operands.get("operator")}
        return {key: value for key, value in names.items() if value is not None}

    @sees(_GRAPHS, "GraphLowering.run_node")
    def node_lowered(self, call: Call, lowering: Any, node: Any) -> None:
        """Remember a clone that is to have a memory format, and is no buffer yet."""
        box = getattr(call.result, "data", None)
        is_clone = node.op == "call_function" and str(node.target) in _CLONES
        if is_clone and node.kwargs.get("memory_format") is not None and isinstance(box, self._ir.StorageBox):
            self._of(lowering).clones.append((node, box))

    @sees(_GRAPHS, "GraphLowering.finalize")
    def lowered(self, _: Call, lowering: Any) -> None:
        """Record the clones that never became buffers: the memory format that they ask for is nowhere.

        lowering.py, `clone`, does not look at `memory_format`: it leaves the layout to who makes a buffer.
        """
        graph = self._of(lowering)
        place = place_of(sys.modules["torch._inductor.lowering"].clone)
        for node, box in graph.clones:
            memory_format = str(node.kwargs["memory_format"])
            if not isinstance(box.data, self._ir.Pointwise) or memory_format == "torch.preserve_format":
                continue
            count = box.data.inner_fn_opcount()
            names = tuple(dict.fromkeys(count.read_buffers))
            is_read = set(count.used_ops) == {"load"} and len(names) == 1
            subject = names[0] if is_read else node.name
            operands: Operands = {
                "source": ", ".join(names), "clone": node.name, "clone_operator": str(node.target),
                "memory_format": memory_format, "size": tuple(map(str, box.data.get_size())),
            }  # fmt: skip
            if is_read and (source := lowering.try_get_buffer(subject)) is not None:
                operands["had"] = _strides(source)
            about: Any = {"subject_type": "buffer" if is_read else "fx", "key": node.name}
            self.record("not-copied", Cause("clone-inlined", operands), place, (subject,), **about)
        graph.clones.clear()

    @sees(_GRAPHS, "GraphLowering.codegen")
    def generated(self, _: Call, lowering: Any) -> None:
        """Add where each copy lies, and what became of it: copied, fused, or not needed."""
        removed, unused = set(lowering.removed_buffers), set(lowering.removed_operations)
        twins = Counter(map(_what, self._of(lowering).copies.values()))
        for name, copy in self._of(lowering).copies.items():
            buffer = lowering.try_get_buffer(name)
            operation = buffer.get_defining_op() if buffer is not None else None
            if operation is not None and operation.get_operation_name() in unused:
                self.log.revise(copy.number, speculative=True)
                continue
            fused = [which for which, of in (("copy", name), ("source", copy.source)) if of in removed]
            more: Operands = {"stride": _strides(buffer), "not_stored": tuple(fused)}
            if twins[_what(copy)] > 1:
                more["times_copied"] = twins[_what(copy)]
            rows, outcome = (*copy.operands.items(), *more.items()), "fused" if fused else "copied"
            self.log.revise(copy.number, operands=rows, outcome=outcome)

    def _of(self, lowering: Any) -> _Graph:
        return self._graphs.setdefault(lowering, _Graph())


def _what(copy: _Copy) -> tuple[Any, ...]:
    """Return what is copied, and how: the same input is copied anew for each operator that wants it."""
    names = ("source", "had", "size", "stride_order", "exact_strides", "memory_format")
    return tuple(copy.operands.get(name, "") for name in names)


def _differing() -> Tests:
    """Return the test by which strides are not as asked for, in the call of `require_strides` that copies."""
    path = running(_REQUIRES)
    failed = (test for test in path.all() if not test.truth) if path is not None else ()
    tests = (test for test in failed if any(matches(test.text, text) for text in _AS_ASKED))
    return tuple(test_at(path, test) for test in tests if path is not None)[:1]


def _wanted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operands:
    """Return the strides, or their order, that `require_strides` is asked for, by its arguments' names."""
    names = ("order", "exact_strides")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return {
        {"order": "stride_order"}.get(name, name): tuple(map(str, given[name]))
        for name in names
        if given.get(name)
    }


def _strides(value: Any) -> tuple[str, ...]:
    """Return the strides of a value that has them; a view that is no `ReinterpretView` has none."""
    while type(value).__name__ in ("TensorBox", "StorageBox"):
        value = value.data
    stride = getattr(getattr(value, "layout", None), "stride", ())
    return tuple(map(str, stride))
