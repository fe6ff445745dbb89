"""What a compiler made of a Triton kernel: resources, occupancy, and the width of what reaches memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from inductor_probe.model.code import Pairs
from inductor_probe.model.output import Output

STAGES = ("ttir", "ttgir", "llir", "ptx", "sass")
"""What Triton compiles a kernel to, in order; the last is what the GPU runs."""

AccessKind: TypeAlias = Literal["load", "store", "atomic", "copy"]
"""`copy` goes from global to shared memory at once (`cp.async`)."""

Limit: TypeAlias = Literal["threads", "registers", "shared-memory", "blocks"]
"""What keeps more blocks from a multiprocessor at a time."""


@dataclass(frozen=True, slots=True)
class GlobalAccess:
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


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many threads of a kernel a multiprocessor can hold at a time.

    Attributes:
        blocks: at a time. share: of the threads that it can hold at most.
        limits: what keeps further blocks out; several where they do so alike.
    """

    blocks: int
    share: float
    limits: tuple[Limit, ...]


@dataclass(frozen=True, slots=True)
class CompiledConfig:
    """A kernel as it was compiled with one config.

    Attributes:
        config: block sizes, `num_warps`, `num_stages`. asked: False for those that inductor tries.
        threads: of a block. registers, stack_bytes: of a thread; what is on the stack are spills and
            arrays. shared_bytes: of a block.
        instructions: of the machine code, without padding; None where it could not be disassembled.
        occupancy: None where the architecture's figures are not known.
        accesses: in the order of lines.
        stages: names and texts of those that were asked for.
        failure: what Triton or ptxas said; all numbers are 0 then.
    """

    config: Pairs
    asked: bool
    threads: int = 0
    registers: int = 0
    stack_bytes: int = 0
    shared_bytes: int = 0
    instructions: int | None = None
    occupancy: Occupancy | None = None
    accesses: tuple[GlobalAccess, ...] = ()
    stages: Pairs = ()
    failure: str | None = None


@dataclass(frozen=True, kw_only=True)
class AsmOutput(Output):
    """A Triton kernel, compiled ahead of time for a GPU that need not be there.

    Attributes:
        architecture: `sm_90`. torch, triton: versions that compiled it.
        path, first: where the text of the kernel begins: its line 1 is this line of the file.
        source: the text. configs: the first one is that which inductor tries first.
    """

    verb: Literal["asm"] = "asm"
    graph: str
    kernel: str
    architecture: str
    torch: str
    triton: str
    path: Path
    first: int
    source: str
    configs: tuple[CompiledConfig, ...]
