"""Where the time of a call goes: its parts, the loop nests of C++ kernels, the lines of the wrapper."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.call_parts import Side
from inductor_probe.model.code import NestFeature, NestKind
from inductor_probe.model.codec import written
from inductor_probe.model.output import Output
from inductor_probe.model.own_call import NoOwnCall, OwnCall
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import SourceLine, Span
from inductor_probe.model.timing import Roofline

PROFILE_NAME = "probe_profile.json"
"""In the folder of a run: what was profiled of it last, a `ProfileOutput` without timelines."""

WORKS = 0.5
"""A GPU that works for less of a call waits for the host, mostly."""

ClockName: TypeAlias = Literal["tsc", "steady_clock", "thread_cpu"]
"""What C++ kernels read: the processor's time stamp counter, `std::chrono::steady_clock`, or, as the lines of
the wrapper do, too, the CPU time of the thread, which does not go on while others have its core."""

PartKind: TypeAlias = Literal[
    "kernel", "library", "launches", "allocation", "check", "free", "other", "gap", "call",
]  # fmt: skip
"""`launches` is what launching takes besides the kernels; `check` those of sizes and strides; `gap` what no
other part has."""

LineKind: TypeAlias = Literal["launch", "library", "allocation", "check", "free", "other"]


class ProfilePart(Struct, frozen=True):
    """A part of the time of a call, in seconds.

    On a CPU the parts of `host` add up to `call`. On CUDA those of `host` do so with launches in the place of
    kernels, and those of `device` to its `call`.

    Attributes:
        name: of the kernel or library function; the kind for what has no name.
        seconds: with what reading clocks takes subtracted; `gap` is what is left of the whole.
        uncertainty: by how much it may be off. share: of the last part of its side.
        count: how many launches, calls or lines it stands for.
        moved: bytes that it has to read and write. flops: that it has to compute. None where not known.
        nodes: scheduler nodes that it runs. sources: lines of the user's program that it comes from.
    """

    kind: PartKind
    name: str
    side: Side
    seconds: float
    uncertainty: float
    share: float
    count: int = 0
    moved: int | None = None
    flops: int | None = None
    nodes: tuple[str, ...] = ()
    sources: tuple[SourceLine, ...] = ()


class SlowWork(Struct, frozen=True):
    """Of a loop nest that is far from what this machine copies: what else it may spend its time on.

    Attributes:
        copied: the share of the rate of a copy that its bytes are.
        points: of its iteration space, over all launches in a call.
        cycles: that a thread takes for a point, at the clock that the system states; None without one.
        operations: slow ones in the loop bodies of its nodes, about the slowest first. Which of them takes
            the time was not measured. scalar: its text uses no vectors. features: of that text.
        tile: sides of the tiles that it transposes; empty where it does not.
    """

    copied: float
    points: int
    cycles: float | None
    operations: tuple[str, ...]
    scalar: bool
    features: tuple[NestFeature, ...] = ()
    tile: tuple[int, ...] = ()


class NestTime(Struct, frozen=True):
    """The time of a loop nest of a C++ kernel, over all launches of it in a call.

    Attributes:
        kernel: its name. number: from 1, in the order of the text, as `probe show KERNEL --annotate` counts.
            None for what is outside of the nests: memory that it allocates, threads that start and end, loops
            over threads.
        kind: see `LoopNest`; None for what is outside.
        line, last: of the kernel's text, 1-based; 0 for what is outside.
        loops: trips of its loops, outermost first: `x0 64`.
        seconds: from the first thread's begin to the end of all; together those of the kernel.
        uncertainty: by how much it may be off.
        share: of the call.
        threads: how many ran it. busy: what they worked in the mean, over what the busiest one did.
        launches: how often it ran in a call.
        moved: bytes that its nodes read and write, each buffer once a direction. flops: that they compute.
            Both over all launches.
        slow: what it may spend its time on, where that is not memory; None too where it is short.
        nodes: that its lines are proved to compute for, in its first launch. sources: lines of the user's.
    """

    kernel: str
    number: int | None
    kind: NestKind | None
    line: int
    last: int
    loops: tuple[str, ...]
    seconds: float
    uncertainty: float
    share: float
    threads: int = 1
    busy: float = 1.0
    launches: int = 0
    moved: int | None = None
    flops: int | None = None
    nodes: tuple[str, ...] = ()
    sources: tuple[SourceLine, ...] = ()
    slow: SlowWork | None = None


class LineTime(Struct, frozen=True):
    """The time of a line of the wrapper: with the kernel that it launches.

    Attributes:
        span: in `output_code.py`; in the bench file where the graph has none in Python.
        code: the line. kind: what it does. target: what it launches or calls.
        count: how often it ran in a call.
    """

    span: Span
    code: str
    kind: LineKind
    target: str
    seconds: float
    uncertainty: float
    share: float
    count: int


class ClockProblem(Struct, frozen=True):
    """Why the loop nests of a C++ kernel could not be timed.

    Attributes:
        code: `no-function`: its text defines none in a form that is known; `nest-inside`: the loop nest of
            lines `line` to `last` of it does not stand by itself; `not-compiled`: its copy with a clock does
            not, and `error` is the compiler's; `differs`: that copy computes something else.
    """

    code: Literal["no-function", "nest-inside", "not-compiled", "differs"]
    line: int | None = None
    last: int | None = None
    error: str = ""


class KernelClock(Struct, frozen=True):
    """What reading a clock in a C++ kernel costs.

    Attributes:
        problem: why its loop nests could not be timed; None if they were.
        pristine: seconds of the lines that launch the kernel as it is; None where calls are too long to
            measure this, too. added: what those that launch its copy with a clock take more. uncertainty: by
            how much that may be off.
        notes: clock reads of a launch come in pairs: how many. note: seconds of one.
    """

    kernel: str
    problem: ClockProblem | None = None
    pristine: float | None = None
    added: float = 0.0
    uncertainty: float = 0.0
    notes: int = 0
    note: float = 0.0


class TimelineSpan(Struct, frozen=True):
    """A piece of one traced call, in seconds from its begin; what reading clocks takes is in it.

    `thread` is the number of the OpenMP thread; that of the wrapper is 0. `depth`: 0 for a line of the
    wrapper, 1 for a kernel, 2 for a loop nest. A `device` span is a kernel, copy or fill on a GPU as
    torch.profiler has it from the driver; when it begins is known to some microseconds, how long it takes
    better.
    """

    name: str
    kind: Literal["line", "kernel", "nest", "waiting", "device"]
    begin: float
    end: float
    thread: int
    depth: int


class Profile(Struct, frozen=True):
    """Where the time of a call of a graph goes.

    Attributes:
        device: `cpu` or `cuda`. threads: of torch and OpenMP.
        clock: what C++ kernels read; of `thread_cpu` all times are. mark: seconds that Python's clock takes
            above a line of the wrapper.
        call: seconds of a call as it is. traced: of one with all clocks.
        rounds: that the times rest on.
        parts, nests, lines: in the order of the call, kernels by their first launch.
        clocks: of each C++ kernel.
        roofline: what the machine copies and multiplies; None where that could not be measured.
        timeline: of one call, neither slow nor fast; on CUDA of one that torch.profiler recorded.
        measured: seconds that measuring took in all processes: what a budget is of.
    """

    graph: str
    torch: str
    device: str
    threads: int
    clock: ClockName
    call: float
    traced: float
    mark: float
    rounds: int
    parts: tuple[ProfilePart, ...]
    nests: tuple[NestTime, ...]
    lines: tuple[LineTime, ...]
    clocks: tuple[KernelClock, ...] = ()
    timeline: tuple[TimelineSpan, ...] = ()
    remarks: tuple[Remark, ...] = ()
    roofline: Roofline | None = None
    measured: float = 0.0

    def part(self, kind: str, side: Side = "host") -> ProfilePart | None:
        """Return the first part of a kind."""
        return next((part for part in self.parts if (part.kind, part.side) == (kind, side)), None)

    @property
    def whole(self) -> ProfilePart:
        """What the parts of the host add up to."""
        return [part for part in self.parts if part.kind == "call"][-1]


Standing: TypeAlias = Literal["faster", "slower", "same", "only-a", "only-b"]
"""Of B. `same`: they differ by less than either is known to, or than times of two processes do."""


class ComparedPart(Struct, frozen=True):
    """A part of two profiles.

    Attributes:
        kind: see `ProfilePart`; `nest` for a loop nest of the kernels of the row above.
        names_a, names_b: kernels that do the same work; the kind for what has no name. Empty on a side that
            has no such part.
        a, b: seconds of a call, None on a side that has no such part.
        difference: b - a, where a side has none 0 for it. uncertainty: by how much it may be off.
    """

    kind: PartKind | Literal["nest"]
    names_a: tuple[str, ...]
    names_b: tuple[str, ...]
    a: float | None
    b: float | None
    difference: float
    uncertainty: float
    standing: Standing

    @property
    @written
    def ratio(self) -> float | None:
        """B by A; None where a side has none, or takes no time."""
        return self.b / self.a if self.a and self.b is not None and self.a > 0 else None


class ProfileComparison(Struct, frozen=True):
    """Two profiles, part by part.

    Attributes:
        a, b: names of the graphs. torch_a, torch_b: versions that ran them.
        by: how kernels were paired: by what they `compute`, or by their `name`.
        parts: in the order of A's, those that only B has behind A's of their kind.
    """

    a: str
    b: str
    torch_a: str
    torch_b: str
    by: Literal["compute", "name"]
    parts: tuple[ComparedPart, ...]


class ProfileOutput(Output, frozen=True, kw_only=True):
    """Where the time of calls goes, a profile for each graph.

    Attributes:
        profiles: of what is named first, A. against: of B. comparisons: of each graph of A with its partner.
        own: the callables of the script that compiled the graphs of A, against eager. no_own: why one of
            them is missing; None where none is, or profiles were read from a file.
    """

    verb: Literal["profile"] = "profile"
    profiles: tuple[Profile, ...]
    against: tuple[Profile, ...] = ()
    comparisons: tuple[ProfileComparison, ...] = ()
    own: tuple[OwnCall, ...] = ()
    no_own: NoOwnCall | None = None
