"""From what processes timed of a call of the user's compiled callable to parts that add up to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from inductor_probe.bench.overheads import Rounds, with_shares, within
from inductor_probe.model.call_parts import CallPart, CallParts
from inductor_probe.model.timing import CallSamples, TimedInterval


def call_parts_of(processes: Sequence[CallSamples]) -> CallParts:
    """Return the parts of a call, of at least one process.

    A part is what one function takes more than what it calls, each timed in laps of its own: so parts add up
    to the call but for noise, which is the remainder. None is negative, and where they exceed the call, each
    is its share of it.
    """
    first, rounds = processes[0], Rounds(processes, [_sum(each, "compiled") for each in processes])
    call = rounds.time(lambda process: _sum(process, "compiled"))
    parts = [part for part in _host(rounds, first) if part.seconds or part.launches]
    fitted, rest = within([(part.seconds, part.uncertainty) for part in parts], call.seconds)
    rows = [
        replace(part, seconds=seconds, uncertainty=off)
        for part, (seconds, off) in zip(parts, fitted, strict=True)
    ]
    total = sum(max(part.seconds, 0.0) for part in parts)
    off = min(call.uncertainty, call.seconds - rest)
    rows.append(CallPart("remainder", "remainder", "host", rest, call.mad, off))
    rows.append(CallPart("compiled", "compiled", "host", call.seconds, call.mad, call.uncertainty))
    device = on_device([process.parts for process in processes])
    walls = [
        second
        for each in processes
        for part in each.parts
        if part.kind == "gpu-wall"
        for second in part.seconds
    ]
    return CallParts(
        device=first.device,
        rows=tuple(with_shares([*device, *rows])),
        graphs=first.graphs,
        allocations=first.allocations,
        wall=float(np.median(walls)) if walls else None,
        rounds=sum(len(_sum(process, "compiled")) for process in processes),
        processes=len(processes),
        scale=min(1.0, call.seconds / total) if total else 1.0,
        remarks=tuple(dict.fromkeys(remark for process in processes for remark in process.remarks)),
    )


def _host(rounds: Rounds[CallSamples], first: CallSamples) -> Iterator[CallPart]:
    """Yield the parts of the host's time, in the order of a call."""
    kinds = {part.kind for part in first.parts}
    lines = [part for part in first.parts if part.kind in ("kernel", "library", "copy")]
    forward = "forward" if "forward" in kinds else "compiled"
    guards = ("guards",) if "guards" in kinds else ()

    def part(kind: str, plus: Sequence[str], minus: Sequence[str] = ()) -> CallPart:
        def series(process: CallSamples) -> np.ndarray:
            left: np.ndarray = _sum(process, *plus) - _sum(process, *minus)
            if "guards" in (*plus, *minus):
                unguarded = _sum(process, "guards", host=True)
                left = left - unguarded if "guards" in plus else left + unguarded
            return left

        time = rounds.time(series)
        return CallPart(kind, kind, "host", time.seconds, time.mad, time.uncertainty)

    def line(name: str, kind: str, *, host: bool, own: bool) -> CallPart:
        """Of lines of a name: their own time, that of launching empty kernels, or what they take more."""

        def series(process: CallSamples) -> np.ndarray:
            launches = _sum(process, kind, name=name, host=True) if host else 0.0
            left: np.ndarray = _sum(process, kind, name=name) - launches if own else np.array(launches)
            return left

        time = rounds.time(series)
        launches = sum(part.launches for part in lines if (part.kind, part.name) == (kind, name))
        return CallPart(kind, name, "host", time.seconds, time.mad, time.uncertainty, launches=launches)

    if guards:
        yield part("guards", guards)
    yield part("entry", [forward], ["dynamo", "between", *guards])
    if first.graphs > 1:
        yield part("between", ["between"])
    if "fx" not in kinds:
        yield part("backend", ["dynamo"])
    else:
        yield part("autograd", ["dynamo"], ["fx"])
        yield part("inductor", ["fx", "fx-backward"], ["call", "call-backward"])
        inside = ("kernel", "library", "copy")
        yield part("wrapper" if lines else "graph", ["call", "call-backward"], inside)
    if first.device != "cpu":
        yield part("launches", ["kernel", "library"])
    else:
        kernels = [each for each in lines if each.kind == "kernel"]
        if launches := [line(each.name, "kernel", host=True, own=False) for each in kernels if each.host]:
            sums = {
                field: sum(getattr(each, field) for each in launches)
                for field in ("seconds", "mad", "uncertainty", "launches")
            }
            yield CallPart("launches", "launches", "host", **sums)
        for each in lines:
            if each.kind != "copy":
                yield line(each.name, each.kind, host=bool(each.host), own=True)
    if any(each.kind == "copy" for each in lines):
        yield part("copy", ["copy"])
    if forward == "forward":
        yield part("backward", ["compiled"], ["forward", "fx-backward"])


def on_device(processes: Sequence[Sequence[TimedInterval]]) -> Iterator[CallPart]:
    """Yield what the GPU does in a call, and their sum: medians of rounds of their own."""
    total = 0.0
    for part in processes[0]:
        if part.kind in ("gpu-kernel", "gpu-copy", "gpu-gap"):
            same = [
                other
                for each in processes
                for other in each
                if (other.kind, other.name) == (part.kind, part.name)
            ]
            seconds = np.concatenate([np.array(other.seconds) for other in same])
            median = float(np.median(seconds))
            mad = float(np.median(np.abs(seconds - median)))
            total += median
            kind = part.kind.removeprefix("gpu-")
            yield CallPart(kind, part.name, "device", median, mad, mad, launches=part.launches)
    if total:
        yield CallPart("call", "call", "device", total, 0.0, 0.0)


def _sum(process: CallSamples, *kinds: str, name: str | None = None, host: bool = False) -> np.ndarray:
    """Return the sum of series of some kinds, round by round; zero where there are none."""
    series = [
        np.array(part.host if host else part.seconds)
        for part in process.parts
        if part.kind in kinds and name in (None, part.name) and (part.host or not host)
    ]
    rounds = next(len(part.seconds) for part in process.parts if part.kind == "compiled")
    total: np.ndarray = np.sum(series, axis=0) if series else np.zeros(rounds)
    return total
