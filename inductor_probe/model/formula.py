"""A loop body as mathematics: expressions as trees and as text, and the statements of a body.

What is used more than once is a `Definition` with a name, so an expression stays small and shallow. Nothing
of a body is left out: each statement names the lines of the body that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.codec import AS_TEXT
from inductor_probe.model.ir import Dim
from inductor_probe.model.record import Compared


class _Term:
    """What an expression is made of."""

    __slots__ = ()

    def __str__(self) -> str:
        return _piece(self, _ANYTHING).flat  # type: ignore[arg-type] # its subclasses are the expressions


class Number(_Term, Struct, frozen=True):
    """A constant. `text` reads back as the same number (`0.1`, `inf`, `True`); `dtype` may be None."""

    text: str
    dtype: str | None = None


class Name(_Term, Struct, frozen=True):
    """A loop variable, a symbolic size, a definition, or a parameter of one."""

    name: str


class BufferElement(_Term, Struct, frozen=True):
    """A place in a buffer: `arg0_1[p0, 223 - p1]`. One subscript for each dimension of its `View`."""

    buffer: str
    subscripts: tuple[Expression, ...]


class Unary(_Term, Struct, frozen=True):
    """`-x`, `~x`, `not x`."""

    operator: Literal["-", "~", "not"]
    operand: Expression


class Chain(_Term, Struct, frozen=True):
    """Operations of one precedence, from left to right: `a + b - c` is `(a + b) - c`."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]


class Binary(_Term, Struct, frozen=True):
    """A comparison, or `a ** b`: operations that do not chain."""

    operator: str
    left: Expression
    right: Expression


class Call(_Term, Struct, frozen=True):
    """A function of values: one of inductor's, a cast (`i64`), or a definition with parameters."""

    function: str
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...] = ()


class Over(_Term, Struct, frozen=True):
    """What runs over loops: a reduction, a scan or a sort of `values` over `variables`."""

    kind: str
    variables: tuple[str, ...]
    values: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...] = ()


class Part(_Term, Struct, frozen=True):
    """One of several results: `mean` of `welford`, or by number."""

    of: Expression
    part: str


class Text(_Term, Struct, frozen=True):
    """An argument that is no number: a dtype, a string, an expression kept as it is printed."""

    text: str


Expression: TypeAlias = Number | Name | BufferElement | Unary | Chain | Binary | Call | Over | Part | Text


_ANYTHING = 0  # `sum over p1 of x` reaches as far right as it can
_ARGUMENT = 1
_LEVELS = {
    "or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "**": 12,
}  # fmt: skip
_SIGN = 11
_ATOM = 13


class Piece(Struct, frozen=True):
    """Text on one line if there is room, as in Oppen's pretty printer ("Prettyprinting", TOPLAS 1980).

    With a width of 16, `filled(["max(", "arg0_1[p0], ", "arg1_1[p0])"], hang=4)` becomes

        max(arg0_1[p0],
            arg1_1[p0])

    Attributes:
        flat: all of it on one line. parts: what it can be broken into; none for a word.
        hang: how far behind its first column it goes on when broken before a part; None if it may not be.
    """

    flat: str
    parts: tuple[Piece, ...] = ()
    hang: int | None = None


def piece(expression: Expression) -> Piece:
    """Return an expression as text that can be broken into lines."""
    return _piece(expression, _ANYTHING)


def glued(*parts: str | Piece) -> Piece:
    """Join parts between which no line ends."""
    pieces = tuple(Piece(part) if isinstance(part, str) else part for part in parts)
    return Piece("".join(part.flat for part in pieces), pieces)


def filled(parts: Sequence[str | Piece], hang: int = 0) -> Piece:
    """Join parts between which a line may end. A space that begins a part is dropped at a line's begin."""
    return replace(glued(*parts), hang=hang)


def broken(text: Piece, width: int) -> list[str]:
    """Return the lines of `text`, at most `width` columns long where that can be."""
    lines = [""]
    _append(text, width, 0, lines)
    return lines


def _append(text: Piece, width: int, tail: int, lines: list[str]) -> None:
    """Append `text` to the last line and new ones; `tail` columns behind it must fit on the last one, too."""
    if not text.parts or len(lines[-1]) + len(text.flat) + tail <= width:
        lines[-1] += text.flat if lines[-1].strip() else text.flat.lstrip()
        return
    start = min(len(lines[-1]) + (text.hang or 0), width // 2)
    first_line = len(lines)
    for number, part in enumerate(text.parts):
        following = text.parts[number + 1 :]
        if text.hang is None:  # a bracket or comma that follows stays on the line
            part_tail = sum(len(part.flat) for part in following) + tail if len(following) < 2 else 0
            _append(part, width, part_tail, lines)
            continue
        part_tail = 0 if following else tail
        room = width - len(lines[-1]) - part_tail
        is_full = len(part.flat) > room or len(lines) > first_line  # nothing goes beside a broken part
        if number and is_full and len(lines[-1]) > start:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * start)
            part = _without_space(part)  # noqa: PLW2901 - it begins a line now
        first_line = len(lines)
        _append(part, width, part_tail, lines)


def _without_space(text: Piece) -> Piece:
    if not text.flat.startswith(" "):
        return text
    parts = (_without_space(text.parts[0]), *text.parts[1:]) if text.parts else ()
    return Piece(text.flat.lstrip(), parts, text.hang)


def _piece(expression: Expression, least: int, tight: bool = False) -> Piece:
    """Return the text of `expression`, in parentheses if it binds less than `least`.

    `tight` leaves out the spaces around `*` and the like, as inductor writes an index.
    """
    level, text = _written(expression, tight)
    return glued("(", text, ")") if level < least else text


def _written(expression: Expression, tight: bool) -> tuple[int, Piece]:
    """Return how tightly an expression binds, and its text."""
    match expression:
        case Number(text=text):
            return (_SIGN if text.startswith("-") else _ATOM), glued(text)
        case Name(name=name):
            return _ATOM, glued(name)
        case Text(text=text):
            return (_ATOM if text.replace(".", "_").isidentifier() else _ANYTHING), glued(text)
        case BufferElement(buffer=buffer, subscripts=()):
            return _ATOM, glued(buffer)
        case BufferElement(buffer=buffer, subscripts=subscripts):
            places = [_piece(place, _ARGUMENT, tight=True) for place in subscripts]
            return _ATOM, _listed(buffer, places, "[]")
        case Call(function=function, arguments=arguments, keywords=keywords):
            positional = [_piece(argument, _ARGUMENT, tight) for argument in arguments]
            return _ATOM, _listed(function, [*positional, *_named(keywords)], "()")
        case Part(of=Over() as over, part=part):
            return _ANYTHING, _over(over, _suffix(part))
        case Part(of=of, part=part):
            return _ATOM, glued(_piece(of, _ATOM), _suffix(part))
        case Over():
            return _ANYTHING, _over(expression, "")
    return _operated(expression, tight)


def _operated(expression: Unary | Binary | Chain, tight: bool) -> tuple[int, Piece]:
    match expression:
        case Unary(operator="not", operand=operand):
            return _LEVELS["not"], glued("not ", _piece(operand, _LEVELS["not"]))
        case Unary(operator=operator, operand=operand):
            return _SIGN, glued(operator, _piece(operand, _SIGN, tight))
        case Binary(operator="**", left=left, right=right):
            return _LEVELS["**"], filled([_piece(left, _ATOM), glued(" ** ", _piece(right, _SIGN))])
        case Binary(operator=operator, left=left, right=right):
            level = _LEVELS[operator]
            return level, filled([_piece(left, level + 1), glued(f" {operator} ", _piece(right, level + 1))])
        case Chain(first=first, rest=rest):
            level = _LEVELS[rest[0][0]]
            space = "" if tight and level == _LEVELS["*"] else " "
            terms = [glued(f"{space}{sign}{space}", _piece(term, level + 1, tight)) for sign, term in rest]
            head = _piece(first, level, tight)
            if isinstance(first, Chain | Binary):  # it has no parentheses, and may be broken at an operator
                head = replace(head, hang=2)
            return level, filled([head, *terms])


def _suffix(part: str) -> str:
    return f"[{part}]" if part.isdecimal() else f".{part}"


def _over(over: Over, part: str) -> Piece:
    options = _listed("", _named(over.keywords), "()").flat if over.keywords else ""
    loops = f" over {', '.join(over.variables)}" if over.variables else ""
    values = _listed("", over.values, "()") if len(over.values) != 1 else _piece(over.values[0], _ANYTHING)
    return filled([f"{over.kind}{options}{part}{loops} of", glued(" ", values)], 2)


def _named(keywords: Iterable[tuple[str, Expression]]) -> list[Piece]:
    return [glued(f"{key}=", _piece(value, _ARGUMENT)) for key, value in keywords]


def _listed(head: str, arguments: Sequence[Expression | Piece], brackets: str) -> Piece:
    items = [arg if isinstance(arg, Piece) else _piece(arg, _ARGUMENT) for arg in arguments]
    ends = [","] * (len(items) - 1) + [brackets[1]]
    parts = [glued(" " if number else "", item, ends[number]) for number, item in enumerate(items)]
    return filled([head + brackets[0], *parts] if parts else [head + brackets], len(head) + 1)


class LoopVariable(Struct, frozen=True):
    """A loop variable, outermost first. `reduced` when results do not have it as a dimension."""

    variable: str
    size: Dim
    reduced: bool


class View(Struct, frozen=True):
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


class Definition(Compared, frozen=True):
    """`name = value`, or `name(parameters) = value`. `under` is the mask under which alone it is computed."""

    name: str
    value: Annotated[Expression, AS_TEXT]
    parameters: tuple[str, ...] = ()
    under: Annotated[Expression | None, AS_TEXT] = None
    lines: tuple[int, ...] = ()


class Store(Compared, frozen=True):
    """`target = value`; `mode` is `atomic_add` for `target += value` from many iterations."""

    target: Annotated[BufferElement, AS_TEXT]
    value: Annotated[Expression, AS_TEXT]
    mode: str | None = None
    reduction: bool = False
    under: Annotated[Expression | None, AS_TEXT] = None
    lines: tuple[int, ...] = ()


class BoundsCheck(Compared, frozen=True):
    """`0 <= value` is checked when `lower`, `value < size` when `upper`."""

    value: Annotated[Expression, AS_TEXT]
    size: Annotated[Expression, AS_TEXT]
    lower: bool
    upper: bool
    under: Annotated[Expression | None, AS_TEXT] = None
    lines: tuple[int, ...] = ()


class Effect(Compared, frozen=True):
    """A value computed for what it does besides (`used`), or one that nothing takes."""

    value: Annotated[Expression, AS_TEXT]
    used: bool
    under: Annotated[Expression | None, AS_TEXT] = None
    lines: tuple[int, ...] = ()


Statement: TypeAlias = Definition | Store | BoundsCheck | Effect


Convention: TypeAlias = Literal[
    "indirect-index", "index-wrapped", "index-as-loaded", "index-checked", "index-not-checked", "masked",
    "mod", "scan", "atomic-add", "cast-left-out", "places-along-loops", "shift-as-eager", "shift-open",
    "zero-division-raises", "zero-division-is-zero", "division-open", "overflow-open", "constant-block-mask",
]  # fmt: skip
"""What a reader of a formula has to know beyond its statements.

Those of indices, shifts, divisions, overflow and block masks are read in the text of the kernel that computes
the node; `indirect-index` says that of an index it could not be.
"""


class DecidedComparison(Struct, frozen=True):
    """A comparison of indices that comes out the same in every iteration: `p1 - p0 <= 100` of 64 x 64.

    Inferred from the recorded sizes of the loops. `outcome` is what it is: True, or False.
    """

    comparison: Annotated[Expression, AS_TEXT]
    outcome: bool


class Formula(Struct, frozen=True):
    """What a node computes at each point of its loops.

    Attributes:
        node: its name. loops: outermost first.
        views: the buffers it reaches, in order of first use.
        statements: in order; a definition stands before its first use.
        conventions: what a reader has to know of how they are written.
        decided: comparisons in it, masks for example, that come out the same in every iteration.
    """

    node: str
    loops: tuple[LoopVariable, ...]
    views: tuple[View, ...]
    statements: tuple[Statement, ...]
    conventions: tuple[Convention, ...] = ()
    decided: tuple[DecidedComparison, ...] = ()
