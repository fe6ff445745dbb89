"""The state of a GPU, as NVML or nvidia-smi tell it; both are played here, since tests run without a GPU."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import asdict

from inductor_probe.machine.gpu import GpuState, gpu_remarks, gpu_state, names_gpu, reasons_of
from inductor_probe.report.words.remarks import sentence

POWER_CAP, THERMAL, IDLE, SET = 0x4, 0x40, 0x1, 0x2
SMI = "GPU-12ab, NVIDIA H200, 570.86.15, 1755, 1980, 412.50, 700.00, 61, 98, 0x0000000000000004\n"


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
    assert (state.busy, state.reasons, state.idle) == (0.98, ("power_limit",), False)
    assert state.processes == (7, 12)
    assert json.loads(json.dumps(asdict(state)))["sm_mhz"] == 1755


def test_nvidia_smi_tells_the_same() -> None:
    by_nvml = asdict(gpu_state("1", nvml=lambda: nvml(POWER_CAP), run=no_command))
    by_command = asdict(gpu_state("1", nvml=no_module, run=smi))
    assert by_command == by_nvml | {"source": "nvidia-smi", "throttled_s": ()}


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
    (remark,) = gpu_remarks(state)
    assert sentence(remark).endswith("throttling would go unnoticed")


def test_what_nvidia_smi_prints_instead_of_values_is_shown() -> None:
    state = gpu_state(nvml=no_module, run=lambda _: "No devices were found", environment={})
    assert "No devices were found" in (state.why_not or "")


def test_reasons_that_slow_down_are_named_and_others_are_not() -> None:
    assert reasons_of(IDLE | SET | 0x100) == ()
    assert reasons_of(POWER_CAP | THERMAL) == ("power_limit", "hardware_thermal")


def test_remarks_name_throttling_and_others() -> None:
    clear = GpuState("nvml", sm_mhz=1980, max_sm_mhz=1980, busy=0.0)
    slow = GpuState("nvml", sm_mhz=1755, max_sm_mhz=1980, reasons=("power_limit",))
    assert gpu_remarks(clear, clear) == ()
    (throttled,) = gpu_remarks(clear, slow)
    assert sentence(throttled).startswith(
        "the GPU's clock is throttled by the power limit (1755 of 1980 MHz)"
    )
    shared = GpuState("nvml", processes=(7, 12), busy=1.0)
    (others,) = gpu_remarks(shared, own=(7,))
    assert sentence(others) == "1 other process runs on this GPU (12): times include their work"
    assert others.numbers == (("processes", 1), ("pids", "12"))
    assert "100% busy" in sentence(gpu_remarks(GpuState("nvml", busy=1.0))[0])


def test_throttling_between_two_looks_at_an_idle_gpu_is_said() -> None:
    """Before and after a process the GPU is idle, and holds nothing back: only the sums tell."""
    before = GpuState("nvml", idle=True, throttled_s=(("power_limit", 3.0), ("thermal", 0.5)))
    after = GpuState("nvml", idle=True, throttled_s=(("power_limit", 4.25), ("thermal", 0.5)))
    (throttled,) = gpu_remarks(before, after)
    assert throttled.numbers == (("power_limit_s", 1.25),)
    assert sentence(throttled) == (
        "the GPU's clock was throttled by the power limit for 1.2 s during the measurement: "
        "times are too long"
    )
    assert gpu_remarks(before, before) == ()
    assert gpu_remarks(GpuState("nvml"), after) == ()


def test_times_that_clocks_were_throttled_are_read_in_seconds() -> None:
    found = gpu_state("1", nvml=nvml)
    assert found.throttled_s == (
        ("power_limit", 1.5), ("thermal", 1.5), ("board_limit", 1.5), ("reliability", 1.5),
    )  # fmt: skip
    assert gpu_state("1", nvml=lambda: nvml(refuses=("nvmlDeviceGetViolationStatus",))).throttled_s == ()


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("buf0 = empty_strided((2,), (1,), device='cuda')", True),
        ("x = rand_strided((2,), (1,), device='cuda:0', dtype=torch.float32)", True),
        ('async_compile.triton("k", """tl.load""", device_str="cuda")', True),
        ("device = torch.device(type='cuda', index=1)", True),
        ("# runs with device='cuda' as well\nx = 1", False),
        ("include = 'cuda_utils.h'", False),
        ("x = 'cpu'", False),
        ("x = 'cuda' if", False),
    ],
)
def test_code_names_a_gpu_where_a_text_in_it_is_a_device(code: str, named: bool) -> None:
    assert names_gpu(code) == named
