"""Where the time of compiling goes: by phase, by region of torch, by run of a C++ or Triton compiler."""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.output import Output

Phase: TypeAlias = Literal[
    "dynamo", "guards", "aot-autograd", "pre-grad-passes", "joint-passes", "post-grad-passes", "lowering",
    "scheduling", "code-generation", "cpp-compiler", "triton-compiler", "waiting", "autotuning", "caches",
    "loading", "other",
]  # fmt: skip
"""A part of a compile, in its order.

`dynamo` traces Python; `guards` are built and tried; `cpp-compiler` and `triton-compiler` run where nothing
else goes on meanwhile, and `waiting` is for those that run beside each other. `other` is of regions that
belong to none of these.
"""
CacheResult: TypeAlias = Literal["hit", "miss", "bypass", "disabled"]
BUILD_ARTIFACT = "probe_build"
"""Name of the entries in torch's trace that say what a compiler was run for: `capture/compilers.py`."""
BuildKind: TypeAlias = Literal["kernel", "header", "check", "other"]


class PhaseTime(Struct, frozen=True):
    """Seconds of a phase, without what other phases take within it; those of all add up to the whole."""

    phase: Phase
    seconds: float


class RegionTime(Struct, frozen=True):
    """A region that torch times (`dynamo_timed`).

    Attributes:
        name: as torch calls it: `pass.post_grad_passes.remove_noop_ops`.
        seconds: without regions within it. times: how often. compiles: in how many compiles.
    """

    name: str
    phase: Phase
    seconds: float
    times: int
    compiles: int


class Build(Struct, frozen=True):
    """A run of the C++ compiler, or of Triton's: they run beside each other, so that these do not add up.

    Attributes:
        kind: a `kernel`; a `header` that is compiled once for all; a `check` of what the compiler can do;
            `other`: what calls a kernel, or a wrapper.
        kernel: as in `output_code.py`; empty where it is none, or several have its text. compile_id: that
            made it; empty where that is not known.
    """

    kind: BuildKind
    compiler: Literal["c++", "triton"]
    seconds: float
    kernel: str = ""
    compile_id: str = ""


class CacheLookup(Struct, frozen=True):
    """What torch's caches of compiled graphs (`AOTAutogradCache`, then `FxGraphCache`) said.

    Attributes:
        reason: why it was not asked, as torch says it.
        differs: where it missed, the parts of the key that the most similar earlier one has otherwise, as
            torch names them: `inductor_config[cpp.threads]: 1, and 2 before`, and lines of the graph. None:
            there was none of a graph like it.
    """

    result: CacheResult
    reason: str = ""
    differs: tuple[str, ...] | None = None


class Guard(Struct, frozen=True):
    """What has to hold for a compiled function to be called.

    Attributes:
        kind: as torch calls it: `TENSOR_MATCH`. value: of the user's, `self.lin.bias`; empty if of torch.
        text: what has to hold of it. where, code: the line of the user's, or of torch's, that it is for.
    """

    kind: str
    value: str
    text: str
    where: str = ""
    code: str = ""


class Specialisation(Struct, frozen=True):
    """A dimension, or an integer, that was dynamic, and that a line of the program made a constant.

    Attributes:
        value: as the user calls it: `x.size()[0]`. constant: `6`. where, code: the line; empty where torch
            does not say.
    """

    value: str
    constant: str
    where: str = ""
    code: str = ""


class Compile(Struct, frozen=True):
    """A compile that dynamo began, or its backward.

    Attributes:
        compile_id: dynamo's: `0/1` is the second compile of the first function.
        function, where: of the user's, `net.py:12`. graphs: folders that it made, where they are there.
        seconds: all of it. phases: of these, the longest first.
        operators: of the graph that dynamo made. guards: in the order in which they are checked.
        guard_us: microseconds of checking all of them, as torch timed it. reason: why it was compiled again.
        failed: the class of what it raised.
        called: the user's line that called it. specialised: what it made a constant.
    """

    compile_id: str
    function: str
    where: str
    seconds: float
    phases: tuple[PhaseTime, ...]
    backward: bool = False
    graphs: tuple[str, ...] = ()
    operators: int | None = None
    guards: tuple[Guard, ...] = ()
    guard_us: float | None = None
    reason: str = ""
    cache: CacheLookup | None = None
    failed: str = ""
    called: str = ""
    specialised: tuple[Specialisation, ...] = ()


class WarmCompile(Struct, frozen=True):
    """The same script once more, with what the first run left in inductor's caches.

    Attributes:
        seconds: of its compiles. phases: of these, the longest first.
        hits, misses, bypassed: compiles whose graph the cache had, lacked, was not asked for.
        reasons: by function why one was missed or not asked for, each once, as `CacheLookup` says it.
    """

    seconds: float
    phases: tuple[PhaseTime, ...]
    hits: int
    misses: int
    bypassed: int
    reasons: tuple[str, ...] = ()


GrowthVerdict: TypeAlias = Literal["faster", "alike", "slower", "constant", "undecided"]
"""Against the program: as its operators grow, within the interval; `constant`: no growth was seen."""


class GrowingPhase(Struct, frozen=True):
    """How a phase grows with a number that the script is given, or the whole compile.

    Attributes:
        seconds: for each number, the median of its runs. runs: for each number all of them.
        exponent: of `fixed + slope * number ** exponent`; None where no growth was seen. low, high: of the
            interval of 95 % around it.
        region: of the phase, the one whose time grows most.
    """

    phase: Phase | Literal["all"]
    seconds: tuple[float, ...]
    runs: tuple[tuple[float, ...], ...]
    verdict: GrowthVerdict
    exponent: float | None = None
    low: float | None = None
    high: float | None = None
    region: str = ""


class Growth(Struct, frozen=True):
    """How compiling grows with a number that the script is given, against how the program grows with it.

    Attributes:
        numbers: smallest first. rounds: runs with each, one after the other, each with empty caches.
        operators: for each number, of all graphs that dynamo made. exponent: of these; 0 where they are as
            many with each.
        phases: the whole, and each phase that has a share; those that take longest with the largest number
            first.
    """

    numbers: tuple[int, ...]
    rounds: int
    operators: tuple[int, ...]
    exponent: float
    phases: tuple[GrowingPhase, ...]


class CompileTimes(Struct, frozen=True):
    """All compiles of a run or of a script.

    Attributes:
        subject: the run's folder, or the script.
        dumped: they are those of a dump, which writes debug files, asks no cache, and records decisions.
        seconds: of all compiles. phases, regions: of all of them, the longest first.
        builds: the longest first; `build_seconds` is the sum of all, which run beside each other.
        warm: None of a run, and where the script ended otherwise the second time.
        growth: of all numbers, in the row of the largest.
        exit_status: of the script, or minus the signal that ended it; None where that is not known.
    """

    subject: str
    dumped: bool
    seconds: float
    compiles: tuple[Compile, ...]
    phases: tuple[PhaseTime, ...]
    regions: tuple[RegionTime, ...]
    builds: tuple[Build, ...] = ()
    build_seconds: float = 0.0
    warm: WarmCompile | None = None
    growth: Growth | None = None
    exit_status: int | None = None


class CompileSummary(Struct, frozen=True):
    """What the compiles of a run took, on one line.

    Attributes:
        seconds: of all `compiles`. phase: that takes most, and how long: `phase_seconds`.
        again, again_seconds: compiles since a guard failed.
    """

    seconds: float
    compiles: int
    phase: Phase
    phase_seconds: float
    again: int = 0
    again_seconds: float = 0.0


class CompileTimeOutput(Output, frozen=True, kw_only=True):
    """Where the time of compiling went, in each run that was asked for."""

    verb: Literal["compile-time"] = "compile-time"
    rows: tuple[CompileTimes, ...]


def kernel_digest(text: str) -> str:
    """Return a name for the kernel in a C++ text: that of `output_code.py`, and of the file made of it.

    The file has, behind the kernel, what calls it from Python. Empty where there is none, or several.
    """
    begin = text.find('extern "C"')
    end = text.find("\n}", begin)
    if begin < 0 or end < 0 or 'extern "C"' in text[end:]:
        return ""
    return hashlib.sha256(text[begin:end].encode()).hexdigest()[:16]
