"""What a process reports to the supervisor: a JSON object a line, appended at once: a kill loses nothing.

Each process has a folder of its own for events and logs: the first one the staging folder itself, one that it
starts or forks `processes/<pid>-<time>` in it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inductor_probe.model.manifest import LOGS_DIR

if TYPE_CHECKING:
    from inductor_probe.model.manifest import NoteCode

EVENTS_NAME = "events.jsonl"
PROCESSES_DIR = "processes"
"""Folder in the staging folder, with one for each process below the first that is followed."""


class EventLog:
    """Events of a process, and after a fork those of the fork, which gets a folder with its first event.

    Args:
        staging: the folder in which the supervisor reads them.
        is_first: whether this is the process that the supervisor started.
    """

    def __init__(self, staging: Path, *, is_first: bool = True) -> None:
        self.staging = staging
        self._complained = False
        self._file = -1
        self._use(staging if is_first else self._new_folder())
        if not is_first:
            self._introduce(forked=False)

    @property
    def is_new_fork(self) -> bool:
        """Whether this process is a fork of the one that wrote the events so far, and has written none."""
        return os.getpid() != self.pid

    def close(self) -> None:
        """Let go of the file: nothing more is written by this process."""
        os.close(self._file)
        self._file = -1

    def write(self, event: str, **fields: Any) -> None:
        """Append an event. A full disk costs the event, never the script's run."""
        if self._file < 0:  # a graph of a recording that has ended is called for the first time
            return
        try:
            self.begin_fork()
            line = json.dumps({"event": event, **fields}, default=str) + "\n"
            os.write(self._file, line.encode())  # one write: lines of two threads do not mix
        except OSError as error:
            if not self._complained:
                print(f"warning: probe dump cannot record: {error.strerror}", file=sys.stderr)
            self._complained = True

    def begin_fork(self) -> None:
        """Give a fork a folder of its own, if it has none yet.

        Raises:
            OSError: it cannot be made.
        """
        if self.is_new_fork:
            self._use(self._new_folder())
            self._introduce(forked=True)

    def note(self, code: NoteCode, **values: str) -> None:
        """Say in the manifest what could not be recorded."""
        self.write("note", code=code, values=values)

    def refuse(self, message: str, hint: str | None) -> None:
        """Say that the script was not started, and why: the parent shows that, and there is no run."""
        self.write("refused", message=message, hint=hint)

    def _new_folder(self) -> Path:
        folder = self.staging / PROCESSES_DIR / f"{os.getpid()}-{time.time_ns()}"  # ids are used again
        (folder / LOGS_DIR).mkdir(parents=True)
        return folder

    def _use(self, folder: Path) -> None:
        self.pid = os.getpid()
        self.folder = folder
        if self._file >= 0:  # of the process that this one is a fork of
            self.close()
        self._file = os.open(folder / EVENTS_NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def _introduce(self, *, forked: bool) -> None:
        names = ("RANK", "WORLD_SIZE")  # torchrun and other launchers tell each rank so
        texts = {name.lower(): os.environ.get(name, "") for name in names}
        numbers = {name: int(text) for name, text in texts.items() if text.isdecimal()}
        self.write(
            "process",
            pid=self.pid,
            parent=os.getppid(),
            command=sys.orig_argv,
            forked=forked,
            time=time.time(),
            **numbers,
        )


def process_folders(staging: Path, known: Container[Path] = ()) -> list[Path]:
    """Return the folders of processes below the first, in the order in which they began, without `known`."""
    try:
        folders = [staging / PROCESSES_DIR / name for name in os.listdir(staging / PROCESSES_DIR)]  # noqa: PTH208 - ten times a second
    except FileNotFoundError:
        return []
    new = [folder for folder in folders if folder not in known]
    return sorted(new, key=lambda folder: int(folder.name.rpartition("-")[2]))


class EventReader:
    """The events in the folder of a process, as they are written."""

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
