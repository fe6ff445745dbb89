"""Where the time of compiled code goes: kernels, launches, the wrapper, guards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inductor_probe.model.remark import Remark

Side = Literal["host", "device"]


@dataclass(frozen=True, slots=True)
class TimedPart:
    """One thing that was timed in every round of one process; all times are seconds a call.

    Attributes:
        kind: a launch of a generated `kernel`, a `library` call, the whole `call`, or `compiled`: `call`
            behind dynamo's guards; or those `guards` alone.
        seconds: wall time on a CPU, on CUDA the time that the GPU was busy; one number a round.
        host: the launch: on a CPU the same call of an empty kernel, on CUDA the time to enqueue. Empty where
            not known. For `guards`, `seconds` is with them and `host` without.
        wall: on CUDA, of calls one after the other until the last has ended.
    """

    kind: str
    name: str
    seconds: tuple[float, ...]
    host: tuple[float, ...]
    wall: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FlopCount:
    """Floating-point operations of one call of an operator (`aten.mm`), as torch counts them."""

    operator: str
    flops: int


@dataclass(frozen=True, slots=True)
class OverheadSamples:
    """What one process timed for the table.

    Attributes:
        device: `cpu` or `cuda`.
        allocations: that the wrapper makes in a call.
        parts: in the order they run.
        flops: of each operator of the graph that registers a count, in its order; None where nothing was
            counted.
        repeated, disturbed: blocks taken once more since something else ran meanwhile, and those where that
            did not help.
        remarks: what could not be had.
    """

    device: str
    allocations: int
    parts: tuple[TimedPart, ...]
    flops: tuple[FlopCount, ...] | None
    repeated: int
    disturbed: int
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class OverheadRow:
    """A part of the time of a call, in seconds; on each side they add up to its `total`.

    Attributes:
        kind: `kernel` or `library` (one each, all of its launches), `launches`, `wrapper`, `guards`, `rest`
            (what else the GPU does), `total`.
        side: whose time: the host's, or the GPU's. On a CPU all is the host's.
        median, mad: of one number a round; differences are taken within a round.
        share: of the side's total.
        told: whether it is not zero for sure: else it may be nothing.
        launches: how many it stands for.
    """

    kind: str
    name: str
    side: Side
    median: float
    mad: float
    share: float
    told: bool
    launches: int = 0


@dataclass(frozen=True, slots=True)
class Overheads:
    """The overhead table of a graph.

    Attributes:
        whole: what the host's `total` is of: `compiled`, or `call` where guards could not be timed.
        guards_alone: seconds of the guards called over and over without the wrapper: less than beside it,
            where caches and branch predictors hold other things. The row `guards` has it where the difference
            of `compiled` and `call` is too small to tell. None where they could not be timed.
        wall: on CUDA, seconds from call to call; None on a CPU, where it is the total.
        bound: on CUDA, which side is slower: that is what the wall time is.
        rounds: how many all rows rest on.
    """

    device: str
    whole: str
    rows: tuple[OverheadRow, ...]
    allocations: int
    rounds: int
    guards_alone: float | None
    wall: float | None
    bound: Side | None
    repeated: int
    disturbed: int
    remarks: tuple[Remark, ...]

    def row(self, kind: str, side: Side = "host") -> OverheadRow | None:
        """Return the first row of a kind."""
        return next((row for row in self.rows if (row.kind, row.side) == (kind, side)), None)
