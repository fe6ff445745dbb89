"""A loop body as mathematics: what `analysis.formula` concludes from the statements of a body.

What is used more than once is a `Definition` with a name, so an expression stays small and shallow. Nothing
of a body is left out: each statement names the lines of the body that it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from inductor_probe.model.codec import AS_TEXT
from inductor_probe.model.expression import BufferElement, Expression
from inductor_probe.model.ir import Dim


@dataclass(frozen=True, slots=True)
class LoopVariable:
    """A loop variable, outermost first. `reduced` when results do not have it as a dimension."""

    variable: str
    size: Dim
    reduced: bool


@dataclass(frozen=True, slots=True)
class View:
    """How to read the subscripts of a buffer.

    Attributes:
        size, dtype: as the layout says, None where it is not printed.
        shape: what the subscripts run over: the size itself; the size with neighbouring dimensions taken as
            one and dimensions of 1 left out; or None when the one subscript counts elements of memory.
        order: the dimensions as `shape` takes them, where that is not their own order.
    """

    buffer: str
    size: tuple[Dim, ...] | None
    dtype: str | None
    shape: tuple[Dim, ...] | None
    order: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """`name = value`, or `name(parameters) = value`. `under` is the mask under which alone it is computed."""

    name: str
    value: Expression = field(metadata=AS_TEXT)
    parameters: tuple[str, ...] = ()
    under: Expression | None = field(default=None, metadata=AS_TEXT)
    lines: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Store:
    """`target = value`; `mode` is `atomic_add` for `target += value` from many iterations."""

    target: BufferElement = field(metadata=AS_TEXT)
    value: Expression = field(metadata=AS_TEXT)
    mode: str | None = None
    reduction: bool = False
    under: Expression | None = field(default=None, metadata=AS_TEXT)
    lines: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class BoundsCheck:
    """`0 <= value` is checked when `lower`, `value < size` when `upper`."""

    value: Expression = field(metadata=AS_TEXT)
    size: Expression = field(metadata=AS_TEXT)
    lower: bool
    upper: bool
    under: Expression | None = field(default=None, metadata=AS_TEXT)
    lines: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Effect:
    """A value computed for what it does besides (`used`), or one that nothing takes."""

    value: Expression = field(metadata=AS_TEXT)
    used: bool
    under: Expression | None = field(default=None, metadata=AS_TEXT)
    lines: tuple[int, ...] = field(default=(), compare=False)


Statement: TypeAlias = Definition | Store | BoundsCheck | Effect


Convention: TypeAlias = Literal["indirect-index", "masked", "mod", "scan", "atomic-add"]
"""What a reader of a formula has to know beyond its statements."""


@dataclass(frozen=True, slots=True)
class Formula:
    """What a node computes at each point of its loops.

    Attributes:
        node: its name.
        loops: outermost first.
        views: the buffers it reaches, in order of first use.
        statements: in order; a definition stands before its first use.
        conventions: what a reader has to know of how they are written.
    """

    node: str
    loops: tuple[LoopVariable, ...]
    views: tuple[View, ...]
    statements: tuple[Statement, ...]
    conventions: tuple[Convention, ...] = ()
