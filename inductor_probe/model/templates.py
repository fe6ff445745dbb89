"""What inductor chose among: choices of a template, and configs of a Triton kernel, with their times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from inductor_probe.model.kernel_facts import Pairs
from inductor_probe.model.output import Output
from inductor_probe.model.span import Problem, Span

CHOICES_NAME = "probe_choices.jsonl"
"""File in a graph's folder: a line for each operation that was autotuned, as `probe dump` saw it."""

TuningSource: TypeAlias = Literal["probe", "torch", "log", "cache"]
"""`probe dump` wrote it down, torch did (`trace.log_autotuning_results`), torch printed it (of templates the
best ten), or it is a `.best_config` of inductor's cache, which has no time."""


@dataclass(frozen=True, slots=True)
class TemplateChoice:
    """One choice: a library call, a template with a config, or a config of a Triton kernel.

    Attributes:
        ms: as inductor timed it, without an epilogue; None when it failed or took too long, or in a cache.
        kind: `triton`, `extern`, `cpp`, ... in lower case, or `coordinate descent`; None where the source
            does not say.
        config: `("BLOCK_M", "64")`, ..., `("num_warps", "4")`; empty for a library call.
        registers, spills: of a thread; None where not known.
    """

    name: str
    ms: float | None
    kind: str | None = None
    config: Pairs = ()
    registers: int | None = None
    spills: int | None = None


@dataclass(frozen=True, slots=True)
class Tuning:
    """An operation or a Triton kernel that was autotuned.

    Attributes:
        operation: `mm`, `addmm`, `bmm`, `packed_linear`, ...; of a Triton kernel its name.
        inputs: a text each: `64x256 float32`; none of a Triton kernel.
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
    def of_kernel(self) -> bool:
        """Whether its choices are configs of one kernel."""
        return not self.inputs and self.operation.startswith("triton_")

    @property
    def fastest(self) -> TemplateChoice | None:
        """The choice with the least time."""
        return self.choices[0] if self.choices and self.choices[0].ms is not None else None


@dataclass(frozen=True, slots=True)
class TuningsRead:
    """The tunings that a folder or a table holds, and what could not be read."""

    tunings: tuple[Tuning, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TuningsOutput(Output):
    """What was autotuned, in the order in which it was found."""

    verb: Literal["tunings"] = "tunings"
    rows: tuple[Tuning, ...]
