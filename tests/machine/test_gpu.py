"""The state of a GPU, as NVML or nvidia-smi tell it; both are played here, since tests run without a GPU."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from inductor_probe.machine.gpu import GpuState, gpu_sentences, gpu_state, reasons_of

POWER_CAP, THERMAL, IDLE, SET = 0x4, 0x40, 0x1, 0x2
SMI = "GPU-12ab, NVIDIA H200, 570.86.15, 1755, 1980, 3201, 412.50, 700.00, 61, 98, 0x0000000000000004\n"


class NvmlError(Exception):
    pass


def nvml(bits: int = 0, *, old: bool = False, refuses: tuple[str, ...] = ()) -> Any:
    answers = {
        "nvmlDeviceGetName": b"NVIDIA H200",
        "nvmlDeviceGetClockInfo": 1755,
        "nvmlDeviceGetMaxClockInfo": 1980,
        "nvmlDeviceGetPowerUsage": 412_500,
        "nvmlDeviceGetEnforcedPowerLimit": 700_000,
        "nvmlDeviceGetTemperature": 61,
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=98),
        "nvmlDeviceGetViolationStatus": SimpleNamespace(referenceTime=1, violationTime=1_500_000_000),
        "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=12), SimpleNamespace(pid=7)],
        f"nvmlDeviceGetCurrentClocks{'Throttle' if old else 'Event'}Reasons": bits,
    }

    def answer(name: str) -> Any:
        def ask(handle: str, *_: object) -> Any:
            assert handle == "handle of 1"
            if name in refuses:
                raise NvmlError("Not Supported")
            return answers[name]

        return ask

    return SimpleNamespace(
        **{name: answer(name) for name in answers},
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "570.86.15",
        nvmlDeviceGetHandleByIndex=lambda at: f"handle of {at}",
        nvmlDeviceGetHandleByUUID=lambda uuid: {"GPU-12ab": "handle of 1"}[uuid],
        NVMLError=NvmlError,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        NVML_TEMPERATURE_GPU=0,
    )


def no_module() -> Any:
    raise ModuleNotFoundError("No module named 'pynvml'")


def no_command(command: list[str]) -> str:
    raise FileNotFoundError(f"No such file or directory: {command[0]!r}")


def smi(command: list[str]) -> str:
    assert command[:2] == ["nvidia-smi", "--id=1"]
    return "12\n7\n" if "compute-apps" in command[2] else SMI


@pytest.mark.parametrize("old", [True, False])
def test_nvml_tells(old: bool) -> None:
    state = gpu_state("1", nvml=lambda: nvml(POWER_CAP | SET, old=old), run=no_command)
    assert (state.source, state.name, state.driver) == ("nvml", "NVIDIA H200", "570.86.15")
    assert (state.sm_mhz, state.max_sm_mhz, state.power_w, state.limit_w) == (1755, 1980, 412.5, 700)
    assert (state.busy, state.reasons, state.idle) == (0.98, ("the power limit",), False)
    assert state.processes == (7, 12)
    assert json.loads(json.dumps(state.plain()))["sm_mhz"] == 1755


def test_nvidia_smi_tells_the_same() -> None:
    by_nvml = gpu_state("1", nvml=lambda: nvml(POWER_CAP), run=no_command).plain()
    by_command = gpu_state("1", nvml=no_module, run=smi).plain()
    assert by_command == by_nvml | {"source": "nvidia-smi", "memory_mhz": 3201.0, "held": ()}


def test_a_part_that_a_gpu_does_not_tell_is_none() -> None:
    state = gpu_state("1", nvml=lambda: nvml(refuses=("nvmlDeviceGetPowerUsage",)), run=no_command)
    assert state.power_w is None
    assert state.sm_mhz == 1755
    line = SMI.replace("412.50", "[N/A]").replace("0x0000000000000004", "[N/A]")
    state = gpu_state("1", nvml=no_module, run=lambda command: "" if "apps" in command[2] else line)
    assert (state.power_w, state.reasons, state.processes) == (None, (), ())


def test_cuda_visible_devices_says_which() -> None:
    for visible in ("1,0", "GPU-12ab"):
        state = gpu_state(nvml=nvml, run=no_command, environment={"CUDA_VISIBLE_DEVICES": visible})
        assert state.source == "nvml", state


def test_without_both_it_says_so() -> None:
    state = gpu_state(nvml=no_module, run=no_command, environment={})
    assert state.source is None
    assert "No module named 'pynvml'" in (state.why_not or "")
    assert "nvidia-smi" in (state.why_not or "")
    (said,) = gpu_sentences(state)
    assert said.endswith("throttling would go unnoticed")


def test_what_nvidia_smi_prints_instead_of_values_is_shown() -> None:
    state = gpu_state(nvml=no_module, run=lambda _: "No devices were found", environment={})
    assert "No devices were found" in (state.why_not or "")


def test_reasons_that_slow_down_are_named_and_others_are_not() -> None:
    assert reasons_of(IDLE | SET | 0x100) == ()
    assert reasons_of(POWER_CAP | THERMAL) == ("the power limit", "its temperature (by hardware)")


def test_sentences_name_throttling_and_others() -> None:
    clear = GpuState("nvml", sm_mhz=1980, max_sm_mhz=1980, busy=0.0)
    slow = GpuState("nvml", sm_mhz=1755, max_sm_mhz=1980, reasons=("the power limit",))
    assert gpu_sentences(clear, clear) == ()
    (held,) = gpu_sentences(clear, slow)
    assert held.startswith("the GPU's clock is held back by the power limit (1755 of 1980 MHz)")
    shared = GpuState("nvml", processes=(7, 12), busy=1.0)
    assert gpu_sentences(shared, own=(7,)) == (
        "1 other process computes on this GPU (12): times hold their work, too",
    )
    assert "100% busy" in gpu_sentences(GpuState("nvml", busy=1.0))[0]


def test_throttling_between_two_looks_at_an_idle_gpu_is_said() -> None:
    """Before and after a process the GPU is idle, and holds nothing back: only the sums tell."""
    before = GpuState("nvml", idle=True, held=(("the power limit", 3.0), ("its temperature", 0.5)))
    after = GpuState("nvml", idle=True, held=(("the power limit", 4.25), ("its temperature", 0.5)))
    assert gpu_sentences(before, after) == (
        "the GPU's clock was held back by the power limit for 1.2 s meanwhile: times are too long",
    )
    assert gpu_sentences(before, before) == ()
    assert gpu_sentences(GpuState("nvml"), after) == ()


def test_times_that_clocks_were_held_back_are_read_in_seconds() -> None:
    found = gpu_state("1", nvml=nvml)
    assert found.held == (
        ("the power limit", 1.5), ("its temperature", 1.5), ("the board's limit", 1.5), ("reliability", 1.5),
    )  # fmt: skip
    assert gpu_state("1", nvml=lambda: nvml(refuses=("nvmlDeviceGetViolationStatus",))).held == ()
