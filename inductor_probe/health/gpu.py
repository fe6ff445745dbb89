"""The GPUs: what is there, clocks, what holds them back, and who else uses them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from inductor_probe.machine.gpu import GpuState, gpu_sentences, gpu_state
from inductor_probe.model.health import Fact, Finding, TorchSetup

_MOST = 16


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
    return tuple(ask(name) for name in (named or (["0"] if visible is None else []))[:_MOST])


def has_gpu(states: tuple[GpuState, ...], dev: Path = Path("/dev")) -> bool:
    """Whether there is a GPU that compiled code could run on: NVIDIA's, or AMD's."""
    return bool(states) or (dev / "kfd").exists()


def gpu_findings(setup: TorchSetup, states: tuple[GpuState, ...]) -> Iterator[Finding]:
    """Yield a finding for each GPU, or that there is none."""
    if not states and not setup.devices:
        yield Finding(
            "gpu", "fine", "none: inductor compiles C++ for the CPU", facts=_facts(GpuState(None), None)
        )
        return
    for at in range(max(len(states), len(setup.devices))):
        state = states[at] if at < len(states) else None
        name = setup.devices[at] if at < len(setup.devices) else None
        yield _one(at, state or GpuState(None), name, setup)


def _one(at: int, state: GpuState, name: str | None, setup: TorchSetup) -> Finding:
    facts = _facts(state, name)
    shown = name or state.name or "a GPU"
    if name is None and setup.version is not None and (setup.cuda or setup.hip):
        why = setup.error("devices") or "no reason given"
        remedy = "see whether nvidia-smi sees it, and whether the driver is as new as torch's CUDA"
        return Finding("gpu", "note", f"{at}: {shown}, and torch cannot use it: {why}", remedy, facts)
    if state.source is None:
        if setup.hip:
            remedy = "watch rocm-smi while something is timed"
            return Finding("gpu", "note", f"{at}: {shown}; clocks of AMD's are not read here", remedy, facts)
        why = state.why_not or "its clocks are not known"
        return Finding("gpu", "note", f"{at}: {shown}; {why}", "pip install nvidia-ml-py", facts)
    text = f"{at}: {shown}, {_numbers(state)}"
    if said := gpu_sentences(state):
        remedy = "wait until it is cool and free, or take another: nvidia-smi -q -d PERFORMANCE tells more"
        return Finding("gpu", "note", f"{text}; {'; '.join(said)}", remedy, facts)
    return Finding("gpu", "fine", text, facts=facts)


def _numbers(state: GpuState) -> str:
    parts = [f"driver {state.driver}" if state.driver else None]
    if state.sm_mhz and state.max_sm_mhz:
        idle = " (idle)" if state.idle else ""
        parts.append(f"{state.sm_mhz:g} of {state.max_sm_mhz:g} MHz{idle}")
    if state.power_w is not None and state.limit_w:
        parts.append(f"{state.power_w:.0f} of {state.limit_w:.0f} W")
    if state.temperature_c is not None:
        parts.append(f"{state.temperature_c:g} C")
    return ", ".join(part for part in parts if part) or "which tells nothing"


def _facts(state: GpuState, name: str | None) -> tuple[tuple[str, Fact], ...]:
    return (
        ("name", name or state.name),
        ("usable", name is not None),
        ("driver", state.driver),
        ("sm_mhz", state.sm_mhz),
        ("max_sm_mhz", state.max_sm_mhz),
        ("power_w", state.power_w),
        ("limit_w", state.limit_w),
        ("temperature_c", state.temperature_c),
        ("busy", state.busy),
        ("held_back_by", state.reasons),
        ("processes", len(state.processes)),
    )
