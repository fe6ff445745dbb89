"""What will spoil the times of C++ kernels on this machine as it is now: said before the clock starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from inductor_probe.machine.cpu import CpuState

_THREADS = re.compile(r"#pragma omp parallel[^\n]{0,200}?\bnum_threads\((?P<number>\d{1,6})\)")
_PARALLEL = "#pragma omp parallel"
_STEADY = ("performance", "userspace")
_MUCH = 0.25
"""Processors: what a machine does in passing takes less."""


def fixed_threads(source: str) -> int | None:
    """Return the threads that a kernel's text fixes (`num_threads(2)`), None where OpenMP chooses."""
    return max((int(found["number"]) for found in _THREADS.finditer(source)), default=None)


def hazards(kernels: Mapping[str, str], state: CpuState, threads: int | None = None) -> tuple[str, ...]:
    """Return a sentence for each thing that will spoil times, with what to do about it.

    Threads of OpenMP wait for each other at the end of every loop, and burn their time meanwhile: where they
    do not all run at once, a kernel of 36 us can take 46 ms.

    Args:
        kernels: the text of each C++ kernel, by name.
        state: of the processors, from a moment before.
        threads: as asked for (`--threads`); each processor has one if None.
    """
    return tuple(_hazards(kernels, state, threads))


def _hazards(kernels: Mapping[str, str], state: CpuState, threads: int | None) -> Iterator[str]:
    fixed = {name: number for name, text in kernels.items() if (number := fixed_threads(text))}
    free = [name for name, text in kernels.items() if _PARALLEL in text and name not in fixed]
    if deaf := [name for name, number in fixed.items() if threads is not None and number != threads]:
        yield (
            f"--threads {threads} does not reach {_names(deaf)}, whose text fixes "
            f"{' or '.join(map(str, sorted({fixed[name] for name in deaf})))}; "
            f"dump with OMP_NUM_THREADS={threads} for kernels that have as many"
        )
    most = max([*fixed.values(), (threads or state.processors) if free else 1], default=1)
    who = _names([name for name, number in fixed.items() if number == most] or free or list(kernels))
    who = f"{who}: {most} {'thread' if most == 1 else 'threads'}"
    fewer = "dump with a smaller OMP_NUM_THREADS" if most in fixed.values() else "give a smaller --threads"
    if most > state.processors:
        yield (
            f"{who}, and {_processors(state.processors)} may run them: they take turns and wait for each "
            f"other, so that the time is not the kernel's; {fewer}"
        )
    if state.quota is not None and most > state.quota:
        period = f" of {state.period_s * 1000:.0f} ms" if state.period_s else ""
        yield (
            f"{who}, and the control group pays for {state.quota:g} processors (cpu.max): once they are used "
            f"up, all stand still for the rest of the period{period}; {fewer}"
        )
    if (
        state.busy >= _MUCH
        and state.processors >= most > state.processors - state.busy - state.stolen + _MUCH / 2
    ):
        waits = ", which wait for the one that does not run" if most > 1 else ""
        yield (
            f"{who}{waits}, and others keep {state.busy:.1f} of {_processors(state.processors)} busy: "
            "samples can take a thousand times as long; wait until those are done"
            + (f", or {fewer}" if most > 1 else "")
        )
    if state.stolen >= 0.05:
        yield (
            f"the hypervisor took {state.stolen:.2f} of {_processors(state.processors)} away just now: "
            "another guest is busy, and nothing here can stop it; time more, or elsewhere"
        )
    if unsteady := [governor for governor in state.governors if governor not in _STEADY]:
        yield (
            f"the governor {' and '.join(unsteady)} changes clocks while kernels run; "
            "`sudo cpupower frequency-set -g performance` holds them"
        )


def _names(names: list[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def _processors(number: int) -> str:
    return "1 processor" if number == 1 else f"{number} processors"
