"""What a call of the user's compiled callable consists of."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.remark import Remark

Side: TypeAlias = Literal["host", "device"]


class CallPart(Struct, frozen=True):
    """A part of a call, in seconds.

    Attributes:
        kind: of the host `guards`, `entry` (dynamo's), `between` (Python between graphs), `autograd`
            (AOTAutograd's runtime), `inductor` (its entry), `wrapper`, `launches`, a `kernel`, a function of
            a `library`, `copy`, `graph` (a generated `call` that was not looked into), `backend` (what
            another than inductor made), `backward` (autograd's engine, and AOTAutograd's runtime there),
            `remainder`, and what they add up to, `compiled`. Of a GPU a `kernel`, `copy`, `gap` and their
            sum, `call`.
        side: whose time: the host's, or that of the GPU (`device`). share: of all of that side.
        mad: of the rounds that it rests on. uncertainty: by how much `seconds` may be off.
        launches: how many it stands for, of kernels and library calls.
    """

    kind: str
    name: str
    side: Side
    seconds: float
    mad: float
    uncertainty: float
    share: float
    launches: int = 0

    @property
    def nonzero(self) -> bool:
        """Whether it is not zero for sure. Else it may be nothing."""
        return self.seconds > self.uncertainty

    @property
    def below(self) -> float:
        """Seconds that it does not reach."""
        return self.seconds + self.uncertainty


class CallParts(Struct, frozen=True):
    """What a call consists of.

    Attributes:
        rows: the GPU's, then the host's in the order of a call; those of a side add up to its last.
        graphs: functions of dynamo that the call runs.
        wall: on CUDA, seconds from call to call.
        rounds, processes: how many were timed.
        scale: what parts were multiplied with, as they took longer one by one than the call.
    """

    device: str
    rows: tuple[CallPart, ...]
    graphs: int
    allocations: int
    wall: float | None
    rounds: int
    processes: int
    scale: float = 1.0
    remarks: tuple[Remark, ...] = ()

    def row(self, kind: str, side: Side = "host") -> CallPart | None:
        """Return the first row of a kind."""
        return next((row for row in self.rows if (row.kind, row.side) == (kind, side)), None)
