"""Asks a script alone whether predicates hold: in a fresh process, under any interpreter that has torch."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.measuring.script_process import OwnChildError, OwnProgram, ScriptProcess
from inductor_probe.model.codec import from_json
from inductor_probe.reduction.child import ReducingOptions
from inductor_probe.reduction.predicates import Shown

CHILD = Path(__file__).with_name("child.py")
PATIENCE_S = 3600.0


def asked(program: OwnProgram, request: ReducingOptions) -> Shown:
    """Return what a script shows; of a process that ended before, why that was."""
    with ScriptProcess(program, CHILD, lambda _: request, patience=PATIENCE_S) as process:
        try:
            events = [event for event in process.events() if event["event"] == "final"]
        except OwnChildError as error:
            return Shown(False, (f"its process ended: {error.message or error.code}",))
    return from_json(Shown, events[0]["answer"])
