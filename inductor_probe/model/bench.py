"""A bench file, its variants, and what is concluded from the samples of running it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from inductor_probe.model.output import Output
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import FlopCount, KernelWork, Resources, Roofline, Variant

VariantKind: TypeAlias = Literal["edit", "rewrite", "ablation"]
"""Written by hand or copied; made by a named rewrite; wrong on purpose, to see what a part costs."""

ABLATIONS = "ABLATIONS"
"""The table in a bench file that says what variants leave out: `{"cpp_fused_add_0_v3": "no_loads"}`.

They are timed although they compute other values, and are never an improvement.
"""


@dataclass(frozen=True, slots=True)
class NewVariant:
    """A variant that is to be added to a bench file.

    Attributes:
        name: `cpp_fused_add_0_v3`, or `call_v3`, whose text defines its `Runner_v3` as well.
        text: its statements, whole, each ending with a line end; no comment above them.
        comment: above it in the file: what it is, or the rewrite that made it.
        ablation: what it leaves out (`no_loads`), for an ablation.
    """

    name: str
    text: str
    comment: str
    kind: VariantKind = "edit"
    ablation: str | None = None


@dataclass(frozen=True, slots=True)
class VariantDiff:
    """How a variant's text differs from what it is a copy of.

    Attributes:
        name, base: `call_v3` and `call`. base is None when the file has nothing of that name any more.
        lines: a unified diff in which the names of the copies count as those of what they are copies of;
            empty when nothing else was changed.
    """

    name: str
    base: str | None
    kind: VariantKind
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RewriteRow:
    """A named rewrite, and what it applies to in a graph.

    Attributes:
        arguments: what stands behind the colon of a spec. help: what it does, one line.
        specs: of those tried, the ones that make variants of the graph: `index:cpp_fused_add_0 int64`.
    """

    name: str
    arguments: str
    help: str
    specs: tuple[str, ...] = ()


Side = Literal["host", "device"]


@dataclass(frozen=True, slots=True)
class OverheadRow:
    """A part of the time of a call, in seconds; on each side they add up to its `total`.

    Attributes:
        kind: `kernel` or `library` (one each, all of its launches), `launches`, `wrapper`, `guards`, `rest`
            (what else the GPU does), `total`.
        side: whose time: the host's, or the GPU's. On a CPU all is the host's.
        median, mad: of one number a round; differences are taken within a round.
        share: of the side's total.
        nonzero: whether it is not zero for sure: else it may be nothing.
        launches: how many it stands for.
    """

    kind: str
    name: str
    side: Side
    median: float
    mad: float
    share: float
    nonzero: bool
    launches: int = 0


@dataclass(frozen=True, slots=True)
class Overheads:
    """The overhead table of a graph.

    Attributes:
        total_of: what the host's `total` is of: `compiled`, or `call` where guards could not be timed.
        guards_alone: seconds of the guards called over and over without the wrapper: less than beside it,
            where caches and branch predictors hold other things. The row `guards` has it where the difference
            of `compiled` and `call` is too small to tell. None where they could not be timed.
        wall: on CUDA, seconds from call to call; None on a CPU, where it is the total.
        bound: on CUDA, which side is slower: that is what the wall time is.
        rounds: how many all rows rest on.
    """

    device: str
    total_of: str
    rows: tuple[OverheadRow, ...]
    allocations: int
    rounds: int
    guards_alone: float | None
    wall: float | None
    bound: Side | None
    repeated: int
    disturbed: int
    remarks: tuple[Remark, ...]

    def row(self, kind: str, side: Side = "host") -> OverheadRow | None:
        """Return the first row of a kind."""
        return next((row for row in self.rows if (row.kind, row.side) == (kind, side)), None)


@dataclass(frozen=True, slots=True)
class RooflineRow:
    """A kernel against the roofline.

    Attributes:
        seconds: a call of the graph, over all of its launches, without launch costs.
        rate: bytes a second; `place` and `share`: the copy that it is compared to, and the part of that rate.
        flop_rate, flop_share: the same for floating-point operations a second.
        remarks: why a share is not to be believed.
    """

    work: KernelWork
    seconds: float
    rate: float | None
    place: str | None
    share: float | None
    flop_rate: float | None
    flop_share: float | None
    remarks: tuple[Remark, ...]


INPUTS = ("random", "zeros", "sequential", "real")
"""Which values the inputs of a bench file may have."""
Verdict: TypeAlias = Literal["FASTER", "SLOWER", "SAME", "UNDECIDED", "INVALID"]


@dataclass(frozen=True, slots=True)
class BenchFile:
    """`output_code_bench.py` as it stands on disk.

    Attributes:
        kernels: kernels it holds, pristine names.
        state: `written`, `rewritten` (it was not edited), or `kept` (it was).
        edited: names defined in it that differ from what would be generated (`cpp_fused_flip_0_v2`).
        gone: variants of yours whose kernel the graph has no more.
        diffs: how each variant of yours differs from what it is a copy of.
        reread: another program saved it while it was being written: this is made from what that saved.
    """

    path: Path
    graph: str
    kernels: tuple[str, ...]
    state: Literal["written", "rewritten", "kept"]
    edited: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    diffs: tuple[VariantDiff, ...] = field(default=(), repr=False)
    reread: bool = False

    @property
    def pristine_edits(self) -> tuple[str, ...]:
        """Edited names that are no copies (`_v2`): what the copies are compared to is not as dumped then."""
        return tuple(name for name in self.edited if name != ABLATIONS and not re.search(r"_v\d+$", name))


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How a bench file is run.

    Attributes:
        kernel: time this kernel and its variants only.
        budget: seconds of timing, for all comparisons in all processes. Starting, compiling and checking
            come on top.
        margin: what differs by less is the same.
        processes: how many fresh ones; if None 3, and 5 if those differ so much that their interval is wide.
        cold: calls find none of their data in a cache; if None so on a GPU, and not on a CPU.
        threads: of torch and OpenMP.
        inputs: `random`, `zeros`, `sequential`, or `real` where the dump holds them.
        sizes: symbolic sizes to bind otherwise than they were recorded: `("s77", 128)`.
        cxxflags: flags of the C++ compiler behind inductor's own.
        copies: time unedited copies, too.
        imports: modules, or Python files, that register operators which the graph calls; run first.
    """

    kernel: str | None = None
    budget: float = 10.0
    margin: float = 0.01
    processes: int | None = None
    cold: bool | None = None
    threads: int = 1
    inputs: str = "random"
    sizes: tuple[tuple[str, int], ...] = ()
    cxxflags: tuple[str, ...] = ()
    copies: bool = False
    imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measurement:
    """Samples of one thing in one comparison: how many, their median, and their median distance from it.

    `median` and `mad` are seconds a call.
    """

    name: str
    samples: int
    median: float
    mad: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """How long `candidate` takes relative to `baseline`.

    Attributes:
        ratio: of times, candidate over baseline; `low` to `high` is its interval.
        verdict: see `bench.verdict`. process_ratios: the ratio in each process.
        quads: how many the ratio rests on. excluded: how many were disturbed, and left out.
        reason: why there is no other verdict; None where there is one.
        remarks: what makes the samples less than plain: drift, bimodality, processes that differ.
    """

    baseline: Measurement
    candidate: Measurement
    ratio: float
    low: float
    high: float
    verdict: Verdict
    process_ratios: tuple[float, ...]
    quads: int
    excluded: int
    reason: Remark | None = None
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class Ablation:
    """The time of a copy that leaves a part out (`no_loads`), relative to the kernel."""

    left_out: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class BenchResult:
    """What the processes of one bench file found.

    Attributes:
        inputs: size, dtype and memory format of the largest input. values: which ones: `random`.
        data: `warm` or `cold`. margin: a ratio within 1 +- margin is the same time.
        alone: what was timed and compared to nothing. warnings: what spoils the times.
        overheads: where the time of the compiled function goes: kernels, launches, wrapper, guards.
        flops: of each operator of the graph that registers a count; None where not counted.
        ablations: copies that leave a part out, against the kernel. They compute something else, and are no
            improvements.
        roofline: of the machine, measured in the same run; None where it was not. roofline_rows: each kernel
            against it.
        resources: of Triton kernels and of copies of them, by name.
    """

    graph: str
    kernels: tuple[str, ...]
    inputs: str
    values: str
    data: str
    threads: int
    processes: int
    margin: float
    variants: tuple[Variant, ...]
    comparisons: tuple[Comparison, ...]
    alone: tuple[Measurement, ...]
    warnings: tuple[Remark, ...]
    ablations: tuple[Ablation, ...] = ()
    overheads: Overheads | None = None
    flops: tuple[FlopCount, ...] | None = None
    roofline: Roofline | None = None
    roofline_rows: tuple[RooflineRow, ...] = ()
    resources: tuple[tuple[str, Resources], ...] = ()


@dataclass(frozen=True, kw_only=True)
class BenchKernelOutput(Output):
    """The bench file, and what running it found; times are in seconds a call.

    Attributes:
        file: as it stands on disk now.
        results: one for each of `--inputs` and `--threads`; none with `--no-run`.
        summary: the last line of each report, in words.
    """

    verb: Literal["bench-kernel"] = "bench-kernel"
    file: BenchFile
    results: tuple[BenchResult, ...] = ()
    summary: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RewriteOutput(Output):
    """The rewrites with what they apply to in a graph or, with a SPEC, the bench file with its variants.

    Attributes:
        rewrites: none with a SPEC. file: None without one.
    """

    verb: Literal["rewrite"] = "rewrite"
    rewrites: tuple[RewriteRow, ...] = ()
    file: BenchFile | None = None


@dataclass(frozen=True, kw_only=True)
class VerdictOutput(Output):
    """The report of samples that are on disk; times are in seconds a call.

    Attributes:
        summary: the last line of the report, in words.
    """

    verb: Literal["verdict"] = "verdict"
    result: BenchResult
    summary: str
