"""An operator that inductor decomposes: what the compiled code does for it, beside eager's kernel of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.code import NestKind
from inductor_probe.model.ir import Dim

FigureSource: TypeAlias = Literal["recorded", "read", "inferred", "measured", "not-known"]
"""Where a figure is from: torch logged it; it stands in the dump; it follows from what stands there; it was
timed here; nobody said it. A library's kernel has no text here, and so no figures of its operations."""

FigureCode: TypeAlias = Literal[
    "seconds", "without-vectors", "operators", "loops", "operations", "repeated", "loads", "indirect",
    "stores", "checks", "vectorised", "operand-bytes", "moved-bytes", "between-bytes",
]  # fmt: skip
"""- `seconds`: of a call of the program: of the loops that compute it; of the operator.
- `without-vectors`: seconds of eager where ATen's kernels for vectors are switched off.
- `operators`: FX nodes that it became; operators that it calls in turn, with 1 % of its time and more.
- `loops`: loop nests, kernels and library calls.
- of an element of its results: `operations` on values, equal ones of a loop nest once; `repeated`: of these
  those that an outer loop does again with the same result; `loads`; `indirect`: of these those from an index
  that is a value, and no sum of loop variables; `stores`; `checks` of such an index against its bounds.
- `vectorised`: the share of the operations in loop nests that compute with vectors.
- `operand-bytes`: of operands and results; `moved-bytes`: what all loop nests read and write;
  `between-bytes`: of buffers that one of its loops writes for another; eager's: allocated beside the results.
"""


class Figure(Struct, frozen=True):
    """A figure of both sides, None where it is not known, and where each is from."""

    code: FigureCode
    compiled: float | None
    compiled_source: FigureSource
    eager: float | None
    eager_source: FigureSource


class Repeated(Struct, frozen=True):
    """What a loop does again each time with the same result.

    Attributes:
        variable, trips: the loop, as loop bodies have it (`p0`).
        operations: of a point, that do not depend on it, and do on another loop.
        stores: of a point, whose value does not.
        innermost: it is the innermost loop: a C++ compiler may do them before it. Out of another loop it
            would have to store them.
        sized: of these operations those of whose own size, that of the loops they depend on, an FX node there
            is. Inductor can make a buffer of such a node, and so have them done once. It has no buffer of
            the size of the others: only another decomposition has.
    """

    variable: str
    trips: int
    operations: int
    stores: int
    innermost: bool
    sized: int


class LoopWork(Struct, frozen=True):
    """A loop nest, a kernel without nests, or a library call that computes for a decomposed operator.

    Attributes:
        graph, name: as in `OverviewPart`: `loop nest 2 of cpp_fused_add_0`.
        kind: of a loop nest. nodes: that it computes.
        loops: of the loop body with most points, outermost first. points: of it; None where not known.
        operations, loads, indirect, stores: of a point. checks: statements of a scalar nest's text, of a
            point; None where the text has vectors, or is no C++.
        evaluated, again: operations at all points, and of these those that an outer loop does again.
        moved: bytes that it reads and writes. seconds: in a call; None where not timed.
        repeated: loops that do operations again.
    """

    graph: str
    name: str
    kind: NestKind | None
    nodes: tuple[str, ...]
    loops: tuple[tuple[str, Dim], ...] = ()
    points: int | None = None
    operations: int = 0
    loads: int = 0
    indirect: int = 0
    stores: int = 0
    checks: int | None = None
    evaluated: int | None = None
    again: int = 0
    moved: int | None = None
    seconds: float | None = None
    repeated: tuple[Repeated, ...] = ()
