"""From the samples of kernels, launches, wrapper and guards to a table that adds up."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from inductor_probe.model.bench import OverheadRow, Overheads, Side
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import OverheadSamples, TimedPart

_Rounds = list[float]
_SURE = 3.6
"""The median of n normal numbers has a standard error of 1.86 MAD / sqrt(n); 1.96 of those are 95 %."""


def overheads_of(processes: Sequence[OverheadSamples]) -> Overheads:
    """Make the table of one graph from its processes, at least one.

    On a CPU a call is what its kernels take alone (less what an empty kernel takes), plus the launches, plus
    the wrapper (what is left of `call`), plus the guards. On CUDA the host's
    time is divided so, and beside it the time of the device.
    """
    cuda = processes[0].device != "cpu"
    guarded = all(_find(each, "guards") and _find(each, "compiled") for each in processes)
    added = [time for each in processes for time in _added(each, cuda=cuda)] if guarded else []
    apart = [time for each in processes for time in _apart(each)] if guarded else []
    direct = bool(added) and not (_told(added) and statistics.median(added) > 0)
    series: dict[tuple[Side, str, str], _Rounds] = {}
    for process in processes:
        for key, rounds in (_on_cuda if cuda else _on_cpu)(process).items():
            series.setdefault(key, []).extend(rounds)
        call = _host(_of(process, "call"), cuda=cuda)
        guards = (_apart(process) if direct else _added(process, cuda=cuda)) if guarded else []
        if guarded:
            series.setdefault(("host", "guards", "guards"), []).extend(guards)
        total = _plus(call, guards) if guarded else call
        series.setdefault(("host", "total", "compiled" if guarded else "call"), []).extend(total)
    totals = {
        side: statistics.median(rounds) for (side, kind, _), rounds in series.items() if kind == "total"
    }
    counts: list[tuple[str, str]] = [(part.kind, part.name) for part in processes[0].parts]
    with_launch = sum(bool(part.host) for part in _steps(processes[0]))
    rows = []
    for (side, kind, name), rounds in series.items():
        median, mad = _spread(rounds)
        launches = with_launch if kind == "launches" else counts.count((kind, name))
        share = median / totals[side] if totals[side] else 0.0  # differences may cancel to nothing
        rows.append(OverheadRow(kind, name, side, median, mad, share, _told(rounds), launches))
    remarks = [remark for each in processes for remark in each.remarks]
    if direct:
        remarks.append(measured("guards-timed-alone", "analysis", Subject("graph", "")))
    whole = "compiled" if guarded else "call"
    walls = [time for each in processes if (part := _find(each, whole)) for time in part.wall]
    return Overheads(
        device=processes[0].device,
        whole=whole,
        rows=tuple(rows),
        allocations=processes[0].allocations,
        rounds=sum(len(part.seconds) for each in processes if (part := _find(each, "call"))),
        guards_alone=statistics.median(apart) if apart else None,
        wall=statistics.median(walls) if walls else None,
        bound=_slower(totals) if cuda else None,
        repeated=sum(part.repeated for each in processes for part in each.parts),
        disturbed=sum(part.disturbed for each in processes for part in each.parts),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _on_cpu(process: OverheadSamples) -> dict[tuple[Side, str, str], _Rounds]:
    steps = _steps(process)
    call = list(_of(process, "call").seconds)
    zero = [0.0] * len(call)
    found: dict[tuple[Side, str, str], _Rounds] = {}
    alone, launched = zero, zero
    for part in steps:
        own = _minus(part.seconds, part.host) if part.host else list(part.seconds)
        key: tuple[Side, str, str] = ("host", part.kind, part.name)
        found[key] = _plus(found.get(key, zero), own)
        alone, launched = _plus(alone, part.seconds), _plus(launched, part.host or zero)
    if any(part.host for part in steps):
        found["host", "launches", "launches"] = launched
    if steps:
        found["host", "wrapper", "wrapper"] = _minus(call, alone)
    return found


def _on_cuda(process: OverheadSamples) -> dict[tuple[Side, str, str], _Rounds]:
    steps, call = _steps(process), _of(process, "call")
    zero = [0.0] * len(call.seconds)
    found: dict[tuple[Side, str, str], _Rounds] = {}
    busy, launched = zero, zero
    for part in steps:
        key: tuple[Side, str, str] = ("device", part.kind, part.name)
        found[key] = _plus(found.get(key, zero), part.seconds)
        busy, launched = _plus(busy, part.seconds), _plus(launched, part.host)
    if steps:
        found["device", "rest", "rest"] = _minus(call.seconds, busy)
    found["device", "total", "call"] = list(call.seconds)
    if steps:
        found["host", "launches", "launches"] = launched
        found["host", "wrapper", "wrapper"] = _minus(call.host, launched)
    return found


def _host(part: TimedPart, *, cuda: bool) -> Sequence[float]:
    return part.host if cuda else part.seconds


def _added(process: OverheadSamples, *, cuda: bool) -> _Rounds:
    """Return what the compiled callable takes more than the wrapper."""
    whole, call = _of(process, "compiled"), _of(process, "call")
    return _minus(_host(whole, cuda=cuda), _host(call, cuda=cuda))


def _apart(process: OverheadSamples) -> _Rounds:
    """Return what guards take without the wrapper."""
    part = _of(process, "guards")
    return _minus(part.seconds, part.host)


def _told(rounds: Sequence[float]) -> bool:
    """Whether their median is not zero for sure."""
    median, mad = _spread(rounds)
    return abs(median) > _SURE * mad / math.sqrt(len(rounds))


def _slower(totals: dict[Side, float]) -> Side:
    return max(totals, key=lambda side: totals[side])


def _steps(process: OverheadSamples) -> list[TimedPart]:
    return [part for part in process.parts if part.kind in ("kernel", "library")]


def _find(process: OverheadSamples, kind: str) -> TimedPart | None:
    return next((part for part in process.parts if part.kind == kind), None)


def _of(process: OverheadSamples, kind: str) -> TimedPart:
    return next(part for part in process.parts if part.kind == kind)


def _plus(one: Sequence[float], other: Sequence[float]) -> _Rounds:
    return [a + b for a, b in zip(one, other, strict=True)]


def _minus(one: Sequence[float], other: Sequence[float]) -> _Rounds:
    return [a - b for a, b in zip(one, other, strict=True)]


def _spread(rounds: Sequence[float]) -> tuple[float, float]:
    median = statistics.median(rounds)
    return median, statistics.median(abs(each - median) for each in rounds)
