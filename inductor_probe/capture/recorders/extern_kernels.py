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

import functools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from inductor_probe.capture.branches import CallPath, calls
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    cause_of_test,
    inner_path,
    is_gpu,
    place_of,
    stack,
    test_at,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame, TorchTest

KIND: DecisionKind = "fallback"

_SELECTS = ("torch/_inductor/select_algorithm.py", "torch/_inductor/mkldnn_ir.py")
_CPP, _TRITON = "use_cpp_gemm_template", "use_triton_template"
_BACKEND, _CONV_BACKEND = "_use_autotune_backend", "_use_conv_autotune_backend"
_WATCHED = (_CPP, _TRITON, _BACKEND, _CONV_BACKEND, "_use_template_for_cpu", "_use_template_for_gpu")
_OTHERS = "InductorChoices._need_to_fix_layout"
_SETTINGS = {_BACKEND: "max_autotune_gemm_backends", _CONV_BACKEND: "max_autotune_conv_backends"}
Cause = tuple[CauseCode, dict[str, Operand], tuple[TorchTest, ...]]


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._made: list[CallPath] = []

    def around_lowering(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `GraphLowering.call_function` so that it is seen which templates a lowering asks for."""

        def call_and_see(*args: Any, **kwargs: Any) -> Any:
            before = self._made
            try:
                with calls() as self._made:
                    return call(*args, **kwargs)
            finally:
                self._made = before

        return call_and_see

    def selected(
        self, _: TorchFrame, result: Any, __: Any, name: str, choices: Any, inputs: Any, layout: Any,
        *___: Any, **____: Any,
    ) -> None:  # fmt: skip
        """Record why a library's kernel was selected, if one was."""
        node = result[0] if isinstance(result, tuple) else result  # torch 2.13 returns the choice, too
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

    def around_finalize(self, finalize: Callable[..., Any]) -> Callable[..., Any]:
        """Return `finalize_multi_template_buffers` so that it is recorded where a library's kernel won there.

        Such a buffer keeps several choices until fusions with its epilogues have been timed, too.
        """
        place = place_of(finalize)

        def finalize_and_record(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            open_choices = {
                node.get_name(): node.node
                for node in scheduler.nodes
                if type(node.node).__name__ == "MultiTemplateBuffer"
            }
            result = finalize(scheduler, *args, **kwargs)
            for node in scheduler.nodes if open_choices else ():
                if node.get_name() in open_choices:
                    self._log.safely(self._finalized, place, node.node, open_choices[node.get_name()])
            return result

        return finalize_and_record

    def _finalized(self, place: TorchFrame, buffer: Any, choices: Any) -> None:
        times = choices._choice_timings.get(None) or {}
        best = min(times, key=times.__getitem__, default=None)
        if not _is_library_kernel(buffer) or type(best).__name__ != "ExternKernelCaller":
            return  # a template, or a library's kernel for its strides, and not for its time
        templates = [choice for choice in times if type(choice).__name__ != "ExternKernelCaller"]
        self._record(buffer, self._timed(buffer, templates, [*times]), place)

    def _timed(self, buffer: Any, templates: Sequence[Any], choices: Sequence[Any]) -> Cause:
        """Return that it was the fastest choice; of a simulated GPU, that it was the first."""
        is_timed = not (self._log.simulated and is_gpu(buffer.get_device()))
        code: CauseCode = "templates-slower" if is_timed else "times-simulated"
        return code, {"templates": len(templates), "choices": len(choices)}, ()

    def _no_template(self, weight: Any, buffer: Any) -> Cause:
        """Return by which test of utils.py there is no template of the backend for its device."""
        on_gpu = is_gpu(buffer.get_device())
        operands: dict[str, Operand] = {"device": str(buffer.get_device().type)}
        asked = _TRITON if on_gpu else _CPP
        path = inner_path(self._made, asked)
        paths = [path, inner_path(self._made, _OTHERS if path is not None else _CONV_BACKEND)]
        if path is None and not on_gpu:
            cause: CauseCode = "no-template"
            if _names(sys._getframe(1), _CPP):  # lowerings of mkldnn ask for it with max_autotune only
                cause, operands["constant_weight"] = "max-autotune-off", _is_constant(weight)
            return cause, operands, ()
        for one in filter(None, paths):
            for within in (one, *one.inner[::-1]):
                if (seen := _refusal(within)) is not None:
                    (cause, compared), test = seen
                    operands |= compared
                    if cause == "template-backend-off":
                        setting = _SETTINGS[within.sites.function]
                        operands["backends"] = getattr(sys.modules["torch._inductor.config"], setting)
                    elif cause == "max-autotune-off" and not on_gpu:
                        operands["constant_weight"] = _is_constant(weight)
                    return cause, operands, (test,)
        return "template-refused", operands, _false(path)

    def lowered(self, place: TorchFrame, _: object, graph: Any) -> None:
        """Record the library's kernels of which nobody was asked: mkldnn has several without any template."""
        ir: Any = sys.modules["torch._inductor.ir"]
        for operation in graph.operations:
            if not _is_library_kernel(operation):
                continue
            is_elsewhere = isinstance(operation, (ir.FallbackKernel, ir.RandomSeeds))
            if not is_elsewhere and self._log.latest(KIND, operation.get_operation_name()) is None:
                device = getattr(operation.get_device(), "type", "?")
                where = _lowering_of(operation) or place
                self._record(operation, ("no-template", {"device": str(device)}, ()), where)

    def _record(self, buffer: Any, cause: Cause, place: TorchFrame) -> None:
        graph = sys.modules["torch._inductor.virtualized"].V.graph
        fx = buffer.get_origin_node() or graph.current_node
        code, operands, tests = cause
        name = buffer.get_operation_name()
        self._log.record(
            KIND, ((name,),), "extern", code, place,
            operands={"operator": _operator(buffer), "fx": getattr(fx, "name", "?"), **operands}, key=name,
            tests=tests,
        )  # fmt: skip


def _false(path: CallPath | None) -> tuple[TorchTest, ...]:
    """Return the tests that did not hold, because of which a function returned where it did."""
    tests = (one for tests in path.reasons() for one in tests) if path is not None else ()
    return tuple(test_at(path, one) for one in tests if path is not None and not one.truth)


def _refusal(path: CallPath) -> tuple[tuple[CauseCode, dict[str, Operand]], TorchTest] | None:
    """Return why a function said that there is no template, by a test that is listed."""
    causes = ((cause_of_test(KIND, "utils.py", test), test) for test in _false(path))
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


def _operator(buffer: Any) -> str:
    """Return what is called: `extern_kernels.mm`, `torch.ops.mkldnn._linear_pointwise`."""
    return str(getattr(buffer, "python_kernel_name", None) or type(buffer).__name__)


def _is_constant(operand: Any) -> bool:
    """Whether an operand is a constant of the graph, or a view of one: then a template can pack it ahead."""
    graph = sys.modules["torch._inductor.virtualized"].V.graph
    return operand.get_name() in graph.constants


_recorder = functools.cache(_Recorder)
"""One a log, for the modules that it hooks."""


def _hook_graph(graph: Any, log: DecisionLog) -> None:
    wrap(graph, "GraphLowering.call_function", _recorder(log).around_lowering)
    wrap(graph, "GraphLowering.finalize", log.observed(_recorder(log).lowered))


def _hook_utils(utils: Any, log: DecisionLog) -> None:
    for place in _WATCHED:
        log.watch(utils, place)


HOOKS = {
    "torch._inductor.select_algorithm": lambda module, log: wrap(
        module, "AlgorithmSelectorCache.__call__", log.observed(_recorder(log).selected)
    ),
    "torch._inductor.scheduler": lambda module, log: wrap(
        module, "Scheduler.finalize_multi_template_buffers", _recorder(log).around_finalize
    ),
    "torch._inductor.graph": _hook_graph,
    "torch._inductor.utils": _hook_utils,
    "torch._inductor.choices": lambda module, log: log.watch(module, _OTHERS),
}
