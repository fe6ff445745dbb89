"""What was timed, as samples: quads of blocks, in several processes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from inductor_probe.model.bench import Resources, Variant
from inductor_probe.model.overheads import OverheadSamples
from inductor_probe.model.remark import Remark
from inductor_probe.model.roofline import KernelWork, Roofline

Order: TypeAlias = Literal["ABBA", "BAAB"]
Side: TypeAlias = Literal["A", "B"]


@dataclass(frozen=True, slots=True)
class Quad:
    """Four blocks of calls, two of a baseline A and two of a candidate B.

    Attributes:
        order: which block was whose.
        seconds: of a call, for each block, of its fastest lap.
        guard: B was A once more, so that their ratio should be 1.
        disturbed: what else ran on the cores, or which clock the GPU had; None if nothing did.
    """

    order: Order
    seconds: tuple[float, float, float, float]
    guard: bool
    disturbed: Remark | None

    @property
    def score(self) -> float:
        """Log-ratio, B over A, of the fastest each side was: what else ran only made blocks longer."""
        return math.log(min(self.samples("B")) / min(self.samples("A")))

    def samples(self, side: Side) -> tuple[float, ...]:
        """Return the seconds a call of A's blocks or of B's, as taken."""
        return tuple(time for name, time in zip(self.order, self.seconds, strict=True) if name == side)


@dataclass(frozen=True, slots=True)
class Series:
    """The quads of one comparison in one process, and the seconds spent on them.

    Without a candidate the baseline was timed alone, against itself.
    """

    baseline: str
    candidate: str | None
    quads: tuple[Quad, ...]
    spent: float


@dataclass(frozen=True, slots=True)
class Process:
    """One run of a bench file.

    Attributes:
        graph, kernels: what the file holds, pristine names.
        inputs: size, dtype and memory format of the largest input.
        values: which values they have: `random`.
        data: `warm`, or `cold` where each call took inputs that had left the caches.
        first: which side was loaded and set up first, `baseline` or `candidate`. With a single compile thread
            inductor loads C++ in the order of the file, whatever this says.
        seed: of inputs, of their places in memory, and of the order in quads.
        command: its command line.
        environment: machine, versions, cores, load.
        warnings: what spoils its times.
        overheads: samples of where the time of the compiled function goes.
        ablations: what copies leave out that are wrong on purpose: `("cpp_fused_add_0_v3", "no_loads")`.
        resources: of Triton kernels, by name.
    """

    graph: str
    kernels: tuple[str, ...]
    inputs: str
    values: str
    data: str
    threads: int
    first: str
    seed: int
    command: tuple[str, ...]
    environment: Mapping[str, str | float | None]
    warnings: tuple[Remark, ...]
    variants: tuple[Variant, ...]
    series: tuple[Series, ...]
    ablations: tuple[tuple[str, str], ...] = ()
    overheads: OverheadSamples | None = None
    resources: tuple[tuple[str, Resources], ...] = ()


@dataclass(frozen=True, slots=True)
class Samples:
    """What `output_code_bench.json` holds: all that a report is made from.

    Attributes:
        processes: at least one, of the same file.
        margin: a ratio from 1 / (1 + margin) to 1 + margin is the same time.
        roofline: of the machine, measured in the same run; None where it was not.
        works: what each kernel has to do in a call.
    """

    processes: tuple[Process, ...]
    margin: float
    roofline: Roofline | None = None
    works: tuple[KernelWork, ...] = ()
