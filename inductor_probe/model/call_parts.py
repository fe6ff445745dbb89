"""What a call of the user's compiled callable consists of: samples of a process, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from inductor_probe.model.bench import OverheadRow, Side
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import Count, Seconds

Interval: TypeAlias = Literal[
    "compiled", "forward", "dynamo", "between", "fx", "fx-backward", "call", "call-backward", "guards",
    "kernel", "library", "copy", "gpu-kernel", "gpu-copy", "gpu-gap", "gpu-wall",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class TimedInterval:
    """What was between two readings of a clock, in seconds a call of the user's: one number a round.

    Attributes:
        kind: the call (`compiled`) and, where a backward belongs to it, its `forward`; what dynamo compiled,
            and what runs `between` several of those; inductor's graphs (`fx`), and their generated `call`, of
            a backward apart; lines of wrappers that run a `kernel`, a `library` function or a `copy`; what a
            GPU does, its gaps, and calls one after the other until it has done all. `guards` is a call that
            leaves out what dynamo compiled.
        host: of a kernel, the same launches of an empty one; of `guards`, the same call without them.
        launches: in a call.
    """

    kind: Interval
    name: str
    seconds: tuple[Seconds, ...]
    host: tuple[Seconds, ...] = ()
    launches: Count = 1


@dataclass(frozen=True, slots=True)
class CallSamples:
    """What one process timed of a call.

    Attributes:
        device: `cpu` or `cuda`. graphs: functions of dynamo that it runs. allocations: of wrappers in Python.
    """

    device: str
    allocations: Count
    graphs: Count
    parts: tuple[TimedInterval, ...]
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class CallParts:
    """What a call consists of.

    Attributes:
        rows: of the host `guards`, `entry` (dynamo's), `between` (Python between graphs), `autograd`
            (AOTAutograd's runtime), `inductor` (its entry), `wrapper`, `launches`, each `kernel`, each
            `library` function, `copy`, `graph` (a generated `call` that was not looked into), `backend` (what
            another than inductor made), `backward` (autograd's engine, and AOTAutograd's runtime there),
            `remainder`, and what they add up to, `compiled`. Of a GPU each `kernel`, `copy`, `gap` and their
            sum, `call`.
        graphs: functions of dynamo that the call runs.
        wall: on CUDA, seconds from call to call.
        rounds, processes: how many were timed.
        scale: what parts were multiplied with, as they took longer one by one than the call.
    """

    device: str
    rows: tuple[OverheadRow, ...]
    graphs: int
    allocations: int
    wall: float | None
    rounds: int
    processes: int
    scale: float = 1.0
    remarks: tuple[Remark, ...] = ()

    def row(self, kind: str, side: Side = "host") -> OverheadRow | None:
        """Return the first row of a kind."""
        return next((row for row in self.rows if (row.kind, row.side) == (kind, side)), None)
