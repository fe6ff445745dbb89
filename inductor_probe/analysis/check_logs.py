"""Whether every line of a run's logs is understood."""

from __future__ import annotations

from inductor_probe.model.check import FileCheck, LogCheck
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.logs import CompilerLogs


def check_logs(run: DebugDir, logs: CompilerLogs) -> LogCheck | None:
    """Count the lines of `logs`, and list those that are not understood; None for a run without logs."""
    if not logs.files and not logs.problems:
        return None
    files = tuple(
        FileCheck("compiler logs", 1, file.lines, read=file.lines - file.unread, unread=file.unread)
        for file in logs.files
    )
    return LogCheck(run.path, files, logs.problems)
