"""The runs of one dump: a script that starts processes leaves one for each that compiled something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.manifest import DumpProcess
from inductor_probe.reader.debug_dir import is_run, leads_to, read_run

_NAMED = 8
OF_PROCESS = re.compile(r"(?P<what>.*)@(?P<kind>rank|pid)(?P<number>\d{1,9})(?P<rest>[:/].+)?")
"""`RUN@rank1`, `RUN@pid4711:0`, `@rank1/model__0`: of a dump, what one of its processes compiled."""


def runs_of_dump(run: DebugDir) -> tuple[DebugDir, ...]:
    """Return the runs of the dump that `run` is of, that which stands for the dump first; else itself alone.

    Only runs beside it are read, whose own manifests say that they are of the same dump: a manifest may come
    from a stranger, and must not lead elsewhere.
    """
    record = run.manifest.dump if run.manifest else None
    if record is None or len(record.processes) < 2:
        return (run,)
    runs = list(_beside(run, record.id, [process.run for process in record.processes if process.run]))
    return tuple(runs) if run.path in (other.path for other in runs) else (run, *runs)


def _beside(run: DebugDir, dump: str, names: Sequence[str]) -> Iterator[DebugDir]:
    for name in dict.fromkeys(names):
        path = run.path.parent / name
        if name == run.name:
            yield run
        elif Path(name).name == name and is_run(path) and leads_to(path, run.path.parent) is None:
            try:
                other = read_run(path)
            except ProbeError:
                continue
            if other.manifest and other.manifest.dump and other.manifest.dump.id == dump:
                yield other


def process_of(run: DebugDir) -> DumpProcess | None:
    """Return which process of a dump with several a run is of; None for what is alone."""
    record = run.manifest.dump if run.manifest else None
    return record.process if record and len(record.processes) > 1 else None


def is_rank(run: DebugDir) -> bool:
    """Return whether a run is of a process that was a rank."""
    process = process_of(run)
    return process is not None and process.rank is not None


def name_of_process(run: DebugDir) -> str:
    """Return what to call the process of a run; empty for one that is alone."""
    process = process_of(run)
    return process_name(process) if process else ""


def process_name(process: DumpProcess) -> str:
    """Return what to call a process of a dump: `rank1`, or else `pid4711`."""
    return f"pid{process.pid}" if process.rank is None else f"rank{process.rank}"


def run_of_process(run: DebugDir, kind: str, number: int) -> DebugDir:
    """Return the run of a rank, or of a process by its id, of the dump that `run` is of.

    Raises:
        NotFoundError: the dump has none, or several processes were that rank.
    """
    record = run.manifest.dump if run.manifest else None
    processes = record.processes if record else ()
    named = [one for one in processes if number == (one.rank if kind == "rank" else one.pid)]
    runs = {other.name: other for other in runs_of_dump(run)}
    there = [one for one in named if one.run in runs]
    if len(there) == 1:
        return runs[there[0].run or ""]
    known = ", ".join(f"@{process_name(one)}" for one in processes if one.run in runs)
    if there:
        pids = ", ".join(f"@pid{one.pid}" for one in there[:_NAMED])
        raise NotFoundError(f"{len(there)} processes of {run.name} were rank {number}", f"one of {pids}")
    if named:
        what = "compiled nothing" if not named[0].graphs else f"has its run elsewhere: {named[0].run}"
        raise NotFoundError(f"{process_name(named[0])} of {run.name} {what}", known and f"there is {known}")
    raise NotFoundError(
        f"{run.name} has no {kind} {number}",
        f"there is {known}" if known else "it is of a script that ran in one process",
    )
