"""The processors, the timer, and the GPUs: what is there, what holds it back, and who else uses it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from inductor_probe.machine.cpu import CpuState, clock_source, timer_step
from inductor_probe.machine.gpu import GpuState, gpu_remarks, gpu_state
from inductor_probe.machine.hazards import hazards
from inductor_probe.model.health import Diagnostic, Fact, TorchSetup

_PARALLEL = {"a parallel kernel": "#pragma omp parallel"}
_COARSE_S = 1e-6
_MOST_GPUS = 16


def processors_diagnostic(state: CpuState) -> Diagnostic:
    """Return what runs here, and what of it would spoil the times of a kernel on all processors."""
    facts: tuple[tuple[str, Fact], ...] = (
        ("processors", state.processors),
        ("busy", state.busy),
        ("stolen", state.stolen),
        ("quota", state.quota),
        ("load", state.load),
        ("governors", state.governors),
    )
    remarks = hazards(_PARALLEL, state)
    if remarks:
        return Diagnostic("processors", "warning", "processors-hazards", facts, remarks)
    return Diagnostic("processors", "ok", "processors", facts)


def timer_diagnostic(step: float | None = None, source: str | None = None) -> Diagnostic:
    """Return the smallest step (s) of the clock that everything here is timed with; both measured if None."""
    step = timer_step() if step is None else step
    facts = (("step_s", step), ("source", source or clock_source()))
    if step > _COARSE_S:
        return Diagnostic("timer", "warning", "timer-coarse", facts)
    return Diagnostic("timer", "ok", "timer", facts)


def gpu_states(
    environment: Mapping[str, str] = os.environ,
    dev: Path = Path("/dev"),
    ask: Callable[[str], GpuState] = gpu_state,
) -> tuple[GpuState, ...]:
    """Return the state of each GPU that CUDA may use here; empty without one.

    Args:
        dev: where the driver puts a file for each GPU.
        ask: reads the state of one, by number or UUID; replaced in tests.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    files = len(list(dev.glob("nvidia[0-9]*")))
    named = [str(number) for number in range(files)]
    if visible is not None:
        named = [name.strip() for name in visible.split(",") if name.strip()]
        named = named[: named.index("-1")] if "-1" in named else named
    if not files and not (dev / "dxg").exists():  # of a GPU in WSL
        return ()
    return tuple(ask(name) for name in (named or (["0"] if visible is None else []))[:_MOST_GPUS])


def has_gpu(states: tuple[GpuState, ...], dev: Path = Path("/dev")) -> bool:
    """Whether there is a GPU that compiled code could run on: NVIDIA's, or AMD's."""
    return bool(states) or (dev / "kfd").exists()


def gpu_diagnostics(setup: TorchSetup, states: tuple[GpuState, ...]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each GPU, or that there is none."""
    if not states and not setup.devices:
        yield Diagnostic("gpu", "ok", "gpu-none", _facts(None, GpuState(None), None))
        return
    for index in range(max(len(states), len(setup.devices))):
        state = states[index] if index < len(states) else GpuState(None)
        name = setup.devices[index] if index < len(setup.devices) else None
        yield _gpu(index, state, name, setup)


def _gpu(index: int, state: GpuState, name: str | None, setup: TorchSetup) -> Diagnostic:
    if name is None and setup.version is not None and (setup.cuda or setup.hip):
        facts = _facts(index, state, name, setup.error("devices"))
        return Diagnostic("gpu", "warning", "gpu-not-usable", facts)
    facts = _facts(index, state, name, state.why_not)
    if state.source is None:
        return Diagnostic("gpu", "warning", "gpu-amd" if setup.hip else "gpu-not-readable", facts)
    if remarks := gpu_remarks(state):
        return Diagnostic("gpu", "warning", "gpu-hazards", facts, remarks)
    return Diagnostic("gpu", "ok", "gpu", facts)


def _facts(
    index: int | None, state: GpuState, name: str | None, error: str | None = None
) -> tuple[tuple[str, Fact], ...]:
    return (
        ("index", index),
        ("name", name or state.name),
        ("usable", name is not None),
        ("driver", state.driver),
        ("sm_mhz", state.sm_mhz),
        ("max_sm_mhz", state.max_sm_mhz),
        ("power_w", state.power_w),
        ("limit_w", state.limit_w),
        ("temperature_c", state.temperature_c),
        ("busy", state.busy),
        ("idle", state.idle),
        ("throttled_by", state.reasons),
        ("processes", len(state.processes)),
        ("error", error),
    )
