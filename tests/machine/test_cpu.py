"""The processors, as files under /proc and /sys tell them, and what of their state spoils times."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.machine.cpu import CpuState, cpu_state, fixed_threads, hazards
from inductor_probe.report.words.remarks import sentence

STAT = "cpu  9 9 9 9 9 9 9 9 0 0\n{0}\n{1}\ncpu2 0 0 0 0 0 0 0 0 0 0\nintr 1\n"


class Machine:
    """Files that stand for /proc and /sys, and a clock that lets the processors work."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/stat", STAT.format("cpu0 100 0 100 500 0 0 0 0 0 0", "cpu1 0 0 0 900 0 0 0 0 0 0"))
        self.write("proc/loadavg", "1.25 0.80 0.10 2/97 5195\n")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def later(self, seconds: float) -> None:
        assert seconds == 0.2
        # cpu0 worked for 15 of 20 ticks, cpu1 waited for its disk and was taken away for 2
        self.write("proc/stat", STAT.format("cpu0 110 0 105 505 0 0 0 0 0 0", "cpu1 0 0 0 910 8 0 0 2 0 0"))

    def state(self, *allowed: int) -> CpuState:
        return cpu_state(self.root, set(allowed), sleep=self.later)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_busy_and_stolen_processors_are_counted(machine: Machine) -> None:
    assert machine.state(0, 1) == CpuState(2, busy=0.75, stolen=0.1, load=1.25)


def test_only_processors_that_this_process_may_use_count(machine: Machine) -> None:
    assert (machine.state(1).busy, machine.state(1).processors) == (0.0, 1)


def test_the_tightest_control_group_counts(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/user/box\n")
    machine.write("sys/fs/cgroup/user/box/cpu.max", "max 100000\n")
    assert machine.state(0).quota is None
    machine.write("sys/fs/cgroup/user/cpu.max", "150000 100000\n")
    assert (machine.state(0).quota, machine.state(0).period_s) == (1.5, 0.1)
    machine.write("sys/fs/cgroup/user/box/cpu.max", "10000 20000\n")
    assert (machine.state(0).quota, machine.state(0).period_s) == (0.5, 0.02)


def test_a_container_sees_its_own_group_as_the_root(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/../other\n")
    machine.write("sys/fs/cgroup/cpu.max", "200000 100000\n")
    assert machine.state(0).quota == 2.0


def test_older_control_groups(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/box\n")
    machine.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n")
    machine.write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n")
    machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    machine.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert machine.state(0).quota == 0.5


def test_governors(machine: Machine) -> None:
    for number, governor in enumerate(("powersave", "performance", "powersave")):
        machine.write(f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor", f"{governor}\n")
    assert machine.state(0, 1).governors == ("powersave", "performance")
    assert machine.state(1).governors == ("performance",)


def test_nothing_there_is_nothing_known(tmp_path: Path) -> None:
    assert cpu_state(tmp_path, {0, 1}, sleep=lambda _: None) == CpuState(2)


def test_this_machine() -> None:
    state = cpu_state(seconds=0.05)
    assert state.processors >= 1
    assert 0 <= state.busy <= state.processors
    assert state.load is not None


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
    (remark,) = hazards(kernels, CpuState(2, busy=1.0))
    said = sentence(remark)
    assert [remark.subject.name] == list(kernels)
    assert said.startswith("other processes keep 1.0 of 2 processors busy: 2 threads wait for each other")
    hint = "OMP_NUM_THREADS" if kernels is FIXED else "--threads"
    assert said.endswith(f"a smaller {hint}")


def test_one_thread_needs_one_processor() -> None:
    assert hazards(SERIAL, CpuState(2, busy=1.0)) == ()
    assert hazards(FREE, CpuState(2, busy=1.0), threads=1) == ()
    (said,) = map(sentence, hazards(SERIAL, CpuState(2, busy=1.9)))
    assert said.startswith("other processes keep 1.9 of 2 processors busy: times can be longer")


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
