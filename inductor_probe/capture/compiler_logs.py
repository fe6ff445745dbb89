"""The compiler's own logs, into files: what TORCH_LOGS would print, without setting it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.recorder import compile_id
from inductor_probe.model.manifest import LOGS_DIR

ARTIFACTS = (
    "fusion",
    "schedule",
    "loop_ordering",
    "loop_tiling",
    "perf_hints",
    "recompiles",
    "recompiles_verbose",  # dynamo logs to this instead of `recompiles` where the user asked for it
    "graph_breaks",
    "cudagraphs",
    "autotuning",
)
"""Artifacts (torch's word for a named log) that are written, one file each."""

TUNERS = ("triton_heuristics", "coordinate_descent_tuner")
"""Modules of `torch._inductor.runtime` that log the configs of Triton kernels, and how long they took."""

EVENTS = ("recompiles", "recompiles_verbose", "graph_breaks")
"""Artifacts that the manifest needs: their records are events too."""


class ArtifactHandler(logging.Handler):
    """Writes an artifact's records to a file, and passes on those that would have been seen without it.

    The logger is opened to every level while it has this handler, and does not propagate; `level_before` and
    `propagate_before` are what torch and the user had set. Records are handed to the parent by that rule, so
    that neither the screen nor the user's own handlers see a line more or less.
    """

    def __init__(
        self, log: logging.Logger, path: Path, formatter: logging.Formatter, events: EventLog
    ) -> None:
        super().__init__(logging.DEBUG)
        self.log = log
        self.artifact = path.stem
        self.events = events
        self.level_before, self.propagate_before = log.level, log.propagate
        self._open(path, formatter)

    def _open(self, path: Path, formatter: logging.Formatter | None) -> None:
        self.pid = os.getpid()
        self.file = logging.FileHandler(path, encoding="utf-8", delay=True)
        self.file.setFormatter(formatter)
        self.file.handleError = self.handleError  # type: ignore[method-assign]

    def _follow_fork(self) -> None:
        """Write to the fork's own folder from now on; the file of its parent stays as it is."""
        self.events.begin_fork()
        self._open(self.events.folder / LOGS_DIR / f"{self.artifact}.log", self.file.formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record`, report it, and pass it on."""
        try:
            if os.getpid() != self.pid:
                self._follow_fork()
            self.file.handle(record)
        except OSError:  # a full disk: the fork has no folder
            self.handleError(record)
        if self.artifact in EVENTS:
            error = str(record.exc_info[1]) if record.exc_info else None
            self.events.write(
                "log",
                artifact=self.artifact,
                compile_id=compile_id(),
                message=record.getMessage(),
                error=error,
            )
        if self._would_have_passed(record):
            self.log.parent.callHandlers(record)  # type: ignore[union-attr]

    def _would_have_passed(self, record: logging.LogRecord) -> bool:
        parent = self.log.parent
        if not self.propagate_before or parent is None or not parent.hasHandlers():
            return False
        return record.levelno >= (self.level_before or parent.getEffectiveLevel())

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Note a record that cannot be written: logging would print a traceback among the script's output."""
        self.events.note("log-line-lost", artifact=self.artifact, line=f"{record.msg!r:.80}")

    def restore(self) -> None:
        """Leave the logger as if this handler had not been there, unless it was reset in the meantime."""
        self.log.removeHandler(self)
        if not self.log.propagate:
            self.log.setLevel(self.level_before)
            self.log.propagate = self.propagate_before
        self.file.close()


def attach(
    log: logging.Logger,
    configure: Callable[[logging.Logger], None],
    folder: Path,
    formatter: logging.Formatter,
    events: EventLog,
) -> None:
    """Let torch `configure` an artifact's logger, and keep its records in `folder`.

    Torch does so more than once: after `set_logs` it starts from a reset level, and after a second
    `getArtifactLogger` from the present one, which must then be its own and not ours.
    """
    for handler in [handler for handler in log.handlers if isinstance(handler, ArtifactHandler)]:
        handler.restore()
    configure(log)
    artifact: str = getattr(log, "artifact_name")  # noqa: B009 - torch puts it there; a Logger has none
    keep(log, folder / f"{artifact}.log", formatter, events)


def keep(log: logging.Logger, path: Path, formatter: logging.Formatter, events: EventLog) -> None:
    """Keep all records of a logger in a file; who saw them before sees them still, and nobody sees more."""
    log.addHandler(ArtifactHandler(log, path, formatter, events))
    log.setLevel(logging.DEBUG)
    log.propagate = False


class LimitHandler(logging.Handler):
    """Reports functions that hit the recompile limit: dynamo says so in a warning and nowhere else."""

    def __init__(self, events: EventLog) -> None:
        super().__init__(logging.WARNING)
        self.events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Write an event for the one warning of this logger that is about the limit."""
        message = record.getMessage()
        if "hit config." in message and "last reason" in message:
            self.events.write("limit", message=message)
