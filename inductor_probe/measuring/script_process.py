"""A process that runs the user's script as `probe dump` ran it; an event of it is a line of JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec import Struct

from inductor_probe.executors.child import Child, Event
from inductor_probe.machine.python_child import without_writing
from inductor_probe.model.codec import to_json
from inductor_probe.model.flip import Flip
from inductor_probe.model.gpu_target import GpuTarget
from inductor_probe.model.own_call import NoOwnCallCode

if TYPE_CHECKING:
    from typing_extensions import Self

LIMIT_S = 300.0
"""A script may take so long up to a call, or three times what its dump took, whichever is more."""
_GRACE_S = 60.0
_LINES = 3


class OwnProgram(Struct, frozen=True, kw_only=True):
    """How the script is run: as `probe dump` ran it, without what that records.

    `threads` are of torch and OpenMP where they are to be others than the script's own; `target` is the GPU
    that is simulated. `python` is an interpreter that has torch and this package; this one if None.
    """

    script: Path
    arguments: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    variables: Mapping[str, str]
    flips: tuple[Flip, ...] = ()
    threads: int | None = None
    target: GpuTarget | None = None
    limit_s: float = LIMIT_S
    python: Path | None = None


class OwnChildError(Exception):
    """The process ended, or was ended, before it had timed what was asked for."""

    def __init__(self, code: NoOwnCallCode, message: str = "") -> None:
        super().__init__(message)
        self.code, self.message = code, message


class ScriptProcess:
    """A process that runs the script. What the script prints is kept in a file, for when it fails.

    Args:
        child: the program that runs it. options: what it is to do, given a folder for its files.
        patience: seconds between two events, beyond what the script may take.
    """

    def __init__(
        self,
        program: OwnProgram,
        child: Path,
        options: Callable[[str], Struct],
        *,
        patience: float,
        caches: Path | None = None,
    ) -> None:
        self._program, self._patience = program, patience
        self._folder = tempfile.TemporaryDirectory(prefix="own-", ignore_cleanup_errors=True)
        variables = {**without_writing(os.environ), **program.variables}
        if caches is not None:
            variables |= {"TORCHINDUCTOR_CACHE_DIR": str(caches)}
        if program.threads is not None:
            variables |= {"OMP_NUM_THREADS": str(program.threads)}
        asked = json.dumps(to_json(options(self._folder.name)))

        def command(*pipes: str) -> list[str]:
            own = [str(program.python or sys.executable), str(child), str(os.getpid()), *pipes, asked]
            return [*own, str(program.script), *program.arguments]

        self._child = Child(command, environment=variables, output=Path(self._folder.name, "output"))
        self.seen: list[Event] = []

    def __enter__(self) -> Self:
        """Start it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and what the script started."""
        self._child.close()
        self._folder.cleanup()

    def events(self) -> Iterator[Event]:
        """Yield what it says until its end.

        Raises:
            OwnChildError: the script failed, ended its process, or went on for too long.
        """
        while True:
            event = self.next_event()
            yield event
            if event["event"] == "over":
                return

    def next_event(self) -> Event:
        """Return what it says next; see `events`."""
        try:
            event = self._child.receive(self._program.limit_s + _GRACE_S + self._patience)
        except TimeoutError:
            raise OwnChildError("too-long", f"{self._program.limit_s:.0f}") from None
        if event is None:
            status = self._child.wait()
            raise OwnChildError("script-failed" if status else "script-ended", self._last_lines())
        self.seen.append(event)
        if event["event"] == "over" and event["ending"] == "failed":
            self._child.wait()
            raise OwnChildError("script-failed", self._last_lines())
        return event

    def ask(self, question: Event) -> None:
        """Send a line."""
        self._child.send(question)

    def _last_lines(self) -> str:
        return "\n".join([line for line in self._child.printed() if line.strip(" ^~")][-_LINES:])
