"""What a recorder writes down is held against the catalogue, and a compile goes on whatever it is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.recorders import decision_log
from inductor_probe.capture.recorders.decision_log import DecisionLog
from inductor_probe.model.decision import DECISIONS_NAME
from inductor_probe.store.decisions import read_decisions
from tests.builders import PLACE


class Notes:
    """Keeps notes in the place of the log of a process."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def note(self, code: str, **values: str) -> None:
        self.errors.append(f"{code}: {values['error']}")


def test_a_cause_or_an_operand_without_an_entry_is_noted_once_and_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_log, "debug_folder", lambda: str(tmp_path))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.13.0"))
    notes = Notes()
    log = DecisionLog(cast(EventLog, notes))
    log.recorded("tiling")
    for number in range(3):
        about = ((f"op{number}",),)
        log.record("tiling", about, "one-d-tiles", "one-candidate", PLACE, operands={"tiling": "x=32"})
        log.record("tiling", about, "one-d-tiles", "too-hot", PLACE, operands={})
        log.record("tiling", about, "one-d-tiles", "tile-limit", PLACE, operands={"limit": "one"})
    log.write(str(tmp_path))
    assert notes.errors == [
        "recorder-failed: ProbeError: tiling: too-hot is not in the catalogue",
        "recorder-failed: ProbeError: tiling: tile-limit: limit is 'one', not of type int",
    ]
    assert len(read_decisions(tmp_path / DECISIONS_NAME).decisions) == 9
