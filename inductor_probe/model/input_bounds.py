"""Which values the inputs of a graph may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from inductor_probe.model.ir import Dim

Form: TypeAlias = Literal["any", "sorted", "offsets", "parts", "true", "positive definite"]
"""What values have to be together: along the last dimension sorted, sorted from zero (`offsets`), or `parts`
that sum to the bound `high`; no more than `high` of them `true`; or as a matrix."""


@dataclass(frozen=True, slots=True)
class InputBound:
    """Values with which an input makes sense.

    Attributes:
        name: the placeholder (`arg0_1`).
        low, high: the least and the greatest, both allowed: a number, an expression in the graph's size
            symbols (`s77 - 1`), or None where there is no end.
        operator: the one that asks for it (`aten.embedding`).
        form: what its values have to be together.
        lost: the value went where no rule follows it, and may be an index there: small numbers are safest.
    """

    name: str
    low: Dim | None = None
    high: Dim | None = None
    operator: str = ""
    form: Form = "any"
    lost: bool = False
