"""What is concluded about fusion: which nodes came together when, and why others did not.

Nodes are named as in the IR. A member of a pair is one unfused node, or all nodes of a fused one.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.cause import Cause
from inductor_probe.model.ir import Dep, Dim
from inductor_probe.model.output import Output
from inductor_probe.model.proof import Proof
from inductor_probe.model.record import Compared
from inductor_probe.model.setting import Setting
from inductor_probe.model.span import Problem, Span

Outcome: TypeAlias = Literal[
    "fused", "refused", "refused_without_reason", "not_logged", "never_tried", "no_log"
]
"""What became of a pair.

`refused`: torch says why. `refused_without_reason`: the log shows that it was refused, and has no reason.
`not_logged`: the log does not show what decided. `never_tried`: the log does not mention it.
`no_log`: it is not fused, and there is no log that would say why.
"""
NodeKind: TypeAlias = Literal["pointwise", "reduction", "extern", "nop", "template"]
Order: TypeAlias = Literal["first", "second", "none"]
"""Which node must run before the other, through data."""

NumberName: TypeAlias = Literal[
    "first_device", "second_device", "slowdown",
    "first_numel", "second_numel", "first_rnumel", "second_rnumel", "prologue_numel", "prologue_rnumel",
    "first_tiling", "second_tiling", "fused_tiling",
    "node", "second", "second_size", "template", "template_size", "cause", "operation",
    "buffer", "buffer_size", "peak_delta_bytes",
]  # fmt: skip
"""What torch puts into its reasons: of the first and the second node numels, reduction numels, ..."""

Relation: TypeAlias = Literal[
    "both_read", "order_only",
    "first_writes_second_reads", "first_writes_second_writes", "first_writes_second_waits",
    "second_writes_first_reads", "second_writes_first_waits",
]  # fmt: skip
"""What two nodes do with a buffer; a node that waits depends on the write without using what is written."""


class Refusal(Struct, frozen=True):
    """A reason in torch's words.

    Attributes:
        form: the reason with its numbers left out, as torch's source has it; the reason itself if unknown.
        numbers: what stands in it: `("first_numel", "256")`.
    """

    reason: str
    form: str
    numbers: tuple[tuple[NumberName, str], ...] = ()


class PairAttempt(Compared, frozen=True):
    """One mention of a pair in the log, under the names its nodes had then.

    Attributes:
        round: 1 to 10, None in the pass with reordered loops.
        what: `scored` when only its shared data is logged.
        shared: bytes by torch's count; True or False where it only says whether (torch 2.5).
        applying: mentioned while the pairs that the round had found were being fused.
        without_reason: scored in a round that could fuse nothing: it was refused, and the log has no reason.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("span",)

    round: int | None
    first: str
    second: str
    what: Literal["fused", "refused", "possible", "scored"]
    refusal: Refusal | None = None
    shared: int | bool | None = None
    applying: bool = False
    without_reason: bool = False
    span: Span | None = None


class FusionStep(Compared, frozen=True):
    """`fusing first with second`: what came together, and what they share."""

    uncompared: ClassVar[tuple[str, ...]] = ("span",)

    number: int
    round: int | None
    first: str
    second: str
    nodes: tuple[str, ...]
    shared: int | bool | None = None
    span: Span | None = None


class FusionGroup(Struct, frozen=True):
    """A node after fusion. `kernel` is what runs it, None when it needs none or none could be proved.

    `steps` are the numbers of the fusions that made it, empty when the log does not say.
    """

    name: str
    kind: str
    nodes: tuple[str, ...]
    kernel: str | None
    steps: tuple[int, ...] = ()


class RoundRow(Struct, frozen=True):
    """A round in numbers; `number` is None for the pass with reordered loops.

    `possible` is how many possible fusions torch counted.
    """

    number: int | None
    nodes_before: int | None
    nodes_after: int | None
    possible: int | None
    fused: int
    refused: int


class RefusalCount(Struct, frozen=True):
    """How often a reason was given: for how many pairs of names, in how many lines.

    `unfused` counts the pairs of nodes after fusion that were refused so; `settings` may change that for some
    of them.
    """

    refusal: Refusal
    pairs: int
    lines: int
    unfused: int
    settings: tuple[Setting, ...] = ()


class UnfusedPair(Struct, frozen=True):
    """Two nodes after fusion that torch tried to fuse and did not; `refusals` are the reasons it gave.

    `shared` is the most bytes that it counted for them. `without_reason`: it was refused in the end, and the
    log has no reason.
    """

    first: str
    second: str
    refusals: tuple[Refusal, ...]
    shared: int | bool | None
    without_reason: bool = False


class LogMatch(Compared, frozen=True):
    """Which part of the log is a graph's.

    Attributes:
        state: `proved`, `ambiguous`, `disagrees` (the log fits by names, not by what was fused), `none`.
        proof: what shows the part, or why there is none.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("span",)

    state: Literal["proved", "ambiguous", "disagrees", "none"]
    proof: Proof
    span: Span | None = None


class GraphFusion(Struct, frozen=True):
    """All that is known of fusion in a graph."""

    graph: str
    nodes_before: int
    nodes_after: int
    log: LogMatch
    rounds: tuple[RoundRow, ...]
    steps: tuple[FusionStep, ...]
    groups: tuple[FusionGroup, ...]
    refusals: tuple[RefusalCount, ...]
    unfused: tuple[UnfusedPair, ...]
    problems: tuple[Problem, ...] = ()


class NodeFusion(Struct, frozen=True):
    """All that is known of the fusion of one node: its group, its steps, and the pairs not fused."""

    graph: str
    name: str
    nodes: tuple[str, ...]
    log: LogMatch
    group: FusionGroup | None
    steps: tuple[FusionStep, ...]
    unfused: tuple[UnfusedPair, ...]
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

    uncompared: ClassVar[tuple[str, ...]] = ("span",)

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
        loops: what shows that.
    """

    first: PairMember
    second: PairMember
    order: Order
    direct: bool
    path: tuple[str, ...]
    shared: tuple[SharedBuffer, ...]
    loops_fit: bool | None
    loops: Proof


class FusionDecision(Struct, frozen=True):
    """What became of a pair, and why.

    Attributes:
        group: the node after fusion that holds both, if one does.
        step: the fusion that brought them together, if the log has it.
        same_kernel: the kernel that runs both although they are not fused (the C++ backend puts several
            nodes into one function).
        refusal: the last reason given, as far as any. settings: those that may change the refusal.
        reasons: what else is concluded. attempts: every mention in the log, in order.
        causes: what was recorded of the pair while torch decided, which says why where the log does not.
    """

    graph: str
    outcome: Outcome
    facts: PairFacts
    log: LogMatch
    group: FusionGroup | None = None
    step: FusionStep | None = None
    same_kernel: str | None = None
    refusal: Refusal | None = None
    settings: tuple[Setting, ...] = ()
    reasons: tuple[Proof, ...] = ()
    attempts: tuple[PairAttempt, ...] = ()
    problems: tuple[Problem, ...] = ()
    causes: tuple[Cause, ...] = ()


class FusionOutput(Output, frozen=True, kw_only=True):
    """What is known of fusion: of each graph, of a node in each, or of a pair in each."""

    verb: Literal["fusion"] = "fusion"
    rows: tuple[GraphFusion | NodeFusion | FusionDecision, ...]
