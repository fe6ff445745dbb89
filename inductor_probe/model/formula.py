"""A loop body as mathematics: what `analysis.formula` concludes from the statements of a body.

An expression is a tree. What is used more than once is a `Definition` with a name, so a tree stays small and
shallow. Nothing of a body is left out: each statement names the lines of the body that it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from inductor_probe.model.ir import Dim


@dataclass(frozen=True, slots=True)
class Number:
    """A constant. `text` reads back as the same number (`0.1`, `inf`, `True`); `dtype` may be None."""

    text: str
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A loop variable, a symbolic size, a definition, or a parameter of one."""

    name: str


@dataclass(frozen=True, slots=True)
class BufferElement:
    """A place in a buffer: `arg0_1[p0, 223 - p1]`. One subscript for each dimension of its `View`."""

    buffer: str
    subscripts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, `~x`, `not x`."""

    operator: Literal["-", "~", "not"]
    operand: Expression


@dataclass(frozen=True, slots=True)
class Chain:
    """Operations of one precedence, from left to right: `a + b - c` is `(a + b) - c`."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Binary:
    """A comparison, or `a ** b`: operations that do not chain."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """A function of values: one of inductor's, a cast (`i64`), or a definition with parameters."""

    function: str
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Over:
    """What runs over loops: a reduction, a scan or a sort of `values` over `variables`."""

    kind: str
    variables: tuple[str, ...]
    values: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One of several results: `mean` of `welford`, or by number."""

    of: Expression
    part: str


@dataclass(frozen=True, slots=True)
class Text:
    """An argument that is no number: a dtype, a string, an expression kept as it is printed."""

    text: str


Expression: TypeAlias = Number | Name | BufferElement | Unary | Chain | Binary | Call | Over | Part | Text


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
    value: Expression
    parameters: tuple[str, ...] = ()
    under: Expression | None = None
    lines: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Store:
    """`target = value`; `mode` is `atomic_add` for `target += value` from many iterations."""

    target: BufferElement
    value: Expression
    mode: str | None = None
    reduction: bool = False
    under: Expression | None = None
    lines: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class BoundsCheck:
    """`0 <= value` is checked when `lower`, `value < size` when `upper`."""

    value: Expression
    size: Expression
    lower: bool
    upper: bool
    under: Expression | None = None
    lines: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Effect:
    """A value computed for what it does besides (`used`), or one that nothing takes."""

    value: Expression
    used: bool
    under: Expression | None = None
    lines: tuple[int, ...] = field(default=(), compare=False)


Statement: TypeAlias = Definition | Store | BoundsCheck | Effect


@dataclass(frozen=True, slots=True)
class Formula:
    """What a node computes at each point of its loops.

    Attributes:
        node: its name.
        loops: outermost first.
        views: the buffers it reaches, in order of first use.
        statements: in order; a definition stands before its first use.
        notes: what a reader has to know beyond the statements, a sentence each.
    """

    node: str
    loops: tuple[LoopVariable, ...]
    views: tuple[View, ...]
    statements: tuple[Statement, ...]
    notes: tuple[str, ...] = ()
