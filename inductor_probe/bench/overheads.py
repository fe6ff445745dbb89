"""From the samples of kernels, launches, wrapper and guards to a table that adds up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from inductor_probe.model.bench import OverheadRow, Overheads, Side
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import OverheadSamples, TimedPart

_Key: TypeAlias = tuple[Side, str, str]
_SURE = 3.6
"""The median of n normal numbers has a standard error of 1.86 MAD / sqrt(n); 1.96 of those are 95 %."""


def overheads_of(processes: Sequence[OverheadSamples]) -> Overheads:
    """Make the table of one graph from its processes, at least one.

    On a CPU a call is what its kernels take alone (less what an empty kernel takes), plus the launches, plus
    the wrapper (what is left of `call`), plus the guards. On CUDA the host's
    time is divided so, and beside it the time of the device.
    """
    first = processes[0]
    cuda = first.device != "cpu"
    guarded = all(_part(process, kind) for process in processes for kind in ("guards", "compiled"))
    added = [_host(process, "compiled") - _host(process, "call") for process in processes] if guarded else []
    alone = [_difference(process, "guards") for process in processes] if guarded else []
    # What guards add to a call drowns in its noise where calls are long: then they are what they take alone.
    direct = guarded and not (_significant(np.concatenate(added)) and np.median(np.concatenate(added)) > 0)
    total_of = "compiled" if guarded else "call"
    series: dict[_Key, list[np.ndarray]] = {}
    for index, process in enumerate(processes):
        rows = _rounds(process)
        total = _host(process, "call")
        if guarded:
            guards = (alone if direct else added)[index]
            rows["host", "guards", "guards"] = guards
            total = total + guards
        rows["host", "total", total_of] = total
        for key, rounds in rows.items():
            series.setdefault(key, []).append(rounds)
    rounds_of = {key: np.concatenate(rounds) for key, rounds in series.items()}
    totals = {side: _median(rounds) for (side, kind, _), rounds in rounds_of.items() if kind == "total"}
    counts: list[tuple[str, str]] = [(part.kind, part.name) for part in first.parts]
    with_launch = sum(bool(part.host) for part in _steps(first))
    table = []
    for (side, kind, name), rounds in rounds_of.items():
        median = _median(rounds)
        launches = with_launch if kind == "launches" else counts.count((kind, name))
        share = median / totals[side] if totals[side] else 0.0  # differences may cancel to nothing
        table.append(
            OverheadRow(kind, name, side, median, _mad(rounds), share, _significant(rounds), launches)
        )
    remarks = [remark for process in processes for remark in process.remarks]
    if direct:
        remarks.append(measured("guards-timed-alone", "analysis", Subject("graph", "")))
    walls = [time for process in processes if (part := _part(process, total_of)) for time in part.wall]
    slower = max(totals, key=totals.__getitem__)
    return Overheads(
        device=first.device,
        total_of=total_of,
        rows=tuple(table),
        allocations=first.allocations,
        rounds=sum(len(_required(process, "call").seconds) for process in processes),
        guards_alone=_median(np.concatenate(alone)) if alone else None,
        wall=_median(walls) if walls else None,
        bound=slower if cuda else None,
        repeated=sum(part.repeated for process in processes for part in process.parts),
        disturbed=sum(part.disturbed for process in processes for part in process.parts),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _rounds(process: OverheadSamples) -> dict[_Key, np.ndarray]:
    """Return the rows of a process but guards and the host's total: one number a round, in seconds.

    A CPU's kernel of 100 us whose empty kernel takes 1 us, in a call of 120 us, is 99 us of kernel, 1 us of
    launches and 20 us of wrapper.
    """
    cuda, steps, call = process.device != "cpu", _steps(process), _required(process, "call")
    zero = np.zeros(len(call.seconds))
    rows: dict[_Key, np.ndarray] = {}
    busy, launched = zero, zero
    for part in steps:
        seconds, host = np.array(part.seconds), np.array(part.host) if part.host else zero
        key: _Key = ("device" if cuda else "host", part.kind, part.name)
        rows[key] = rows.get(key, zero) + (seconds if cuda else seconds - host)
        busy, launched = busy + seconds, launched + host
    if cuda:
        if steps:
            rows["device", "rest", "rest"] = call.seconds - busy
        rows["device", "total", "call"] = np.array(call.seconds)
    if any(part.host for part in steps):
        rows["host", "launches", "launches"] = launched
    if steps:
        rows["host", "wrapper", "wrapper"] = _host(process, "call") - (launched if cuda else busy)
    return rows


def _steps(process: OverheadSamples) -> list[TimedPart]:
    return [part for part in process.parts if part.kind in ("kernel", "library")]


def _part(process: OverheadSamples, kind: str) -> TimedPart | None:
    return next((part for part in process.parts if part.kind == kind), None)


def _required(process: OverheadSamples, kind: str) -> TimedPart:
    return next(part for part in process.parts if part.kind == kind)


def _host(process: OverheadSamples, kind: str) -> np.ndarray:
    """Return the host's time for a part: on a CPU all of it."""
    part = _required(process, kind)
    return np.array(part.seconds if process.device == "cpu" else part.host)


def _difference(process: OverheadSamples, kind: str) -> np.ndarray:
    part = _required(process, kind)
    difference: np.ndarray = np.array(part.seconds) - np.array(part.host)
    return difference


def _median(rounds: Iterable[float] | np.ndarray) -> float:
    return float(np.median(np.asarray(rounds)))


def _mad(rounds: np.ndarray) -> float:
    return _median(np.abs(rounds - np.median(rounds)))


def _significant(rounds: np.ndarray) -> bool:
    """Tell whether their median is not zero for sure."""
    return abs(_median(rounds)) > _SURE * _mad(rounds) / math.sqrt(len(rounds))
