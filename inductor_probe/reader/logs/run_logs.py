"""All logs of a run: from files to records, in time.

A log that is there twice (kept by `probe dump`, and in `stderr.txt`) is taken from the better place only.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.logs import (
    CompilerLogs,
    KernelSchedule,
    LogFile,
    Logged,
    LoweredBuffer,
    PerfHint,
    Removed,
    ScheduleNote,
    Tiling,
)
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.logs import forms as log_forms
from inductor_probe.reader.logs.files import LogPlace, log_places, pid_of
from inductor_probe.reader.logs.fusion import FusionReader
from inductor_probe.reader.logs.lines import LogBounds, LogLine, read_lines
from inductor_probe.reader.logs.messages import READ_ARTIFACTS, Message, is_plain, messages
from inductor_probe.reader.python_text import expressions_bounded

_KEPT_UNPREFIXED = 10_000
_SHOWN_UNREAD = 20
"""Lines of a file that are named as not understood; the rest is counted."""


def read_logs(run: DebugDir) -> CompilerLogs:
    """Read every log of the run. Without any, the result is empty."""
    reader = _LogsReader(pid_of(run.path))
    with expressions_bounded():
        for place in log_places(run.path, reader.problems):
            reader.read(place)
    return reader.finish()


@dataclass(slots=True)
class _FileCount:
    """A file while it is read."""

    path: Path
    lines: int = 0
    unread: int = 0
    unprefixed: int = 0
    own: int = 0


@dataclass(slots=True)
class _LogsReader:
    """Hands each message to whoever understands it."""

    pid: int | None
    problems: list[Problem] = field(default_factory=list)
    bounds: LogBounds = field(default_factory=LogBounds)
    counts: list[_FileCount] = field(default_factory=list)
    fusions: dict[tuple[int, object, object], FusionReader] = field(default_factory=dict)
    autotune: log_forms.AutotuneReader = field(default_factory=log_forms.AutotuneReader)
    schedules: list[KernelSchedule] = field(default_factory=list)
    schedule_notes: list[ScheduleNote] = field(default_factory=list)
    tilings: list[Tiling] = field(default_factory=list)
    hints: list[PerfHint] = field(default_factory=list)
    lowered: list[LoweredBuffer] = field(default_factory=list)
    removed: list[Removed] = field(default_factory=list)
    unprefixed: list[tuple[str, Span]] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    artifacts: dict[str, int] = field(default_factory=dict)
    order: int = 0

    def read(self, place: LogPlace) -> None:
        """Read the files of a place; logs that an earlier place has are left out."""
        at = len(self.counts)
        counts = [_FileCount(path) for path in place.files]
        streams = [
            ((message.line.when, number, message) for message in self._messages(count, near=place.near))
            for number, count in enumerate(counts)
        ]
        merged = heapq.merge(*streams, key=lambda item: item[:2]) if len(streams) > 1 else streams[0]
        for _, number, message in merged:
            self.order += 1
            line = message.line
            log = line.artifact or ("" if is_plain(line) else None)
            if line.source is None:
                self._without_prefix(message, counts[number])
            elif log is None or (log and log not in READ_ARTIFACTS):
                self.others[line.artifact or line.source.rpartition(":")[0] or line.source] += 1
            elif self.artifacts.setdefault(log, at) == at:
                self._take(message, counts[number], at)
        self.counts.extend(count for count in counts if count.own or not place.near)

    def _messages(self, count: _FileCount, *, near: bool) -> Iterator[Message]:
        def own_lines() -> Iterator[LogLine]:
            for line in read_lines(count.path, self.bounds):
                count.lines += 1
                if near and line.pid is not None and self.pid is not None and line.pid != self.pid:
                    continue  # another process wrote to the same file
                count.own += line.source is not None
                yield line

        try:
            yield from messages(own_lines(), count.path)
        except OSError as error:
            self.problems.append(Problem(f"cannot read {count.path}: {error.strerror or error}"))

    def _without_prefix(self, message: Message, count: _FileCount) -> None:
        if self.autotune.take(message.text, self._logged(message)):
            return
        count.unprefixed += 1
        if len(self.unprefixed) < _KEPT_UNPREFIXED:
            self.unprefixed.append((message.text, message.span))

    def _logged(self, message: Message) -> Logged:
        return Logged(message.span, self.order, message.line.trace_id)

    def _take(self, message: Message, count: _FileCount, place: int) -> None:
        at, text = self._logged(message), message.text
        fusion = self.fusions.setdefault((place, message.line.rank, message.line.process), FusionReader())
        understood = True
        match message.line.artifact:
            case "fusion":
                understood = fusion.fusion(text, at)
            case "loop_ordering":
                understood = fusion.loop_ordering(text, at)
            case "schedule":
                match log_forms.schedule(text, at):
                    case KernelSchedule() as schedule:
                        self.schedules.append(schedule)
                    case ScheduleNote() as note:
                        self.schedule_notes.append(note)
                    case None:
                        understood = not text.strip()
            case "loop_tiling":
                tiling = log_forms.tiling(text, at)
                understood = tiling is not None
                if tiling is not None:
                    self.tilings.append(tiling)
            case "perf_hints":
                self.hints.append(PerfHint(at, text.strip()))
            case None:
                self._take_plain(message, at)
        if not understood:
            count.unread += message.last - message.line.number + 1
            self._not_understood(message, count)

    def _take_plain(self, message: Message, at: Logged) -> None:
        match log_forms.plain(message.text, at):
            case LoweredBuffer() as lowered:
                self.lowered.append(lowered)
            case Removed() as removed:
                self.removed.append(removed)
            case None:
                source = message.line.source or ""
                self.others[source.rpartition(":")[0] or source] += 1

    def _not_understood(self, message: Message, count: _FileCount) -> None:
        if count.unread <= _SHOWN_UNREAD:
            shown = message.text if len(message.text) <= 80 else f"{message.text[:77]}..."
            self.problems.append(Problem(f"not understood: [{message.line.artifact}] {shown}", message.span))

    def finish(self) -> CompilerLogs:
        """Close what is open, and return the records."""
        self.autotune.finish()
        for reader in self.fusions.values():
            reader.finish()
        self.problems.extend(map(Problem, self.bounds.stopped))
        fusions = [log for reader in self.fusions.values() for log in reader.logs]
        fusions.sort(key=lambda log: log.at.order)
        files = tuple(
            LogFile(count.path, count.lines, count.unread, count.unprefixed) for count in self.counts
        )
        return CompilerLogs(
            files=files,
            artifacts=tuple(sorted(name for name in self.artifacts if name)),
            fusions=tuple(fusions),
            schedules=tuple(self.schedules),
            schedule_notes=tuple(self.schedule_notes),
            tilings=tuple(self.tilings),
            hints=tuple(self.hints),
            lowered=tuple(self.lowered),
            removed=tuple(self.removed),
            autotunes=tuple(self.autotune.blocks),
            unprefixed=tuple(self.unprefixed),
            others=tuple(self.others.most_common()),
            problems=tuple(self.problems),
        )
