"""The processors: what they are, what they do just now (from /proc and /sys), and how that spoils times."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.remark import Number, Remark, RemarkCode, Subject, measured

_IDLE, _WAITING, _STOLEN = 3, 4, 7  # columns of /proc/stat behind the name
_CPUS = "sys/devices/system/cpu"
CPUINFO = Path("/proc/cpuinfo")
_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_READS = 2000
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_PARALLEL = "#pragma omp parallel"
_FIXED_THREADS = re.compile(r"#pragma omp parallel[^\n]{0,200}?\bnum_threads\((?P<number>\d{1,6})\)")
_STEADY = ("performance", "userspace")
_MUCH = 0.25
"""Processors: what a machine does in passing takes less."""


class CpuState(Struct, frozen=True):
    """The processors that this process may run on.

    Attributes:
        processors: how many.
        quota: how many of them its control group allows, None without a limit. `period_s`: over which time
            that is counted; a process that used it up stands still for the rest.
        busy: how many were taken, on the average of a moment in which this process slept.
        stolen: how many of them a hypervisor had taken away.
        load: running or waiting tasks, the mean of the last minute, None where not known.
        governors: what sets their clocks (`performance`, `powersave`), empty where not known.
    """

    processors: int
    quota: float | None = None
    period_s: float | None = None
    busy: float = 0.0
    stolen: float = 0.0
    load: float | None = None
    governors: tuple[str, ...] = ()


def cpu_name() -> str:
    """Return the processor's name. `platform.processor()` knows only its family."""
    return _cpuinfo("model name", CPUINFO) or platform.machine()


def vector_bits(cpuinfo: Path = CPUINFO) -> int | None:
    """Return how wide the vectors are that inductor's C++ may use here, in bits; None where not known.

    Torch asks for the same features: all four of AVX-512, or AVX2. Other processors than x86 have 128 bits
    at least; what else they have does not stand there in the same way.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    features = cpu_features(cpuinfo)
    if not features:
        return None
    if {"avx512f", "avx512dq", "avx512vl", "avx512bw"} <= features:
        return 512
    return 256 if {"avx2", "fma"} <= features else 128


def cpu_features(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the features of the first processor as Linux names them; empty where not known."""
    return frozenset((_cpuinfo("flags", cpuinfo) or _cpuinfo("Features", cpuinfo) or "").split())


def has_invariant_tsc(cpuinfo: Path = CPUINFO) -> bool:
    """Return whether the processor's time stamp counter runs at one rate, whatever its clock and sleep."""
    return {"constant_tsc", "nonstop_tsc"} <= cpu_features(cpuinfo)


def cache_sizes(root: Path = Path("/")) -> dict[int, int]:
    """Return the bytes of the first processor's largest cache of each level; empty where not known."""
    sizes: dict[int, int] = {}
    for folder in (root / _CPUS / "cpu0/cache").glob("index*"):
        size, level = _text(folder / "size").strip(), _text(folder / "level").strip()
        if size[:-1].isdecimal() and size[-1] in _UNITS and level.isdecimal():
            sizes[int(level)] = max(sizes.get(int(level), 0), int(size[:-1]) * _UNITS[size[-1]])
    return sizes


def clock_hertz(cpuinfo: Path = CPUINFO) -> float | None:
    """Return the clock of the first processor as the system states it; None where it does not."""
    stated = _cpuinfo("cpu MHz", cpuinfo)
    try:
        return float(stated) * 1e6 if stated else None
    except ValueError:
        return None


def clock_source(clock: Path = _CLOCK) -> str | None:
    """Return the kernel's clock source (`tsc`), None where not known."""
    return _text(clock).strip() or None


def timer_step(read: Callable[[], float] = time.perf_counter, reads: int = _READS) -> float:
    """Return the median of the differences, but zero, of a clock read over and over, in seconds."""
    times = [read() for _ in range(reads)]
    steps = sorted(late - early for early, late in pairwise(times) if late > early)
    return steps[len(steps) // 2] if steps else 0.0


def cpu_state(
    root: Path = Path("/"),
    allowed: Set[int] | None = None,
    *,
    seconds: float = 0.2,
    sleep: Callable[[float], None] = time.sleep,
) -> CpuState:
    """Read the state of the processors; it takes `seconds`, over which the share of busy ones is counted.

    `root` is where `proc` and `sys` are; what is missing there is not known. `allowed` are the numbers of the
    processors that count, those this process may run on if None.
    """
    allowed = os.sched_getaffinity(0) if allowed is None else allowed
    before = _ticks(root, allowed)
    sleep(seconds)
    busy, stolen = _busy_and_stolen(before, _ticks(root, allowed))
    quota, period = _quota(root)
    load = _text(root / "proc/loadavg").partition(" ")[0]
    governors = (_text(root / _CPUS / f"cpu{number}/cpufreq/scaling_governor") for number in sorted(allowed))
    return CpuState(
        processors=len(allowed),
        quota=quota,
        period_s=period,
        busy=busy,
        stolen=stolen,
        load=float(load) if load.replace(".", "", 1).isdecimal() else None,
        governors=tuple(dict.fromkeys(text.strip() for text in governors if text.strip())),
    )


def _ticks(root: Path, allowed: Set[int]) -> dict[int, list[int]]:
    """Return the clock ticks that each processor spent on each kind of work."""
    ticks_of = {}
    for line in _text(root / "proc/stat").splitlines():
        name, *ticks = line.split()
        number = name.removeprefix("cpu")
        if name.startswith("cpu") and number.isdecimal() and int(number) in allowed:
            ticks_of[int(number)] = [int(tick) for tick in ticks[:8] if tick.isdecimal()]
    return ticks_of


def _busy_and_stolen(before: dict[int, list[int]], after: dict[int, list[int]]) -> tuple[float, float]:
    busy = stolen = 0.0
    for number in before.keys() & after.keys():
        ticks = [late - early for early, late in zip(before[number], after[number], strict=False)]
        if (total := sum(ticks)) > 0:
            ticks += [0] * (_STOLEN + 1 - len(ticks))  # old kernels have fewer columns
            busy += (total - ticks[_IDLE] - ticks[_WAITING] - ticks[_STOLEN]) / total
            stolen += ticks[_STOLEN] / total
    return round(busy, 2), round(stolen, 2)


def _quota(root: Path) -> tuple[float | None, float | None]:
    """Return the tightest limit of this process's control groups, in processors, and its period (s)."""
    limits = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, place = [*line.split(":", 2), "", ""][:3]
        base = root / "sys/fs/cgroup" / ("" if not kinds else "cpu")
        if kinds and "cpu" not in kinds.split(","):
            continue
        parts = PurePosixPath(place.lstrip("/")).parts
        if ".." in parts:  # a group outside of what this container sees
            parts = ()
        for depth in range(len(parts), -1, -1):
            limits += _limit(base.joinpath(*parts[:depth]))
    return min(limits, default=(None, None))


def _limit(group: Path) -> list[tuple[float, float]]:
    """Read `cpu.max` (`150000 100000`, in microseconds), or the two files that were there before it."""
    words = _text(group / "cpu.max").split()
    if not words:
        words = [_text(group / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
        return [(int(words[0]) / int(words[1]), int(words[1]) / 1e6)]
    return []  # `max`, -1, or no such file


def _cpuinfo(key: str, path: Path) -> str | None:
    """Return what the first processor's line of that name says."""
    for line in _text(path).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def fixed_threads(source: str) -> int | None:
    """Return the threads that a kernel's text fixes (`num_threads(2)`), None where OpenMP chooses."""
    return max((int(match["number"]) for match in _FIXED_THREADS.finditer(source)), default=None)


def hazards(kernels: Mapping[str, str], state: CpuState, threads: int | None = None) -> tuple[Remark, ...]:
    """Return a remark for each thing that will spoil times.

    Threads of OpenMP wait for each other at the end of every loop, and burn their time meanwhile: where they
    do not all run at once, a kernel of 36 us can take 46 ms.

    `kernels` is the text of each C++ kernel, by name; `state` is from a moment before; `threads` as asked for
    (`--threads`), one a processor if None.
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
