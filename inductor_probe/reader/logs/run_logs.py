"""All logs of a run: from files to records, in time.

A log that is there twice (written by `probe dump`, and in `stderr.txt`) is read from the better place only.
"""

from __future__ import annotations

import ast
import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.logs import (
    Autotune,
    AutotuneChoice,
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
from inductor_probe.reader.python_text import expressions_bounded, parse_expression
from inductor_probe.reader.values import shorten

_MOST_UNPREFIXED = 10_000
_SHOWN_UNREAD = 20
"""Lines of a file that are named as not understood; the rest is counted."""

# Loggers of inductor: torch.2.3 and later name the file, 2.1 and 2.2 the module.
_INDUCTOR = ("torch/_inductor/", "torch._inductor.")
_READ_ARTIFACTS = ("fusion", "loop_ordering", "schedule", "loop_tiling", "perf_hints")
"""Logs whose lines must all be understood."""
_SCHEDULE = "Schedule:"  # codegen/simd.py, SIMDScheduling._codegen_nodes
# Of the C++ backend until torch 2.4; codegen/common.py, data_type_logger.
_SCHEDULE_NOTES = ("Disabled vectorization:", "Data type propagation:")
_TILING = "Normalized Fused reads:"  # tiling_utils.py, extract_normalized_read_writes; torch 2.8 and later
_TILING_NOTE = "zero division error"  # tiling_utils.py, find_coalesced_var
_BEGINNINGS = {
    "schedule": (_SCHEDULE, *_SCHEDULE_NOTES),
    "loop_tiling": (_TILING, _TILING_NOTE),
    "perf_hints": (
        "Skip comprehensive padding",  # compile_fx.py, maybe_disable_comprehensive_padding
        "Using FallbackKernel",  # graph.py, GraphLowering.warn_fallback
        "possibly bad tiling",  # codegen/simd.py, SIMDScheduling.get_tiling_and_scores
        "Found optimal tiling",  # codegen/simd.py, SIMDScheduling.compute_tiling_strategy
        "reduction over non-contiguous",  # until torch 2.6
        "Reduction over non-contiguous",  # codegen/simd.py, SIMDScheduling.get_tiling_and_scores
    ),
}

_MEMBER = re.compile(r"\w+\((?:name='|nodes=)([^'()]*)'?\)|<class '[\w.]*?(\w+)'>")

# scheduler.py, Scheduler.compute_dependencies: `scheduling %s` of an IR node (ir.py, Loops._to_str and
# ExternKernel.__str__); torch 2.2 and later.
_LOWERED = re.compile(r"scheduling (\w+)\((?:name='([^']*)')?")
_LOWERED_NAME = re.compile(r"^ *name=(\w+),?$", re.MULTILINE)
_DATA = re.compile(r"\bdata=(\w+)\(")
_ORIGIN_NODE = re.compile(r"^ *origin_node=([\w.]+)", re.MULTILINE)
_ORIGINS = re.compile(r"^ *origins=(?:OrderedSet\()?[\[{](.*?)[\]}]\)?,?$", re.MULTILINE)
# scheduler.py, Scheduler.dead_node_elimination (`node` until torch 2.4); codegen/common.py,
# Kernel.remove_buffer and Kernel.remove_inplace_buffer.
_REMOVED = re.compile(
    r"removed dead (node|buffer|operation): (\S+)|(remove_buffer|removing_inplace_buffer)\('([^']*)'\)"
)

# select_algorithm.py, AlgorithmSelectorCache.log_results; the statistics: _log_autotune_choices_stats.
_AUTOTUNE = re.compile(r"AUTOTUNE (\S.*)")
_CHOICE = re.compile(r"  (\S+) (?:(\d[\d.e+-]*|inf) ms|(\S+)) ?(?:([\d.]+)%)? ?(.*)")
_AUTOTUNE_ENDS = ("Autotune Choices Stats:", "SingleProcess AUTOTUNE", "SubProcess AUTOTUNE")


def read_logs(run: DebugDir) -> CompilerLogs:
    """Read every log of the run. Without any, the result is empty."""
    reader = _LogsReader(pid_of(run.path))
    with expressions_bounded():
        for place in log_places(run.path, reader.problems):
            reader.read(place)
    return reader.finish()


@dataclass(frozen=True, slots=True)
class _Message:
    """Lines that belong together. `line` is the first of them; `text` is all of it."""

    path: Path
    line: LogLine
    text: str
    last: int

    @property
    def span(self) -> Span:
        return Span(self.path, self.line.number, self.last)

    @property
    def log(self) -> str | None:
        """The named log it belongs to, empty for what inductor logs beside those, None for other loggers."""
        line = self.line
        return line.artifact or ("" if line.source and line.source.startswith(_INDUCTOR) else None)


def _messages(lines: Iterable[LogLine], path: Path) -> Iterator[_Message]:
    """Join lines of one message: they have one prefix, and the later ones start no message themselves.

    Lines with the same prefix: `Schedule:` and ` [SchedulerNode(name='op0')]` are one message,
    `fusing op0 with op1` and `fusing op0_op1 with op2` are two.
    Only messages of inductor are joined; a line of any other log, or without a prefix, is one of its own.
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
    """Tell whether a line is the first of a message, given that the line before has the same prefix."""
    if line.artifact == "fusion":
        return starts_message(line.text)
    if line.artifact in _BEGINNINGS:
        return line.text.startswith(_BEGINNINGS[line.artifact])
    if line.artifact is None and line.source is not None and line.source.startswith(_INDUCTOR):
        return bool(line.text.strip()) and line.text[0] not in " )"
    return True


def _schedule(text: str, at: Logged) -> KernelSchedule | ScheduleNote | None:
    if text.startswith(_SCHEDULE):
        return KernelSchedule(at, tuple(match[1] or match[2] for match in _MEMBER.finditer(text)))
    return ScheduleNote(at, text) if text.startswith(_SCHEDULE_NOTES) else None


def _tiling(text: str, at: Logged) -> Tiling | None:
    """Read `Normalized Fused reads: FusedNormalizedReadsWrites(index_vars=[n0], reads={...}, ...)`."""
    if text.startswith(_TILING_NOTE):
        return Tiling(at, text=text)
    if not text.startswith(_TILING):
        return None
    try:
        call = parse_expression(text.partition(": ")[2].replace("\n", " "))
    except ValueError:
        return None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "FusedNormalizedReadsWrites":
        return None
    parts = {keyword.arg: keyword.value for keyword in call.keywords}
    index_vars, reduce_vars = (
        tuple(map(ast.unparse, node.elts)) if isinstance(node, ast.List | ast.Tuple) else ()
        for node in (parts.get("index_vars"), parts.get("reduce_vars"))
    )
    reads, writes = (
        tuple((ast.unparse(key), _strings(value)) for key, value in _items(parts.get(name)))
        for name in ("reads", "writes")
    )
    ranges = tuple((ast.unparse(key), ast.unparse(value)) for key, value in _items(parts.get("var_ranges")))
    return Tiling(at, index_vars, reduce_vars, reads, writes, ranges)


def _items(node: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Dict):
        yield from (
            (key, value) for key, value in zip(node.keys, node.values, strict=True) if key is not None
        )


def _strings(node: ast.expr) -> tuple[str, ...]:
    return tuple(str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant))


def _lowered_or_removed(text: str, at: Logged) -> LoweredBuffer | Removed | None:
    """Read a message of inductor that belongs to no named log; None for all that is of no use here."""
    if match := _LOWERED.match(text):
        name = match[2] or ((named := _LOWERED_NAME.search(text)) and named[1])
        if not name:
            return None
        # The last ones are the node's own; those before belong to what it reads.
        data = _DATA.search(text)
        node = _ORIGIN_NODE.findall(text)
        origins = _ORIGINS.findall(text)
        return LoweredBuffer(
            at,
            name,
            match[1],
            data[1] if data else None,
            node[-1] if node and node[-1] != "None" else None,
            tuple(part.strip() for part in origins[-1].split(",") if part.strip()) if origins else (),
        )
    if match := _REMOVED.match(text):
        return Removed(at, match[1] or match[3], match[2] or match[4])
    return None


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
        self._at: Logged | None = None
        self._operation = ""
        self._facts: list[str] = []
        self._choices: list[AutotuneChoice] = []

    def take(self, text: str, at: Logged) -> bool:
        """Take a line; False when it does not belong to a block."""
        if match := _AUTOTUNE.fullmatch(text):
            self.finish()
            self._at, self._operation = at, match[1]
        elif text.startswith(_AUTOTUNE_ENDS):
            self._facts.append(text)
            self.finish()
        elif text.startswith('{"num_choices"'):
            pass
        elif self._at is None:
            return False
        elif match := _CHOICE.fullmatch(text):
            try:
                ms, percent = (float(number) if number else None for number in match.group(2, 4))
            except ValueError:
                ms = percent = None
            self._choices.append(AutotuneChoice(match[1], ms, percent, match[5]))
        elif text.startswith(("strides:", "dtypes:", "  ")):
            self._facts.append(text)
        else:
            self.finish()
            return False
        return True

    def finish(self) -> None:
        """Close the block that is open."""
        if self._at is not None:
            self.blocks.append(Autotune(self._at, self._operation, tuple(self._choices), tuple(self._facts)))
        self._at, self._facts, self._choices = None, [], []


@dataclass(slots=True)
class _FileCount:
    """A file while it is read; `prefixed` counts the lines of the run's own process with a prefix."""

    path: Path
    lines: int = 0
    unread: int = 0
    unprefixed: int = 0
    prefixed: int = 0


@dataclass(slots=True)
class _LogsReader:
    """Hands each message to the function that reads its log; `records` are what those return, by type."""

    pid: int | None
    problems: list[Problem] = field(default_factory=list)
    bounds: LogBounds = field(default_factory=LogBounds)
    counts: list[_FileCount] = field(default_factory=list)
    fusions: dict[tuple[int, object, object], FusionReader] = field(default_factory=dict)
    autotune: _AutotuneReader = field(default_factory=_AutotuneReader)
    records: defaultdict[type, list[Any]] = field(default_factory=lambda: defaultdict(list))
    unprefixed: list[tuple[str, Span]] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
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
            log = message.log
            if message.line.source is None:
                self._take_unprefixed(message, counts[number])
            elif log is None or (log and log not in _READ_ARTIFACTS):
                self._count_other(message.line)
            elif self.artifacts.setdefault(log, place_number) == place_number:
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

    def _count_other(self, line: LogLine) -> None:
        source = line.source or ""
        self.others[line.artifact or source.rpartition(":")[0] or source] += 1

    def _logged(self, message: _Message) -> Logged:
        return Logged(message.span, self.order, message.line.trace_id)

    def _take_unprefixed(self, message: _Message, count: _FileCount) -> None:
        if self.autotune.take(message.text, self._logged(message)):
            return
        count.unprefixed += 1
        if len(self.unprefixed) < _MOST_UNPREFIXED:
            self.unprefixed.append((message.text, message.span))

    def _take(self, message: _Message, log: str, count: _FileCount, place_number: int) -> None:
        at, text, line = self._logged(message), message.text, message.line
        fusion = self.fusions.setdefault((place_number, line.rank, line.process), FusionReader())
        record: Any = None
        understood = not text.strip()
        match log:
            case "fusion":
                understood = fusion.fusion(text, at)
            case "loop_ordering":
                understood = fusion.loop_ordering(text, at)
            case "schedule":
                record = _schedule(text, at)
            case "loop_tiling":
                record = _tiling(text, at)
            case "perf_hints":
                record = PerfHint(at, text.strip())
            case _:
                record = _lowered_or_removed(text, at)
                understood = True
                if record is None:
                    self._count_other(line)
        if record is not None:
            self.records[type(record)].append(record)
        elif not understood:
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
            files=tuple(
                LogFile(count.path, count.lines, count.unread, count.unprefixed) for count in self.counts
            ),
            artifacts=tuple(sorted(name for name in self.artifacts if name)),
            fusions=tuple(sorted(fusions, key=lambda log: log.at.order)),
            schedules=tuple(self.records[KernelSchedule]),
            schedule_notes=tuple(self.records[ScheduleNote]),
            tilings=tuple(self.records[Tiling]),
            hints=tuple(self.records[PerfHint]),
            lowered=tuple(self.records[LoweredBuffer]),
            removed=tuple(self.records[Removed]),
            autotunes=tuple(self.autotune.blocks),
            unprefixed=tuple(self.unprefixed),
            others=tuple(self.others.most_common()),
            problems=tuple(self.problems),
        )
