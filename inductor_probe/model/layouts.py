"""What the layout analysis concludes about a buffer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.span import SourceLine, Span

MemoryFormat: TypeAlias = Literal[
    "contiguous", "channels_first", "channels_last", "transposed", "broadcast", "padded", "other", "unknown"
]


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a node to a buffer.

    Attributes:
        node, kernel: who accesses; kernel is None when no launch could be linked to the node.
        index: the index expression in loop variables, or None for a whole-buffer access (extern kernels).
        ranges: loop variables with their trip counts, outermost first.
        strides: per loop variable, the change of the index in elements for one step; a number, the text of
            a symbolic stride, `indirect` when the variable acts through an indirect index only, or
            `piecewise` when it stands under a division or a modulo.
        innermost: the loop variable that moves fastest, None when nothing loops.
        pattern: in words: `contiguous`, `reversed`, `strided by 3`, `broadcast`, `indirect`, `scalar`,
            `whole buffer`; longer when runs are shorter than a cache line.
        indirect: for each indirect variable, the loop variables that its value depends on.
        contiguous: True when consecutive steps of the innermost loop touch consecutive or the same elements,
            None when it cannot be told.
        count: how many times the node makes this very access.
    """

    node: str
    kernel: str | None
    index: str | None
    ranges: tuple[tuple[str, Dim], ...]
    strides: tuple[tuple[str, Dim], ...]
    innermost: str | None
    pattern: str
    indirect: tuple[tuple[str, tuple[str, ...]], ...] = ()
    contiguous: bool | None = None
    count: int = 1
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Origin:
    """The FX node a buffer came from, and the user's line. `how` says what proves it.

    `candidates` holds the FX nodes when more than one is possible: then `node` is None.
    """

    node: str | None
    source: SourceLine | None
    how: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """Something about a layout that deserves a look.

    `kind` is `disagrees` (with an input of its producer) or `costs` (a reader its contiguity). `who` is the
    node that pays, `text` the sentence.
    """

    kind: Literal["disagrees", "costs"]
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """A buffer: its layout, who writes and reads it and how, and where each fact was read.

    Attributes:
        role: `input`, `output` (returned by the graph), or `intermediate`.
        dim_order: dimensions from slowest to fastest, None when it cannot be told.
        size_bytes: of its storage as laid out; text when symbolic, None when not known.
        local: True when the buffer has no memory of its own in the wrapper: fused away or kernel-local.
        evidence: facts with the place each was read from: `("layout", span)`.
    """

    graph: str
    buffer: str
    role: Literal["input", "output", "intermediate"]
    layout: BufferLayout | None
    memory_format: MemoryFormat
    dim_order: tuple[int, ...] | None
    size_bytes: Dim | None
    producer: str | None
    kernel: str | None
    writes: tuple[Access, ...]
    reads: tuple[Access, ...]
    origin: Origin | None
    marks: tuple[Mark, ...] = ()
    local: bool = False
    evidence: tuple[tuple[str, Span], ...] = field(default=(), compare=False)

    @property
    def format_in_words(self) -> str:
        """`transposed [0, 2, 1, 3]`: the memory format, and the order where it is known."""
        order = f" {list(self.dim_order)}" if self.dim_order is not None else ""
        return f"{self.memory_format}{order}"
