"""A bench file, and what running it found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["FASTER", "SLOWER", "SAME", "UNDECIDED", "INVALID"]


@dataclass(frozen=True, slots=True)
class BenchFile:
    """`output_code_bench.py` as it stands on disk.

    Attributes:
        kernels: kernels it holds, pristine names.
        state: `written`, `rewritten` (it was not edited), or `kept` (it was).
        edited: names defined in it that differ from what would be generated (`cpp_fused_flip_0_v2`).
    """

    path: Path
    graph: str
    kernels: tuple[str, ...]
    state: Literal["written", "rewritten", "kept"]
    edited: tuple[str, ...] = ()

    @property
    def pristine_edits(self) -> tuple[str, ...]:
        """Edited names that are no copies (`_v2`): what the copies are compared to is not as dumped then."""
        return tuple(name for name in self.edited if not re.search(r"_v\d+$", name))


@dataclass(frozen=True, slots=True)
class Variant:
    """A version of the code, checked against the reference: see the bench file for the rule.

    `first_bad` is the index of the first wrong element of output `first_bad_output`.
    """

    name: str
    correct: bool
    max_error: float | None
    mismatches: int
    elements: int
    first_bad: tuple[int, ...] | None = None
    first_bad_output: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """Samples of one timed thing, in seconds a call, as taken. `median` and `mad` are in seconds."""

    name: str
    samples: tuple[float, ...]
    median: float
    mad: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """How long `candidate` takes relative to `baseline`: ratio of times with its 95 % interval."""

    baseline: str
    candidate: str
    ratio: float
    low: float
    high: float
    verdict: Verdict
    quads: int
    excluded: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Everything one run of a bench file printed."""

    graph: str
    kernels: tuple[str, ...]
    variants: tuple[Variant, ...]
    measurements: tuple[Measurement, ...]
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...]
    table: str
