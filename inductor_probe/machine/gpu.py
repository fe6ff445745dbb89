"""What a GPU does while something is timed on it: clocks, what throttles them, power, other processes.

Read through NVML (the `pynvml` module of nvidia-ml-py) or else `nvidia-smi`; without both it is not known.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from inductor_probe.model.remark import Number, Remark, RemarkCode, Subject, measured

_DEVICE = re.compile(r"cuda(?::\d+)?")
REASONS = {
    0x4: "power_limit",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "power_brake",
}
"""What throttles clocks, by bit (`nvmlClocksEventReasons`). Bits of an idle GPU, of clocks that were set
and of displays slow nothing down against one's will."""
_IDLE = 0x1
_POLICIES = {0: "power_limit", 1: "thermal", 3: "board_limit", 5: "reliability"}
"""What throttles clocks, by number (`nvmlPerfPolicyType_t`), as far as NVML adds up the time."""
_BUSY = 0.3
"""Less of the last moment may be what a process of ours did, which has ended."""
_THROTTLED_S = 0.02
"""Seconds of it that are worth a remark."""
_MOST_PIDS = 4
_MOST_GPUS = 16
_QUERY = (
    "uuid", "name", "driver_version", "clocks.sm", "clocks.max.sm", "power.draw", "power.limit",
    "temperature.gpu", "utilization.gpu", "clocks_throttle_reasons.active",
)  # fmt: skip


class GpuState(Struct, frozen=True):
    """A GPU at one moment; None for what it does not report.

    Attributes:
        source: `nvml`, `nvidia-smi`, or None where neither could be asked: `why_not` says why.
        sm_mhz, max_sm_mhz: clocks of the multiprocessors, and the most they can do.
        power_w, limit_w: as drawn and as allowed, in watts. temperature_c: in degrees Celsius.
        busy: share of the last moment in which a kernel ran, 0 to 1.
        reasons: what throttles its clocks at this moment, see `REASONS`. idle: it has nothing to do, and so
            low clocks.
        throttled_s: for what throttles clocks, the seconds that it did since the driver was loaded: what
            happened between two states, however short, is their difference.
        processes: numbers of the processes that compute on it; inside a container they may be those outside.
    """

    source: str | None
    why_not: str | None = None
    name: str | None = None
    driver: str | None = None
    sm_mhz: float | None = None
    max_sm_mhz: float | None = None
    power_w: float | None = None
    limit_w: float | None = None
    temperature_c: float | None = None
    busy: float | None = None
    reasons: tuple[str, ...] = ()
    idle: bool = False
    processes: tuple[int, ...] = ()
    throttled_s: tuple[tuple[str, float], ...] = ()


def names_gpu(source: str) -> bool:
    """Tell whether generated code names a GPU: a text in it is a device, as `torch.device` takes it.

    `empty_strided(..., device='cuda')` does, and neither a comment about one nor `'cuda_utils.h'`.
    """
    if "cuda" not in source:
        return False
    try:
        texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    except SyntaxError:  # whoever runs it says where
        return False
    return any(isinstance(text, str) and _DEVICE.fullmatch(text) for text in texts)


def gpu_states(
    environment: Mapping[str, str] = os.environ,
    dev: Path = Path("/dev"),
    ask: Callable[[str], GpuState] | None = None,
) -> tuple[GpuState, ...]:
    """Return the state of each GPU that CUDA may use here; empty without one.

    `dev` is where the driver puts a file for each GPU; `ask` reads the state of one, by number or UUID.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    files = len(list(dev.glob("nvidia[0-9]*")))
    if not files and not (dev / "dxg").exists():  # of a GPU in WSL
        return ()
    names = [str(number) for number in range(files)] or ["0"]
    if visible is not None:
        names = [name.strip() for name in visible.split(",") if name.strip()]
        names = names[: names.index("-1")] if "-1" in names else names
    return tuple(map(ask or gpu_state, names[:_MOST_GPUS]))


def has_gpu(states: tuple[GpuState, ...], dev: Path = Path("/dev")) -> bool:
    """Whether there is a GPU that compiled code could run on: NVIDIA's, or AMD's."""
    return bool(states) or (dev / "kfd").exists()


def gpu_state(
    device: str | None = None,
    *,
    nvml: Callable[[], Any] = lambda: importlib.import_module("pynvml"),
    run: Callable[[list[str]], str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> GpuState:
    """Read the state of a GPU.

    `device` is its number or UUID as NVML counts; None for the first that CUDA may use here
    (`CUDA_VISIBLE_DEVICES` of `environment`). `nvml` imports pynvml, and `run` runs a command.
    """
    if device is None:
        device = environment.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"
    failed = []
    for source in ("NVML", "nvidia-smi"):
        try:
            return _by_nvml(nvml(), device) if source == "NVML" else _by_command(run or _run, device)
        except Exception as error:  # pynvml has exceptions of its own, and may not be there
            failed.append(f"{source}: {next(iter(str(error).splitlines()), '') or type(error).__name__}")
    return GpuState(None, f"clocks of the GPU are not available ({'; '.join(failed)})")


def _by_nvml(nvml: Any, device: str) -> GpuState:
    nvml.nvmlInit()
    try:
        if device.isdecimal():
            handle = nvml.nvmlDeviceGetHandleByIndex(int(device))
        else:
            handle = nvml.nvmlDeviceGetHandleByUUID(device)

        def ask(name: str, *arguments: object) -> Any:
            try:
                return getattr(nvml, name)(handle, *arguments)
            except (AttributeError, nvml.NVMLError):
                return None  # this GPU or this driver does not report it

        # its name before driver 535
        throttle = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        bits = next((bits for name in throttle if (bits := ask(name)) is not None), 0)
        return GpuState(
            "nvml",
            name=_text(ask("nvmlDeviceGetName")),
            driver=_text(nvml.nvmlSystemGetDriverVersion()),
            sm_mhz=_number(ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)),
            max_sm_mhz=_number(ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM)),
            power_w=_number(ask("nvmlDeviceGetPowerUsage"), 1e-3),
            limit_w=_number(ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            temperature_c=_number(ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)),
            busy=_number(getattr(ask("nvmlDeviceGetUtilizationRates"), "gpu", None), 0.01),
            reasons=reasons_of(bits),
            idle=bool(bits & _IDLE),
            processes=tuple(
                sorted(process.pid for process in ask("nvmlDeviceGetComputeRunningProcesses") or ())
            ),
            throttled_s=tuple(
                (reason, float(status.violationTime) * 1e-9)
                for policy, reason in _POLICIES.items()
                if (status := ask("nvmlDeviceGetViolationStatus", policy)) is not None
            ),
        )
    finally:
        nvml.nvmlShutdown()


def _by_command(run: Callable[[list[str]], str], device: str) -> GpuState:
    line = run(
        ["nvidia-smi", f"--id={device}", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    )
    values = dict(zip(_QUERY, (value.strip() for value in line.strip().split(",")), strict=False))
    if len(values) < len(_QUERY):
        raise ValueError(f"it printed {line.strip()[:80]!r}")
    listed = run(["nvidia-smi", f"--id={device}", "--query-compute-apps=pid", "--format=csv,noheader"])
    active = values["clocks_throttle_reasons.active"]
    bits = int(active, 16) if active.startswith("0x") else 0
    return GpuState(
        "nvidia-smi",
        name=values["name"],
        driver=values["driver_version"],
        sm_mhz=_number(values["clocks.sm"]),
        max_sm_mhz=_number(values["clocks.max.sm"]),
        power_w=_number(values["power.draw"]),
        limit_w=_number(values["power.limit"]),
        temperature_c=_number(values["temperature.gpu"]),
        busy=_number(values["utilization.gpu"], 0.01),
        reasons=reasons_of(bits),
        idle=bool(bits & _IDLE),
        processes=tuple(sorted(int(word) for word in listed.split() if word.isdecimal())),
    )


def reasons_of(bits: int) -> tuple[str, ...]:
    """Name what throttles clocks, of the bits that NVML gives."""
    return tuple(name for bit, name in REASONS.items() if bits & bit)


def gpu_remarks(
    before: GpuState, after: GpuState | None = None, own: Collection[int] = ()
) -> tuple[Remark, ...]:
    """Return what spoils times on this GPU, from its state before and after; `own` are our processes."""
    states = [state for state in (before, after) if state is not None]
    if all(state.source is None for state in states):
        return (_hazard("gpu-not-readable", {"reason": before.why_not}),)
    remarks = []
    if reasons := dict.fromkeys(reason for state in states for reason in state.reasons):
        slow = [state for state in states if state.reasons and state.sm_mhz and state.max_sm_mhz]
        numbers: dict[str, Number | None] = {"reasons": ", ".join(reasons)}
        numbers |= {"mhz": slow[-1].sm_mhz, "max_mhz": slow[-1].max_sm_mhz} if slow else {}
        remarks.append(_hazard("gpu-throttled", numbers))
    elif durations := throttled_between(before, after):
        remarks.append(
            _hazard("gpu-was-throttled", {f"{reason}_s": seconds for reason, seconds in durations})
        )
    if others := sorted(set(before.processes) - set(own)):
        pids = ", ".join(map(str, others[:_MOST_PIDS]))
        remarks.append(_hazard("gpu-shared", {"processes": len(others), "pids": pids}))
    elif before.busy and before.busy > _BUSY:
        remarks.append(_hazard("gpu-busy", {"busy": before.busy}))
    return tuple(remarks)


def _hazard(code: RemarkCode, numbers: Mapping[str, Number | None]) -> Remark:
    return measured(code, "hazard", Subject("machine", "gpu"), numbers)


def throttled_between(before: GpuState, after: GpuState | None) -> list[tuple[str, float]]:
    """Return what throttled the clocks between two states, and for how many seconds."""
    known = dict(before.throttled_s)
    later = after.throttled_s if after is not None else ()
    durations = [(reason, seconds - known[reason]) for reason, seconds in later if reason in known]
    return [(reason, seconds) for reason, seconds in durations if seconds >= _THROTTLED_S]


def _number(value: Any, factor: float = 1) -> float | None:
    try:
        return round(float(value) * factor, 6)
    except (TypeError, ValueError):
        return None


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
