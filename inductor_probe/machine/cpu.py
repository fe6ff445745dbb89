"""The processors: what they are, and what they do just now; read from /proc and /sys."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

_IDLE, _WAITING, _STOLEN = 3, 4, 7  # columns of /proc/stat behind the name
_CPUS = "sys/devices/system/cpu"
_CPUINFO = Path("/proc/cpuinfo")
_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_READS = 2000
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class CpuState:
    """The processors that this process may run on.

    Attributes:
        processors: how many.
        quota: how many of them its control group pays for, None without a limit. `period_s`: over which time
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
    return _cpuinfo("model name", _CPUINFO) or platform.machine()


def vector_bits(cpuinfo: Path = _CPUINFO) -> int | None:
    """Return how wide the vectors are that inductor's C++ may use here, in bits; None where not known.

    Torch asks for the same features: all four of AVX-512, or AVX2. Other processors than x86 have 128 bits
    at least; what else they have does not stand there in the same way.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    flags = _cpuinfo("flags", cpuinfo)
    if flags is None:
        return None
    features = set(flags.split())
    if {"avx512f", "avx512dq", "avx512vl", "avx512bw"} <= features:
        return 512
    return 256 if {"avx2", "fma"} <= features else 128


def cache_sizes(root: Path = Path("/")) -> dict[int, int]:
    """Return the bytes of the first processor's largest cache of each level; empty where not known."""
    sizes: dict[int, int] = {}
    for folder in (root / _CPUS / "cpu0/cache").glob("index*"):
        size, level = _text(folder / "size").strip(), _text(folder / "level").strip()
        if size[:-1].isdecimal() and size[-1] in _UNITS and level.isdecimal():
            sizes[int(level)] = max(sizes.get(int(level), 0), int(size[:-1]) * _UNITS[size[-1]])
    return sizes


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

    Args:
        root: where `proc` and `sys` are. What is missing there is not known.
        allowed: numbers of the processors that count; those this process may run on if None.
        sleep: what passes the time.
    """
    allowed = os.sched_getaffinity(0) if allowed is None else allowed
    before = _times(root, allowed)
    sleep(seconds)
    taken = _taken(before, _times(root, allowed))
    quota, period = _quota(root)
    return CpuState(
        processors=len(allowed),
        quota=quota,
        period_s=period,
        busy=taken[0],
        stolen=taken[1],
        load=_load(root),
        governors=_governors(root, allowed),
    )


def _times(root: Path, allowed: Set[int]) -> dict[int, list[int]]:
    """Return the clock ticks that each processor spent on each kind of work."""
    ticks_of = {}
    for line in _text(root / "proc/stat").splitlines():
        name, *ticks = line.split()
        number = name.removeprefix("cpu")
        if name.startswith("cpu") and number.isdecimal() and int(number) in allowed:
            ticks_of[int(number)] = [int(tick) for tick in ticks[:8] if tick.isdecimal()]
    return ticks_of


def _taken(before: dict[int, list[int]], after: dict[int, list[int]]) -> tuple[float, float]:
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


def _load(root: Path) -> float | None:
    first = _text(root / "proc/loadavg").partition(" ")[0]
    return float(first) if first.replace(".", "", 1).isdecimal() else None


def _governors(root: Path, allowed: Set[int]) -> tuple[str, ...]:
    texts = (_text(root / _CPUS / f"cpu{number}/cpufreq/scaling_governor") for number in sorted(allowed))
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))


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
