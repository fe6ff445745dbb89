"""What the child reports to the parent: a JSON object a line, appended at once: a kill loses nothing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inductor_probe.model.manifest import NoteCode

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

    def note(self, code: NoteCode, **values: str) -> None:
        """Say in the manifest what could not be recorded."""
        self.write("note", code=code, values=values)

    def refuse(self, message: str, hint: str | None) -> None:
        """Say that the script was not started, and why: the parent shows that, and there is no run."""
        self.write("refused", message=message, hint=hint)


class EventReader:
    """The events in a staging folder, as they are written."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVENTS_NAME
        self._read = 0  # bytes

    def new_events(self, *, ended: bool) -> list[dict[str, Any]]:
        """Return the events since the last call, in order.

        Args:
            ended: nobody writes any more: a line that a kill or a full disk has cut short becomes a note.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:  # the script has not been started yet, or never was
            return []
        if not ended:
            data = data[: data.rfind(b"\n") + 1]
        self._read += len(data)
        events: list[dict[str, Any]] = []
        for line in data.splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                events.append({"event": "note", "code": "event-lost", "values": {}})
        return events
