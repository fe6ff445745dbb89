from __future__ import annotations

import time
from itertools import count
from pathlib import Path

from inductor_probe.health.load import load_findings, timer_finding, timer_step
from inductor_probe.machine.cpu import CpuState


def test_an_idle_machine_is_fine() -> None:
    (found,) = load_findings(CpuState(4, governors=("performance",)))
    assert (found.level, found.text) == (
        "fine",
        "4 processors, 0.0 of them busy, no quota, governor performance",
    )


def test_each_hazard_is_a_note_with_its_remedy() -> None:
    state = CpuState(2, quota=1.5, period_s=0.1, busy=1.0, stolen=0.2, governors=("powersave",))
    first, *notes = load_findings(state)
    assert first.level == "fine"
    assert [note.level for note in notes] == ["note"] * 4
    said = [f"{note.text}; {note.remedy}" for note in notes]
    for sentence, word in zip(said, ("cpu.max", "busy", "hypervisor", "governor"), strict=True):
        assert word in sentence


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
