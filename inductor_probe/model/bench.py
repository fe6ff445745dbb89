"""A bench file, and what running it found."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from inductor_probe.model.output import Output
from inductor_probe.model.overheads import FlopCount, Overheads
from inductor_probe.model.remark import Remark
from inductor_probe.model.roofline import Roofline, RooflineRow
from inductor_probe.model.variants import ABLATIONS, RewriteRow, VariantDiff

Element: TypeAlias = "float | int | bool | str | None"
"""A value of a tensor as JSON has it."""
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
        copies: time copies that nobody edited, too.
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
class Variant:
    """A version of the code, checked against the reference: see the bench file for the rule.

    `first_bad` is the index of the first wrong element of output `first_bad_output`; it holds `value` where
    `expected` is right. `max_error` is the largest finite absolute error of any element. Both values are text
    where JSON has no number for them: NaN, infinity, complex numbers. `remarks` say what else is wrong, or
    what the check could not do. An `unedited` copy says what its original says, names aside: as a rule it is
    not timed.
    """

    name: str
    correct: bool
    max_error: float | None
    mismatches: int
    elements: int
    first_bad: tuple[int, ...] | None = None
    first_bad_output: int | None = None
    remarks: tuple[Remark, ...] = ()
    unedited: bool = False
    value: Element = None
    expected: Element = None


@dataclass(frozen=True, slots=True)
class Resources:
    """What a compiled Triton kernel takes: `registers` and `spills` a thread, `shared` bytes a block.

    A spill is a word of 4 bytes that found no register, and goes through memory.
    """

    registers: int
    spills: int
    shared: int


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
        verdict: see `bench.verdict`.
        process_ratios: the ratio in each process.
        quads: how many the ratio rests on.
        excluded: how many were disturbed, and left out.
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
        data: `warm` or `cold`.
        margin: a ratio within 1 +- margin is the same time.
        alone: what was timed and compared to nothing.
        warnings: what spoils the times.
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
