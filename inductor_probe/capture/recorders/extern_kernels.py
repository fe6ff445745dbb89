"""Which library kernels are called where a template could have been generated: matrix products, convolutions.

Their lowerings collect choices, and `AlgorithmSelectorCache` takes one. A template is a choice only where
the settings ask for it and the operands allow for it:

    x @ w on a CPU, max_autotune off     extern_kernels.mm is the only choice
    x @ w on a CPU, max_autotune on      still so, unless w is a constant (freezing): `use_cpp_gemm_template`

What is a library's kernel for any other reason is found at the end of lowering. Calls of torch's own
operators are in `fallback.py`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from inductor_probe.capture.recorders.decision_log import DecisionLog, place_of, stack
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "fallback"

_CPU_DTYPES = ("float32", "bfloat16", "float16", "uint8", "int8")
_GPU_DTYPES = ("float16", "bfloat16", "float32")
_SELECTS = ("torch/_inductor/select_algorithm.py", "torch/_inductor/mkldnn_ir.py")
_CONVOLUTION = "convolution"
_CPU_TEMPLATES = ("mm", "addmm", "bmm")
"""With those of linear layers, what asks `use_cpp_gemm_template`."""

Cause = tuple[CauseCode, dict[str, Operand]]


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log

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
            cause = self._no_template(name, inputs, buffer)
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
        is_timed = not self._log.simulated or buffer.get_device().type == "cpu"
        code: CauseCode = "templates-slower" if is_timed else "times-simulated"
        return code, {"templates": len(templates), "choices": len(choices)}

    def _no_template(self, name: str, inputs: Any, buffer: Any) -> Cause:
        """Repeat the conditions of utils.py, `use_cpp_gemm_template` and `use_triton_template`."""
        config: Any = sys.modules["torch._inductor.config"]
        device = str(buffer.get_device().type)
        dtype = str(buffer.get_dtype()).removeprefix("torch.")
        operands: dict[str, Operand] = {"device": device}
        if device == "cpu" and name not in _CPU_TEMPLATES and "linear" not in name:
            return "no-template", operands
        backends, backend = config.max_autotune_gemm_backends, "CPP" if device == "cpu" else "TRITON"
        if name.startswith(_CONVOLUTION):
            backends = config.max_autotune_conv_backends
        constant = _is_constant(inputs[-1] if "mm" in name else inputs[1])
        if not (config.max_autotune or config.max_autotune_gemm):
            if device == "cpu":
                operands["constant_weight"] = constant
            return "max-autotune-off", operands
        if backend not in [one.strip().upper() for one in backends.split(",")]:
            return "template-backend-off", {**operands, "backend": backend, "backends": backends}
        if dtype not in (_CPU_DTYPES if device == "cpu" else _GPU_DTYPES):
            return "template-dtype", {**operands, "dtype": dtype}
        if device == "cpu" and not constant and "bmm" not in name:
            return "weight-not-constant", operands
        return "template-refused", operands

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
                self._record(operation, ("no-template", {"device": str(device)}), where)

    def _record(self, buffer: Any, cause: Cause, place: TorchFrame) -> None:
        graph = sys.modules["torch._inductor.virtualized"].V.graph
        fx = buffer.get_origin_node() or graph.current_node
        code, operands = cause
        name = buffer.get_operation_name()
        self._log.record(
            KIND, ((name,),), "extern", code, place,
            operands={"operator": _operator(buffer), "fx": getattr(fx, "name", "?"), **operands}, key=name,
        )  # fmt: skip


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

HOOKS = {
    "torch._inductor.select_algorithm": lambda module, log: wrap(
        module, "AlgorithmSelectorCache.__call__", log.observed(_recorder(log).selected)
    ),
    "torch._inductor.scheduler": lambda module, log: wrap(
        module, "Scheduler.finalize_multi_template_buffers", _recorder(log).around_finalize
    ),
    "torch._inductor.graph": lambda module, log: wrap(
        module, "GraphLowering.finalize", log.observed(_recorder(log).lowered)
    ),
}
