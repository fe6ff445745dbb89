"""What bench files measured, as samples: checks of variants, quads of blocks, overheads, the roofline."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.codec import Between
from inductor_probe.model.own_call import NoOwnCall, OwnCall
from inductor_probe.model.record import grouped
from inductor_probe.model.remark import Remark

Element: TypeAlias = "int | str | float | bool | None"
"""A value of a tensor as JSON has it; text where that is no number: NaN, infinity, complex ones."""
Count: TypeAlias = Annotated[int, Between(0, 2**63 - 1)]
Seconds: TypeAlias = Annotated[float, Between(1e-15, 1e6)]
"""Of a call, as a clock can have given them: beyond these bounds their ratios are no numbers any more."""


class Variant(Struct, frozen=True):
    """A version of the code, checked against the reference: see the bench file for the rule.

    `first_bad` is the index of the first wrong element of output `first_bad_output`; it holds `value` where
    `expected` is right, and `eager` is what the graph has there in eager, with its own dtypes: None of a
    variant that was compared with a call that is right. `max_error` is the largest finite absolute error of
    any element. `remarks` say what else is wrong, or what the check could not do. An `unedited` copy says
    what its original says, names aside: as a rule it is not timed.
    """

    name: str
    correct: bool
    max_error: Annotated[float, Between(0, sys.float_info.max)] | None
    mismatches: Count
    elements: Count
    first_bad: tuple[Count, ...] | None = None
    first_bad_output: Count | None = None
    remarks: tuple[Remark, ...] = ()
    unedited: bool = False
    value: Element = None
    expected: Element = None
    eager: Element = None


class Resources(Struct, frozen=True):
    """What a compiled Triton kernel takes: `registers` and `spills` a thread, `shared` bytes a block.

    A spill is a word of 4 bytes that found no register, and goes through memory.
    """

    registers: Count
    spills: Count
    shared: Count


class PeakRate(Struct, frozen=True):
    """The best rate that was measured.

    Attributes:
        what: `copy` (bytes read plus written a second) or `matmul` (floating-point operations a second).
        place: of a copy: `memory` (more than the caches hold), `cache` or `last cache`; of a product its
            dtype.
        size: bytes that the copy reads plus writes, or rows of the square matrices.
        rate: of the fastest call of `calls`.
    """

    what: Literal["copy", "matmul"]
    place: str
    size: Count
    rate: Annotated[float, Between(1, 1e21)]
    calls: Count


class Roofline(Struct, frozen=True):
    """What a machine reaches.

    Attributes:
        device: its name, `cpu` for processors.
        cache: bytes of the cache that the copy within a cache was made for: a core's second level, or the L2
            of a GPU. `last_cache`: of the last level.
        measured: seconds that it took.
    """

    torch: str
    device: str
    threads: Count
    cache: Count
    last_cache: Count
    peaks: tuple[PeakRate, ...]
    remarks: tuple[Remark, ...] = ()
    measured: Annotated[float, Between(0, 1e6)] = 0.0

    def peak(self, what: str, place: str) -> PeakRate | None:
        """Return a measured rate, None if there is none."""
        return next((peak for peak in self.peaks if (peak.what, peak.place) == (what, place)), None)


class KernelWork(Struct, frozen=True):
    """What a kernel has to do in one call of the graph, over all of its launches.

    Attributes:
        name: of the kernel or library function.
        moved: bytes read plus written; None where not known as a number.
        flops: counted by the operators that it computes; None where none of them registers a count.
        dtype: of the product behind `flops`, None where not known.
        indirect: its indices are loaded, so that it may reach less or more than was counted.
    """

    name: str
    moved: Count | None
    flops: Count | None = None
    dtype: str | None = None
    indirect: bool = False


class TimedPart(Struct, frozen=True):
    """One thing that was timed in every round of one process; all times are seconds a call.

    Attributes:
        kind: a launch of a generated `kernel`, a `library` call, or the whole `call`.
        seconds: wall time on a CPU, on CUDA the time that the GPU was busy; one number a round.
        host: the launch: on a CPU the same call of an empty kernel, on CUDA the time to enqueue. Empty where
            not known.
        wall: on CUDA, of calls one after the other until the last has ended.
        repeated, disturbed: laps taken once more since they had lost a core, and blocks of which none kept
            it.
    """

    kind: Literal["kernel", "library", "call"]
    name: str
    seconds: tuple[Seconds, ...]
    host: tuple[Seconds, ...]
    wall: tuple[Seconds, ...]
    repeated: Count
    disturbed: Count


class FlopCount(Struct, frozen=True):
    """Floating-point operations of one call of an operator (`aten.mm`), as torch counts them."""

    operator: str
    flops: Count


class OverheadSamples(Struct, frozen=True):
    """What one process timed for the table.

    Attributes:
        device: `cpu` or `cuda`. allocations: that the wrapper makes in a call.
        parts: in the order they run.
        flops: of each operator of the graph that registers a count, in its order; None where nothing was
            counted.
        remarks: what could not be had.
    """

    device: str
    allocations: Count
    parts: tuple[TimedPart, ...]
    flops: tuple[FlopCount, ...] | None = None
    remarks: tuple[Remark, ...] = ()


Interval: TypeAlias = Literal[
    "compiled", "forward", "dynamo", "between", "fx", "fx-backward", "call", "call-backward", "guards",
    "kernel", "library", "copy", "gpu-kernel", "gpu-copy", "gpu-gap", "gpu-wall",
]  # fmt: skip


class TimedInterval(Struct, frozen=True):
    """What was between two readings of a clock, in seconds a call of the user's: one number a round.

    Attributes:
        kind: the call (`compiled`) and, where a backward belongs to it, its `forward`; what dynamo compiled,
            and what runs `between` several of those; inductor's graphs (`fx`), and their generated `call`, of
            a backward apart; lines of wrappers that run a `kernel`, a `library` function or a `copy`; what a
            GPU does, its gaps, and calls one after the other until it has done all. `guards` is a call that
            leaves out what dynamo compiled.
        host: of a kernel, the same launches of an empty one; of `guards`, the same call without them.
        launches: in a call.
    """

    kind: Interval
    name: str
    seconds: tuple[Seconds, ...]
    host: tuple[Seconds, ...] = ()
    launches: Count = 1


class CallSamples(Struct, frozen=True):
    """What one process timed of a call.

    Attributes:
        device: `cpu` or `cuda`. graphs: functions of dynamo that it runs. allocations: of wrappers in Python.
    """

    device: str
    allocations: Count
    graphs: Count
    parts: tuple[TimedInterval, ...]
    remarks: tuple[Remark, ...] = ()


Order: TypeAlias = Literal["ABBA", "BAAB", "AB", "BA"]
Side: TypeAlias = Literal["A", "B"]


class Quad(Struct, frozen=True):
    """Four blocks of calls, two of a baseline A and two of a candidate B; or one call of each.

    Attributes:
        order: which block was whose. `AB` and `BA` are of calls so long that there was no time for more.
        seconds: of a call, for each block, of its fastest lap; of those that kept their cores, if any did.
        guard: B was A once more, so that their ratio should be 1.
        disturbed: a block had no lap that kept its cores, or a GPU another clock; None if neither. With the
            code `cpu-time`, what is in `seconds` for such a block is CPU time.
    """

    order: Order
    seconds: tuple[Seconds, ...]
    guard: bool
    disturbed: Remark | None

    @property
    def score(self) -> float:
        """Log-ratio, B over A, of the fastest each side was: what else ran only made blocks longer."""
        return math.log(min(self.samples("B")) / min(self.samples("A")))

    def samples(self, side: Side) -> tuple[float, ...]:
        """Return the seconds a call of A's blocks or of B's, as taken."""
        return tuple(time for name, time in zip(self.order, self.seconds, strict=True) if name == side)


class Series(Struct, frozen=True):
    """The quads of one comparison in one process, and the seconds spent on them.

    Without a candidate the baseline was timed alone, against itself.

    Attributes:
        core: the part of those seconds in which the process had a core; None where that was not measured, or
            a GPU was timed.
    """

    baseline: str
    candidate: str | None
    quads: tuple[Quad, ...]
    spent: Annotated[float, Between(0, 1e6)]
    core: Annotated[float, Between(0, 1)] | None = None


class Process(Struct, frozen=True):
    """One run of a bench file.

    Attributes:
        graph, kernels: what the file holds, pristine names.
        inputs: size, dtype and memory format of the largest input.
        values: which values they have: `random`.
        data: `warm`, or `cold` where each call took inputs that had left the caches.
        first: which side was loaded and set up first, `baseline` or `candidate`. With a single compile thread
            inductor loads C++ in the order of the file, whatever this says.
        seed: of inputs, of their places in memory, and of the order in quads.
        command: its command line. environment: machine, versions, cores, load.
        warnings: what spoils its times. comparisons: in the order they were timed.
        overheads: samples of where the time of the compiled function goes.
        ablations: what copies leave out that are wrong on purpose: `("cpp_fused_add_0_v3", "no_loads")`.
        resources: of Triton kernels, by name.
        timed_once: seconds of the kernels that were not compared, as there are many: of all launches in one
            call, started one by one.
        measured: seconds that count against the budget: all but importing, compiling and checking. None where
            the process does not say.
    """

    graph: str
    kernels: tuple[str, ...]
    inputs: str
    values: str
    data: str
    threads: Count
    first: str
    seed: Count
    command: tuple[str, ...]
    environment: Mapping[str, str | int | float | bool | None]
    warnings: tuple[Remark, ...]
    variants: tuple[Variant, ...]
    comparisons: tuple[Series, ...]
    ablations: tuple[tuple[str, str], ...] = ()
    overheads: OverheadSamples | None = None
    resources: tuple[tuple[str, Resources], ...] = ()
    timed_once: tuple[tuple[str, Seconds], ...] = ()
    measured: Annotated[float, Between(0, 1e6)] | None = None


class Samples(Struct, frozen=True):
    """What `output_code_bench.json` holds: all that a report is made from.

    Attributes:
        processes: at least one, of the same file.
        margin: a ratio from 1 / (1 + margin) to 1 + margin is the same time.
        roofline: of the machine, measured in the same run; None where it was not.
        works: what each kernel has to do in a call.
        own: the user's callable against eager. no_own: why it was not timed.
    """

    processes: tuple[Process, ...]
    margin: float
    roofline: Roofline | None = None
    works: tuple[KernelWork, ...] = ()
    own: OwnCall | None = None
    no_own: NoOwnCall | None = None


# Which variants are wrong together: a kernel and what launches it, a call and its copies.

_NOT_COMPILED = re.compile(r"NotLoadedError: (\w+) does not compile")
"""What a wrapper raises that launches such a kernel: harness/load.py, NotCompiled."""
OF_KERNELS = ("kernel-fault", "not-interpreted", "not-finished")
"""Remarks that name the kernel which is to blame, not the variant that launches it."""
PRISTINE_CALLS = ("call", "A")
"""The pristine call, and what `probe whatif` calls it."""
_WRAPPER = re.compile(r"call(_v\d+)?|[AB]")
"""The pristine call and its copies; what `probe whatif` calls them where they are the calls of its sides."""


def wrong_groups(variants: Iterable[Variant]) -> list[list[Variant]]:
    """Return the wrong variants, those with the very same outputs together, a kernel before its wrapper.

    `call_v2` launches `k_v2`: where that is wrong, both are, at the same element. Where the call itself is
    wrong, so are its copies, and it comes first.
    """

    def place(variant: Variant) -> tuple[bool, bool]:
        return variant.name not in PRISTINE_CALLS, bool(_WRAPPER.fullmatch(variant.name))

    wrong = sorted((variant for variant in variants if not variant.correct), key=place)
    return [*grouped(wrong, _what_is_wrong).values()]


def _what_is_wrong(variant: Variant) -> object:
    if variant.mismatches:
        return variant.first_bad_output, variant.first_bad, str(variant.value), variant.mismatches
    for remark in variant.remarks:
        if remark.code in OF_KERNELS:
            return remark.code, remark.numbers
    errors = [_NOT_COMPILED.match(str(remark.number("error"))) for remark in variant.remarks]
    return next((error[1] for error in errors if error), variant.name)


def not_compiled(variant: Variant) -> Remark | None:
    """Return the remark with the compiler's message and its line in the bench file, None if it compiles."""
    return next((remark for remark in variant.remarks if remark.code == "variant-not-compiled"), None)


def all_not_compiled(variants: Iterable[Variant]) -> bool:
    """Whether all that is wrong is that kernels do not compile: nothing is known of what variants compute."""
    groups = wrong_groups(variants)
    return bool(groups) and all(not_compiled(group[0]) for group in groups)
