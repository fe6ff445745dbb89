"""What will spoil the times of C++ kernels on this machine as it is now: said before the clock starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from inductor_probe.machine.cpu import CpuState
from inductor_probe.model.remark import Number, Remark, RemarkCode, Subject, measured

_THREADS = re.compile(r"#pragma omp parallel[^\n]{0,200}?\bnum_threads\((?P<number>\d{1,6})\)")
_PARALLEL = "#pragma omp parallel"
_STEADY = ("performance", "userspace")
_MUCH = 0.25
"""Processors: what a machine does in passing takes less."""


def fixed_threads(source: str) -> int | None:
    """Return the threads that a kernel's text fixes (`num_threads(2)`), None where OpenMP chooses."""
    return max((int(found["number"]) for found in _THREADS.finditer(source)), default=None)


def hazards(kernels: Mapping[str, str], state: CpuState, threads: int | None = None) -> tuple[Remark, ...]:
    """Return a remark for each thing that will spoil times.

    Threads of OpenMP wait for each other at the end of every loop, and burn their time meanwhile: where they
    do not all run at once, a kernel of 36 us can take 46 ms.

    Args:
        kernels: the text of each C++ kernel, by name.
        state: of the processors, from a moment before.
        threads: as asked for (`--threads`); each processor has one if None.
    """
    return tuple(_hazards(kernels, state, threads))


def _hazards(kernels: Mapping[str, str], state: CpuState, threads: int | None) -> Iterator[Remark]:
    fixed = {name: number for name, text in kernels.items() if (number := fixed_threads(text))}
    free = [name for name, text in kernels.items() if _PARALLEL in text and name not in fixed]
    if differing := [name for name, number in fixed.items() if threads is not None and number != threads]:
        fixed_to = ", ".join(map(str, sorted({fixed[name] for name in differing})))
        yield _hazard("fixed-threads", {"threads": threads, "fixed": fixed_to}, differing)
    most = max([*fixed.values(), (threads or state.processors) if free else 1], default=1)
    names = [name for name, number in fixed.items() if number == most] or free or list(kernels)
    who: dict[str, Number | None] = {
        "threads": most,
        "set_by": "dump" if most in fixed.values() else "option",
    }
    if most > state.processors:
        numbers = {**who, "processors": state.processors}
        yield _hazard("more-threads-than-processors", numbers, names)
    if state.quota is not None and most > state.quota:
        yield _hazard("cpu-quota", {**who, "quota": state.quota, "period_s": state.period_s}, names)
    if (
        state.busy >= _MUCH
        and state.processors >= most > state.processors - state.busy - state.stolen + _MUCH / 2
    ):
        numbers = {**who, "processors": state.processors, "busy": state.busy}
        yield _hazard("busy-processors", numbers, names)
    if state.stolen >= 0.05:
        yield _hazard("stolen-processors", {"stolen": state.stolen, "processors": state.processors})
    if unsteady := [governor for governor in state.governors if governor not in _STEADY]:
        yield _hazard("varying-clocks", {"governors": ", ".join(unsteady)})


def _hazard(code: RemarkCode, numbers: Mapping[str, Number | None], kernels: Sequence[str] = ()) -> Remark:
    """Return a hazard for kernels, or for whatever runs on this machine."""
    subject, *also = (
        (Subject("kernel", name) for name in kernels) if kernels else (Subject("machine", "cpu"),)
    )
    return replace(measured(code, "hazard", subject, numbers), also=tuple(also))
