"""What is concluded about the buffers of a graph: layouts, accesses, symbolic sizes, bounds of inputs."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.cause import Cause
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.output import Output
from inductor_probe.model.proof import Proof
from inductor_probe.model.record import Compared
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import SourceLine, Span


class Symbol(Struct, frozen=True):
    """A symbolic size of a graph.

    Attributes:
        name: torch's (`s77`).
        source: the input that has it: `arg2_1.size(0)`, or the input that is the number itself, `arg0_1`;
            None where no input has it (`u0`, which is known when the graph runs).
        value: when the graph was compiled; None where the dump does not record it.
    """

    name: str
    source: str | None
    value: int | None


Form: TypeAlias = Literal["any", "sorted", "offsets", "parts", "true", "positive definite"]
"""What values have to be together: along the last dimension sorted, sorted from zero (`offsets`), or `parts`
that sum to the bound `high`; no more than `high` of them `true`; or as a matrix."""


class InputBound(Struct, frozen=True):
    """Values with which an input makes sense.

    Attributes:
        name: the placeholder (`arg0_1`).
        low, high: the least and the greatest, both allowed: a number, an expression in the graph's size
            symbols (`s77 - 1`), or None where there is no end.
        operator: the one that asks for it (`aten.embedding`). form: what its values have to be together.
        lost: the value went where no rule follows it, and may be an index there: small numbers are safest.
    """

    name: str
    low: Dim | None = None
    high: Dim | None = None
    operator: str = ""
    form: Form = "any"
    lost: bool = False


MemoryFormat: TypeAlias = Literal[
    "contiguous", "channels_last", "transposed", "broadcast", "padded", "other", "none", "unknown"
]
"""`contiguous` and `channels_last` mean what `torch.contiguous_format` and `torch.channels_last` mean.
`none`: it has no memory (`NoneLayout`), as what stands for a change of another buffer."""

PatternKind: TypeAlias = Literal[
    "contiguous", "reversed", "strided", "broadcast", "indirect", "scalar", "piecewise", "whole_buffer",
    "part", "unknown",
]  # fmt: skip


class Pattern(Struct, frozen=True):
    """How an access walks memory along its innermost loop.

    Attributes:
        kind: `contiguous` (stride 1), `reversed` (a negative stride), `strided` (any other), `broadcast`
            (stride 0), `indirect` (through a loaded index), `scalar` (nothing loops), `piecewise` (the
            variable stands under a division or modulo), `whole_buffer` (extern kernels), `part` (of a buffer,
            that a library call is passed), or `unknown`.
        stride: in elements for one step; for `contiguous`, `reversed` and `strided`.
        run: elements until the walk jumps, for `contiguous` where that is less than a cache line.
        reversed_loops: outer loops that walk backwards.
    """

    kind: PatternKind
    stride: Dim | None = None
    run: int | None = None
    reversed_loops: tuple[str, ...] = ()


class GeneratedAccess(Compared, frozen=True):
    """How the text of the generated kernel makes an access: codegen reorders, tiles and vectorises loops.

    Attributes:
        form: `vector` (a vector load or store), `element` (one element at a time), `block` (of a Triton
            kernel), or `none`: the kernel passes the value on in registers.
        loop: the kernel's own variable that the stride is along: for `element` the innermost loop around it,
            for `vector` the one that consecutive elements follow, for `block` that of the smallest stride.
        stride: change of the index for one step of `loop`, in elements; `indirect` through a loaded index.
        steps: trip count of `loop` where the text has it.
        contiguous: whether consecutive steps touch consecutive or the same elements; None when unknown.
        unit_stride_loop, unit_stride_steps: another loop around it that has stride 1, and its trip count.
        span: the line of `output_code.py`.
    """

    form: Literal["vector", "element", "block", "none"]
    loop: str | None = None
    stride: Dim | None = None
    steps: Dim | None = None
    contiguous: bool | None = None
    unit_stride_loop: str | None = None
    unit_stride_steps: Dim | None = None
    span: Span | None = None


class Access(Compared, frozen=True):
    """One access of a node to a buffer.

    Attributes:
        node, kernel: who accesses; kernel is None when no launch could be linked to the node.
        index: the index expression in loop variables, or None for a whole-buffer access (extern kernels).
        ranges: loop variables with their trip counts, outermost first.
        strides: per loop variable, the change of the index in elements for one step; a number, the text of
            a symbolic stride, `indirect` when the variable acts through an indirect index only, or
            `piecewise` when it stands under a division or a modulo.
        innermost: the loop variable that moves fastest, None when nothing loops.
        pattern: how the innermost loop walks memory.
        indirect: for each indirect variable, the loop variables that its value depends on.
        contiguous: True when consecutive steps of the innermost loop touch consecutive or the same elements,
            None when it is not known. This is about the loops of the IR, `generated` about the kernel's.
        count: how many times the node makes this very access.
        parts: the views of the buffer that a library call is passed; none where it is passed all of it.
        generated: the same access in the text of `kernel`; None where it could not be identified there.
    """

    node: str
    kernel: str | None
    index: str | None
    ranges: tuple[tuple[str, Dim], ...]
    strides: tuple[tuple[str, Dim], ...]
    innermost: str | None
    pattern: Pattern
    indirect: tuple[tuple[str, tuple[str, ...]], ...] = ()
    contiguous: bool | None = None
    count: int = 1
    span: Span | None = None
    generated: GeneratedAccess | None = None
    parts: tuple[BufferLayout, ...] = ()


class Origin(Struct, frozen=True):
    """The FX node a buffer came from, and the user's line; a further proof narrows the one before it.

    `candidates` holds the FX nodes when more than one is possible: then `node` is None.
    """

    node: str | None
    source: SourceLine | None
    proofs: tuple[Proof, ...] = ()
    candidates: tuple[str, ...] = ()


class Evidence(Struct, frozen=True):
    """A fact about a buffer (`layout`, `written by`), and where it was read."""

    fact: str
    span: Span


class Packing(Struct, frozen=True):
    """A library packed a constant into a layout of its own, which has no strides.

    Attributes:
        operator: what packed it (`mkldnn._reorder_linear_weight`), None where the dump does not record it.
        knowledge: `recorded` by the manifest; `inferred` from strides that cannot be those of its memory.
    """

    operator: str | None
    knowledge: Literal["recorded", "inferred"]


class LayoutRow(Compared, frozen=True):
    """A buffer: its layout, who writes and reads it and how, and where each fact was read.

    Attributes:
        role: `input`, `constant`, `output` (returned by the graph), or `intermediate`; of a subgraph's buffer
            what it is to the subgraph. subgraph: whose it is, None for the graph's own.
        dim_order: dimensions from slowest to fastest, None when it is not known.
        size_bytes: of its storage as laid out; text when symbolic, None when not known.
        recorded_bytes: these with the sizes of the compile, where they are symbolic and the dump records
            those. symbols: the symbolic sizes in them.
        packing: of a weight that freezing packed for a library; None of any other.
        local: True when the buffer has no memory of its own in the wrapper: fused away or kernel-local.
        remarks: about how nodes reach it, most bytes at stake first.
        evidence: facts with the place each was read from.
        causes: why it has this layout, as far as that was recorded and one buffer was asked for.
    """

    graph: str
    buffer: str
    role: Literal["input", "constant", "output", "intermediate"]
    layout: BufferLayout | None
    memory_format: MemoryFormat
    dim_order: tuple[int, ...] | None
    size_bytes: Dim | None
    producer: str | None
    kernel: str | None
    writes: tuple[Access, ...]
    reads: tuple[Access, ...]
    origin: Origin | None
    remarks: tuple[Remark, ...] = ()
    local: bool = False
    evidence: tuple[Evidence, ...] = ()
    recorded_bytes: int | None = None
    symbols: tuple[Symbol, ...] = ()
    packing: Packing | None = None
    subgraph: str | None = None
    causes: tuple[Cause, ...] = ()

    @property
    def noncontiguous_readers(self) -> frozenset[str]:
        """The nodes that read it non-contiguously, as its remarks say."""
        about = (self.buffer, "read")
        return frozenset(
            subject.name
            for remark in self.remarks
            if remark.code == "noncontiguous-access"
            and (remark.number("buffer"), remark.number("direction")) == about
            for subject in remark.subjects
        )


class LayoutsOutput(Output, frozen=True, kw_only=True):
    """Buffers, in the order in which the graph names them."""

    verb: Literal["layouts"] = "layouts"
    rows: tuple[LayoutRow, ...]
