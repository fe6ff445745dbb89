"""Symbolic sizes: where they come from, and what they were."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbolic size of a graph.

    Attributes:
        name: torch's (`s77`).
        source: the input that has it: `arg2_1.size(0)`, or the input that is the number itself, `arg0_1`;
            None where no input tells (`u0`, which is known when the graph runs).
        value: when the graph was compiled; None where the dump does not record it.
    """

    name: str
    source: str | None
    value: int | None
