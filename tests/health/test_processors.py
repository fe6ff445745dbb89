from __future__ import annotations

from itertools import count
from pathlib import Path

from inductor_probe.health.examine import processors_diagnostic, timer_diagnostic
from inductor_probe.machine.cpu import CpuState, clock_source, timer_step
from inductor_probe.model.health import Diagnostic, MachineHealth
from inductor_probe.report.health import HealthText
from inductor_probe.report.shown import to_text
from tests.health.words import remedy, text


def test_an_idle_machine_is_ok() -> None:
    found = processors_diagnostic(CpuState(4, governors=("performance",)))
    assert (found.level, text(found)) == (
        "ok",
        "4 processors, 0.0 of them busy, no quota, governor performance",
    )


def test_hazards_are_part_of_the_one_diagnostic_about_processors() -> None:
    """A busy machine was `fine`, with a note on the next line that said the opposite."""
    state = CpuState(2, quota=1.5, period_s=0.1, busy=1.0, stolen=0.2, governors=("powersave",))
    found = processors_diagnostic(state)
    assert found.level == "warning"
    assert text(found).startswith("2 processors, 1.0 of them busy, a quota of 1.5 by the control group")
    for word in (
        "cpu.max",
        "other processes keep 1.0 of 2 processors busy",
        "the hypervisor",
        "the governor",
    ):
        assert word in text(found)
    for advice in ("wait until those are done", "cpupower frequency-set"):
        assert advice in (remedy(found) or "")


def test_the_timer_of_this_machine_is_finer_than_what_it_times(tmp_path: Path) -> None:
    step = dict(timer_diagnostic().facts)["step_s"]
    assert isinstance(step, float)
    assert 0 < step < 1e-3
    assert clock_source(tmp_path / "none") is None


def test_a_coarse_timer_is_a_warning(tmp_path: Path) -> None:
    clock = tmp_path / "current_clocksource"
    clock.write_text("acpi_pm\n")
    ticks = count()
    found = timer_diagnostic(timer_step(lambda: next(ticks) // 10 * 4e-6), clock_source(clock))
    assert (found.level, text(found)) == (
        "warning",
        "time.perf_counter has steps of 4000 ns, from acpi_pm",
    )
    assert timer_step(lambda: 1.0) == 0.0


def test_doctor_has_one_row_for_each_subject() -> None:
    misleading = (("name", "TRITON_DEBUG"), ("value", "1"))
    diagnostics = (
        Diagnostic("variables", "ok", "variable-not-known", (("name", "A"), ("value", "1"))),
        Diagnostic("debugpy", "ok", "debugpy", (("version", "1.8"),)),
        Diagnostic("variables", "warning", "variable-effect", misleading),
        Diagnostic("triton", "ok", "triton-not-asked", ()),
        Diagnostic("triton", "ok", "triton-not-needed", ()),
    )
    assert to_text(HealthText(MachineHealth(diagnostics)), 105).splitlines()[:-2] == [
        "warning  variables  TRITON_DEBUG=1: Triton kernels check as they run: other code, longer times; "
        "unset",
        "                    TRITON_DEBUG, unless that is what you want",
        "ok       variables  A=1: no known effect on dumps or timings",
        "ok       debugpy    1.8",
        "ok       triton     not checked, as torch is missing",
        "                    not installed; kernels for the CPU are C++ and need none",
    ]
