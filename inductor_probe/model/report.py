"""What the page of `probe report` shows: its tables and panes, in the words of other verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.comparison import Comparison
from inductor_probe.model.compile_time import CompileTimes
from inductor_probe.model.decision import DecisionKind
from inductor_probe.model.diff import GraphDiff, RunDiff
from inductor_probe.model.output import Output
from inductor_probe.model.overview import OverviewOutput
from inductor_probe.model.profile import Profile
from inductor_probe.model.remark import RemarkKind
from inductor_probe.model.span import SourceLine

Side: TypeAlias = Literal["a", "b"]


class ReportNode(Struct, frozen=True):
    """An unfused node of the scheduler: see `NodeRow`.

    Attributes:
        node, top: its name, and that of the node after fusion which holds it, itself where it is not fused.
        does, loops, kernel: as `probe nodes` shows them.
        writes, reads: names of buffers. sources: places in `ReportGraph.sources`. fx: FX nodes it computes.
        body: what it computes, in lines; none where it has no loop body.
        seconds: in a call, of `top`, where the graph was profiled.
    """

    node: str
    top: str
    does: str
    loops: str
    kernel: str
    writes: tuple[str, ...]
    reads: tuple[str, ...]
    sources: tuple[int, ...] = ()
    fx: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    seconds: float | None = None


class ReportBuffer(Struct, frozen=True):
    """A buffer: see `LayoutRow`.

    Attributes:
        layout: `f32[64, 64]`. format: as `probe layouts` shows it, with strides. bytes: None where not known.
        producer: the node that writes it. readers: those that read it.
        remarks: about how nodes reach it.
    """

    buffer: str
    role: str
    layout: str
    format: str
    bytes: int | None
    producer: str | None
    readers: tuple[str, ...]
    remarks: tuple[str, ...] = ()


class KernelLine(Struct, frozen=True):
    """Nodes that a line of a kernel's text computes for; several where it is not known for which of them."""

    line: int
    nodes: tuple[str, ...]


class ReportKernel(Struct, frozen=True):
    """A kernel: see `KernelRow`.

    Attributes:
        does: its kind in a few words. nodes: that it runs. launches: how often. bytes: read and written.
        source: its text; empty for a function of a library. lines: what is known of lines of the text.
        seconds: of all launches in a call, where the graph was profiled.
    """

    name: str
    does: str
    nodes: tuple[str, ...]
    launches: int
    bytes: int | None
    source: str
    lines: tuple[KernelLine, ...] = ()
    seconds: float | None = None


class ReportDecision(Struct, frozen=True):
    """A decision, and why it fell so: see `Cause`.

    Attributes:
        kind: passed, missed, analysis. topic: what was decided. subject: names that it is about.
        text: what was decided and why. short: in a few words. changes: what would turn it.
        cause: the code. seconds, bytes: at stake. nodes, kernels, sources: see `ReportNode`.
        lines: first and last line of the loop nest that it is about, of the only kernel.
    """

    kind: RemarkKind
    topic: DecisionKind | None
    subject: str
    text: str
    short: str
    cause: str = ""
    changes: tuple[str, ...] = ()
    seconds: float | None = None
    bytes: int | None = None
    nodes: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    sources: tuple[int, ...] = ()
    lines: tuple[int, int] | None = None


class ReportGraph(Struct, frozen=True):
    """A graph of the page.

    Attributes:
        graph: its name. side: of which of two runs.
        sources: the user's lines that its nodes come from, by file and line.
        decisions: missed ones first.
        profile: where the time of a call goes; None where it was not profiled.
        missing: what the page does not show of it: a sentence with the command that adds it.
    """

    graph: str
    side: Side
    nodes: tuple[ReportNode, ...]
    buffers: tuple[ReportBuffer, ...]
    kernels: tuple[ReportKernel, ...]
    sources: tuple[SourceLine, ...]
    decisions: tuple[ReportDecision, ...]
    profile: Profile | None = None
    missing: tuple[str, ...] = ()

    @property
    def call(self) -> float | None:
        """Seconds of a call; None where it was not profiled."""
        return self.profile.call if self.profile else None


class ReportVerdict(Struct, frozen=True):
    """What was timed against something else: a callable against eager, what was tried against what is.

    `against` is what the ratio is relative to; `graph` empty where it is about the whole callable.
    """

    name: str
    against: str
    comparison: Comparison
    graph: str = ""


class ReportProcess(Struct, frozen=True):
    """A process of a dump: how it ended, what it compiled, and how long that took, where it is recorded."""

    name: str
    outcome: str
    graphs: int
    kernels: int
    collectives: int
    compile_s: float | None


class ReportRun(Struct, frozen=True):
    """A run of the page.

    Attributes:
        name: its label or folder. torch, device, script, started: of it, empty where not known.
        compile_s: seconds that torch spent compiling in all; None where that was not recorded.
    """

    name: str
    path: Path
    torch: str = ""
    device: str = ""
    script: str = ""
    started: str = ""
    compile_s: float | None = None


class ReportOutput(Output, frozen=True, kw_only=True):
    """Everything that the page of `probe report` shows.

    Attributes:
        runs: one, or A and B. overview: of each.
        graphs: of A, then of B. left_out: names of graphs that the page has no room for.
        diff: what changed from A to B; None with one run.
        verdicts: that were measured before. processes: of A, where it has several.
        compile_times: of each run, and of each of its processes, that has torch's log of them.
        missing: what the page does not show: sentences with the command that adds it.
    """

    verb: Literal["report"] = "report"
    runs: tuple[ReportRun, ...]
    overview: tuple[OverviewOutput, ...]
    graphs: tuple[ReportGraph, ...]
    left_out: tuple[str, ...] = ()
    diff: GraphDiff | RunDiff | None = None
    verdicts: tuple[ReportVerdict, ...] = ()
    processes: tuple[ReportProcess, ...] = ()
    compile_times: tuple[CompileTimes, ...] = ()
    missing: tuple[str, ...] = ()
