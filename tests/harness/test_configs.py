"""Configs of a kernel: read, compiled, checked, timed. Here without a GPU: real kernels are compiled for one
and never launched; launches are functions of Python. `tests/gpu/test_configs.py` has the rest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime import triton_helpers, triton_heuristics

from inductor_probe.harness.configs import (
    ConfigTime,
    asked_configs,
    compiled_trial,
    config_values,
    fresh_autotuner,
    parse_configs,
    time_configs,
)
from inductor_probe.harness.remarks import Remark, sentence
from inductor_probe.harness.replays import Launch
from tests.conftest import DUMPS


@dataclass
class Config:
    """What `triton.Config` is to the harness."""

    kwargs: dict[str, int]
    num_warps: int = 4
    num_stages: int = 1
    num_ctas: int = 1
    maxnreg: int | None = None
    found_by_coordesc: bool = False


def double(source: torch.Tensor, out: torch.Tensor, state: torch.Tensor) -> None:
    out[: out.numel() - 1].copy_(2 * source[: out.numel() - 1])
    state.add_(1)


def forgets_the_end(source: torch.Tensor, out: torch.Tensor, state: torch.Tensor) -> None:
    out[: out.numel() // 2].copy_(2 * source[: out.numel() // 2])
    state.add_(1)


def writes_too_far(source: torch.Tensor, out: torch.Tensor, state: torch.Tensor) -> None:
    double(source, out, state)
    out[-1] = 0


def drifts(source: torch.Tensor, out: torch.Tensor, state: torch.Tensor) -> None:
    double(source, out, state)
    state.add_(1)


BODIES = {64: forgets_the_end, 128: writes_too_far, 256: drifts}


class Launcher:
    """What inductor makes of a compiled config; also the compiled config itself."""

    def __init__(self, kernel: Kernel, config: Config) -> None:
        self.kernel, self.config = kernel, config
        self.n_regs = 20 + config.num_warps
        self.n_spills = 40 if config.kwargs["XBLOCK"] == 1024 else 0
        self.shared = 0
        self.error = 0.0

    def make_launcher(self) -> Launcher:
        return self

    def __call__(self, source: Any, out: Any, state: Any, numel: int, *, stream: int) -> None:
        assert (numel, stream) == (out.numel(), 77)
        block = self.config.kwargs["XBLOCK"]
        if block == 2048:
            raise RuntimeError("out of resources: shared memory")
        self.kernel.last = self.config
        BODIES.get(block, double)(source, out, state)
        if self.error:
            out[5] = 100.0 * self.error


class Kernel:
    """What a CachingAutotuner is to the harness; block sizes choose what is computed, and its time."""

    filename = None
    mutated_arg_names = ("in_out_ptr0",)
    inductor_meta: dict[str, Any] = {"spill_threshold": 16}  # noqa: RUF012
    custom_kernel = False

    def __init__(self, *configs: Config) -> None:
        self.configs = list(configs)
        self.fn = self
        self.arg_names = ["in_ptr0", "out_ptr0", "in_out_ptr0", "xnumel", "XBLOCK"]
        self.triton_meta = {"signature": {"in_ptr0": "*fp32", "XBLOCK": "constexpr"}}
        self.launchers: list[Any] = []

    def run(self, *args: Any, stream: int) -> None:
        self.launchers = [self._precompile_config(self.configs[0]).make_launcher()]
        self.launchers[0](*args, stream=stream)

    def _precompile_config(self, config: Config) -> Any:
        if config.kwargs["XBLOCK"] & (config.kwargs["XBLOCK"] - 1):
            raise ValueError("arange's range must be a power of 2\nand more")
        return Launcher(self, config)

    last: Config | None = None


@dataclass
class Clock:
    """Counts a microsecond for each unit of XBLOCK, and checks what each call starts with."""

    kernel: Kernel
    states: set[float] = field(default_factory=set)

    def __call__(self, run: Callable[[], object], calls: int, before: Callable[[], None] | None) -> float:
        for _ in range(calls):
            assert before is not None
            before()
            run()
        assert self.kernel.last is not None
        return self.kernel.last.kwargs["XBLOCK"] * 1e-6


def said(config: ConfigTime) -> str:
    return sentence(config.remark) if config.remark else ""


def found_for(kernel: Kernel, extra: str = "") -> tuple[dict[int, ConfigTime], list[Any]]:
    args = (torch.randn(1000), torch.zeros(1000), torch.zeros(3), 1000)
    kept = deepcopy(args)
    found = time_configs(
        kernel,
        Launch("run", args, {"stream": 77}),
        extra,
        clock=Clock(kernel),
        seconds=0.0,
        remarks=[],
        fresh=lambda kernel, remarks: kernel,
    )
    assert all(torch.equal(a, b) for a, b in zip(args[:3], kept[:3], strict=True))
    return {each.values["XBLOCK"]: each for each in found}, found


def test_every_config_is_timed_and_the_chosen_one_is_marked() -> None:
    found, order = found_for(Kernel(Config({"XBLOCK": 512}), Config({"XBLOCK": 1024})), "XBLOCK=1,8,32")
    assert [each.values["XBLOCK"] for each in order] == [1, 8, 32, 512, 1024]
    assert all(each.correct and len(each.samples) >= 7 for each in order)
    assert [size for size, each in found.items() if each.chosen] == [512]
    assert found[8].plain()["median"] == pytest.approx(8e-6)
    assert {size: each.origin for size, each in found.items()} == {
        512: "inductor", 1024: "inductor", 1: "asked", 8: "asked", 32: "asked",
    }  # fmt: skip
    assert found[32].registers == 24


def test_one_that_spills_is_timed_like_the_others_and_named() -> None:
    found, _ = found_for(Kernel(Config({"XBLOCK": 512}), Config({"XBLOCK": 1024})))
    assert found[1024].spills == 40
    assert found[1024].samples
    assert said(found[1024]) == "inductor leaves it out: more than 16 words are spilled"


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (64, r"WRONG in 49\d of 2003 elements, first at \[\d+\]"),  # what it does not write stays poisoned
        (128, r"WRONG in 1 of 2003 elements, first at \[999\]"),  # what it writes too much stays no poison
        (256, r"WRONG in 3 of 2003 elements, first at \[0\]"),
    ],
)
def test_a_wrong_config_gets_no_time(block: int, says: str) -> None:
    found, _ = found_for(Kernel(Config({"XBLOCK": 512})), f"XBLOCK={block}")
    assert found[block].correct is False
    assert not found[block].samples
    assert re.match(says, said(found[block])), said(found[block])


def test_what_does_not_compile_or_run_is_listed_with_the_reason() -> None:
    found, order = found_for(Kernel(Config({"XBLOCK": 512})), "XBLOCK=3,2048,8192")
    assert said(found[3]) == "does not compile: ValueError: arange's range must be a power of 2"
    assert said(found[2048]) == "does not run: RuntimeError: out of resources: shared memory"
    assert "too large" in said(found[8192])  # torch's own limit, for which it leaves masks out
    assert [bool(each.samples) for each in order] == [True, False, False, False]


def test_json_has_the_fastest_first_with_medians() -> None:
    _, order = found_for(Kernel(Config({"XBLOCK": 512})), "XBLOCK=8,64 num_warps=2")
    plain = [each.plain() for each in order]
    assert plain[0]["median"] == pytest.approx(8e-6)
    assert plain[2]["median"] is None


def test_a_reduction_may_sum_in_another_order_as_far_as_inductors_own_configs_differ() -> None:
    class Sums(Kernel):
        def _precompile_config(self, config: Config) -> Any:
            launcher = super()._precompile_config(config)
            launcher.error = 1 + {512: 0.0, 1024: 3e-4, 8: 5e-4, 16: 2e-2}[config.kwargs["XBLOCK"]]
            return launcher

    found, _ = found_for(Sums(Config({"XBLOCK": 512}), Config({"XBLOCK": 1024})), "XBLOCK=8,16")
    assert {size: each.correct for size, each in found.items()} == {
        512: True, 1024: True, 8: True, 16: False,
    }  # fmt: skip


def test_configs_are_read_from_text() -> None:
    assert parse_configs("XBLOCK=1,8 num_warps=4") == {"XBLOCK": [1, 8], "num_warps": [4]}
    with pytest.raises(ValueError, match="cannot read 'XBLOCK=a'"):
        parse_configs("XBLOCK=a")
    base = Config({"XBLOCK": 512, "R0_BLOCK": 16})
    parameters = ["in_ptr0", "XBLOCK", "R0_BLOCK"]
    made = asked_configs("RBLOCK=1,2 num_warps=8,16", base, parameters)
    assert [config_values(config) for config in made] == [
        {"XBLOCK": 512, "R0_BLOCK": r, "num_warps": warps, "num_stages": 1}
        for r in (1, 2)
        for warps in (8, 16)
    ]
    assert base.num_warps == 4
    with pytest.raises(ValueError, match="no YBLOCK to set; it has XBLOCK, R0_BLOCK, num_warps, num_stages"):
        asked_configs("YBLOCK=4", base, parameters)
    assert asked_configs("", base, parameters) == []


@pytest.fixture
def real_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first Triton kernel of a real dump, as inductor loads it; there need be no GPU for that."""
    pytest.importorskip("triton", reason="triton is not installed")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(triton_helpers, "set_driver_to_gpu", lambda: None)
    file = next((DUMPS / "torch-2.11.0-cuda" / "layernorm_grad").glob("*/*/*forward*/output_code.py"))
    match = re.search(r"async_compile\.triton\('(\w+)', '''(.*?)'''", file.read_text(), re.DOTALL)
    assert match
    return getattr(PyCodeCache.load(match[2]), match[1])


def test_all_configs_of_a_real_kernel_are_there_again_after_one_was_chosen(real_kernel: Any) -> None:
    tried = [config_values(config) for config in real_kernel.configs]
    assert tried
    assert "XBLOCK" in tried[0]
    real_kernel.configs = None  # as inductor leaves it once it has compiled them
    remarks: list[Remark] = []
    again = fresh_autotuner(real_kernel, remarks)
    assert again is not real_kernel
    assert [config_values(config) for config in again.configs] == tried
    assert not remarks


@pytest.mark.compiles
def test_real_configs_compile_for_a_gpu_and_a_bad_one_is_refused(
    real_kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launcher_without_gpu(result: Any) -> Any:
        binary = result.kernel

        def launcher(*_: Any, **__: Any) -> None:
            raise AssertionError("nothing is launched here")

        launcher.config, launcher.shared = result.config, binary.metadata.shared  # type: ignore[attr-defined]
        return launcher

    for result in ("TritonCompileResult", "StaticTritonCompileResult"):
        monkeypatch.setattr(getattr(triton_heuristics, result), "make_launcher", launcher_without_gpu)
    # Not by monkeypatch: undoing that would take the setting out of torch's configuration.
    with torch._inductor.config.patch(use_static_triton_launcher=False):
        begin = time.perf_counter()
        tuner = fresh_autotuner(real_kernel, [])
        base = tuner.configs[0]
        asked = asked_configs("XBLOCK=1,3,1048576", base, list(tuner.fn.arg_names))
        one, three, huge = (compiled_trial(tuner, config, "asked") for config in asked)
    assert one.result.remark is None
    assert one.result.shared is not None
    assert one.launcher is not None
    assert "power of 2" in said(three.result)
    assert "too large" in said(huge.result)
    print(f"compiled in {time.perf_counter() - begin:.1f} s")
