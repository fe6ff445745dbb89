from __future__ import annotations

from pathlib import Path

from inductor_probe.health.examine import gpu_diagnostics
from inductor_probe.machine.gpu import GpuState, gpu_states, has_gpu
from inductor_probe.model.health import TorchSetup
from tests.health.words import remedy, text

BUSY = GpuState(
    "nvml",
    name="NVIDIA H200",
    driver="580.1",
    sm_mhz=1200.0,
    max_sm_mhz=1980.0,
    power_w=699.8,
    limit_w=700.0,
    temperature_c=85.0,
    reasons=("power_limit",),
    processes=(7,),
)
COOL = GpuState("nvml", name="NVIDIA H200", driver="580.1", sm_mhz=345.0, max_sm_mhz=1980.0, idle=True)
CUDA = TorchSetup(version="2.13", cuda="13.0", devices=("NVIDIA H200",))


def test_no_gpu_is_a_plain_line(tmp_path: Path) -> None:
    assert gpu_states({}, tmp_path) == ()
    assert not has_gpu((), tmp_path)
    (found,) = gpu_diagnostics(TorchSetup(version="2.13"), ())
    assert (found.level, text(found)) == ("ok", "none: inductor compiles C++ for the CPU")


def test_each_gpu_that_cuda_may_use_is_asked(tmp_path: Path) -> None:
    for number in (0, 1, 2):
        (tmp_path / f"nvidia{number}").touch()
    (tmp_path / "nvidiactl").touch()
    asked: list[str] = []

    def ask(name: str) -> GpuState:
        asked.append(name)
        return COOL

    assert len(gpu_states({}, tmp_path, ask)) == 3
    gpu_states({"CUDA_VISIBLE_DEVICES": "2, GPU-ab"}, tmp_path, ask)
    assert gpu_states({"CUDA_VISIBLE_DEVICES": ""}, tmp_path, ask) == ()
    assert gpu_states({"CUDA_VISIBLE_DEVICES": "-1"}, tmp_path, ask) == ()
    assert asked == ["0", "1", "2", "2", "GPU-ab"]


def test_what_throttles_clocks_and_who_else_computes_is_a_warning() -> None:
    (found,) = gpu_diagnostics(CUDA, (BUSY,))
    assert found.level == "warning"
    assert "NVIDIA H200, driver 580.1, 1200 of 1980 MHz, 700 of 700 W, 85 C" in text(found)
    assert "throttled by the power limit" in text(found)
    assert "1 other process runs" in text(found)
    (cool,) = gpu_diagnostics(CUDA, (COOL,))
    assert (cool.level, "345 of 1980 MHz (idle)" in text(cool)) == ("ok", True)


def test_a_gpu_that_torch_cannot_use_says_why() -> None:
    errors = (("devices", "RuntimeError: the driver is too old"),)
    (found,) = gpu_diagnostics(TorchSetup(version="2.13", cuda="13.0", errors=errors), (COOL,))
    assert found.level == "warning"
    assert "torch cannot use it: RuntimeError: the driver is too old" in text(found)


def test_unknown_clocks_are_a_warning_with_the_way_to_know_them() -> None:
    (found,) = gpu_diagnostics(CUDA, (GpuState(None, "clocks of the GPU are not available (NVML: no)"),))
    assert (found.level, remedy(found)) == ("warning", "pip install nvidia-ml-py")
    (amd,) = gpu_diagnostics(TorchSetup(version="2.13", hip="7.0", devices=("MI300X",)), ())
    assert "MI300X" in text(amd)
    assert "rocm-smi" in str(remedy(amd))
