"""What a call consists of: a graph's, or that of the user's compiled callable."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.codec import written
from inductor_probe.model.remark import Remark

Side: TypeAlias = Literal["host", "device"]


class CallPart(Struct, frozen=True):
    """A part of a call, in seconds.

    Of a graph's call on a CPU `call` is kernels, library calls and wrapper, and `launches` are a part of the
    kernels' times; on CUDA the GPU's `call` is kernels, library calls and `rest`, and the host's is launches
    and wrapper.

    Attributes:
        kind: of a graph `kernel` or `library` (one each, all of its launches), `launches`, `wrapper`, `rest`
            (what else the GPU does), `call`. Of the user's callable on the host `guards`, `entry` (dynamo's),
            `between` (Python between graphs), `autograd` (AOTAutograd's runtime), `inductor` (its entry),
            `wrapper`, `launches`, a `kernel`, a function of a `library`, `copy`, `graph` (a generated `call`
            that was not looked into), `backend` (what another than inductor made), `backward` (autograd's
            engine, and AOTAutograd's runtime there), `remainder`, and what they add up to, `compiled`. Of a
            GPU a `kernel`, `copy`, `gap` and their sum, `call`.
        side: whose time: the host's, or that of the GPU (`device`). share: of all of that side.
        seconds: one estimate for all rows and tables: see `bench.overheads.Rounds`.
        mad: of the rounds that it rests on. uncertainty: by how much `seconds` may be off.
        launches: how many it stands for, of kernels and library calls.
    """

    kind: str
    name: str
    side: Side
    seconds: float
    mad: float
    uncertainty: float
    share: float = 0.0
    launches: int = 0

    @property
    @written
    def nonzero(self) -> bool:
        """Whether it is not zero for sure. Else it may be nothing."""
        return self.seconds > self.uncertainty

    @property
    def below(self) -> float | None:
        """Seconds that it does not reach, where it is too short to measure; None where that is not known."""
        return max(self.seconds, 0.0) + self.uncertainty if self.seconds > -self.uncertainty else None


class _Parts(Struct, frozen=True, kw_only=True):
    device: str
    rows: tuple[CallPart, ...]
    allocations: int
    wall: float | None = None
    rounds: int
    processes: int = 1
    scale: float = 1.0
    remarks: tuple[Remark, ...] = ()

    def row(self, kind: str, side: Side = "host") -> CallPart | None:
        """Return the first row of a kind."""
        return next((row for row in self.rows if (row.kind, row.side) == (kind, side)), None)


class CallParts(_Parts, frozen=True, kw_only=True):
    """What a call of the user's compiled callable consists of.

    Attributes:
        rows: the GPU's, then the host's in the order of a call; those of a side add up to its last.
        graphs: functions of dynamo that the call runs.
        wall: on CUDA, seconds from call to call.
        rounds, processes: how many were timed.
        scale: what parts were multiplied with, as they took longer one by one than the call.
    """

    graphs: int


class Overheads(_Parts, frozen=True, kw_only=True):
    """The overhead table of a graph.

    Attributes:
        wall: on CUDA, seconds from call to call; None on a CPU, where it is the host's time.
        bound: on CUDA, which side is slower: that is what the wall time is.
        rounds: how many were timed. repeated, disturbed: laps taken once more since they had lost a core, and
            blocks of which none kept it.
        processes: how many they were timed in.
        scale: what the times of kernels alone were multiplied with, so that they do not exceed the call.
    """

    bound: Side | None = None
    repeated: int = 0
    disturbed: int = 0
