"""What is concluded about kernels: a row for each kernel and library call, and whether launches fit."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.code import KernelArg, KernelDetails, Pairs
from inductor_probe.model.codec import UNWRITTEN
from inductor_probe.model.decision import Decision
from inductor_probe.model.gpu_target import ProductType
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.layouts import Symbol
from inductor_probe.model.links import KernelFx
from inductor_probe.model.output import Output
from inductor_probe.model.record import Compared
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import SourceLine, Span


class Passed(Struct, frozen=True):
    """What a launch passes for one parameter.

    Attributes:
        arg: the parameter; None where the kernel's text names none (grids, library calls).
        text: as written in the wrapper.
        buffer: the buffer that the text names, None for sizes.
        layout: how it lies, as a view where the text makes one; None when not known.
    """

    arg: KernelArg | None
    text: str
    buffer: str | None = None
    layout: BufferLayout | None = None


class KernelLaunch(Compared, frozen=True):
    """A launch, its parameters matched with what is passed. `keywords` are passed by name: stream, grid."""

    passed: tuple[Passed, ...]
    span: Span
    keywords: Pairs = ()


Unbounded: TypeAlias = Literal["library", "symbolic", "no-node", "nothing-sure"]
"""Why a kernel has no bound:

- `library`: what a library function or a template must read is not known;
- `symbolic`: a size is symbolic, and the dump does not say what it was;
- `no-node`: no scheduler node is known to run in it;
- `nothing-sure`: what it reaches depends on values alone.
"""


class KernelBound(Struct, frozen=True):
    """The least time that a kernel can take in one call of the graph, over all of its launches; no estimate.

    It holds where nothing that the kernel reads is in the GPU's L2 cache.

    Attributes:
        gpu: whose rates were taken, as its driver calls it.
        seconds: the larger of `memory_seconds` and `arithmetic_seconds`, and `limit` which of them that is.
            None where neither is known: `unbounded` says why.
        moved: bytes that it moves from and to the memory at least. flops: operations of its matrix products,
            convolutions and attention, or comparisons of its sorts.
        product: how these are computed, which says their rate; None where the GPU has none for their dtype.
    """

    gpu: str
    seconds: float | None
    limit: Literal["memory", "arithmetic"] | None = None
    moved: int | None = None
    flops: int | None = None
    product: ProductType | None = None
    memory_seconds: float | None = None
    arithmetic_seconds: float | None = None
    unbounded: Unbounded | None = None


class KernelRow(Compared, frozen=True):
    """A kernel with everything that is known of it.

    Attributes:
        backend: `cpp`, `triton`, another maker of kernels, or `extern` for a library call.
        kind: `loops` or `template` (C++), the heuristic (Triton), `library` or `fallback` (extern).
        nodes: unfused scheduler nodes that run in it, in order. `tops`: the nodes after fusion they are in.
        fx: FX nodes it computes, by torch's records or the data flow. `fx_proofs`: which of them
            shows each, and where they differ. `ops`: the operators of `fx`, each once; where there are
            none, those that inductor's comment names.
        sources: lines of the user's program that it comes from.
        args: its parameters. `launches`: what is passed for them, and where.
        bytes_read, bytes_written: over all launches: of every buffer passed the elements that its nodes
            reach, at most the whole buffer, once for each direction; a re-read costs nothing. Text where
            symbolic, None where a layout is not known.
        recorded_read, recorded_written: these bytes with the sizes of the compile, where they are symbolic
            and the dump records those. symbols: the symbolic sizes in them.
        loads, stores: that its text holds. reductions: of its nodes. None where unknown.
        chooses: the kernels that it runs one of. details: what its backend reads off its text.
        traits: what `--only` filters by: backend, kind, `scalar`, `vectorised`, `reduction`, `atomic`,
            `int64` (64-bit indices in Triton), `unlinked`.
        remarks: about the kernel; most bytes at stake first.
        decisions: why each loop nest of a C++ kernel is scalar or vectorised, in their order; empty where
            that is not recorded, or not known to be of these nests.
        bound: the least time that it can take on the GPU that it was compiled for; None on a CPU, and where
            that GPU's figures are not known.
    """

    graph: str
    name: str
    backend: str
    kind: str
    nodes: tuple[str, ...]
    tops: tuple[str, ...]
    fx: tuple[str, ...]
    fx_proofs: tuple[KernelFx, ...]
    ops: tuple[str, ...]
    sources: tuple[SourceLine, ...]
    args: tuple[KernelArg, ...] = ()
    launches: tuple[KernelLaunch, ...] = ()
    bytes_read: Dim | None = None
    bytes_written: Dim | None = None
    loads: int | None = None
    stores: int | None = None
    reductions: int | None = None
    chooses: tuple[str, ...] = ()
    details: KernelDetails | None = None
    traits: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    source: Annotated[str, UNWRITTEN] = ""
    span: Span | None = None
    recorded_read: int | None = None
    recorded_written: int | None = None
    symbols: tuple[Symbol, ...] = ()
    decisions: tuple[Decision, ...] = ()
    bound: KernelBound | None = None

    @property
    def moved(self) -> int | None:
        """The bytes that it reads and writes, symbolic sizes as they were when it was compiled."""
        read = self.bytes_read if self.recorded_read is None else self.recorded_read
        written = self.bytes_written if self.recorded_written is None else self.recorded_written
        return read + written if isinstance(read, int) and isinstance(written, int) else None


class KernelsOutput(Output, frozen=True, kw_only=True):
    """Generated kernels and library functions, in the order of the table."""

    verb: Literal["kernels"] = "kernels"
    rows: tuple[KernelRow, ...]


Aspect: TypeAlias = Literal["count", "type", "order", "numel", "grid", "divisibility", "index width"]
"""What was compared."""


class LaunchCheck(Struct, frozen=True):
    """What checking the launches of one graph found.

    Attributes:
        graph: its name.
        launches: launches of Triton kernels that were checked.
        compared: how many comparisons were made of each aspect; 0 where nothing could be compared.
        remarks: launches that do not fit their kernels, in the order of the wrapper: hazards, each with its
            `aspect` as the first number and the lines of the launch as evidence. Empty when all fits.
    """

    graph: str
    launches: int
    compared: tuple[tuple[Aspect, int], ...]
    remarks: tuple[Remark, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether nothing was found."""
        return not self.remarks
