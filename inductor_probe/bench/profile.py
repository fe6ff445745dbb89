"""A profile of a graph: its bench file with clocks in it is run, and what that says becomes rows."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.bench.call_parts import on_device
from inductor_probe.bench.overheads import CALL, Rounds, overheads_of, within
from inductor_probe.bench.session import compiled, kernel_count, over_budget, roofline_of, server_of
from inductor_probe.executors.child import Event
from inductor_probe.executors.server import JobFailedError, Server
from inductor_probe.harness.budget import ALLOWED, PROCESSES, ROOFLINE
from inductor_probe.machine.gpu import names_gpu
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.code import LoopNest
from inductor_probe.model.codec import from_json
from inductor_probe.model.profile import (
    ClockName,
    ClockProblem,
    KernelClock,
    LineTime,
    NestTime,
    PartKind,
    Profile,
    ProfilePart,
    TimelineSpan,
)
from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.span import Span
from inductor_probe.model.timing import FlopCount, TimedInterval
from inductor_probe.store.samples import overhead_samples

Progress: TypeAlias = Callable[[str], None]
_JOB = "inductor_probe.harness.profile:profile"
_EMPTY_NOTES = 2
_MANY_PAGES = 64
"""A call: clearing them takes some tens of microseconds."""
_SHORTEST_ROOFLINE_S = 0.1
"""Of copies in three places: fewer may all be slower than what is compared with them."""
_REST: tuple[Literal["allocation", "check", "free", "other"], ...] = ("allocation", "check", "free", "other")
_DEVICE_PARTS: Mapping[str, PartKind] = {
    "kernel": "kernel", "library": "library", "rest": "gap", "gap": "gap", "call": "call",
}  # fmt: skip
"""By the kind of what was timed one by one, or of what the driver recorded of a whole call."""


class ClockedFile(Struct, frozen=True):
    """A bench file whose C++ kernels have copies that read a clock.

    Attributes:
        path: of the bench file. source: its text with the copies.
        wrapper: names of the definitions that the wrapper consists of.
        clock: what the copies read. copies: of kernels, in the order of their numbers.
        nests: of each C++ kernel, those that are timed. problems: why a kernel has no copy.
        span_of: finds lines of `source` in the file that is shown.
    """

    path: Path
    source: str
    wrapper: tuple[str, ...]
    clock: ClockName
    copies: Mapping[str, str]
    nests: Mapping[str, tuple[LoopNest, ...]]
    problems: Mapping[str, ClockProblem]
    span_of: Callable[[int, int], Span]


def profile_bench_file(
    file: ClockedFile,
    settings: BenchSettings,
    progress: Progress | None = None,
    dtypes: Callable[[tuple[FlopCount, ...] | None], Sequence[str]] = lambda flops: (),
    shared: Server | None = None,
) -> tuple[Profile, tuple[FlopCount, ...] | None]:
    """Profile a graph by its bench file: this executes the code in it, in child processes.

    On a CPU there are three, if they fit, and the one whose calls are the fastest stands for all: where the
    heap of one lies so that it gives memory back at the end of each call, a call takes up to twice as long.

    Args:
        settings: `budget`, `threads`, `processes`, `inputs`, `sizes`, `cxxflags` and `imports` count.
        progress: called with what is done next.
        dtypes: of the products that the graph computes, by the operations it counts.
        shared: a process that other files were run by; then the roofline is left out.

    Returns:
        the profile, and the operations that each operator of the graph counts, None if nothing was counted.

    Raises:
        NotFoundError: no such inputs or sizes. RunFailedError: it cannot be loaded, or its process ended.
    """
    progress = progress or (lambda text: None)
    results: list[Event] = []
    measuring = settings.budget * (1 - ROOFLINE)
    processes = 1 if names_gpu(file.source) else settings.processes or PROCESSES
    options = {
        "budget": measuring / processes,
        "threads": settings.threads,
        "inputs": settings.inputs,
        "sizes": list(settings.sizes),
        "cold": False,
    }
    request = {
        "job": _JOB,
        "options": options,
        "compiled": True,
        "wrapper": list(file.wrapper),
        "clocked": [[name, copy] for name, copy in file.copies.items()],
    }
    with nullcontext(shared) if shared else server_of(file.path, settings) as server:
        progress("importing torch and inductor")
        try:
            server.use(file.path, file.source)
            for event in compiled(server, kernel_count(file.source)):
                if event["event"] == "compiling":
                    progress(f"compiling {event['name']}")
            for _ in range(processes):
                if not another_fits(results, measuring):
                    break
                for event in server.events(request):
                    if event["event"] == "profile":
                        results.append(event)
                    elif event["event"] == "phase":
                        progress(" ".join([event["phase"], *event["names"]]))
        except JobFailedError as error:
            raise error.error(file.path) from error
        conclusions = [_Conclusion(file, settings.threads, result) for result in results]
        conclusion = min(conclusions, key=lambda one: one.call)
        profile, flops = conclusion.profile(), conclusion.samples.flops
        spent = sum(one["seconds"] for one in results)
        remarks = (*profile.remarks, *new_pages(results), *over_budget(spent, measuring))
        profile = replace(profile, remarks=remarks, measured=spent)
        if shared is not None:
            return profile, flops
        progress("measuring what this machine can copy and multiply")
        seconds, begin = max(settings.budget * ROOFLINE, _SHORTEST_ROOFLINE_S), perf_counter()
        roofline = roofline_of(server, settings, profile.device, dtypes(flops), seconds)
    if isinstance(roofline, Remark):
        return replace(profile, remarks=(*profile.remarks, roofline)), flops
    return replace(profile, roofline=roofline, measured=spent + perf_counter() - begin), flops


def another_fits(results: Sequence[Event], budget: float) -> bool:
    """Tell whether one more process like those before keeps the budget.

    One whose calls take a second makes a few of them, however little it was given.
    """
    spent = [result["seconds"] for result in results]
    return not spent or sum(spent) + max(spent) <= ALLOWED * budget


def new_pages(results: Sequence[Event]) -> Iterator[Remark]:
    """Yield in how many processes, given what each measured, a call is given new pages by the system."""
    pages = [sorted(result["new_pages"])[len(result["new_pages"]) // 2] for result in results]
    given = [number for number in pages if number >= _MANY_PAGES]
    if given and results[0]["device"] == "cpu":
        numbers = {
            "slow": len(given),
            "processes": len(results),
            "pages": max(given),
            "size": max(given) * mmap.PAGESIZE,
        }
        yield measured("new-pages", "analysis", Subject("graph", ""), numbers)


class _Conclusion:
    """What follows from what one process measured.

    All times are medians over the rounds that `Rounds` counts, ranked by the calls that were looked into and
    by those of the code as it is that took turns with them: these are `call`. Subtracted is what clocks take:
    a mark above each line of the wrapper; and in kernels `note` for each loop nest, `inside` of it between
    its two reads, and once a launch `steady`, for a read of `steady_clock`.
    """

    def __init__(self, file: ClockedFile, threads: int, result: Event) -> None:
        self.file, self.result, self.threads = file, result, threads
        self.samples = overhead_samples(result["overheads"])
        self.overheads = overheads_of([self.samples])
        self.clocked: list[Event] = result["clocked"]
        self.lines: list[Event] = result["lines"]
        pristine = np.array([call["pristine"] for call in self.clocked])
        self._rounds = Rounds([self.samples], [pristine + [call["call"] for call in self.clocked]])
        self._names = {number: name for name, number in result["numbers"].items()}
        self._mark = self._time([call["mark"] for call in self.clocked])[0]
        launches = [launch for call in self.clocked for launch in call["launches"]]
        self._inside, self._note, self._steady = (
            float(np.median([launch[key] for launch in launches])) if launches else 0.0
            for key in ("inside", "note", "steady")
        )
        self._call = self._time(pristine)
        self._line_seconds = self._series_of_lines(self.clocked)
        self._kernels: dict[str, np.ndarray] = {}
        self._nests: dict[tuple[str, int], np.ndarray] = {}
        self._threads_of: dict[tuple[str, int], tuple[int, float]] = {}
        self._launch_counts: Counter[str] = Counter()
        self._sum_launches()

    @property
    def call(self) -> float:
        """Seconds of a call of the code as it is."""
        return self._call[0]

    def profile(self) -> Profile:
        """Return all rows."""
        measured = [*self.result["remarks"], *self.result["measured"]]
        parts = tuple(self._parts())
        kernels = {part.name: part.seconds for part in parts if part.kind == "kernel"}
        return Profile(
            graph=self.file.path.parent.name,
            torch=self.result["torch"],
            device=self.samples.device,
            threads=self.threads,
            clock="thread_cpu" if self.result["on_cpu_time"] else self.file.clock,
            call=self._call[0],
            traced=self._time([call["call"] for call in self.clocked])[0],
            mark=self._mark,
            rounds=len(self.clocked),
            parts=parts,
            nests=tuple(self._nest_rows(kernels)),
            lines=tuple(self._line_rows()),
            clocks=tuple(self._clock_rows()),
            timeline=tuple(self._timeline()),
            remarks=(*(from_json(Remark, remark) for remark in measured), *self.overheads.remarks),
        )

    def _time(self, numbers: Sequence[float] | np.ndarray) -> tuple[float, float]:
        """Return seconds, and by how much they may be off, of one number a round."""
        series = np.array(numbers)
        time = self._rounds.time(lambda process: series)
        return time.seconds, time.uncertainty

    def _series_of_lines(self, calls: Sequence[Event]) -> list[np.ndarray]:
        seconds = np.zeros((len(self.lines), len(calls)))
        for place, call in enumerate(calls):
            for number, line_s, count in call["lines"]:
                seconds[number, place] = line_s - count * self._mark
        return list(seconds)

    def _sum_launches(self) -> None:
        """Add up what kernels and their loop nests took in each call."""
        for place, call in enumerate(self.clocked):
            for launch in call["launches"]:
                name, nests = self._names[launch["kernel"]], launch["nests"]
                notes = (len(nests) + _EMPTY_NOTES) * self._note + self._steady
                series = self._kernels.setdefault(name, np.zeros(len(self.clocked)))
                series[place] += launch["seconds"] - notes
                self._launch_counts[name] += not place
                for number, wall, most, mean, threads in nests:
                    series = self._nests.setdefault((name, number), np.zeros(len(self.clocked)))
                    series[place] += max(wall - self._inside, 0.0)
                    self._threads_of[name, number] = (threads, mean / most if most else 1.0)

    def _parts(self) -> Iterator[ProfilePart]:
        """Yield the GPU's parts, then the host's: kernels first, then launches, then the other lines."""
        cuda = self.samples.device != "cpu"
        intervals = [from_json(TimedInterval, interval) for interval in self.result["device_intervals"]]
        yield from self._recorded(intervals)
        for row in self.overheads.rows if cuda and not intervals else ():
            if row.side == "device":
                kind = _DEVICE_PARTS[row.kind]
                name = "gap" if kind == "gap" else row.name
                times = row.seconds, row.uncertainty, row.share
                yield ProfilePart(kind, name, "device", *times, row.launches)
        host = [*self._launched(cuda), *self._rest_of_wrapper()]
        fitted, gap = within([(part.seconds, part.uncertainty) for part in host], self._call[0])
        for part, time in zip(host, fitted, strict=True):
            yield self._part(part.kind, part.name, time, part.count)
        yield self._part("gap", "gap", (gap, min(self._call[1], self._call[0] - gap)))
        yield self._part("call", CALL, self._call)

    def _recorded(self, intervals: Sequence[TimedInterval]) -> Iterator[ProfilePart]:
        """Yield what the driver says of whole calls, where kernels were not timed one by one."""
        kernels = {line["target"] for line in self.lines if line["kind"] == "launch"}
        parts = list(on_device([intervals]))
        for part in parts:
            foreign = part.kind == "copy" or (part.kind == "kernel" and part.name not in kernels)
            kind = "library" if foreign else _DEVICE_PARTS[part.kind]
            name, share = CALL if kind == "call" else part.name, part.seconds / parts[-1].seconds
            yield ProfilePart(kind, name, "device", part.seconds, part.uncertainty, share, part.launches)

    def _part(self, kind: PartKind, name: str, time: tuple[float, float], count: int = 0) -> ProfilePart:
        return ProfilePart(
            kind, name, "host", *time, time[0] / self._call[0] if self._call[0] else 0.0, count
        )

    def _launched(self, cuda: bool) -> Iterator[ProfilePart]:
        """Yield kernels and library calls of the wrapper, and what launching takes besides."""
        targets: dict[tuple[str, str], list[int]] = {}
        for number, line in enumerate(self.lines):
            if line["kind"] in ("launch", "library"):
                targets.setdefault((line["kind"], line["target"]), []).append(number)
        launching, launches = np.zeros(len(self.clocked)), 0
        for (kind, target), numbers in targets.items():
            count = sum(map(self._count, numbers))
            seconds = np.sum([self._line_seconds[number] for number in numbers], axis=0)
            if kind == "library" and count:
                yield self._part("library", target, self._time(seconds), count)
            elif cuda:
                launching, launches = launching + seconds, launches + count
            elif target in self._kernels:
                # Behind the mark the launch reads `steady_clock`, and it is noted when the kernel has ended.
                reading = count * (self._steady + self._note)
                notes = self._clock_reads(target) * self._note + count * self._steady
                launching = launching + seconds - self._kernels[target] - reading - notes
                launches += count
                yield self._part("kernel", target, self._time(self._kernels[target]), count)
            elif count:
                yield self._part("kernel", target, self._time(seconds), count)
        if launches:
            yield self._part("launches", "launches", self._time(launching), launches)

    def _rest_of_wrapper(self) -> Iterator[ProfilePart]:
        for kind in _REST:
            numbers = [number for number, line in enumerate(self.lines) if line["kind"] == kind]
            count = sum(map(self._count, numbers))
            series = np.zeros(len(self.clocked))
            if kind == "other":  # calling the wrapper
                series = np.array([call["entry"] for call in self.clocked])
            series = np.sum([series, *(self._line_seconds[number] for number in numbers)], axis=0)
            if count:
                yield self._part(kind, kind, self._time(series), count)

    def _count(self, number: int) -> int:
        """Return how often a line runs in a call."""
        return next((int(count) for line, _, count in self.clocked[0]["lines"] if line == number), 0)

    def _clock_reads(self, kernel: str) -> int:
        """Return how many notes all launches of a kernel make in a call, but for those of the launches."""
        launches = (launch for launch in self.clocked[0]["launches"])
        mine = [launch for launch in launches if self._names[launch["kernel"]] == kernel]
        return sum(len(launch["nests"]) + _EMPTY_NOTES for launch in mine)

    def _nest_rows(self, shown: Mapping[str, float]) -> Iterator[NestTime]:
        """Yield the loop nests of each kernel, and what is outside of them: together the time `shown`."""
        for kernel, whole in self._kernels.items():
            numbers = [key[1] for key in sorted(self._nests) if key[0] == kernel]
            series = [self._nests[kernel, number] for number in numbers]
            kernel_s = shown.get(kernel, self._time(whole)[0])
            times, outside = within([*map(self._time, series)], kernel_s)
            for number, time in zip(numbers, times, strict=True):
                nest = self.file.nests[kernel][number - 1]
                yield self._nest(kernel, number, nest, time, *self._threads_of[kernel, number])
            off = self._time(whole - np.sum(series, axis=0) if series else whole)[1]
            yield self._nest(kernel, None, None, (outside, off))

    def _nest(  # noqa: PLR0917 - a row
        self,
        kernel: str,
        number: int | None,
        nest: LoopNest | None,
        time: tuple[float, float],
        threads: int = 1,
        busy: float = 1.0,
    ) -> NestTime:
        seconds, off = time
        loops = tuple(f"{loop.variable} {loop.trips}" for loop in nest.order) if nest else ()
        return NestTime(
            kernel=kernel,
            number=number,
            kind=nest.kind if nest else None,
            line=nest.line if nest else 0,
            last=nest.last if nest else 0,
            loops=loops,
            seconds=seconds,
            uncertainty=off,
            share=seconds / self._call[0] if self._call[0] else 0.0,
            threads=threads,
            busy=busy,
            launches=self._launch_counts[kernel],
        )

    def _line_rows(self) -> Iterator[LineTime]:
        text = self.file.source.split("\n")
        counts = {number: count for number in range(len(self.lines)) if (count := self._count(number))}
        times, _ = within([self._time(self._line_series(*item)) for item in counts.items()], self._call[0])
        for (number, count), (seconds, off) in zip(counts.items(), times, strict=True):
            line = self.lines[number]
            code = " ".join(part.strip() for part in text[line["first"] - 1 : line["last"]])
            share = seconds / self._call[0] if self._call[0] else 0.0
            span = self.file.span_of(line["first"], line["last"])
            yield LineTime(span, code, line["kind"], line["target"], seconds, off, share, count)

    def _line_series(self, number: int, count: int) -> np.ndarray:
        """Return what a line took in each call, without reading the clocks of the kernel that it launches."""
        line, series = self.lines[number], self._line_seconds[number]
        if line["kind"] == "launch" and line["target"] in self._kernels:
            launches = self._launch_counts[line["target"]]
            notes = self._clock_reads(line["target"]) + launches
            series = series - (notes * self._note + 2 * launches * self._steady) / launches * count
        return series

    def _clock_rows(self) -> Iterator[KernelClock]:
        refused = {name: ClockProblem("not-compiled", error=why) for name, why in self.result["refused"]}
        differing: dict[str, ClockProblem] = dict.fromkeys(self.result["differing"], ClockProblem("differs"))
        problems = {**self.file.problems, **refused, **differing}
        unclocked = self._series_of_lines(self.result["plain"])  # none where calls are too long for both
        for kernel in self.file.nests:
            if kernel in problems:
                yield KernelClock(kernel, problems[kernel])
            elif kernel in self._kernels:
                notes = self._clock_reads(kernel) + self._launch_counts[kernel]
                if not self.result["plain"]:
                    yield KernelClock(kernel, notes=notes, note=self._note)
                    continue
                numbers = [number for number, line in enumerate(self.lines) if line["target"] == kernel]
                plain, clocked = (
                    np.sum([series[number] for number in numbers], axis=0)
                    for series in (unclocked, self._line_seconds)
                )
                added = self._time(clocked - plain)
                yield KernelClock(kernel, None, self._time(plain)[0], *added, notes, self._note)

    def _timeline(self) -> Iterator[TimelineSpan]:
        timeline = self.result["timeline"]
        if timeline is None:
            return
        text = self.file.source.split("\n")
        for number, begin, end in timeline["lines"]:
            yield TimelineSpan(text[self.lines[number]["first"] - 1].strip(), "line", begin, end, 0, 0)
        for launch in timeline["launches"]:
            name = self._names[launch["kernel"]]
            yield TimelineSpan(name, "kernel", launch["begin"], launch["end"], 0, 1)
            for number, thread, begin, worked, end in launch["nests"]:
                nest = f"{name} loop nest {number}"
                yield TimelineSpan(nest, "nest", begin, worked, thread, 2)
                if end > worked:
                    yield TimelineSpan("waiting for other threads", "waiting", worked, end, thread, 2)
        for name, begin, end in timeline["device"]:
            yield TimelineSpan(name, "device", begin, end, 0, 0)
