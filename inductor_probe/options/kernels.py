"""The options of the verbs about the kernels of a graph, and about operators: compiled, run and timed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from inductor_probe.model.op_check import FORMS, MODES, Form, Mode
from inductor_probe.options.fields import (
    ARGUMENT,
    HIDDEN,
    LIST,
    Budget,
    Cold,
    Count,
    CxxFlags,
    Device,
    Executor,
    Imports,
    Inputs,
    Margin,
    Own,
    Seconds,
    Sizes,
    Target,
    Trust,
    Typed,
)

_GRAPH = "A path, a graph's name, a label, or a run for its first graph; the latest run if left out."
Graph: TypeAlias = Annotated[Target, Typed("run or graph", "[GRAPH]", text=_GRAPH)]
Kernel: TypeAlias = Annotated[str, ARGUMENT, Typed(text="A kernel: its name, or the start of it.")]
Stage: TypeAlias = Literal["ttir", "ttgir", "llir", "ptx", "sass", "asm"]
ValuesOfInputs: TypeAlias = Annotated[Inputs, Typed(text="Values of the inputs.")]


class BenchKernelOptions(Struct, frozen=True):
    """How `probe bench-kernel` writes and runs the bench file of a graph.

    Attributes:
        kernel: Time only this kernel and its variants.
        budget: Measuring in all: 500ms, 10s, 2m.
        run: Run the file that is written.
        variants: Add a copy of a kernel, or FILE's text.
        copies: Time unedited copies, too: A against A.
        processes: Fresh processes. [3, and up to 9 if they differ]
        cold: Do calls read their data from memory or from a cache? [warm; on a GPU cold]
        threads: Of torch and OpenMP: 1, or 1,2. [1; of the script's call those that it has]
        inputs: random, zeros, sequential, real.
    """

    target: Graph = None
    kernel: Annotated[str | None, Typed("kernel", "KERNEL")] = None
    budget: Budget = 10.0
    run: bool = True
    trust: Trust = False
    variants: Annotated[Sequence[str], HIDDEN, Typed("variant", "NAME[=FILE]", "--variant")] = ()
    copies: Annotated[bool, HIDDEN] = False
    margin: Annotated[Margin, HIDDEN] = 0.01
    processes: Annotated[Annotated[int, Meta(ge=3)] | None, HIDDEN] = None
    cold: Annotated[Cold | None, HIDDEN] = None
    threads: Annotated[Sequence[int] | None, LIST, HIDDEN] = None
    inputs: Annotated[Sequence[Inputs], LIST, HIDDEN] = ("random",)
    own: Annotated[Own, HIDDEN] = True
    sizes: Annotated[Sizes, HIDDEN] = ()
    imports: Annotated[Imports, HIDDEN] = ()
    cxxflags: Annotated[CxxFlags, HIDDEN] = ()


class _OfKernel(Struct, frozen=True):
    """Which kernel, and where."""

    kernel: Kernel | None = None
    target: Graph = None


class CheckKernelOptions(_OfKernel, frozen=True):
    """How `probe check-kernel` checks Triton kernels.

    Attributes:
        limit_s: For one run of the call: 30s, 5m.
    """

    limit_s: Annotated[Seconds, Typed(flags="--time-limit")] = 120.0
    inputs: ValuesOfInputs = "random"
    sizes: Sizes = ()
    imports: Imports = ()
    trust: Trust = False


class SweepConfigsOptions(_OfKernel, frozen=True):
    """What `probe sweep-configs` times.

    Attributes:
        text: Further configs: `XBLOCK=1,8 num_warps=4,8` adds each combination.
        budget: Timing of each kernel: 500ms, 10s, 2m.
        cold: Do calls read their data from memory or from a cache? [cold]
    """

    text: Annotated[str, ARGUMENT] = ""
    budget: Budget = 10.0
    cold: Cold | None = None
    sizes: Sizes = ()
    imports: Imports = ()
    trust: Trust = False


class ExportCppOptions(_OfKernel, frozen=True):
    """How `probe export-cpp` writes a program.

    Attributes:
        output: The file to write. [KERNEL.cpp]
    """

    output: Annotated[Path | None, Typed("file", flags="--output -o")] = None
    sizes: Sizes = ()
    cxxflags: CxxFlags = ()


class AsmOptions(_OfKernel, frozen=True):
    """What `probe asm` compiles, and shows.

    Attributes:
        other: A second kernel, a variant of one, or in Python a graph with its kernel: what differs.
        against: Take the second kernel from there.
        arch: For which GPU. [what the dump was made for]
        configs: Instead of inductor's: XBLOCK=1024,num_warps=4; XBLOCK=512,1024 is both. Repeatable.
        sweep: Triton: what inductor tries, what the dump recorded, and a grid of configs around them.
        stages: Print this text, too: of the first config; asm of a C++ kernel.
    """

    other: Annotated[Any, ARGUMENT] = None
    against: Annotated[Any, Typed("run or graph", "RUN|GRAPH")] = None
    arch: Annotated[str | None, Typed(metavar="sm_90|h200")] = None
    configs: Annotated[Sequence[str], Typed(metavar="NAME=N,...", flags="--config")] = ()
    sweep: bool = False
    stages: Annotated[Sequence[Stage], Typed(flags="--stage")] = ()
    trust: Trust = False


class RewriteOptions(Struct, frozen=True):
    """Which variants `probe rewrite` adds to a bench file.

    Attributes:
        specs: Rewrites as the list shows them: `loops:cpp_fused_add_0 x1,x2`.
        tuned: Triton: add variants with the configs that probe tunings --csv exported.
    """

    specs: Annotated[Sequence[str], ARGUMENT] = ()
    target: Graph = None
    tuned: Annotated[Path | None, Typed(metavar="TABLE.csv")] = None


class VerdictOptions(Struct, frozen=True):
    """How `probe verdict` judges samples.

    Attributes:
        target: output_code_bench.json, the folder that it is in, or a graph as for `bench-kernel`.
        margin: A smaller difference counts as none; as when measured if left out.
    """

    target: Annotated[Target, Typed("run or graph", "[FILE.json|GRAPH]")] = None
    margin: Margin | None = None


class CheckOpOptions(Struct, frozen=True):
    """Which samples `probe check-op` runs, and how.

    Attributes:
        patterns: Names of `torch.testing`'s operator database, whole, in part, or as globs: `*grid_sampl*`.
        decomp: A decomposition to try beside torch's own: my.py:flip, aten.flip.default=my.py:flip.
        dtypes: float32 and uint8 if left out; all.
        modes: static, dynamic, backward, backward-dynamic.
        forms: Samples given, channels_last, noncontiguous, varied.
        vary: Further samples: sizes around vectors, other memory and values.
        samples: At most of each row.
        budget: Running samples: none begins after it: 30s, 10m.
        jobs: Processes at once. [one a core]
        device: Of samples.
        out: Folder for scripts that show a failure. [.probe/check-op]
    """

    patterns: Annotated[Sequence[str], ARGUMENT, Typed(metavar="OPERATOR...")]
    decomp: Annotated[str | None, Typed(metavar="[OVERLOAD=]MODULE:FUNCTION")] = None
    dtypes: Annotated[Sequence[str], Typed(metavar="DTYPE", flags="--dtype")] = ()
    modes: Annotated[Sequence[Mode], LIST, Typed(metavar="MODES")] = MODES[:3]
    forms: Annotated[Sequence[Form], LIST, Typed(metavar="FORMS")] = FORMS[:2]
    vary: bool = False
    samples: Count = 8
    budget: Seconds = 600.0
    jobs: Count | None = None
    device: Device = "cpu"
    executor: Executor = "local"
    out: Annotated[Path | None, Typed("folder")] = None

    @property
    def decomposition(self) -> tuple[str, tuple[str, ...]]:
        """Where the decomposition is, and the overload that is named; without one those that it fits."""
        overload, _, place = (self.decomp or "").rpartition("=")
        return place, (overload,) if overload else ()
