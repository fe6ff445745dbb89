"""Whether what the wrapper passes to its Triton kernels is what they were made for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from inductor_probe.model.span import Span

Aspect: TypeAlias = Literal["count", "type", "order", "numel", "grid", "divisibility", "index width"]
"""What was compared."""


@dataclass(frozen=True, slots=True)
class LaunchFinding:
    """A launch that does not fit its kernel. `message` is a sentence, `span` the lines of the launch."""

    kernel: str
    aspect: Aspect
    message: str
    span: Span = field(compare=False)

    def __str__(self) -> str:
        return f"{self.span}: {self.kernel}: {self.message}"


@dataclass(frozen=True, slots=True)
class LaunchCheck:
    """What checking the launches of one graph found.

    Attributes:
        graph: its name.
        launches: launches of Triton kernels that were checked.
        compared: how many comparisons were made of each aspect; 0 where nothing could be compared.
        findings: in the order of the wrapper; empty when all fits.
    """

    graph: str
    launches: int
    compared: tuple[tuple[Aspect, int], ...]
    findings: tuple[LaunchFinding, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether nothing was found."""
        return not self.findings
