"""What a run is, by its names, its manifest and the first lines of its files."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.discovery.dump_processes import process_name, process_of
from inductor_probe.discovery.walk import when_made
from inductor_probe.model.debug_dir import DebugDir, GraphDir
from inductor_probe.model.remark import Remark, Subject, failed_compile
from inductor_probe.model.runs import RunFacts, RunState
from inductor_probe.reader.debug_dir import is_run
from inductor_probe.reader.fx import torch_version
from inductor_probe.reader.logs.lines import pid_of
from inductor_probe.reader.logs.trace import failures_of, trace_log

_DEVICE = re.compile(r"\.group\.device = ([a-z]\w*)|Layout\('([a-z]\w*)")
_FIRST_GRAPHS = 8
_START_OF_FILE = 1 << 16
_MOST_FILES = 200_000
_CLOCKS_DIFFER_S = 2
_START_TIME = 19  # of the fields of /proc/<pid>/stat after the name


def run_facts(run: DebugDir) -> RunFacts:
    """Return what `run` is. Its graphs are not parsed."""
    manifest = run.manifest
    first = run.graphs[:_FIRST_GRAPHS]
    facts = RunFacts(
        path=run.path,
        label=manifest.label if manifest else None,
        scenario=manifest.scenario if manifest else None,
        cases=_cases(run),
        torch=dict(manifest.versions).get("torch") if manifest else None,
        devices=tuple(sorted({device for graph in first for device in _devices(graph)})),
        graphs=len(run.graphs),
        size=0,
        made=when_made(run.path)[0],
        state="unknown",
    )
    process = process_of(run)
    if manifest and manifest.dump and process:
        place = manifest.dump.processes.index(process)
        facts = replace(facts, dump=manifest.dump.id, pid=process.pid, rank=process.rank, place=place)
    if not is_run(run.path):
        size = sum(sizes(graph.path) for graph in run.graphs)
        made = max((_newest(graph.path) for graph in run.graphs), default=facts.made)
        return replace(facts, torch=_torch(first), size=size, made=made, state="graphs")
    log = trace_log(run.path)
    state = _state(run)
    failures = failures_of(run.path, manifest) if state != "running" else ()
    ending = failed_compile(failures[0], run.name, more=len(failures) - 1) if failures else None
    if failures and state in ("ok", "unknown", "empty"):
        state = "failed"
    elif not failures and manifest and manifest.outcome != "ok" and state != "running":
        subject = Subject("run", run.name)
        if process is not None and manifest.dump and process.pid != manifest.dump.script:
            numbers = (("process", process_name(process)), *manifest.ending)
            ending = Remark("process-ended", "hazard", subject, numbers, knowledge="recorded")
        else:
            ending = Remark("script-ended", "hazard", subject, manifest.ending, knowledge="recorded")
    return replace(
        facts,
        torch=facts.torch or _torch(first),
        size=sizes(run.path) + (log.stat().st_size if log else 0),
        state=state,
        remark=ending,
    )


def _state(run: DebugDir) -> RunState:
    if maker(run) is not None:
        return "running"
    process = process_of(run)
    manifest = run.manifest
    if manifest and process and manifest.dump and process == manifest.dump.processes[0]:
        manifest = manifest.of_script()  # the run that stands for a dump
    if manifest and manifest.outcome != "ok":
        return manifest.outcome
    if not run.graphs:
        return "empty"
    return "ok" if run.manifest else "unknown"


def maker(run: DebugDir) -> int | None:
    """Return the process that makes the run, as its name says, or the script of its dump, if one is there.

    A process that started after the run was last written to has only got the same id; so has one of that id
    when the manifest says how the script has ended. A process that the script started and that ended without
    a word is known to have ended when the script has.
    """
    manifest = run.manifest
    if manifest and manifest.exit_status is not None:
        return None
    script = manifest.dump.script if manifest and manifest.dump else None
    pids = (pid for pid in (pid_of(run.path), script) if pid is not None)
    return next((pid for pid in pids if _may_make(pid, run.path)), None)


def _may_make(pid: int, run: Path) -> bool:
    if not _is_alive(pid):
        return False
    try:
        started = _start_of(pid)
        return started is None or started <= _newest(run) + _CLOCKS_DIFFER_S
    except OSError:
        return True


def sizes(folder: Path) -> int:
    """Return the bytes of the files below `folder`; links are not followed."""
    return sum(status.st_size for status in _files(folder))


def _newest(folder: Path) -> float:
    """Return when something was last written or made below `folder`."""
    return max((status.st_mtime for status in _files(folder)), default=folder.stat().st_mtime)


def _files(folder: Path) -> Iterator[os.stat_result]:
    paths = (os.path.join(path, name) for path, _, names in os.walk(folder) for name in names)  # noqa: PTH118 - thousands of them
    for path in islice(paths, _MOST_FILES):
        with suppress(OSError):
            yield os.lstat(path)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    # One that has ended stays listed until its parent asks for its status: in a container perhaps for ever.
    fields = _stat(pid)
    return not fields or fields[0] not in ("Z", "X")


def _start_of(pid: int) -> float | None:
    """Return when a process started, in seconds since the epoch; None where the system does not report it."""
    fields = _stat(pid)
    try:
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        return time.time() - uptime + int(fields[_START_TIME]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def _stat(pid: int) -> list[str]:
    """Return the fields of `/proc/<pid>/stat` after the name; none where there is no such file."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _cases(run: DebugDir) -> tuple[str, ...]:
    if run.manifest is None:
        return ()
    cases = dict.fromkeys(graph.case for graph in run.manifest.graphs if graph.case)
    return tuple(cases) or run.manifest.cases


def _torch(graphs: Iterable[GraphDir]) -> str | None:
    versions = (torch_version(_start(graph.path / "fx_graph_runnable.py")) for graph in graphs)
    return next((version for version in versions if version), None)


def _devices(graph: GraphDir) -> set[str]:
    text = _start(graph.path / "ir_post_fusion.txt") or _start(graph.path / "ir_pre_fusion.txt")
    return {match[1] or match[2] for match in _DEVICE.finditer(text)}


def _start(path: Path) -> str:
    """Return how a file begins; nothing of what is not a plain file."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_START_OF_FILE).decode(errors="replace")
    except OSError:
        return ""
