"""What max-autotune considered: choices of a template with their times, and configs that a cache keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from inductor_probe.model.kernel_facts import Pairs
from inductor_probe.model.span import Problem, Span

CHOICES_NAME = "probe_choices.jsonl"
"""File in a graph's folder: a line for each operation that was autotuned, as `probe dump` saw it."""

TuningSource: TypeAlias = Literal["probe", "torch", "log"]
"""`probe dump` wrote it down, torch did (`trace.log_autotuning_results`), or torch printed its best ten."""


@dataclass(frozen=True, slots=True)
class TemplateChoice:
    """One choice: a library call, or a template with a config.

    Attributes:
        ms: as inductor timed it, without an epilogue; None when it failed or took too long.
        kind: `triton`, `extern`, `cpp`, ... in lower case, None where the source does not say.
        config: `("BLOCK_M", "64")`, ..., `("num_warps", "4")`; empty for a library call.
    """

    name: str
    ms: float | None
    kind: str | None = None
    config: Pairs = ()


@dataclass(frozen=True, slots=True)
class Tuning:
    """An operation that was autotuned.

    Attributes:
        operation: `mm`, `addmm`, `bmm`, `packed_linear`, ...
        inputs: a text each: `64x256 float32`.
        choices: from fastest to slowest, failed ones last.
        source: who wrote it down. complete: whether it is every choice that was timed.
        cached: True when the times come from a cache and nothing was timed, None when not known.
        kernel: the kernel or library call of `output_code.py` that it became, None when that is not proved.
        generated: the name of the choice that this is. It can be another than the fastest: with a fused
            epilogue inductor times again.
    """

    operation: str
    inputs: tuple[str, ...]
    choices: tuple[TemplateChoice, ...]
    source: TuningSource
    complete: bool
    cached: bool | None = None
    kernel: str | None = None
    generated: str | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def fastest(self) -> TemplateChoice | None:
        """The choice with the least time."""
        return self.choices[0] if self.choices and self.choices[0].ms is not None else None


@dataclass(frozen=True, slots=True)
class TuningsRead:
    """The tunings that a folder or a table holds, and what could not be read."""

    tunings: tuple[Tuning, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class BestConfig:
    """A `.best_config` of inductor's cache: what a Triton kernel was tuned to before, and will start with.

    Attributes:
        values: block sizes, `num_warps`, `num_stages`.
        by_descent: it was found by coordinate descent, and need not be among the configs that are tried.
        took_ms: the time that tuning took (not that of the kernel).
        kernel: name of the kernel, where Triton's cache beside it still tells.
        triton_hash: the folder of Triton's cache with the compiled kernel.
    """

    path: Path
    values: Pairs
    by_descent: bool
    took_ms: int | None
    kernel: str | None = None
    triton_hash: str | None = None
