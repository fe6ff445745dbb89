"""The log that torch writes beside a run for tlparse, and the compiles that failed in it.

A line of it is a header in JSON, with or without a text below it that is indented:

    V1127 05:38:45.100000 26388 torch/_dynamo/utils.py:2012] {"compilation_metrics": {"compile_id": "0/0",
    "fail_type": "InductorError", "fail_reason": "...", "exception_stack_trace": ["..."], ...}, ...}

Torch writes the metrics of each compile that dynamo began (torch/_dynamo/utils.py,
record_compilation_metrics), with `fail_type` where it ended in an exception: also one that only breaks the
graph.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from inductor_probe.model.manifest import CompileFailure, Manifest
from inductor_probe.reader.failures import SOFT, failure_of, frames_in
from inductor_probe.reader.logs.lines import pid_of

_STAMP = re.compile(r"run_(\d{4}(?:_\d{2}){5})_")
_FIRST_LINE = re.compile(r"V(\d{4} \d{2}:\d{2}:\d{2})\S* (\d+) ")
_CLOSE = timedelta(hours=1)
"""A process makes its run and its trace log when it first compiles. An id comes round again, not as soon."""
_LONGEST_LINE = 1 << 20
_MOST_LINES = 5_000_000
_MOST_FAILURES = 100
_WITHOUT_GRAPH = ("dynamo", "backend", "aot-autograd", "decomposition", "guards", "unknown")
"""Stages in which inductor is not at work on a graph; no folder is named in the log."""


def trace_log(run: Path) -> Path | None:
    """Return the log beside the run that its process wrote for tlparse: same process, same hour."""
    pid, stamp = pid_of(run), _STAMP.search(run.name)
    if pid is None or stamp is None:
        return None
    for log in sorted((run.parent / "tlparse").glob("dedicated_log_torch_trace_*.log")):
        first = _FIRST_LINE.match(next(log_lines(log), ""))
        if first and int(first[2]) == pid and _are_close(stamp[1], first[1]):
            return log
    return None


def _are_close(run_stamp: str, log_time: str) -> bool:
    """Compare `2026_11_21_08_35_26` with `1121 08:35:26`, which has no year."""
    try:
        made = datetime.strptime(run_stamp, "%Y_%m_%d_%H_%M_%S")
        logged = datetime.strptime(f"{made.year} {log_time}", "%Y %m%d %H:%M:%S")
    except ValueError:
        return False
    return abs(made - logged) < _CLOSE


def log_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a log, each only as far as it may matter; none of what is not a plain file."""
    if not path.is_file():
        return
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for _ in range(_MOST_LINES):
                if not (line := file.readline(_LONGEST_LINE)):
                    return
                yield line
    except OSError:
        return


def trace_events(log: Path, key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the headers of a trace log that have `key`, those that are objects."""
    for line in log_lines(log):
        if line.startswith("V") and f'"{key}"' in line:
            try:
                event = json.loads(line.partition("] ")[2])
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict) and isinstance(event.get(key), dict):
                yield event


def failures_of(run: Path, manifest: Manifest | None) -> tuple[CompileFailure, ...]:
    """Return the compiles of a run that failed: as its manifest has them, or else torch's own log.

    The log has exceptions that only broke a graph, too. Those that may be are left out: dynamo's own words
    for what it cannot trace, unless the manifest shows that the compile broke no graph.
    """
    if manifest is not None and manifest.failures is not None:
        return manifest.failures
    log = trace_log(run)
    logged = _logged(log, log.stat().st_mtime_ns) if log else ()
    broken = {one.compile_id for one in manifest.graph_breaks} if manifest else None
    failures = [
        one
        for one in logged
        if one.raised not in SOFT or (broken is not None and one.compile_id not in broken)
    ]
    forwards = [graph for graph in manifest.graphs if graph.why != "backward"] if manifest else []
    unfinished = [graph for graph in forwards if not graph.finished]
    for number, failure in enumerate(failures):  # the log does not name graphs
        of_frame = [graph for graph in unfinished if graph.compile_id == failure.compile_id]
        if of_frame and failure.stage not in _WITHOUT_GRAPH:
            unfinished.remove(of_frame[0])
            failures[number] = replace(failure, graph=of_frame[0].name)
    return tuple(failures)


def failures_of_graph(folder: Path, manifest: Manifest | None) -> tuple[CompileFailure, ...]:
    """Return those that are about the graph in `folder`; the log is read only for an unfinished one."""
    record = manifest.graph(folder.name) if manifest else None
    if record is None or manifest is None or (manifest.failures is None and record.finished):
        return ()
    return tuple(one for one in failures_of(folder.parent.parent, manifest) if one.graph == folder.name)


@lru_cache(maxsize=8)
def _logged(log: Path, changed: int) -> tuple[CompileFailure, ...]:
    """Return the exceptions in a trace log that was last `changed` at that time, in nanoseconds."""
    failures: dict[CompileFailure, None] = {}
    for event in trace_events(log, "compilation_metrics"):
        if failure := _failure(event, event["compilation_metrics"]):
            failures[failure] = None
        if len(failures) == _MOST_FAILURES:
            break
    return tuple(failures)


def _failure(header: Mapping[str, Any], metrics: Mapping[str, Any]) -> CompileFailure | None:
    raised, reason = metrics.get("fail_type"), metrics.get("fail_reason")
    if not isinstance(raised, str) or not isinstance(reason, str):
        return None
    traces = metrics.get("exception_stack_trace")
    trace = traces[0] if isinstance(traces, list) and traces and isinstance(traces[0], str) else ""
    frame, again, function = header.get("frame_id"), header.get("frame_compile_id"), metrics.get("co_name")
    file, line = metrics.get("fail_user_frame_filename"), metrics.get("fail_user_frame_lineno")
    return failure_of(
        raised,
        reason,
        frames_in(trace),
        compile_id=f"{frame}/{again}" if isinstance(frame, int) and isinstance(again, int) else None,
        function=function if isinstance(function, str) else None,
        where=f"{file}:{line}" if isinstance(file, str) and isinstance(line, int) else None,
        backward=metrics.get("is_forward") is False,
        suppressed=metrics.get("config_suppress_errors") is True,
    )
