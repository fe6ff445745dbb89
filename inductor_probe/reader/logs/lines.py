"""Where the logs of a run are, and their lines: the prefix in all its forms, and the text behind it.

    [2026-11-21 02:40:38,375] [0/0] torch._inductor.scheduler.__fusion: [DEBUG] text
    V1121 02:22:22.682000 15139 torch/_inductor/scheduler.py:2372] [0/0] [__fusion] text

Torch 2.1 and 2.2 print the first, later ones the second (torch/_logging/_internal.py,
TorchLogsFormatter.format). Every line of a message of several lines has the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from inductor_probe.model.debug_dir import TREE
from inductor_probe.model.manifest import LOGS_DIR
from inductor_probe.model.span import Problem

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DOTTED = re.compile(
    r"\[\d{4}-(?P<month>\d\d)-(?P<day>\d\d) (?P<time>[\d:,]+)\] (?:\[(?P<trace>!?\d+/\d+(?:_\d+)?)\] )?"
    r"(?P<source>[\w.]+?)(?:\.__(?P<artifact>\w+))?: \[\w+\]"
)
_GLOG = re.compile(
    r"(?:\[rank(?P<rank>\d+)\]:)?[VIWEC](?P<date>\d{4}) (?P<time>[\d:.]+) (?P<process>\d{1,20}) "
    r"(?P<source>[^\s:]+:\d+)\](?: \[(?P<trace>!?\d+/\d+(?:_\d+)?)\])?(?: \[__(?P<artifact>\w+)\])?"
)
_LARGEST_PID = 1 << 22
_LONGEST_LINE = 1 << 20
_SHOWN_LONG = 5
_LOG_FILES = ("*.log", "stderr*.txt")
_PID = re.compile(r"-pid_(\d+)")


class LogPlace(Struct, frozen=True):
    """Files that belong together; of several places the first that has a log is read.

    `near`: beside the run, so that lines of other processes may be among them.
    """

    files: tuple[Path, ...]
    near: bool = False


def log_places(run: Path, problems: list[Problem]) -> list[LogPlace]:
    """Return the places where logs of the run may be, best first.

    `probe dump` writes them into the run; who ran the script alone may have redirected them beside it.
    """
    # Lines of one millisecond are read in the order of their files: a graph's fusion before its scores.
    dumped = sorted(
        _files(run / LOGS_DIR, ("*.log",), problems), key=lambda path: (path.name != "fusion.log", path.name)
    )
    inside = [*_files(run, _LOG_FILES, problems), *_files(run / "torchdynamo", ("debug.log",), problems)]
    places = [LogPlace(tuple(dumped)), LogPlace(tuple(inside))]
    if not dumped:
        beside = [run.parent, *([run.parent.parent] if run.parent.name == TREE else [])]
        places += [LogPlace(tuple(_files(folder, _LOG_FILES, problems)), near=True) for folder in beside]
    return [place for place in places if place.files]


def _files(folder: Path, patterns: Iterable[str], problems: list[Problem]) -> Iterator[Path]:
    for pattern in patterns:
        try:
            paths = sorted(path for path in folder.glob(pattern) if path.is_file() and path.stat().st_size)
        except OSError as error:
            problems.append(Problem(f"cannot list {folder}: {error.strerror or error}"))
        else:
            yield from paths


def pid_of(run: Path) -> int | None:
    """Return the process that made the run, if its folder's name has it (DebugContext.create_debug_dir)."""
    match = _PID.search(run.name)
    return int(match[1]) if match and len(match[1]) < 20 else None


class LogLine(Struct, frozen=True):
    """A line of a log.

    Attributes:
        number: in its file, from 1.
        text: behind the prefix, without colours; the whole line when it has no prefix.
        source: `torch/_inductor/scheduler.py:2372`, or a logger's name; None without a prefix.
        artifact: `fusion`, where the message belongs to a named log.
        when: month, day and time, in an order that sorts.
        rank, process: who wrote it; `process` is a thread's address in torch 2.3 and 2.4 and None before.
    """

    number: int
    text: str
    source: str | None = None
    artifact: str | None = None
    trace_id: str | None = None
    when: str = ""
    rank: str | None = None
    process: int | None = None

    @property
    def pid(self) -> int | None:
        """The process that wrote it, where the prefix has it."""
        return self.process if self.process is not None and self.process <= _LARGEST_PID else None

    @property
    def stamp(self) -> tuple[object, ...]:
        """What the lines of one message have in common."""
        return (self.source, self.artifact, self.trace_id, self.when, self.rank, self.process)


def read_line(number: int, line: str) -> LogLine:
    """Read one line, without its line break."""
    if line[:1] == "[" and (match := _DOTTED.match(line)):
        rank, process = None, None
        when = f"{match['month']}{match['day']} {match['time'].replace(',', '.')}"
    elif match := _GLOG.match(line):
        rank, process = match["rank"], int(match["process"])
        when = f"{match['date']} {match['time']}"
    else:
        return LogLine(number, _without_colours(line))
    text = _without_colours(line[match.end() :].removeprefix(" "))
    return LogLine(number, text, match["source"], match["artifact"], match["trace"], when, rank, process)


def _without_colours(text: str) -> str:
    return _COLOUR.sub("", text) if "\x1b" in text else text


@dataclass(slots=True)
class LogBounds:
    """How much may still be read of the logs of a run, all files together: bytes and lines.

    `stopped` says in which file and line one of them came to its end, or that a line was too long.
    """

    left: int = 64 << 20
    left_lines: int = 500_000
    stopped: list[str] = field(default_factory=list)


def raw_lines(path: Path, bounds: LogBounds) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each line of a log, of a very long line its beginning, until a bound is met.

    Raises:
        OSError: the file cannot be read, or is not a plain file.
    """
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(_LONGEST_LINE):
            number += 1
            bounds.left -= len(raw)
            bounds.left_lines -= 1
            if bounds.left < 0 or bounds.left_lines < 0:
                bounds.stopped.append(
                    f"{path}:{number}: not read from here on: the logs of this run are too long"
                )
                return
            yield number, raw
            if len(raw) == _LONGEST_LINE and len(bounds.stopped) < _SHOWN_LONG:
                bounds.stopped.append(f"{path}:{number}: only the first MiB of this line was read")
            while len(raw) == _LONGEST_LINE and not raw.endswith(b"\n"):
                raw = file.readline(_LONGEST_LINE)
                bounds.left -= len(raw)


def read_raw_line(number: int, raw: bytes) -> LogLine:
    """Read the bytes of one line; those that are no text are replaced."""
    return read_line(number, raw.decode("utf-8", errors="replace").rstrip("\r\n"))
