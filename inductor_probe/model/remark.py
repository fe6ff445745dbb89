"""A conclusion about a compiled graph, typed: what it is about, the numbers, and how it is known.

A remark holds no sentence. `report/words` makes one of its code and numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from inductor_probe.model.span import Span

RemarkCode: TypeAlias = Literal["noncontiguous-access", "short-contiguous-runs", "layout-change"]
"""Stable names; what numbers each has stands where it is made (`analysis/layout_remarks.py`)."""

RemarkKind: TypeAlias = Literal["passed", "missed", "analysis", "hazard"]
"""LLVM's words: an optimisation that was done, one that was not, a fact that helps to judge, a danger."""

Knowledge: TypeAlias = Literal["recorded", "read", "inferred"]
"""Torch recorded it while it compiled; it stands in the dump; it is consistent with what stands there."""

Number: TypeAlias = int | float | str
"""A size may be symbolic, and a name is a value, too."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Something of a run that has a name: what a remark is about, or what a name stands for.

    A `line` is one of the user's (`/home/u/model.py:12`), `fx` a node of an FX graph.
    """

    type: Literal["node", "buffer", "kernel", "fx", "line", "graph", "run"]
    name: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A conclusion.

    Attributes:
        code: which conclusion.
        kind: LLVM's word for it.
        subject: what it is about. `also`: further subjects of which the very same is true.
        numbers: named values, in a fixed order for each code.
        cost: bytes at stake; None when not known or symbolic.
        evidence: lines of the dump that it was concluded from.
        settings: names of inductor's settings that change it, as far as that is known.
        knowledge: how it is known.
    """

    code: RemarkCode
    kind: RemarkKind
    subject: Subject
    numbers: tuple[tuple[str, Number], ...]
    cost: int | None = None
    evidence: tuple[Span, ...] = field(default=(), compare=False)
    settings: tuple[str, ...] = ()
    knowledge: Knowledge = "inferred"
    also: tuple[Subject, ...] = ()

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """All that it is about."""
        return (self.subject, *self.also)

    def number(self, name: str) -> Number | None:
        """Return the value called `name`, None where the remark has none."""
        return dict(self.numbers).get(name)


def by_cost(remark: Remark) -> int:
    """Sort key: most bytes at stake first, unknown costs last."""
    return 1 if remark.cost is None else -remark.cost
