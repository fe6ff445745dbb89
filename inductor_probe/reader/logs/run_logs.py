"""All logs of a run: from files to records, in time.

A log that is there twice (written by `probe dump`, and in `stderr.txt`) is read from the better place only.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.logs import Autotune, AutotuneChoice, CompilerLogs, LogFile, Logged
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.logs.fusion import FusionReader, starts_message
from inductor_probe.reader.logs.lines import (
    LogBounds,
    LogLine,
    LogPlace,
    log_places,
    pid_of,
    raw_lines,
    read_raw_line,
)
from inductor_probe.reader.python_text import expressions_bounded
from inductor_probe.reader.values import shorten

_SHOWN_UNREAD = 20
"""Lines of a file that are named as not understood; the rest is counted."""

# Logs whose lines must all be understood, but that nothing is concluded from: how their messages start.
_COUNTED = {
    "schedule": (
        "Schedule:",  # codegen/simd.py, SIMDScheduling._codegen_nodes
        "Disabled vectorization:",  # codegen/cpp.py, CppVecKernelChecker.disable_vec, until torch 2.4
        "Data type propagation:",  # codegen/common.py, data_type_logger
    ),
    "loop_tiling": (  # tiling_utils.py, torch 2.8 and later
        "Normalized Fused reads: FusedNormalizedReadsWrites(",  # extract_normalized_read_writes
        "zero division error",  # find_coalesced_var
    ),
    "perf_hints": ("",),  # any text
}

# select_algorithm.py, AlgorithmSelectorCache.log_results; the statistics: _log_autotune_choices_stats.
_AUTOTUNE = re.compile(r"AUTOTUNE (\S.*)")
_CHOICE = re.compile(r"  (\S+) (?:(\d[\d.e+-]*|inf) ms|\S+) ?(?:[\d.]+%)? ?(.*)")
_AUTOTUNE_ENDS = ("Autotune Choices Stats:", "SingleProcess AUTOTUNE", "SubProcess AUTOTUNE")


def read_logs(run: DebugDir) -> CompilerLogs:
    """Read every log of the run. Without any, the result is empty."""
    reader = _LogsReader(pid_of(run.path))
    with expressions_bounded():
        for place in log_places(run.path, reader.problems):
            reader.read(place)
    return reader.finish()


class _Message(Struct, frozen=True):
    """Lines that belong together. `line` is the first of them; `text` is all of it."""

    path: Path
    line: LogLine
    text: str
    last: int

    @property
    def span(self) -> Span:
        return Span(self.path, self.line.number, self.last)


def _messages(lines: Iterable[LogLine], path: Path) -> Iterator[_Message]:
    """Join lines of one message: they have one prefix, and the later ones start no message themselves.

    Lines with the same prefix: `Schedule:` and ` [SchedulerNode(name='op0')]` are one message,
    `fusing op0 with op1` and `fusing op0_op1 with op2` are two.
    Only messages of the logs that are read are joined; any other line is a message of its own.
    """
    first: LogLine | None = None
    texts: list[str] = []
    last = 0
    for line in lines:
        if first is not None and line.stamp == first.stamp and not _starts(line):
            texts.append(line.text)
            last = line.number
            continue
        if first is not None:
            yield _Message(path, first, "\n".join(texts), last)
        first, texts, last = line, [line.text], line.number
    if first is not None:
        yield _Message(path, first, "\n".join(texts), last)


def _starts(line: LogLine) -> bool:
    """Return whether a line is the first of a message, given that the line before has the same prefix."""
    if line.artifact == "fusion":
        return starts_message(line.text)
    if line.artifact in ("schedule", "loop_tiling"):
        return line.text.startswith(_COUNTED[line.artifact])
    return True


class _AutotuneReader:
    """Takes lines without a prefix one by one, and collects the blocks that autotuning prints.

    AUTOTUNE mm(256x256, 256x256)
    strides: [256, 1], [256, 1]
    dtypes: torch.float32, torch.float32
      triton_mm_4 0.0168 ms 100.0% ACC_TYPE='tl.float32', BLOCK_M=64, num_warps=4
    SingleProcess AUTOTUNE benchmarking takes 0.3168 seconds and 8.8931 seconds ... for 2 choices
    """

    def __init__(self) -> None:
        self.blocks: list[Autotune] = []
        self._logged: Logged | None = None
        self._operation = ""
        self._facts: list[str] = []
        self._choices: list[AutotuneChoice] = []

    def take(self, text: str, logged: Logged) -> None:
        """Take a line, which may belong to no block."""
        if match := _AUTOTUNE.fullmatch(text):
            self.finish()
            self._logged, self._operation = logged, match[1]
        elif text.startswith(_AUTOTUNE_ENDS):
            self._facts.append(text)
            self.finish()
        elif self._logged is None or text.startswith('{"num_choices"'):
            return
        elif match := _CHOICE.fullmatch(text):
            try:
                ms = float(match[2]) if match[2] else None
            except ValueError:
                ms = None
            self._choices.append(AutotuneChoice(match[1], ms, match[3]))
        elif text.startswith(("strides:", "dtypes:", "  ")):
            self._facts.append(text)
        else:
            self.finish()

    def finish(self) -> None:
        """Close the block that is open."""
        if self._logged is not None:
            self.blocks.append(
                Autotune(self._logged, self._operation, tuple(self._choices), tuple(self._facts))
            )
        self._logged, self._facts, self._choices = None, [], []


@dataclass(slots=True)
class _FileCount:
    """A file while it is read; `prefixed` counts the lines of the run's own process with a prefix."""

    path: Path
    lines: int = 0
    unread: int = 0
    prefixed: int = 0


@dataclass(slots=True)
class _LogsReader:
    """Hands each message to what reads its log."""

    pid: int | None
    problems: list[Problem] = field(default_factory=list)
    bounds: LogBounds = field(default_factory=LogBounds)
    counts: list[_FileCount] = field(default_factory=list)
    fusions: dict[tuple[int, object, object], FusionReader] = field(default_factory=dict)
    autotune: _AutotuneReader = field(default_factory=_AutotuneReader)
    artifacts: dict[str, int] = field(default_factory=dict)
    order: int = 0

    def read(self, place: LogPlace) -> None:
        """Read the files of a place; logs that an earlier place has are left out."""
        place_number = len(self.counts)
        counts = [_FileCount(path) for path in place.files]
        streams = [
            ((message.line.when, number, message) for message in self._messages(count, near=place.near))
            for number, count in enumerate(counts)
        ]
        merged = heapq.merge(*streams, key=lambda item: item[:2]) if len(streams) > 1 else streams[0]
        for _, number, message in merged:
            self.order += 1
            log = message.line.artifact
            if message.line.source is None:
                self.autotune.take(message.text, self._logged(message))
            elif (
                log in ("fusion", "loop_ordering", *_COUNTED)
                and self.artifacts.setdefault(log, place_number) == place_number
            ):
                self._take(message, log, counts[number], place_number)
        self.counts.extend(count for count in counts if count.prefixed or not place.near)

    def _messages(self, count: _FileCount, *, near: bool) -> Iterator[_Message]:
        def lines() -> Iterator[LogLine]:
            for number, raw in raw_lines(count.path, self.bounds):
                line = read_raw_line(number, raw)
                count.lines += 1
                if near and line.pid is not None and self.pid is not None and line.pid != self.pid:
                    continue  # another process wrote to the same file
                count.prefixed += line.source is not None
                yield line

        try:
            yield from _messages(lines(), count.path)
        except OSError as error:
            self.problems.append(Problem(f"cannot read {count.path}: {error.strerror or error}"))

    def _logged(self, message: _Message) -> Logged:
        return Logged(message.span, self.order, message.line.trace_id)

    def _take(self, message: _Message, log: str, count: _FileCount, place_number: int) -> None:
        logged, text, line = self._logged(message), message.text, message.line
        fusion = self.fusions.setdefault((place_number, line.rank, line.process), FusionReader())
        match log:
            case "fusion":
                understood = fusion.fusion(text, logged)
            case "loop_ordering":
                understood = fusion.loop_ordering(text, logged)
            case _:
                understood = text.startswith(_COUNTED[log]) or not text.strip()
        if not understood:
            count.unread += message.last - line.number + 1
            if count.unread <= _SHOWN_UNREAD:
                self.problems.append(Problem(f"not understood: [{log}] {shorten(text)}", message.span))

    def finish(self) -> CompilerLogs:
        """Close what is open, and return the records."""
        self.autotune.finish()
        for reader in self.fusions.values():
            reader.finish()
        self.problems.extend(map(Problem, self.bounds.stopped))
        fusions = [log for reader in self.fusions.values() for log in reader.logs]
        return CompilerLogs(
            files=tuple(LogFile(count.path, count.lines, count.unread) for count in self.counts),
            fusions=tuple(sorted(fusions, key=lambda log: log.logged.order)),
            autotunes=tuple(self.autotune.blocks),
            problems=tuple(self.problems),
        )
