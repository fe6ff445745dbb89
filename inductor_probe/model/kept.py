"""What `output_code_bench.json` holds: the samples of a run, and what its kernels were held against."""

from __future__ import annotations

from dataclasses import dataclass

from inductor_probe.model.ceilings import Ceilings, KernelWork
from inductor_probe.model.timing import Process


@dataclass(frozen=True, slots=True)
class Kept:
    """All that a report is made from.

    Attributes:
        processes: at least one, of the same file.
        margin: a ratio from 1 / (1 + margin) to 1 + margin is the same time.
        ceilings: of the machine, measured in the same run; None where they were not.
        works: what each kernel has to do in a call.
    """

    processes: tuple[Process, ...]
    margin: float
    ceilings: Ceilings | None = None
    works: tuple[KernelWork, ...] = ()
