"""A bench file, its variants, and what is concluded from the samples of running it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.call_parts import Overheads
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.kernel_check import KernelCheck
from inductor_probe.model.output import Output
from inductor_probe.model.own_call import NoOwnCall, OwnCall
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import FlopCount, KernelWork, Resources, Roofline, Variant

VariantKind: TypeAlias = Literal["edit", "rewrite", "ablation"]
"""Written by hand or copied; made by a named rewrite; wrong on purpose, to see what a part costs."""

ABLATIONS = "ABLATIONS"
"""The table in a bench file that says what variants leave out: `{"cpp_fused_add_0_v3": "no_loads"}`.

They are timed although they compute other values, and are never an improvement.
"""

OTHER_CODE = 3
"""The number of variants that are the code of another graph: `call_v3`. See `bench_file/two_codes.py`."""
CALL, OTHER_CALL = "Compiled call", f"call_v{OTHER_CODE}"
"""What the whole call of a graph, and that of the other graph, are called in what was measured."""
OPERATORS = "the graph, operator by operator"
"""What the call is compared with there, as harness/launches.py names it."""


class NewVariant(Struct, frozen=True):
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


class VariantDiff(Struct, frozen=True):
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


class RewriteRow(Struct, frozen=True):
    """A named rewrite, and what it applies to in a graph.

    Attributes:
        arguments: what stands behind the colon of a spec. help: what it does, one line.
        specs: of those tried, the ones that make variants of the graph: `index:cpp_fused_add_0 int64`.
        graph: its name.
    """

    name: str
    arguments: str
    help: str
    specs: tuple[str, ...] = ()
    graph: str = ""


Side = Literal["host", "device"]


class RooflineRow(Struct, frozen=True):
    """A kernel against the roofline.

    Attributes:
        seconds: a call of the graph, over all of its launches, as the overhead table has it.
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


class BenchFile(Struct, frozen=True):
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
    diffs: tuple[VariantDiff, ...] = ()
    reread: bool = False

    @property
    def pristine_edits(self) -> tuple[str, ...]:
        """Edited names that are no copies (`_v2`): what the copies are compared to is not as dumped then."""
        return tuple(name for name in self.edited if name != ABLATIONS and not re.search(r"_v\d+$", name))


class BenchSettings(Struct, frozen=True):
    """How a bench file is run.

    Attributes:
        kernel: time this kernel and its variants only.
        budget: seconds of measuring, of everything in all processes. Starting, compiling and checking come
            on top: see `harness/budget.py`.
        margin: what differs by less is the same.
        processes: how many; if None 3, and up to 9 where those differ so much that their interval is wide.
        cold: calls find none of their data in a cache; if None so on a GPU, and not on a CPU.
        threads: of torch and OpenMP.
        inputs: `random`, `zeros`, `sequential`, or `real` where the dump holds them.
        sizes: symbolic sizes to bind otherwise than they were recorded: `("s77", 128)`.
        cxxflags: flags of the C++ compiler behind inductor's own.
        copies: time unedited copies, too.
        imports: modules, or Python files, that register operators which the graph calls; run first.
        turns: a file that each process locks while it times, and not while it loads or checks: programs that
            share a GPU take turns.
        whole_call: time variants of the whole call alone: no kernel, no eager, no overheads. Check all.
        own: run the script again, and time what it calls against eager.
        own_threads: of torch and OpenMP there; None for those that the script has.
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
    turns: Path | None = None
    whole_call: bool = False
    own: bool = True
    own_threads: int | None = None

    @property
    def has_overheads(self) -> bool:
        """Whether the overheads of a call are measured: not where one kernel, or the call alone, is timed."""
        return self.kernel is None and not self.whole_call

    def command(self, graph: str) -> tuple[str, ...]:
        """Return the command that measures with these settings: `probe bench-kernel GRAPH --budget 2s`."""
        default = BenchSettings()
        options: list[str] = []
        for option, value, left_out in (
            ("--kernel", self.kernel, None),
            ("--budget", f"{self.budget:g}s", f"{default.budget:g}s"),
            ("--margin", f"{self.margin:.6g}", f"{default.margin:.6g}"),
            ("--processes", self.processes, None),
            ("--threads", self.threads, default.threads),
            ("--inputs", self.inputs, default.inputs),
            ("--cxxflags", shlex.join(self.cxxflags), ""),
        ):
            options += [option, str(value)] if value != left_out else []
        if self.cold is not None:
            options.append("--cold" if self.cold else "--warm")
        options += ["--copies"] if self.copies else []
        options += [] if self.own else ["--no-script"]
        options += [word for name, size in self.sizes for word in ("--size", f"{name}={size}")]
        options += [word for module in self.imports for word in ("--import", module)]
        return ("probe", "bench-kernel", graph, *options)


class Measurement(Struct, frozen=True):
    """The time of one thing: the only one that a report has of it.

    Attributes:
        name: `k alone`, `k alone #2` (its second launch), `Compiled call`.
        seconds: a call. mad: median distance of its `samples` from their median, in seconds.
        source: `rounds` of kernels and call; `quads` of a comparison; `ratio`: the time of what it is
            compared with, times the ratio; `once`: of `k in one call`, all its launches, started one by one.
    """

    name: str
    seconds: float
    mad: float
    samples: int
    source: Literal["rounds", "quads", "ratio", "once"]


class Ablation(Struct, frozen=True):
    """The time of a copy that leaves a part out (`no_loads`), relative to the kernel."""

    left_out: str
    comparison: Comparison


class BenchResult(Struct, frozen=True):
    """What the processes of one bench file found.

    Attributes:
        inputs: size, dtype and memory format of the largest input. values: which ones: `random`.
        data: `warm` or `cold`. margin: a ratio within 1 +- margin is the same time.
        times: of everything timed, one for each name, in the order of timing. warnings: what spoils them.
        overheads: where the time of the compiled function goes: kernels, launches, wrapper.
        flops: of each operator of the graph that registers a count; None where not counted.
        ablations: copies that leave a part out, against the kernel. They compute something else, and are no
            improvements.
        roofline: of the machine, measured in the same run; None where it was not. roofline_rows: each kernel
            against it.
        resources: of Triton kernels and of copies of them, by name.
        torch: its version; None where samples do not say. command: what measured them.
        measured: seconds that measuring took, in all processes; None where samples do not say.
        own: the user's callable that compiled the graph, against eager; None where it was not timed.
        no_own: why it was not; None where samples do not say.
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
    times: tuple[Measurement, ...]
    warnings: tuple[Remark, ...]
    ablations: tuple[Ablation, ...] = ()
    overheads: Overheads | None = None
    flops: tuple[FlopCount, ...] | None = None
    roofline: Roofline | None = None
    roofline_rows: tuple[RooflineRow, ...] = ()
    resources: tuple[tuple[str, Resources], ...] = ()
    torch: str | None = None
    command: tuple[str, ...] = ()
    measured: float | None = None
    own: OwnCall | None = None
    no_own: NoOwnCall | None = None

    def time(self, name: str) -> Measurement:
        """Return the time of what is called so in the comparisons."""
        return next(time for time in self.times if time.name == name)

    @property
    def alone(self) -> tuple[Measurement, ...]:
        """What was timed and compared to nothing."""
        pairs = (*self.comparisons, *(ablation.comparison for ablation in self.ablations))
        compared = {name for pair in pairs for name in (pair.baseline, pair.candidate)}
        return tuple(time for time in self.times if time.name not in compared)


class BenchKernelOutput(Output, frozen=True, kw_only=True):
    """The bench file, and what running it found; times are in seconds a call.

    Attributes:
        file: as it stands on disk now.
        results: one for each of `--inputs` and `--threads`; none with `--no-run`, or without a GPU for the
            kernels.
        check: what triton's interpreter found of Triton kernels for which this machine has no GPU.
        summary: the last line of each report, in words.
    """

    verb: Literal["bench-kernel"] = "bench-kernel"
    file: BenchFile
    results: tuple[BenchResult, ...] = ()
    check: KernelCheck | None = None
    summary: tuple[str, ...] = ()


class RewriteOutput(Output, frozen=True, kw_only=True):
    """The rewrites with what they apply to in a graph or, with a SPEC, the bench file with its variants.

    Attributes:
        rewrites: none with a SPEC. file: None without one.
    """

    verb: Literal["rewrite"] = "rewrite"
    rewrites: tuple[RewriteRow, ...] = ()
    file: BenchFile | None = None


class VerdictOutput(Output, frozen=True, kw_only=True):
    """The report of samples that are on disk; times are in seconds a call.

    Attributes:
        summary: the last line of the report, in words.
    """

    verb: Literal["verdict"] = "verdict"
    result: BenchResult
    summary: str
