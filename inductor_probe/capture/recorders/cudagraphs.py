"""Whether a graph is replayed as CUDA graphs, and why not: torch says it in a warning, for some causes only.

`CompiledFxGraph` collects reasons while it is made: functions that give one are watched. `post_compile`
wraps the graph, or its partitions, or nothing. With `graph_partition` what cannot be captured is cut out:
`Scheduler.should_partition` says why. Asked for on a CPU, `check_multiple_devices_or_any_cpu_nodes` leaves
the CPU out, and finds no device at all.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    cause_of_branch,
    place_of,
    test_at,
    tests_of,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame, TorchTest

KIND: DecisionKind = "cudagraphs"

_MOST_NODES = 24
_DEVICES = "check_multiple_devices_or_any_cpu_nodes"
_OPERATOR = "get_first_incompatible_cudagraph_node"
_MUTATION = "check_for_mutation_ignore_cuda_graph_managed_tensor"
_BEHIND: Mapping[str, CauseCode] = {_DEVICES: "no-gpu-device"}
"""Why a function refuses behind all its branches."""
_MUTATED = "len(?) != ?"
_DYNAMIC = "cudagraph_skip_dynamic_graphs"

Cause = tuple[CauseCode, dict[str, Operand]]


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._cut: dict[str, str] = {}
        self._why: tuple[Cause, tuple[TorchTest, ...]] | None = None

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
        tests: tuple[TorchTest, ...]
        config: Any = sys.modules["torch._inductor.config"]
        on_gpu = any(map(sys.modules["torch._inductor.utils"].is_gpu, compiled.device_types))
        if config.triton.cudagraphs:
            info = compiled.cudagraph_info
            reason = compiled.disabled_cudagraphs_reason
            failed = tuple(info.cudagraph_fail_reasons) if info is not None else ()
            if options["cudagraphs"]:
                self._kept(place, compiled, cut)
                return
            cause, tests = self._skipped(reason, failed, compiled, cut)
        elif on_gpu:
            cause, tests = ("cudagraphs-off", {}), ()
        else:
            return
        self._record("skipped", cause, place, tests)

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

    def asked(
        self, place: TorchFrame, path: CallPath | None, result: Any, asked_about: Any, *_: object
    ) -> None:
        """See what keeps the graph from being captured, by which test of which function."""
        if not result or path is None:
            return
        name = place.function
        code = cause_of_branch(path, KIND, name, behind=_BEHIND.get(name, "unlisted-test"))
        tests = tests_of(path) or tuple(test_at(path, one) for one in path.all()[:1])
        if name == _MUTATION:
            code, counted = "mutated-inputs", path.tested(_MUTATED)
            tests = (test_at(path, counted),) if counted is not None else ()
        operands: dict[str, Operand] = {}
        if code == "cpu-device":
            device = sys.modules["torch"].device("cpu")
            operands["node"] = asked_about[device].name
        elif code == "no-gpu-device" and asked_about:
            code = "unlisted-test"  # several GPUs
        elif code == "incompatible-operator":
            operands["operator"] = str(result.target)
        self._why = (code, operands), tests

    def _skipped(
        self, reason: str | None, failed: tuple[str, ...], compiled: Any, cut: dict[str, str]
    ) -> tuple[Cause, tuple[TorchTest, ...]]:
        """Return what was seen to refuse, else what torch's words have of a setting or of a lowering.

        `codegen_and_compile` and lowerings write such a reason among much else, and go on.
        """
        (code, operands), tests = self._why or (("", {}), ())
        if code == "mutated-inputs":
            mutated = compiled.mutated_inputs or ()
            return ("mutated-inputs", {"inputs": tuple(map(str, mutated))[:_MOST_NODES]}), tests
        if code:
            return (code, operands), tests
        text = (reason or "").partition("\n")[0].partition(". Found from")[0]
        if _DYNAMIC in text:
            return ("dynamic-shapes", {}), ()
        if not text and cut and not compiled.partition_maps:
            return ("no-partition", {"reasons": tuple(dict.fromkeys(cut.values()))[:_MOST_NODES]}), ()
        return ("incompatible-lowering", {"text": text or ", ".join(failed)}), ()

    def _record(
        self, outcome: Any, cause: Cause, place: TorchFrame, tests: tuple[TorchTest, ...] = ()
    ) -> None:
        code, operands = cause
        self._log.record(
            KIND, (), outcome, code, place, operands=operands, subject_type="graph", key="graph", tests=tests
        )
        self._why = None


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


def _hook(names: tuple[str, ...], module: Any, log: DecisionLog) -> None:
    for name in names:
        log.watch(module, name)
        wrap(module, name, log.followed(_recorder(log).asked))


HOOKS = {
    "torch._inductor.utils": functools.partial(_hook, (_OPERATOR,)),
    "torch._inductor.cudagraph_utils": functools.partial(_hook, (_DEVICES, _MUTATION)),
    "torch._inductor.output_code": lambda module, log: wrap(
        module, "CompiledFxGraph.post_compile", _recorder(log).around_post_compile
    ),
    "torch._inductor.scheduler": lambda module, log: wrap(
        module, "Scheduler.should_partition", log.observed(_recorder(log).partitioned)
    ),
}
