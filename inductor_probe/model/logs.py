"""The compiler's own logs as read: what `TORCH_LOGS` prints, and what `probe dump` keeps in `probe_logs`.

Names of nodes are as logged: a fused node is the joined names of those in it (`op3_op4`).
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.record import Compared
from inductor_probe.model.span import Problem, Span

Outcome: TypeAlias = Literal["fused", "refused", "possible"]
"""`possible`: listed among the pairs that may be fused (only torch 2.2 lists them)."""


class Logged(Compared, frozen=True):
    """Where and when something was logged.

    Attributes:
        span: its lines.
        order: its place among everything that was logged for the run.
        trace_id: dynamo's id of the compile (`0/0`, `0/0_1` after a restart), None outside of one.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("span", "order")

    span: Span
    order: int
    trace_id: str | None = None


class CandidateData(Struct, frozen=True):
    """What is printed of an unfused candidate: `Reduction(['[768]', 'sum', 'origins=OrderedSet([sum_1])'])`.

    Attributes:
        kind: `Pointwise`, `Reduction`, ...; None where only the name is printed (extern kernels, templates).
        details: the strings in the brackets, stack traces left out. origins: FX nodes.
    """

    node: str
    kind: str | None = None
    details: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


class Candidate(Struct, frozen=True):
    """A node that takes part in a round. `members` are the unfused nodes in it, itself if it is not fused."""

    name: str
    kind: str
    members: tuple[CandidateData, ...]


class FusionAttempt(Compared, frozen=True):
    """A pair that was fused, refused, or listed as possible; `reason` is torch's, verbatim.

    `applying`: logged after the round's pairs were found, while they were being fused.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("span", "order")

    first: str
    second: str
    outcome: Outcome
    reason: str | None = None
    applying: bool = False
    span: Span | None = None
    order: int = 0


class SharedData(Compared, frozen=True):
    """What a pair shares by torch's count: bytes, or True and False where it only says whether (2.5)."""

    uncompared: ClassVar[tuple[str, ...]] = ("span", "order")

    first: str
    second: str
    amount: int | bool
    span: Span | None = None
    order: int = 0


class FusionBenchmark(Compared, frozen=True):
    """A fusion that was decided by timing it; sides are buffers. `factor` is the speed-up or slow-down."""

    uncompared: ClassVar[tuple[str, ...]] = ("span", "order")

    first: tuple[str, ...]
    second: tuple[str, ...]
    faster: bool
    factor: float
    span: Span | None = None
    order: int = 0


class FusionRound(Struct, frozen=True):
    """One round over all nodes.

    Attributes:
        number: 1 to 10; None for the pass with reordered loops after the rounds (torch 2.10 and later).
        nodes_before, nodes_after: as printed. possible: how many pairs could be fused.
        notes: other lines of the round, verbatim: loop orders, compile errors of templates.
    """

    number: int | None
    nodes_before: int | None = None
    nodes_after: int | None = None
    possible: int | None = None
    candidates: tuple[Candidate, ...] = ()
    attempts: tuple[FusionAttempt, ...] = ()
    shared: tuple[SharedData, ...] = ()
    benchmarks: tuple[FusionBenchmark, ...] = ()
    notes: tuple[str, ...] = ()


class FusionLog(Struct, frozen=True):
    """Everything logged while the nodes of one graph were fused.

    `complete`: whether the log has both its beginning and its end.
    """

    logged: Logged
    rounds: tuple[FusionRound, ...]
    complete: bool


class AutotuneChoice(Struct, frozen=True):
    """A timed choice; `ms` is None when it could not be run."""

    name: str
    ms: float | None
    config: str


class Autotune(Struct, frozen=True):
    """An `AUTOTUNE mm(256x256, 256x256)` block: choices from fastest to slowest."""

    logged: Logged
    operation: str
    choices: tuple[AutotuneChoice, ...]
    facts: tuple[str, ...] = ()


class LogFile(Struct, frozen=True):
    """A file with logs. `unread` lines belong to a log that is understood but have no known form."""

    path: Path
    lines: int
    unread: int


class CompilerLogs(Struct, frozen=True):
    """All logs of a run, in time. Lines that nothing is concluded from are counted in `files` only."""

    files: tuple[LogFile, ...] = ()
    fusions: tuple[FusionLog, ...] = ()
    autotunes: tuple[Autotune, ...] = ()
    problems: tuple[Problem, ...] = ()
