"""Whether a graph is replayed as CUDA graphs, and why not: torch says it in a warning, for some causes only.

`CompiledFxGraph` collects reasons while it is made; `post_compile` wraps the graph, or its partitions, or
nothing. With `graph_partition` what cannot be captured is cut out: `Scheduler.should_partition` says why.
Asked for on a CPU, `check_multiple_devices_or_any_cpu_nodes` leaves the CPU out, and finds no device at all.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any

from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError, place_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "cudagraphs"

_MOST_NODES = 24
_CPU_NODE = re.compile(r"cpu device \((?P<node>[^)]*)\)")
_DEVICES = re.compile(r"multiple devices: (?P<devices>.*)")
_OPERATOR = re.compile(r"incompatible op (?P<operator>\S+)")
_LOWERINGS = ("index_put_ fallback with boolean", "control flow operator", "sparsity not handled")

Cause = tuple[CauseCode, dict[str, Operand]]


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._cut: dict[str, str] = {}

    def partitioned(self, _: TorchFrame, reason: Any, scheduler: Any, node: Any) -> None:
        """See why a node stays out of CUDA graphs: a text, or with torch 2.11 maybe no more than True."""
        if reason and sys.modules["torch._inductor.config"].triton.cudagraphs:
            self._cut[node.get_name()] = reason if isinstance(reason, str) else "cannot be captured"

    def around_post_compile(self, post_compile: Callable[..., Any]) -> Callable[..., Any]:
        """Return `CompiledFxGraph.post_compile` so that it is seen whether it wraps the graph."""
        place = place_of(post_compile)

        def compile_and_record(compiled: Any, inputs: Any, constants: Any, options: Any) -> Any:
            before = getattr(compiled, "current_callable", None)
            result = post_compile(compiled, inputs, constants, options)
            self._log.safely(self._decided, place, compiled, options, before)
            return result

        return compile_and_record

    def _decided(self, place: TorchFrame, compiled: Any, options: Any, _: object) -> None:
        cut, self._cut = self._cut, {}
        config: Any = sys.modules["torch._inductor.config"]
        on_gpu = any(map(sys.modules["torch._inductor.utils"].is_gpu, compiled.device_types))
        if config.triton.cudagraphs:
            info = compiled.cudagraph_info
            reason = compiled.disabled_cudagraphs_reason
            failed = tuple(info.cudagraph_fail_reasons) if info is not None else ()
            if options["cudagraphs"]:
                self._kept(place, compiled, cut)
                return
            cause = self._skipped(reason, failed, compiled, cut)
        elif on_gpu:
            cause = "cudagraphs-off", {}
        else:
            return
        self._record("skipped", cause, place)

    def _kept(self, place: TorchFrame, compiled: Any, cut: dict[str, str]) -> None:
        partitions = len(compiled.partition_maps or ())
        operands: dict[str, Operand] = {"partitions": partitions or 1}
        if moving := _moving_inputs(compiled):
            self._record("at-run-time", ("moving-inputs", {**operands, "inputs": moving}), place)
            return
        if not cut:
            self._record("captured", ("whole-graph", operands), place)
            return
        nodes = tuple(cut)[:_MOST_NODES]
        operands |= {"nodes": nodes, "reasons": tuple(dict.fromkeys(cut.values()))[:_MOST_NODES]}
        self._record("partitioned", ("partitions", operands), place)

    def _skipped(
        self, reason: str | None, failed: tuple[str, ...], compiled: Any, cut: dict[str, str]
    ) -> Cause:
        """Read the reason that torch gives, as the functions that make it word it."""
        text = reason or ""
        first = text.partition("\n")[0].partition(". Found from")[0]
        if match := _CPU_NODE.search(first):
            return "cpu-device", {"node": match["node"]}
        if match := _DEVICES.search(first):
            if match["devices"]:
                raise UnknownPathError(f"CUDA graphs: {first}")  # several GPUs: no machine has shown it
            return "no-gpu-device", {}
        if match := _OPERATOR.search(first):
            return "incompatible-operator", {"operator": match["operator"]}
        if "cudagraph_skip_dynamic_graphs" in first:
            return "dynamic-shapes", {}
        if first.startswith(_LOWERINGS):
            return "incompatible-lowering", {"text": first}
        if "mutated inputs" in (first, *failed) or "mutated inputs" in first:
            mutated = compiled.mutated_inputs or ()
            return "mutated-inputs", {"inputs": tuple(map(str, mutated))[:_MOST_NODES]}
        if not text and not failed and cut and not compiled.partition_maps:
            return "no-partition", {"reasons": tuple(dict.fromkeys(cut.values()))[:_MOST_NODES]}
        raise UnknownPathError(f"CUDA graphs: {first or failed}")

    def _record(self, outcome: Any, cause: Cause, place: TorchFrame) -> None:
        code, operands = cause
        self._log.record(KIND, (), outcome, code, place, operands=operands, subject_type="graph", key="graph")


def _moving_inputs(compiled: Any) -> tuple[str, ...]:
    """Return the inputs that are changed in place and are not static, as parameters and buffers are.

    cudagraph_utils.py, `check_for_mutation`, asks that of each call: an input may be of another CUDA graph.
    """
    static = set(compiled.fx_kwargs.get("static_input_idxs") or ())
    placeholders = compiled.cudagraph_info.placeholders
    moving = sorted(set(compiled.mutated_input_idxs) - static)
    return tuple(placeholders[index].name for index in moving)[:_MOST_NODES]


_recorder = functools.cache(_Recorder)
"""One a log, for the two modules that it hooks."""

HOOKS = {
    "torch._inductor.output_code": lambda module, log: wrap(
        module, "CompiledFxGraph.post_compile", _recorder(log).around_post_compile
    ),
    "torch._inductor.scheduler": lambda module, log: wrap(
        module, "Scheduler.should_partition", log.observed(_recorder(log).partitioned)
    ),
}
