"""What a loop body does besides computing: stores, checks, calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from inductor_probe.analysis.formula.values import Values
from inductor_probe.model.ir import Value as Argument


@dataclass(frozen=True, slots=True)
class Effect:
    """What a body does, besides computing.

    Attributes:
        kind: `store`; `check` (of bounds); `call` (for the sake of the call); `unused`, a value nobody takes.
        args: a store's value and subscripts; a check's value and size; else the value.
        detail: a store's buffer, mode and operation; whether a check looks at the lower and the upper bound.
        lines: of the body, those of the values apart.
        under: the mask under which alone it happens.
    """

    kind: Literal["store", "check", "call", "unused"]
    args: tuple[int, ...]
    detail: tuple[Argument, ...] = ()
    lines: frozenset[int] = frozenset()
    under: int | None = None

    @property
    def needs(self) -> tuple[int, ...]:
        """The values it takes."""
        return self.args if self.under is None else (*self.args, self.under)


@dataclass(slots=True)
class BodyValues:
    """A loop body as values and effects, in the order of its lines."""

    values: Values
    effects: list[Effect] = field(default_factory=list)


def unused(values: Values, effects: list[Effect]) -> list[Effect]:
    """Return the values of a body that nothing takes, the outermost of each, in order.

    One of several results that is not taken is none: the part that is taken tells.
    """
    table, lines = values.table, values.lines
    reached = [False] * len(table)
    for effect in effects:
        for at in effect.needs:
            reached[at] = True
    downwards = range(len(table) - 1, -1, -1)
    for at in downwards:
        for arg in table[at].args if reached[at] else ():
            reached[arg] = True
    found = []
    for at in downwards:
        if not reached[at]:
            value = table[at]
            if value.kind == "item" and reached[value.args[0]]:
                lines[value.args[0]] |= lines[at]
                continue
            if not lines[at]:
                continue
            found.append(Effect("unused", (at,)))
        for arg in table[at].args:
            reached[arg] = True
    return found[::-1]
