"""Whether a graph is replayed as CUDA graphs, and why not: torch says it in a warning, for some causes only.

`CompiledFxGraph` collects reasons while it is made: functions that give one are watched. `post_compile`
wraps the graph, or its partitions, or nothing. With `graph_partition` what cannot be captured is cut out:
`Scheduler.should_partition` says why. Asked for on a CPU, `check_multiple_devices_or_any_cpu_nodes` leaves
the CPU out, and finds no device at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import DecisionLog, cause_of_branch, test_at, tests_of
from inductor_probe.model.decision import CauseCode

_MOST_NODES = 24
_DEVICES = "check_multiple_devices_or_any_cpu_nodes"
_OPERATOR = "get_first_incompatible_cudagraph_node"
_MUTATION = "check_for_mutation_ignore_cuda_graph_managed_tensor"
_BEHIND: Mapping[str, CauseCode] = {_DEVICES: "no-gpu-device"}
"""Why a function refuses behind all its branches."""
_MUTATED = "len(?) != ?"
_DYNAMIC = "cudagraph_skip_dynamic_graphs"


class CudaGraphs(Recorder):
    """Keeps what is cut out of a graph, and what refused it, until it is known whether it is wrapped."""

    KIND = "cudagraphs"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._cut: dict[str, str] = {}
        self._why: Cause | None = None

    @sees("torch._inductor.scheduler", "Scheduler.should_partition")
    def partitioned(self, call: Call, scheduler: Any, node: Any) -> None:
        """See why a node stays out of CUDA graphs: a text, or with torch 2.11 maybe no more than True."""
        reason = call.result
        if reason and sys.modules["torch._inductor.config"].triton.cudagraphs:
            self._cut[node.get_name()] = reason if isinstance(reason, str) else "cannot be captured"

    @sees("torch._inductor.utils", _OPERATOR, watches=True)
    @sees("torch._inductor.cudagraph_utils", _DEVICES, _MUTATION, watches=True)
    def asked(self, call: Call, asked_about: Any, *_: object) -> None:
        """See what keeps the graph from being captured, by which test of which function."""
        path, name = call.path, call.place.function
        if not call.result or path is None:
            return
        code = cause_of_branch(path, self.KIND, name, behind=_BEHIND.get(name, "unlisted-test"))
        tests = tests_of(path) or tuple(test_at(path, one) for one in path.all()[:1])
        operands: Operands = {}
        if name == _MUTATION:
            code, counted = "mutated-inputs", path.tested(_MUTATED)
            tests = (test_at(path, counted),) if counted is not None else ()
        elif code == "cpu-device":
            operands["node"] = asked_about[sys.modules["torch"].device("cpu")].name
        elif code == "no-gpu-device" and asked_about:
            code = "unlisted-test"  # several GPUs
        elif code == "incompatible-operator":
            operands["operator"] = str(call.result.target)
        self._why = Cause(code, operands, tests)

    @sees("torch._inductor.output_code", "CompiledFxGraph.post_compile")
    def decided(self, call: Call, compiled: Any, _: object, __: object, options: Any) -> None:
        """Record whether the graph is wrapped, or its partitions."""
        cut, self._cut = self._cut, {}
        why, self._why = self._why, None
        on_gpu = any(map(sys.modules["torch._inductor.utils"].is_gpu, compiled.device_types))
        if not sys.modules["torch._inductor.config"].triton.cudagraphs:
            if on_gpu:
                self._graph("skipped", Cause("cudagraphs-off"), call)
        elif not options["cudagraphs"]:
            self._graph("skipped", _skipped(compiled, cut, why), call)
        else:
            operands: Operands = {"partitions": len(compiled.partition_maps or ()) or 1}
            if moving := _moving_inputs(compiled):
                self._graph("at-run-time", Cause("moving-inputs", {**operands, "inputs": moving}), call)
            elif not cut:
                self._graph("captured", Cause("whole-graph", operands), call)
            else:
                operands |= {"nodes": _first(cut), "reasons": _first(cut.values())}
                self._graph("partitioned", Cause("partitions", operands), call)

    def _graph(self, outcome: Any, cause: Cause, call: Call) -> None:
        self.record(outcome, cause, call.place, subject_type="graph", key="graph")


def _skipped(compiled: Any, cut: Mapping[str, str], why: Cause | None) -> Cause:
    """Return what was seen to refuse, else what torch's words have of a setting or of a lowering.

    `codegen_and_compile` and lowerings write such a reason among much else, and go on.
    """
    if why is not None and why.code == "mutated-inputs":
        return why.also({"inputs": _first(map(str, compiled.mutated_inputs or ()))})
    if why is not None:
        return why
    reason, info = compiled.disabled_cudagraphs_reason, compiled.cudagraph_info
    text = (reason or "").partition("\n")[0].partition(". Found from")[0]
    if _DYNAMIC in text:
        return Cause("dynamic-shapes")
    if not text and cut and not compiled.partition_maps:
        return Cause("no-partition", {"reasons": _first(cut.values())})
    failed = info.cudagraph_fail_reasons if info is not None else ()
    return Cause("incompatible-lowering", {"text": text or ", ".join(failed)})


def _first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))[:_MOST_NODES]


def _moving_inputs(compiled: Any) -> tuple[str, ...]:
    """Return the inputs that are changed in place and are not static, as parameters and buffers are.

    cudagraph_utils.py, `check_for_mutation`, asks that of each call: an input may be of another CUDA graph.
    """
    static = set(compiled.fx_kwargs.get("static_input_idxs") or ())
    placeholders = compiled.cudagraph_info.placeholders
    return _first(placeholders[index].name for index in sorted({*compiled.mutated_input_idxs} - static))
