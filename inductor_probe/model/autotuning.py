"""What inductor chose among, and what it could choose: choices of templates, configs of kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.code import Pairs
from inductor_probe.model.output import Output
from inductor_probe.model.record import Compared
from inductor_probe.model.remark import Remark
from inductor_probe.model.span import Problem, Span

CHOICES_NAME = "probe_choices.jsonl"
"""File in a graph's folder: a line for each operation that was autotuned, as `probe dump` saw it."""

TuningSource: TypeAlias = Literal["probe", "torch", "log", "cache"]
"""`probe dump` wrote it down, torch did (`trace.log_autotuning_results`), torch printed it (of templates the
best ten), or it is a `.best_config` of inductor's cache, which has no time."""


class TemplateChoice(Struct, frozen=True):
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


class Tuning(Compared, frozen=True):
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
        graph: the graph that it is of; None of one that a table was read from without that.
    """

    operation: str
    inputs: tuple[str, ...]
    choices: tuple[TemplateChoice, ...]
    source: TuningSource
    complete: bool
    cached: bool | None = None
    kernel: str | None = None
    generated: str | None = None
    graph: str | None = None
    span: Span | None = None

    @property
    def of_kernel(self) -> bool:
        """Whether its choices are configs of one kernel."""
        return not self.inputs and self.operation.startswith("triton_")

    @property
    def fastest(self) -> TemplateChoice | None:
        """The choice with the least time."""
        return self.choices[0] if self.choices and self.choices[0].ms is not None else None


class TuningsRead(Struct, frozen=True):
    """The tunings that a folder or a table holds, and what could not be read.

    `path` is the file in the folder of a graph, of so many `lines` that are not empty; None if there is none.
    """

    tunings: tuple[Tuning, ...]
    problems: tuple[Problem, ...] = ()
    path: Path | None = None
    lines: int = 0


class TuningsOutput(Output, frozen=True, kw_only=True):
    """What was autotuned, in the order in which it was found."""

    verb: Literal["tunings"] = "tunings"
    rows: tuple[Tuning, ...]


class ConfigTime(Struct, frozen=True):
    """A config, and what running the kernel with it says; the harness writes it.

    Attributes:
        values: block sizes, `num_warps`, `num_stages`.
        origin: `inductor` (tried by it), `scaled` (tried because others need many registers), `coordinate
            descent` (found by it), or `asked`.
        chosen: the one that inductor runs.
        registers, spills: of a thread; spills are words of 4 bytes in local memory. shared: bytes a block.
        correct: whether it computes what the chosen one does; None when it did not run.
        samples: seconds a call, one a block; empty when it was not timed.
        remark: why it has no time, or what inductor makes of it.
        median, mad: of the samples, seconds a call; mad is the median absolute deviation.
    """

    values: tuple[tuple[str, int], ...]
    origin: str
    chosen: bool = False
    registers: int | None = None
    spills: int | None = None
    shared: int | None = None
    correct: bool | None = None
    samples: tuple[float, ...] = ()
    remark: Remark | None = None
    median: float | None = None
    mad: float | None = None


class ConfigSweep(Struct, frozen=True):
    """Every config of one Triton kernel, fastest first. `remarks`: what could not be done."""

    kernel: str
    configs: tuple[ConfigTime, ...]
    remarks: tuple[Remark, ...] = ()


class SweepConfigsOutput(Output, frozen=True, kw_only=True):
    """Every config of each Triton kernel, timed; times are in seconds a call."""

    verb: Literal["sweep-configs"] = "sweep-configs"
    rows: tuple[ConfigSweep, ...]
