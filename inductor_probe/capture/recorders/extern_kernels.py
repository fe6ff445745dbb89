"""Which library kernels are called where a template could have been generated: matrix products, convolutions.

Their lowerings collect choices, and `AlgorithmSelectorCache` takes one. A template is a choice only where
the settings ask for it and the operands allow for it:

    x @ w on a CPU, max_autotune off     extern_kernels.mm is the only choice
    x @ w on a CPU, max_autotune on      still so, unless w is a constant (freezing): `use_cpp_gemm_template`

The functions that say whether a template is one are watched: the test by which they said no is the cause.
What is a library's kernel for any other reason is seen at the end of lowering. Calls of torch's own operators
are in `fallback.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, Tests, sees, watches
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    cause_of_test,
    fx_in_lowering,
    inner_path,
    is_gpu,
    place_of,
    stack,
    test_at,
    virtual_graph,
)
from inductor_probe.model.decision import CauseCode, TorchFrame, TorchTest

_SELECTS = ("torch/_inductor/select_algorithm.py", "torch/_inductor/mkldnn_ir.py")
_CPP, _TRITON = "use_cpp_gemm_template", "use_triton_template"
_BACKEND, _CONV_BACKEND = "_use_autotune_backend", "_use_conv_autotune_backend"
_WATCHED = (_CPP, _TRITON, _BACKEND, _CONV_BACKEND, "_use_template_for_cpu", "_use_template_for_gpu")
_OTHERS = "InductorChoices._need_to_fix_layout"
_SETTINGS = {_BACKEND: "max_autotune_gemm_backends", _CONV_BACKEND: "max_autotune_conv_backends"}


@watches("torch._inductor.choices", _OTHERS)
@watches("torch._inductor.utils", *_WATCHED)
class ExternKernels(Recorder):
    """Records library kernels; `_lowering` is the call of the lowering that is at work."""

    KIND = "fallback"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._lowering: Call | None = None

    @property
    def _made(self) -> Sequence[CallPath]:
        """What the lowering that is at work has asked for so far."""
        return self._lowering.made if self._lowering is not None else ()

    @sees("torch._inductor.graph", "GraphLowering.call_function", follows=True)
    def lowering(self, call: Call, *_: Any, **__: Any) -> Iterator[None]:
        """See which templates a lowering asks for."""
        before, self._lowering = self._lowering, call
        try:
            yield
        finally:
            self._lowering = before

    @sees("torch._inductor.select_algorithm", "AlgorithmSelectorCache.__call__")
    def selected(
        self, call: Call, _: Any, __: str, choices: Any, inputs: Any, ___: Any, *____: Any, **_____: Any
    ) -> None:
        """Record why a library's kernel was selected, if one was."""
        node = (
            call.result[0] if isinstance(call.result, tuple) else call.result
        )  # torch 2.13: the choice, too
        buffer = node.data.data
        if not _is_library_kernel(buffer):
            return
        templates = [choice for choice in choices if type(choice).__name__ != "ExternKernelCaller"]
        if templates:
            cause = self._timed(buffer, templates, choices)
        else:
            matrices = [operand for operand in inputs if len(operand.get_size()) > 1]  # no bias
            cause = self._no_template(matrices[-1], buffer)
        frames = [frame for frame in stack(sys._getframe(1)) if frame.file not in _SELECTS]
        self._record(buffer, cause, frames[0])

    @sees("torch._inductor.scheduler", "Scheduler.finalize_multi_template_buffers")
    def finalized(self, call: Call, scheduler: Any, *_: Any, **__: Any) -> Iterator[None]:
        """Record where a library's kernel won.

        Such a buffer keeps several choices until fusions with its epilogues have been timed, too.
        """
        open_choices = {
            node.get_name(): node.node
            for node in scheduler.nodes
            if type(node.node).__name__ == "MultiTemplateBuffer"
        }
        yield
        for node in scheduler.nodes if open_choices else ():
            if (choices := open_choices.get(node.get_name())) is None:
                continue
            times = choices._choice_timings.get(None) or {}
            best = min(times, key=times.__getitem__, default=None)
            if _is_library_kernel(node.node) and type(best).__name__ == "ExternKernelCaller":
                templates = [choice for choice in times if type(choice).__name__ != "ExternKernelCaller"]
                self._record(node.node, self._timed(node.node, templates, [*times]), call.place)

    def _timed(self, buffer: Any, templates: Sequence[Any], choices: Sequence[Any]) -> Cause:
        """Return that it was the fastest choice; of a simulated GPU, that it was the first."""
        is_timed = not (self.log.simulated and is_gpu(buffer.get_device()))
        counts: Operands = {"templates": len(templates), "choices": len(choices)}
        return Cause("templates-slower" if is_timed else "times-simulated", counts)

    def _no_template(self, weight: Any, buffer: Any) -> Cause:
        """Return by which test of utils.py there is no template of the backend for its device."""
        on_gpu = is_gpu(buffer.get_device())
        operands: Operands = {"device": str(buffer.get_device().type)}
        path = inner_path(self._made, _TRITON if on_gpu else _CPP)
        paths = [path, inner_path(self._made, _OTHERS if path is not None else _CONV_BACKEND)]
        if path is None and not on_gpu:
            if not _names(sys._getframe(1), _CPP):  # lowerings of mkldnn ask for it with max_autotune only
                return Cause("no-template", operands)
            return Cause("max-autotune-off", {**operands, "constant_weight": _is_constant(weight)})
        for one in filter(None, paths):
            for within in (one, *one.inner[::-1]):
                if (seen := _refusal(within)) is not None:
                    (code, compared), test = seen
                    operands |= compared
                    if code == "template-backend-off":
                        setting = _SETTINGS[within.sites.function]
                        operands["backends"] = getattr(sys.modules["torch._inductor.config"], setting)
                    elif code == "max-autotune-off" and not on_gpu:
                        operands["constant_weight"] = _is_constant(weight)
                    return Cause(code, operands, (test,))
        return Cause("template-refused", operands, _false(path))

    @sees("torch._inductor.graph", "GraphLowering.finalize")
    def lowered(self, call: Call, graph: Any) -> None:
        """Record the library's kernels of which nobody was asked: mkldnn has several without any template."""
        ir: Any = sys.modules["torch._inductor.ir"]
        for operation in graph.operations:
            if not _is_library_kernel(operation) or isinstance(
                operation, (ir.FallbackKernel, ir.RandomSeeds)
            ):
                continue
            if self.log.latest(self.KIND, operation.get_operation_name()) is None:
                cause = Cause("no-template", {"device": str(getattr(operation.get_device(), "type", "?"))})
                self._record(operation, cause, _lowering_of(operation) or call.place)

    def _record(self, buffer: Any, cause: Cause, place: TorchFrame) -> None:
        fx = buffer.get_origin_node() or fx_in_lowering()
        about: Operands = {"operator": kernel_name(buffer), "fx": getattr(fx, "name", "?")}
        name = buffer.get_operation_name()
        self.record("extern", cause.behind(about), place, (name,), key=name)


def _false(path: CallPath | None) -> Tests:
    """Return the tests that did not hold, because of which a function returned where it did."""
    tests = (one for tests in path.reasons() for one in tests) if path is not None else ()
    return tuple(test_at(path, one) for one in tests if path is not None and not one.truth)


def _refusal(path: CallPath) -> tuple[tuple[CauseCode, Operands], TorchTest] | None:
    """Return why a function said that there is no template, by a test that is listed."""
    causes = ((cause_of_test("fallback", "utils.py", test), test) for test in _false(path))
    return next(((cause, test) for cause, test in causes if cause is not None), None)


def _names(frame: FrameType | None, function: str) -> bool:
    """Return whether one of the callers has the name of a function in its code."""
    while frame is not None and function not in frame.f_code.co_names:
        frame = frame.f_back
    return frame is not None


def kernel_name(operation: Any) -> str:
    """Return what an extern kernel calls: `extern_kernels.mm`; of a result of one, what that calls."""
    if type(operation).__name__ == "MultiOutput":
        operation = operation.inputs[0]
    return str(getattr(operation, "python_kernel_name", None) or type(operation).__name__)


def _is_library_kernel(buffer: Any) -> bool:
    ir: Any = sys.modules["torch._inductor.ir"]
    return bool(isinstance(buffer, (ir.ExternKernelOut, ir.ExternKernelAlloc)))


def _lowering_of(buffer: Any) -> TorchFrame | None:
    """Return the function that lowered the FX node that a buffer comes from."""
    node = buffer.get_origin_node()
    if node is None:
        return None
    lowerings = sys.modules["torch._inductor.lowering"].lowerings
    function = lowerings.get(node.target, node.target)
    function = getattr(function, "func", function)  # what a pattern calls
    return place_of(function) if hasattr(function, "__code__") else None


def _is_constant(operand: Any) -> bool:
    """Whether an operand is a constant of the graph, or a view of one: then a template can pack it ahead."""
    return operand.get_name() in virtual_graph().constants
