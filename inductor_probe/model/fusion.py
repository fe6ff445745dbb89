"""What is concluded about fusion: which nodes came together when, and why others did not.

Nodes are named as in the IR. A member of a pair is one unfused node, or all nodes of a fused one.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.cause import Cause
from inductor_probe.model.decision import Decision, Outcome
from inductor_probe.model.ir import Dep, Dim
from inductor_probe.model.output import Output
from inductor_probe.model.proof import Proof
from inductor_probe.model.record import Compared
from inductor_probe.model.span import Problem, Span

NodeKind: TypeAlias = Literal["pointwise", "reduction", "extern", "nop", "template"]
Order: TypeAlias = Literal["first", "second", "none"]
"""Which node must run before the other, through data."""

Relation: TypeAlias = Literal[
    "both_read", "order_only",
    "first_writes_second_reads", "first_writes_second_writes", "first_writes_second_waits",
    "second_writes_first_reads", "second_writes_first_waits",
]  # fmt: skip
"""What two nodes do with a buffer; a node that waits depends on the write without using what is written."""


class FusionGroup(Struct, frozen=True):
    """A node after fusion. `kernel` is what runs it, None when it needs none or none could be proved.

    `steps` are the numbers of the fusions that made it, empty when neither decisions nor a log say.
    """

    name: str
    kind: str
    nodes: tuple[str, ...]
    kernel: str | None
    steps: tuple[int, ...] = ()


class RoundRow(Struct, frozen=True):
    """A round in numbers, as torch's log has them; `number` is None for the pass with reordered loops.

    `possible` is how many possible fusions torch counted.
    """

    number: int | None
    nodes_before: int | None
    nodes_after: int | None
    possible: int | None
    fused: int
    refused: int


class LogMatch(Compared, frozen=True):
    """Which part of the log is a graph's.

    Attributes:
        state: `proved`, `ambiguous`, `disagrees` (the log fits by names, not by what was fused), `none`.
        proof: what shows the part, or why there is none.
    """

    state: Literal["proved", "ambiguous", "disagrees", "none"]
    proof: Proof
    span: Span | None = None


class GraphFusion(Struct, frozen=True):
    """All that is known of fusion in a graph: `steps` are the fusions in order, `causes` those of `why`."""

    graph: str
    nodes_before: int
    nodes_after: int
    log: LogMatch
    rounds: tuple[RoundRow, ...]
    groups: tuple[FusionGroup, ...]
    steps: tuple[Decision, ...]
    causes: tuple[Cause, ...]
    problems: tuple[Problem, ...] = ()


class NodeFusion(Struct, frozen=True):
    """All that is known of the fusion of one node: its group, the steps to it, the decisions about it."""

    graph: str
    name: str
    nodes: tuple[str, ...]
    log: LogMatch
    group: FusionGroup | None
    steps: tuple[Decision, ...]
    causes: tuple[Cause, ...]
    problems: tuple[Problem, ...] = ()


class PairMember(Compared, frozen=True):
    """A node of a pair, as the IR has it.

    Attributes:
        name: as asked for. nodes: the unfused nodes in it. buffers: what they write.
        top: the node after fusion that holds them, None when they are in several.
        kinds: of `pointwise`, `reduction`, `extern`, `nop`, `template`, those of its nodes.
        iteration: the group's loops: `((512,), (1000,))` from C++, `(512, 1000)` from Triton.
        origins: FX nodes. kernel: what runs it.
    """

    name: str
    nodes: tuple[str, ...]
    buffers: tuple[str, ...]
    top: str | None
    kinds: tuple[NodeKind, ...]
    device: str | None
    iteration: tuple[Dim | tuple[Dim, ...], ...] | None
    sizes: tuple[tuple[Dim, ...], ...] | None
    origins: tuple[str, ...] = ()
    kernel: str | None = None
    span: Span | None = None


class SharedBuffer(Struct, frozen=True):
    """A buffer that both nodes use. `first` and `second` are their accesses.

    Attributes:
        matches: whether an access of one is the same as one of the other, which is what torch counts.
        bytes: of the accesses that are the same, by torch's count; None when not known.
    """

    buffer: str
    relation: Relation
    first: tuple[Dep, ...]
    second: tuple[Dep, ...]
    matches: bool
    bytes: int | None = None


class PairFacts(Struct, frozen=True):
    """What the IR alone proves about a pair.

    Attributes:
        order: which node must come first. direct: one reads what the other writes.
        path: the way through other nodes that one depends on the other: `op0`, `buf0`, `op1`, `buf1`, `op4`.
        loops_fit: whether the loops of both can be one nest by the rules of the backend; None when not known.
        outer_depth: where they fit as common outer loops only, how many these are.
        loops: the refusal that the backend's rules give where they do not fit.
    """

    first: PairMember
    second: PairMember
    order: Order
    direct: bool
    path: tuple[str, ...]
    shared: tuple[SharedBuffer, ...]
    loops_fit: bool | None
    outer_depth: int | None = None
    loops: Decision | None = None


class FusionDecision(Struct, frozen=True):
    """What became of a pair, and why.

    Attributes:
        outcome: `fused` where one node after fusion holds both; else what was decided in the end, None where
            that is not known.
        group: the node after fusion that holds both, if one does.
        same_kernel: the kernel that runs both although they are not fused (the C++ backend puts several
            nodes into one function).
        tried: each decision about nodes that hold one of them and nodes that hold the other, in order.
        causes: what was decided in the end, as `why` has it.
    """

    graph: str
    outcome: Outcome | None
    facts: PairFacts
    log: LogMatch
    group: FusionGroup | None = None
    same_kernel: str | None = None
    tried: tuple[Decision, ...] = ()
    causes: tuple[Cause, ...] = ()
    problems: tuple[Problem, ...] = ()


class FusionOutput(Output, frozen=True, kw_only=True):
    """What is known of fusion: of each graph, of a node in each, or of a pair in each."""

    verb: Literal["fusion"] = "fusion"
    rows: tuple[GraphFusion | NodeFusion | FusionDecision, ...]
