"""Configs of real Triton kernels, compiled, checked and timed on a GPU. No time is asserted."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.configs import ConfigTime, time_configs
from inductor_probe.harness.gpu_clock import GpuClock, ProfiledStream
from inductor_probe.harness.inputs import changed, clone
from inductor_probe.harness.remarks import Remark, sentence
from inductor_probe.harness.replays import Launch, record
from tests.conftest import DUMPS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
Times = Callable[..., list[ConfigTime]]


@pytest.fixture(scope="module")
def clock() -> GpuClock:
    return GpuClock(ProfiledStream("cuda"))


def module_of(pattern: str) -> ModuleType:
    """Run the `output_code.py` of a fixture of this project."""
    (path,) = (DUMPS / "torch-2.11.0-cuda").glob(f"{pattern}/output_code.py")
    spec = importlib.util.spec_from_file_location("dumped_" + path.parent.name.replace(".", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launch_of(module: ModuleType, kind: str) -> tuple[str, Any, Launch]:
    """Return the first kernel whose name starts with `kind`, and what it is launched with."""
    name = next(name for name in vars(module) if name.startswith(kind))
    vars(module).update(GRAPH=module.__name__, KERNELS=[name], NO_REFERENCE="not needed")
    launches = record(Bench(vars(module)), "call", name, module.get_args())
    assert launches, f"{name} is not launched"
    return name, getattr(module, name), launches[0]


@pytest.mark.parametrize(
    ("graph", "kind", "extra"),
    [
        ("layernorm_grad/*/*/*forward*", "triton_per", "XBLOCK=1,2,8,64 num_warps=2,4,16"),
        ("layernorm_grad/*/*/*backward*", "triton_red", "XBLOCK=1,32 R0_BLOCK=32,512"),
        ("foreach_adam/*/*/*", "triton_for", "num_warps=1,2,16"),
    ],
)
def test_every_config_is_checked_and_timed(clock: GpuClock, graph: str, kind: str, extra: str) -> None:
    name, kernel, launch = launch_of(module_of(graph), kind)
    kept = clone([value for value in launch.args if isinstance(value, torch.Tensor)])
    remarks: list[Remark] = []
    found = time_configs(kernel, launch, extra, clock=clock, seconds=1.0, remarks=remarks)
    for each in found:
        print(name, each.plain())
    print(f"remarks: {[*remarks, *clock.remarks] or 'none'}")
    (chosen,) = [each for each in found if each.chosen]
    assert chosen.correct
    assert chosen.samples
    for each in found:
        assert each.samples or each.remark, each
        if each.origin != "asked":
            assert each.correct, each
        if each.samples:
            assert each.registers is not None
    assert sum(each.origin == "asked" and bool(each.samples) for each in found) >= 2
    now = [value for value in launch.args if isinstance(value, torch.Tensor)]
    assert changed(kept, now) == []


def test_a_block_too_large_is_refused_before_it_reads_beyond_its_buffers(clock: GpuClock) -> None:
    _, kernel, launch = launch_of(module_of("layernorm_grad/*/*/*forward*"), "triton_per")
    found = time_configs(kernel, launch, "XBLOCK=3,65536", clock=clock, seconds=0.1, remarks=[])
    reasons = {
        each.values["XBLOCK"]: sentence(each.remark) if each.remark else None
        for each in found
        if each.origin == "asked"
    }
    print(reasons)
    assert all(reasons[block] and "does not compile" in str(reasons[block]) for block in (3, 65536))


def test_the_source_of_a_kernel_that_a_worker_compiled_is_found() -> None:
    module = module_of("layernorm_grad/*/*/*forward*")
    kernel = next(value for name, value in vars(module).items() if name.startswith("triton_per"))
    assert kernel.filename is None or Path(kernel.filename).exists()
