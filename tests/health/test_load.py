from __future__ import annotations

import time
from itertools import count
from pathlib import Path

from inductor_probe.health.load import load_finding, timer_finding, timer_step
from inductor_probe.machine.cpu import CpuState
from inductor_probe.model.health import Finding, MachineHealth
from inductor_probe.report.health import HealthText
from inductor_probe.report.shown import to_text


def test_an_idle_machine_is_fine() -> None:
    found = load_finding(CpuState(4, governors=("performance",)))
    assert (found.level, found.text) == (
        "fine",
        "4 processors, 0.0 of them busy, no quota, governor performance",
    )


def test_hazards_are_part_of_the_one_finding_about_processors() -> None:
    """A busy machine was `fine`, with a note on the next line that said the opposite."""
    state = CpuState(2, quota=1.5, period_s=0.1, busy=1.0, stolen=0.2, governors=("powersave",))
    found = load_finding(state)
    assert found.level == "note"
    assert found.text.startswith("2 processors, 1.0 of them busy, 1.5 paid for by the control group")
    for word in ("cpu.max", "others keep 1.0 of 2 processors busy", "the hypervisor", "the governor"):
        assert word in found.text
    for remedy in ("wait until those are done", "cpupower frequency-set"):
        assert remedy in (found.remedy or "")


def test_the_timer_of_this_machine_is_finer_than_what_it_times(tmp_path: Path) -> None:
    found = timer_finding()
    assert 0 < dict(found.facts)["step_s"] < 1e-3
    assert timer_finding(time.perf_counter, tmp_path / "none").facts[1] == ("source", None)


def test_a_coarse_timer_is_a_note(tmp_path: Path) -> None:
    clock = tmp_path / "current_clocksource"
    clock.write_text("acpi_pm\n")
    ticks = count()
    found = timer_finding(lambda: next(ticks) // 10 * 4e-6, clock)
    assert (found.level, found.text) == ("note", "time.perf_counter goes in steps of 4000 ns, from acpi_pm")
    assert timer_step(lambda: 1.0) == 0.0


def test_doctor_has_one_row_for_each_subject() -> None:
    findings = (
        Finding("variables", "fine", "A=1: harmless"),
        Finding("timer", "fine", "90 ns"),
        Finding("variables", "note", "B=1: misleads", "unset B"),
        Finding("disk", "fine", "dumps in /a"),
        Finding("disk", "fine", "caches in /b"),
    )
    assert to_text(HealthText(MachineHealth(findings)), 100).splitlines()[:-2] == [
        "note  variables  B=1: misleads; unset B",
        "fine  variables  A=1: harmless",
        "fine  timer      90 ns",
        "fine  disk       dumps in /a",
        "                 caches in /b",
    ]
