"""From the rounds of kernels and call to their times, and to a table of them that adds up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.bench import Measurement
from inductor_probe.model.call_parts import CallPart, Overheads, Side
from inductor_probe.model.record import grouped
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import OverheadSamples, TimedPart

CALL = "Compiled call"
"""What comparisons call `call` of output_code.py."""
_EXCEEDS = 0.05
"""Kernels that take so much of the call's time longer than the call itself need an explanation."""
_SURE = 3.6
"""The median of n normal numbers has a standard error of 1.86 MAD / sqrt(n); 1.96 of those are 95 %."""
_Process = TypeVar("_Process", bound=Any)


class _Time(Struct, frozen=True):
    """Seconds a call, and by how much they may be off; `mad` is of `samples` numbers, one a round."""

    seconds: float
    uncertainty: float
    mad: float
    samples: int


class Rounds(Generic[_Process]):
    """The samples that all absolute times of one report rest on, and the one estimator of them.

    A round times every part of a call once: kernels and `call`. What else runs on the machine makes
    rounds longer and none shorter, for milliseconds or for minutes. So in each process the faster half of the
    rounds counts, ranked by the sum of their parts; a part's time in a process is its median over those
    rounds. Then processes are ranked by the sum of these, a third of them is left out at either end, and the
    rest is averaged.

    Rounds and processes are chosen once, for all parts: with a median of its own for each part, a machine
    that is slow in half of the rounds could have the kernel's time of a fast round (100 us) beside the call's
    of a slow one (240 us), and a wrapper of 140 us where each round says 20 or 40.

    Args:
        processes: what each measured. ranked: what rounds are ranked by, for each process a number a round,
            in the place of the sum of their parts.
    """

    def __init__(self, processes: Sequence[_Process], ranked: Sequence[np.ndarray] | None = None) -> None:
        self.processes = processes
        series = [[each] for each in ranked] if ranked is not None else [*map(_all_series, processes)]
        self._fast = [_faster_half(each) for each in series]
        sums = [
            sum(float(np.median(numbers[rounds])) for numbers in each)
            for each, rounds in zip(series, self._fast, strict=True)
        ]
        order, out = sorted(range(len(processes)), key=sums.__getitem__), len(processes) // 3
        self._counted = order[out : len(order) - out]

    def time(self, series: Callable[[_Process], np.ndarray]) -> _Time:
        """Return the time of a part, or of a difference of parts; `series` has one number a round."""
        rounds = [series(self.processes[index])[self._fast[index]] for index in range(len(self.processes))]
        medians = np.array([float(np.median(numbers)) for numbers in rounds])
        counted = [rounds[index] for index in self._counted]
        distances = np.abs(np.concatenate([numbers - np.median(numbers) for numbers in counted]))
        mad, samples = float(np.median(distances)), len(distances)
        between = float(np.median(np.abs(medians - np.median(medians))))
        uncertainty = _SURE * max(mad / math.sqrt(samples), between / math.sqrt(len(medians)))
        return _Time(float(np.mean(medians[self._counted])), uncertainty, mad, samples)

    def part(self, index: int) -> _Time:
        """Return the time of the part at an index: on a GPU, of what the GPU does."""
        return self.time(lambda process: np.array(process.parts[index].seconds))


def _faster_half(series: Sequence[np.ndarray]) -> np.ndarray:
    total = _summed(series)
    fast: np.ndarray = np.argsort(total, kind="stable")[: (len(total) + 1) // 2]
    return fast


def _summed(series: Iterable[np.ndarray]) -> np.ndarray:
    total: np.ndarray = np.sum(list(series), axis=0)
    return total


def _all_series(process: OverheadSamples) -> list[np.ndarray]:
    """Return what counts in the rank of a round: kernels, library calls and `call`, on GPU and host."""
    parts = [part for part in process.parts if part.kind in ("kernel", "library", "call")]
    cuda = process.device != "cpu"
    hosts = [np.array(part.host) for part in parts if cuda and part.host]
    return [*(np.array(part.seconds) for part in parts), *hosts]


def times_of_parts(processes: Sequence[OverheadSamples]) -> Mapping[str, Measurement]:
    """Return the times of what was timed in rounds and in quads, by the name that comparisons have for it.

    A kernel with several launches has a time for each: `k alone #1`, `k alone #2`. They are scaled
    to the call as those of `overheads_of` are: no kernel stands above the call that runs it.
    """
    rounds, first, scale = Rounds(processes), processes[0], overheads_of(processes).scale
    names = [part.name for part in first.parts if part.kind == "kernel"]
    numbers: dict[str, int] = {}
    times = {}
    for index, part in enumerate(first.parts):
        if part.kind == "kernel" and _same_steps(processes):
            numbers[part.name] = numbers.get(part.name, 0) + 1
            name = f"{part.name} alone"
            name += f" #{numbers[part.name]}" if names.count(part.name) > 1 else ""
            time = _scaled(rounds.part(index), scale)
        elif part.kind == "call":
            name, time = CALL, rounds.time(lambda process: np.array(_required(process, "call").seconds))
        else:
            continue
        times[name] = Measurement(name, time.seconds, time.mad, time.samples, "rounds")
    return times


def overheads_of(processes: Sequence[OverheadSamples]) -> Overheads:
    """Make the table of one graph from its processes, at least one.

    On a CPU a call is what its kernels take alone, and the wrapper, which is what is left of `call`; launches
    are a part of the kernels' times. On CUDA the host's time is divided so, into launches and wrapper, and
    beside it the time of the GPU. What is around `call` is timed in the user's program: `call_parts`.

    Parts never exceed the whole: where kernels take longer one by one than the call that runs them all, their
    times are scaled to it (`Overheads.scale`), and nothing is left for the rest.
    """
    first, rounds = processes[0], Rounds(processes)
    cuda = first.device != "cpu"
    steps = _steps(first) if _same_steps(processes) else []
    remarks = list(dict.fromkeys(remark for process in processes for remark in process.remarks))
    rows: list[CallPart] = []
    device: Side = "device" if cuda else "host"
    call = rounds.time(lambda process: np.array(_required(process, "call").seconds))
    by_name = grouped(steps, lambda index: (first.parts[index].kind, first.parts[index].name))
    busy = _sum(rounds, steps, "seconds") if steps else None
    scale = call.seconds / busy.seconds if busy is not None and busy.seconds > call.seconds else 1.0
    for (kind, name), indexes in by_name.items():
        time = _scaled(_sum(rounds, indexes, "seconds"), scale)
        rows.append(_row(kind, name, device, time, len(indexes)))
    launched = [index for index in steps if all(process.parts[index].host for process in processes)]
    launches = _sum(rounds, launched, "host") if launched else None
    if launches is not None and not cuda:
        kernels = sum(row.seconds for row in rows if row.kind == "kernel")
        of_kernels = _at_most(_scaled(launches, scale), kernels)
        rows.append(_row("launches", "launches", "host", of_kernels, len(launched)))
    if busy is not None:
        rest = _rest(rounds, steps, "seconds", busy, call)
        rows.append(_row("rest" if cuda else "wrapper", "rest" if cuda else "wrapper", device, _left(rest)))
        if rest.seconds < -max(rest.uncertainty, _EXCEEDS * call.seconds):
            numbers = {"kernels_s": busy.seconds, "call_s": call.seconds}
            remarks.append(measured("kernels-exceed-call", "analysis", Subject("graph", ""), numbers))
    if cuda:
        rows.append(_row("call", CALL, "device", call))
        call = rounds.time(lambda process: np.array(_required(process, "call").host))
        if launches is not None:
            rest = _rest(rounds, launched, "host", launches, call)
            of_call = _at_most(launches, call.seconds)
            rows.append(_row("launches", "launches", "host", of_call, len(launched)))
            rows.append(_row("wrapper", "wrapper", "host", _left(rest)))
    rows.append(_row("call", CALL, "host", call))
    rows = with_shares(rows)
    walls = [_required(process, "call").wall for process in processes]
    gpu = max((row.seconds for row in rows if row.side == "device" and row.kind == "call"), default=0.0)
    return Overheads(
        device=first.device,
        rows=tuple(rows),
        allocations=first.allocations,
        rounds=sum(len(_required(process, "call").seconds) for process in processes),
        wall=float(np.median(np.concatenate([np.array(wall) for wall in walls])))
        if cuda and any(walls)
        else None,
        bound=("device" if gpu > rows[-1].seconds else "host") if cuda else None,
        repeated=sum(part.repeated for process in processes for part in process.parts),
        disturbed=sum(part.disturbed for process in processes for part in process.parts),
        remarks=tuple(remarks),
        processes=len(processes),
        scale=scale,
    )


def _scaled(time: _Time, scale: float) -> _Time:
    """Return a time times a scale below one: it is uncertain by what it was shortened, too."""
    seconds = time.seconds * scale
    return replace(time, seconds=seconds, uncertainty=time.uncertainty + abs(time.seconds - seconds))


def _at_most(time: _Time, whole: float) -> _Time:
    return _scaled(time, whole / time.seconds) if time.seconds > whole else time


def _left(rest: _Time) -> _Time:
    """Return what is left of a whole: nothing where its parts exceed it, give or take by how much they do."""
    over = max(-rest.seconds, 0.0)
    return replace(rest, seconds=max(rest.seconds, 0.0), uncertainty=rest.uncertainty + over)


def within(times: Sequence[tuple[float, float]], whole: float) -> tuple[list[tuple[float, float]], float]:
    """Return the times of parts so that none is negative and they do not exceed the whole, and what is left.

    A part has seconds, and by how much they may be off. Where the parts, timed one by one, take longer than
    the whole, each is its share of it, and may be off by what it was shortened, too. No part may be more than
    the whole: of a call of 90 us none is below 120 us.
    """
    total = sum(max(seconds, 0.0) for seconds, _ in times)
    scale = max(whole, 0.0) / total if total > max(whole, 0.0) else 1.0
    shares = [(max(seconds, 0.0) * scale, off + max(seconds, 0.0) * (1 - scale)) for seconds, off in times]
    parts = [(seconds, min(off, max(whole - seconds, 0.0))) for seconds, off in shares]
    return parts, max(whole - sum(seconds for seconds, _ in parts), 0.0)


def _sum(rounds: Rounds[OverheadSamples], indexes: Sequence[int], field: str) -> _Time:
    """Return the time of several parts: the sum of theirs, which no other row can contradict."""

    def total(process: OverheadSamples) -> np.ndarray:
        return _summed(np.array(getattr(process.parts[index], field)) for index in indexes)

    def one(index: int) -> _Time:
        return rounds.time(lambda process: np.array(getattr(process.parts[index], field)))

    return replace(rounds.time(total), seconds=sum(one(index).seconds for index in indexes))


def _rest(
    rounds: Rounds[OverheadSamples], indexes: Sequence[int], field: str, parts: _Time, call: _Time
) -> _Time:
    """Return what is left of a call: the difference of the times that are shown.

    It is uncertain by the scatter of the differences within rounds, and by what those say otherwise.
    """

    def difference(process: OverheadSamples) -> np.ndarray:
        steps = _summed(np.array(getattr(process.parts[index], field)) for index in indexes)
        left: np.ndarray = np.array(getattr(_required(process, "call"), field)) - steps
        return left

    within, seconds = rounds.time(difference), call.seconds - parts.seconds
    uncertainty = max(within.uncertainty, abs(within.seconds - seconds))
    return replace(within, seconds=seconds, uncertainty=uncertainty)


def _row(kind: str, name: str, side: Side, time: _Time, launches: int = 0) -> CallPart:
    return CallPart(kind, name, side, time.seconds, time.mad, time.uncertainty, launches=launches)


def with_shares(rows: Sequence[CallPart]) -> list[CallPart]:
    """Fill in shares of each side's last row."""
    totals = {row.side: row.seconds for row in rows}
    return [replace(row, share=row.seconds / totals[row.side]) if totals[row.side] else row for row in rows]


def _steps(process: OverheadSamples) -> list[int]:
    """Return which parts are kernels and library calls."""
    return [index for index, part in enumerate(process.parts) if part.kind in ("kernel", "library")]


def _same_steps(processes: Sequence[OverheadSamples]) -> bool:
    """Whether every process timed the same ones: in one there may have been no memory for them."""
    named = [[(process.parts[index].name, index) for index in _steps(process)] for process in processes]
    return all(names == named[0] for names in named)


def _required(process: OverheadSamples, kind: str) -> TimedPart:
    return next(part for part in process.parts if part.kind == kind)
