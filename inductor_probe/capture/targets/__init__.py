"""A simulated GPU: inductor generates code for it on a machine that has none.

Everything of inductor is real but what needs the device. What stands in, a module each:

- `device`: in c10 and ATen, a device guard and hooks that know of one device;
- `queries`: in `torch.cuda`, the answers about it, streams and events;
- `attention`: which of its kernels torch would take for attention;
- `tensors`: operators on its tensors, which this machine's CPU computes;
- `compilation`: triton's driver, kernels that nothing compiles, times that are all the same;
- `graphs`: what a compiled graph returns, computed in eager from its FX graph.

All of it is put in place in the child that runs the script, when torch is imported there, and lasts as long
as the child. What cannot be put in place becomes a note, and the compile fails where it needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from types import ModuleType
from typing import Any

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.targets import attention, compilation, device, queries, tensors
from inductor_probe.capture.targets.graphs import Graphs
from inductor_probe.model.gpu_target import GpuTarget
from inductor_probe.model.manifest import Substitute

ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": ""}
"""No real GPU takes part, where there is one."""


def hooks(
    target: GpuTarget, events: EventLog, *, without: Collection[Substitute] = ()
) -> Iterator[tuple[str, Callable[[ModuleType], None]]]:
    """Yield for each module of torch, triton or ours what is to be called when it is imported.

    Args:
        without: what someone else puts in place.
    """
    steps: tuple[tuple[str, Substitute, Callable[[Any], None]], ...] = (
        ("torch.cuda", "device-queries", lambda module: queries.answer(module, target)),
        ("torch", "device-guard", device.set_guard),
        ("torch", "device-hooks", device.set_hooks),
        ("torch", "eager-operators", tensors.register_kernels),
        ("torch", "attention-chosen", lambda module: attention.choose_attention(module, target)),
        ("torch._utils_internal", "clock-rate", lambda module: compilation.know_clock(module, target)),
        ("triton.runtime.driver", "triton-driver", lambda module: compilation.name_target(module, target)),
        ("torch._inductor.async_compile", "kernels-not-compiled", compilation.leave_kernels),
        ("torch._inductor.runtime.benchmarking", "times-tied", compilation.tie_times),
        ("torch._inductor.select_algorithm", "choices-tied", compilation.tie_choices),
        ("torch._inductor.codegen.cuda_combined_scheduling", "fusions-tied", compilation.tie_fusions),
        ("torch._inductor.output_code", "results-in-eager", Graphs(events).hook),
    )
    for name, substitute, step in steps:
        if substitute in without:
            continue
        yield name, functools.partial(_put_in_place, step, substitute, events)
    yield "torch", queries.answer_as_a_whole
    yield "torch._inductor.compile_fx", lambda module: compilation.note_refused(module, target, events)
    yield "torch._inductor.scheduler", compilation.leave_candidates
    yield "torch._inductor.runtime.triton_helpers", compilation.keep_driver
    yield "inductor_probe.scenario", lambda module: _tell_scenario(module, target)


def _put_in_place(
    step: Callable[[Any], None], substitute: Substitute, events: EventLog, module: ModuleType
) -> None:
    step(module)
    events.write("substitute", code=substitute)


def _tell_scenario(scenario: Any, target: GpuTarget) -> None:
    """Let a scenario compare nothing: what came out is not the work of the compiled code."""
    scenario.simulate(target.device)
