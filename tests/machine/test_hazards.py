from __future__ import annotations

import pytest

from inductor_probe.machine.cpu import CpuState, fixed_threads, hazards
from inductor_probe.report.words.remarks import sentence

FIXED = {"cpp_fused_add_0": "#pragma omp parallel num_threads(2)\n{"}
FREE = {"cpp_fused_mul_1": "    #pragma omp parallel\n    {"}
SERIAL = {"cpp_fused_sub_2": "for (int64_t x0=0; x0<9; x0++)"}
IDLE = CpuState(2, governors=("performance",))


def test_threads_that_a_text_fixes() -> None:
    assert fixed_threads(FIXED["cpp_fused_add_0"]) == 2
    assert fixed_threads("#pragma omp parallel num_threads(4)\n#pragma omp parallel num_threads(3)") == 4
    assert fixed_threads(FREE["cpp_fused_mul_1"]) is None


@pytest.mark.parametrize("kernels", [FIXED, FREE, SERIAL, {}])
def test_an_idle_machine_has_none(kernels: dict[str, str]) -> None:
    assert hazards(kernels, IDLE) == ()


@pytest.mark.parametrize("kernels", [FIXED, FREE])
def test_threads_on_busy_processors(kernels: dict[str, str]) -> None:
    (said,) = map(sentence, hazards(kernels, CpuState(2, busy=1.0)))
    (name,) = kernels
    assert said.startswith(f"{name}: 2 threads, but other processes keep")
    assert "other processes keep 1.0 of 2 processors busy" in said
    hint = "OMP_NUM_THREADS" if kernels is FIXED else "--threads"
    assert said.endswith(f"a smaller {hint}")


def test_one_thread_needs_one_processor() -> None:
    assert hazards(SERIAL, CpuState(2, busy=1.0)) == ()
    assert hazards(FREE, CpuState(2, busy=1.0), threads=1) == ()
    (said,) = map(sentence, hazards(SERIAL, CpuState(2, busy=1.9)))
    assert "1 thread, but other processes keep 1.9 of 2 processors busy" in said


def test_a_little_work_of_others_is_passed_over() -> None:
    assert hazards(FIXED, CpuState(2, busy=0.1)) == ()


def test_more_threads_than_processors() -> None:
    (said,) = map(sentence, hazards(FIXED, CpuState(1)))
    assert said.startswith("cpp_fused_add_0: 2 threads on 1 processor wait")
    (said,) = map(sentence, hazards(FREE, IDLE, threads=8))
    assert said.startswith("cpp_fused_mul_1: 8 threads on 2 processors wait")


def test_a_quota_below_the_threads() -> None:
    (said,) = map(sentence, hazards(FIXED, CpuState(4, quota=1.5, period_s=0.1)))
    assert "has a quota of 1.5 processors (cpu.max)" in said
    assert "the rest of the period of 100 ms" in said
    assert hazards(FIXED, CpuState(4, quota=2.0)) == ()


def test_threads_that_do_not_reach_a_kernel() -> None:
    (said,) = map(sentence, hazards({**FIXED, **FREE}, IDLE, threads=1))
    assert said.startswith("--threads 1 has no effect on cpp_fused_add_0, generated for 2 threads;")
    assert hazards(FIXED, IDLE, threads=2) == ()


def test_a_hypervisor_and_a_governor() -> None:
    stolen, governor = map(
        sentence, hazards(SERIAL, CpuState(2, stolen=0.4, governors=("powersave", "performance")))
    )
    assert stolen.startswith("the hypervisor took 0.40 of 2 processors")
    assert governor.startswith("the governor powersave changes clocks")
