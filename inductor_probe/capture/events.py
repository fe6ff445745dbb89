"""What the child tells the parent: one JSON object a line, appended at once, so that a kill loses nothing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

EVENTS_NAME = "events.jsonl"


class EventLog:
    """Events of one process. A fork of it writes none: what it compiles is not this run's.

    Args:
        folder: the staging folder, in which the parent reads them.
    """

    def __init__(self, folder: Path) -> None:
        self.pid = os.getpid()
        self._file = os.open(folder / EVENTS_NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._complained = False

    def write(self, event: str, **fields: Any) -> None:
        """Append an event. A full disk costs the event, never the script's run."""
        if os.getpid() != self.pid:
            return
        line = json.dumps({"event": event, **fields}, default=str) + "\n"
        try:
            os.write(self._file, line.encode())  # one write: lines of two threads do not mix
        except OSError as error:
            if not self._complained:
                print(f"warning: probe dump cannot record: {error.strerror}", file=sys.stderr)
            self._complained = True

    def note(self, text: str) -> None:
        """Say in the manifest what could not be recorded."""
        self.write("note", text=text)

    def refuse(self, message: str, hint: str | None) -> None:
        """Say that the script was not started, and why: the parent tells the user, and keeps no run."""
        self.write("refused", message=message, hint=hint)


def read_events(folder: Path) -> list[dict[str, Any]]:
    """Return the events in order. A line that a kill or a full disk has cut short becomes a note."""
    path = folder / EVENTS_NAME
    if not path.exists():
        return []
    events = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            events.append({"event": "note", "text": "an event was cut short, and is lost"})
    return events
