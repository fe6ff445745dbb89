"""Configs of a Triton kernel that were timed against each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inductor_probe.model.output import Output
from inductor_probe.model.remark import Remark


@dataclass(frozen=True, slots=True)
class ConfigTime:
    """A config, and what running the kernel with it says; the harness writes it.

    Attributes:
        values: block sizes, `num_warps`, `num_stages`.
        origin: `inductor` (tried by it), `scaled` (tried because others need many registers), `coordinate
            descent` (found by it), or `asked`.
        chosen: the one that inductor runs.
        registers, spills: of a thread; spills are words of 4 bytes in local memory. shared: bytes a block.
        correct: whether it computes what the chosen one does; None when it did not run.
        samples: seconds a call, one a block; empty when it was not timed.
        note: why it has no time, or what inductor makes of it.
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
    note: str | None = None
    median: float | None = None
    mad: float | None = None


@dataclass(frozen=True, slots=True)
class ConfigSweep:
    """Every config of one Triton kernel, fastest first. `remarks`: what could not be done."""

    kernel: str
    configs: tuple[ConfigTime, ...]
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SweepConfigsOutput(Output):
    """Every config of each Triton kernel, timed; times are in seconds a call."""

    verb: Literal["sweep-configs"] = "sweep-configs"
    rows: tuple[ConfigSweep, ...]
