"""A process that does what it is asked to, and says what came of it: the one protocol of all that measure."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]


class Child:
    """A process that sends events and is sent requests: a line of JSON each, through two pipes of its own.

    What it prints goes into a file. It leads a session: it is ended with all that it has started, and Ctrl-C
    is for who waits for it.
    """

    def __init__(
        self,
        command: Callable[[str, str], Sequence[str]],
        *,
        environment: Mapping[str, str],
        output: Path,
        folder: Path | None = None,
    ) -> None:
        """Start it.

        Args:
            command: how, given the numbers of two descriptors: it writes events to one, and reads requests
                from the other.
            environment: all of its variables. output: the file for what it prints.
            folder: in which it is started; that of this process if None.
        """
        self.output = output
        answers, events = os.pipe()
        asked, requests = os.pipe()
        with output.open("wb") as printed:
            self._process = subprocess.Popen(
                [*command(str(events), str(asked))],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=(events, asked),
                start_new_session=True,
            )
        os.close(events)
        os.close(asked)
        self._answers, self._requests = answers, os.fdopen(requests, "wb")
        self._poll = select.poll()
        self._poll.register(answers, select.POLLIN)
        self._left = bytearray()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def send(self, request: Event) -> None:
        """Send a line; who has ended gets none, which `receive` sees."""
        with suppress(BrokenPipeError):
            self._requests.write(json.dumps(request).encode() + b"\n")
            self._requests.flush()

    def receive(self, patience: float | None = None) -> Event | None:
        """Return the next event; None if the process has ended.

        A child of it that was killed may have left half a line, which is no event.

        Raises:
            TimeoutError: nothing came for `patience` seconds.
        """
        searched = 0
        while True:
            end = self._left.find(b"\n", searched)
            if end >= 0:
                line, searched = bytes(self._left[:end]), 0
                del self._left[: end + 1]
                with suppress(ValueError):
                    event: Event = json.loads(line)
                    return event
                continue
            searched = len(self._left)
            if not self._poll.poll(None if patience is None else 1000 * patience):
                raise TimeoutError
            data = os.read(self._answers, 1 << 16)
            if not data:
                return None
            self._left += data

    def printed(self) -> list[str]:
        """Return the lines that it has printed, but for empty ones."""
        text = self.output.read_text(encoding="utf-8", errors="replace")
        return [line for line in text.splitlines() if line.strip()]

    def wait(self) -> int:
        """Wait until it has ended; return its status, or the negative number of a signal."""
        return self._process.wait()

    def kill(self) -> None:
        """End it with what it has started, from whatever thread: who waits for an event sees it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it with what it has started, and its pipes."""
        self.kill()
        self.wait()
        os.close(self._answers)
        with suppress(BrokenPipeError):
            self._requests.close()
