"""Torch's own record of which FX nodes a kernel was made from (2.7 and later)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inductor_probe.model.span import Problem, Span

Names = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Provenance:
    """`inductor_provenance_tracking_node_mappings.json`.

    Attributes:
        kernels: kernel or library call -> FX nodes after the passes, the launches of a kernel joined.
        launches: the same by launch (`cpp_fused_add_0:3`; the number is in the comment above the launch).
            Empty where torch does not number them (2.8 and before).
        pre_to_post: FX node before the passes -> FX nodes after them.
    """

    kernels: Names
    launches: Names
    pre_to_post: Names
    span: Span | None = field(default=None, compare=False)
    problems: tuple[Problem, ...] = ()
