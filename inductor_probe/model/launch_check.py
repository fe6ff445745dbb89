"""Whether what the wrapper passes to its Triton kernels is what they were made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from inductor_probe.model.remark import Number, Remark, RemarkCode

Aspect: TypeAlias = Literal["count", "type", "order", "numel", "grid", "divisibility", "index width"]
"""What was compared."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What does not fit of one argument or grid: the code of its remark, and the numbers."""

    code: RemarkCode
    numbers: tuple[tuple[str, Number], ...]


@dataclass(frozen=True, slots=True)
class LaunchCheck:
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
