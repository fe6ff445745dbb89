"""What a compiler made of a kernel: resources, occupancy, widths of instructions and of memory accesses."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.code import NestKind, Pairs
from inductor_probe.model.output import Output

STAGES = ("ttir", "ttgir", "llir", "ptx", "sass")
"""What Triton compiles a kernel to, in order; the last is what the GPU runs."""
OF_CPP = "asm"
"""The only stage of a C++ kernel: what the processor runs, as objdump prints it."""

AccessKind: TypeAlias = Literal["load", "store", "atomic", "copy"]
"""`copy` goes from global to shared memory at once (`cp.async`)."""

ConfigOrigin: TypeAlias = Literal["inductor", "recorded", "asked", "grid"]
"""Inductor tries it first, by the torch at hand; it offered it while the dump was made; the user named it; it
is of the grid of a sweep."""

Limit: TypeAlias = Literal["threads", "registers", "shared-memory", "blocks"]
"""What keeps more blocks from a multiprocessor at a time."""


class GlobalAccess(Struct, frozen=True):
    """Instructions for global memory of one form, that one line of a kernel became.

    Attributes:
        line: of the kernel's text, 1-based; None where PTX names none.
        kind, text: `load`, `ld.global.v4.b32`.
        bits: what a thread moves with one of them. count: how many there are in the text.
    """

    line: int | None
    kind: AccessKind
    text: str
    bits: int
    count: int


WarpPattern: TypeAlias = Literal[
    "contiguous", "reversed", "strided", "same-address", "irregular", "indirect", "unknown"
]
"""Addresses from element to element of a request: one on, one back, `stride` on, the same, none of these most
of the time, or places that depend on loaded values. `unknown`: on unknown sizes, or not followed."""


class WarpAccess(Struct, frozen=True):
    """How the 32 threads of a warp reach global memory in one request: inferred from the addresses in TTGIR.

    Attributes:
        line: of the kernel's text, 1-based. kind: `load`.
        item_bits: of an element. elements: consecutive ones that a thread moves at once.
        pattern: of the elements, thread by thread. stride: in elements.
        run: how many elements go on like that, in the mean; None where all do.
        sectors: of 32 bytes that a request touches, in the mean of some requests; what was loaded counts as
            elsewhere, so that of an indirect access it is the most. sectors_once: likewise, where those that
            several requests of a warp touch count once. best: the fewest that could hold as many different
            elements. None where the pattern is not known.
    """

    line: int
    kind: AccessKind
    item_bits: int
    elements: int
    pattern: WarpPattern
    stride: int | None
    run: float | None
    sectors: float | None
    sectors_once: float | None
    best: float | None


class Occupancy(Struct, frozen=True):
    """How many threads of a kernel a multiprocessor can hold at a time.

    Attributes:
        blocks: at a time. share: of the threads that it can hold at most.
        limits: what keeps further blocks out; several where they do so alike.
    """

    blocks: int
    share: float
    limits: tuple[Limit, ...]


class CompiledConfig(Struct, frozen=True):
    """A kernel as it was compiled with one config.

    Attributes:
        config: block sizes, `num_warps`, `num_stages`. origin: who wants it.
        threads: of a block. registers, stack_bytes: of a thread, None where cuobjdump did not say; what is
            on the stack are spills and arrays. shared_bytes: of a block.
        instructions: of the machine code, without padding; None where it could not be disassembled.
        occupancy: None where the architecture's figures are not known.
        accesses: in the order of lines. warp_accesses: likewise.
        stages: names and texts of those that were asked for.
        failure: what Triton or ptxas said; the numbers say nothing then.
    """

    config: Pairs
    origin: ConfigOrigin
    threads: int = 0
    registers: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int = 0
    instructions: int | None = None
    occupancy: Occupancy | None = None
    accesses: tuple[GlobalAccess, ...] = ()
    warp_accesses: tuple[WarpAccess, ...] = ()
    stages: Pairs = ()
    failure: str | None = None


CompilerName: TypeAlias = Literal["gcc", "clang"]

CompilerCode: TypeAlias = Literal[
    "vectorised", "negative-step", "nested-loops", "unsupported-operation", "no-vector-type", "call",
    "access-not-affine", "dependence", "float-order", "reduction", "unknown-trip-count", "control-flow",
    "not-profitable", "other",
]  # fmt: skip
"""What a compiler's loop vectoriser did with a loop, or why it did not: of GCC and clang alike."""


class CompilerRemark(Struct, frozen=True):
    """What a compiler said of a loop of a C++ kernel.

    Attributes:
        code: what it did, or why it did not. text: that reason in its words.
        nest: number of the loop nest, from 0 on. loop, variable: line of the kernel's text, and variable, of
            the loop. line: of the statement that it named, that of the loop where it named none.
        bits: of the vectors (GCC); lanes: of a vector (clang).
        operand: the statement or type that has no vectors.
    """

    compiler: CompilerName
    code: CompilerCode
    nest: int
    loop: int
    variable: str
    line: int
    bits: int | None = None
    lanes: int | None = None
    operand: str | None = None
    text: str = ""


REMARKS_NAME = "probe_compiler.json"


class KernelRemarks(Struct, frozen=True):
    """What a compiler said of the loops of a kernel.

    Attributes:
        kernel: its name. digest: of its text, by which one that was edited since is told.
        version: of the compiler. vectors: instructions that it was compiled for (`avx512`).
        turned_off: inductor turns its loop vectoriser off, and it was asked what it would do with it.
        path, first: where the text of the kernel begins: its line 1 is this line of the file.
    """

    kernel: str
    digest: str
    version: str
    vectors: str
    turned_off: bool
    path: Path
    first: int
    remarks: tuple[CompilerRemark, ...]


class MachineLoop(Struct, frozen=True):
    """An innermost loop of a C++ kernel's machine code.

    Attributes:
        nest: number of the loop nest that it belongs to, from 0 on; kind: of the nest.
        first, last: lines of the kernel's text that it computes, of those of the nest.
        instructions: in the loop. packed: how many of them are on vectors of so many bits. scalar: how many
            compute with one float in a vector register. calls: of functions.
        remark: what the compiler said of it; None where it said nothing.
    """

    nest: int
    kind: NestKind
    first: int
    last: int
    instructions: int
    packed: tuple[tuple[int, int], ...]
    scalar: int
    calls: int
    remark: CompilerRemark | None


class CompiledKernel(Struct, frozen=True, kw_only=True):
    """A kernel, compiled ahead of time: for a GPU that need not be there, or for this processor.

    Attributes:
        backend: `triton` or `cpp`. architecture: `sm_90`; vector instructions, `avx512`, of C++.
        compilers: what compiled it, with versions. dumped_by: torch and triton of the dump, where recorded.
        path, first: where the text of the kernel begins: its line 1 is this line of the file.
        source: the text. configs: of Triton; the first one is that which inductor tries first.
        loops: of C++, in the order of the machine code. command: of C++. code: its machine code, if asked
            for. compiler: what it said of the loops of the text.
    """

    graph: str
    kernel: str
    backend: str
    architecture: str
    compilers: Pairs
    dumped_by: Pairs = ()
    path: Path
    first: int
    source: str
    configs: tuple[CompiledConfig, ...] = ()
    loops: tuple[MachineLoop, ...] = ()
    command: tuple[str, ...] = ()
    compiler: KernelRemarks | None = None
    code: str = ""


FigureName: TypeAlias = Literal[
    "config", "architecture", "registers", "stack", "shared", "blocks", "occupancy", "limits", "machine-code",
    "loops", "loop-instructions", "512-bits", "256-bits", "128-bits", "scalar-floats", "calls",
]  # fmt: skip
"""A figure of a compiled kernel; of C++ from `loops` on, summed over the innermost loops."""


class ComparedFigure(Struct, frozen=True):
    """A figure of two compiled kernels, `a` and `b`, as text; None where it is not known, or there is none.

    `name` is a `FigureName`, or an instruction for global memory whose number it is (`ld.global.v4.b32`).
    """

    name: FigureName | str
    a: str | None
    b: str | None


class ComparedText(Struct, frozen=True):
    """Where two texts of a stage differ, as lines of a unified diff; names of registers count as the same."""

    stage: str
    lines: tuple[str, ...]


class AsmOutput(Output, frozen=True, kw_only=True):
    """A compiled kernel; or two, and what differs.

    Attributes:
        kernels: one, or two. figures: of both, with their first configs. texts: of the stages asked for.
    """

    verb: Literal["asm"] = "asm"
    kernels: tuple[CompiledKernel, ...]
    figures: tuple[ComparedFigure, ...] = ()
    texts: tuple[ComparedText, ...] = ()
