"""What is concluded about fusion: which nodes came together when, and why others did not.

Nodes are named as in the IR. A side of a pair is one unfused node, or all nodes of a fused one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from inductor_probe.model.ir import Dim
from inductor_probe.model.output import Output
from inductor_probe.model.span import Problem, Span

Outcome: TypeAlias = Literal["fused", "refused", "refused_silently", "untold", "never_tried", "no_log"]
"""What became of a pair.

`refused`: torch says why. `refused_silently`: the log shows that it was refused, and has no reason.
`untold`: it was weighed, and the log does not show what decided. `never_tried`: the log has no word of it.
`no_log`: it is not fused, and there is no log that would tell why.
"""
Order: TypeAlias = Literal["first", "second", "none"]
"""Which side must run before the other, through data."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting that changes a decision: `torch._inductor.config.max_fusion_size`.

    Attributes:
        default: its value unless set, on torch 2.13.
        gpu_only: it changes nothing on the CPU.
    """

    name: str
    effect: str
    default: str
    gpu_only: bool = False

    @property
    def text(self) -> str:
        """`torch._inductor.config.max_fusion_size = 64: most unfused nodes in a fused one`."""
        return f"{self.name} = {self.default}: {self.effect}{' (GPU only)' if self.gpu_only else ''}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason in torch's words, and what it means.

    Attributes:
        form: the reason with its numbers left out, as torch's source has it; the reason itself if unknown.
        meaning: in plain words; None for a reason that is not known here.
        numbers: what stands in it: `("elements of the first", "256")`.
    """

    reason: str
    form: str
    meaning: str | None
    numbers: tuple[tuple[str, str], ...] = ()
    knobs: tuple[Knob, ...] = ()


@dataclass(frozen=True, slots=True)
class PairAttempt:
    """One mention of a pair in the log, under the names its nodes had then.

    Attributes:
        round: 1 to 10, None in the pass with reordered loops.
        what: `weighed` when only its shared data is logged.
        shared: bytes by torch's count; True or False where it only says whether (torch 2.5).
        applying: mentioned while the pairs that the round had found were being fused.
        silent: weighed in a round that found no pair at all: it was refused, and the log has no reason.
    """

    round: int | None
    first: str
    second: str
    what: Literal["fused", "refused", "possible", "weighed"]
    refusal: Refusal | None = None
    shared: int | bool | None = None
    applying: bool = False
    silent: bool = False
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FusionStep:
    """`fusing first with second`: what came together, and what they share."""

    number: int
    round: int | None
    first: str
    second: str
    nodes: tuple[str, ...]
    shared: int | bool | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """A node after fusion. `kernel` is what runs it, None when it needs none or none could be proved.

    `steps` are the numbers of the fusions that made it, empty when the log does not tell.
    """

    name: str
    kind: str
    nodes: tuple[str, ...]
    kernel: str | None
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundRow:
    """A round in numbers; `number` is None for the pass with reordered loops."""

    number: int | None
    nodes_before: int | None
    nodes_after: int | None
    found: int | None
    fused: int
    refused: int


@dataclass(frozen=True, slots=True)
class RefusalCount:
    """How often a reason was given: for how many pairs of names, in how many lines.

    `standing` counts the pairs of nodes after fusion that the reason keeps apart.
    """

    refusal: Refusal
    pairs: int
    lines: int
    standing: int


@dataclass(frozen=True, slots=True)
class ApartPair:
    """Two nodes after fusion that torch weighed and left apart; `refusals` are the reasons it gave.

    `shared` is the most bytes that it counted for them.
    """

    first: str
    second: str
    refusals: tuple[Refusal, ...]
    shared: int | bool | None
    silent: bool = False


@dataclass(frozen=True, slots=True)
class LogMatch:
    """How a graph's part of the log was told from the others.

    Attributes:
        state: `proved`, `ambiguous`, `disagrees` (the log fits by names, not by what was fused), `none`.
        how: the proof, or why there is none, in words.
        torch_logs_reasons: False where this torch has no log of fusion (2.1).
    """

    state: Literal["proved", "ambiguous", "disagrees", "none"]
    how: str
    span: Span | None = field(default=None, compare=False)
    torch_logs_reasons: bool = True

    @property
    def to_learn(self) -> str | None:
        """How to get the reasons that are not there."""
        if self.state in ("proved", "disagrees"):
            return None
        if not self.torch_logs_reasons:
            return "torch 2.2 and later log their reasons: dump the script with one of them"
        if self.state == "ambiguous":
            return "dump one case at a time: `probe dump SCRIPT --case CASE` records a log of its own"
        return "`probe dump SCRIPT` records the reasons; so does TORCH_LOGS=fusion,loop_ordering,schedule"


@dataclass(frozen=True, slots=True)
class GraphFusion:
    """All that is known of fusion in a graph."""

    graph: str
    nodes_before: int
    nodes_after: int
    log: LogMatch
    rounds: tuple[RoundRow, ...]
    steps: tuple[FusionStep, ...]
    groups: tuple[FusionGroup, ...]
    refusals: tuple[RefusalCount, ...]
    apart: tuple[ApartPair, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeFusion:
    """All that is known of the fusion of one node: its group, how it came about, who was kept out."""

    graph: str
    name: str
    nodes: tuple[str, ...]
    log: LogMatch
    group: FusionGroup | None
    steps: tuple[FusionStep, ...]
    apart: tuple[ApartPair, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a pair, as the IR has it.

    Attributes:
        name: as asked for. nodes: the unfused nodes in it. buffers: what they write.
        top: the node after fusion that holds them, None when they are in several.
        kind: `pointwise`, `reduction`, `extern`, `nop`, `template`.
        iteration: the group's loops: `((512,), (1000,))` from C++, `(512, 1000)` from Triton.
        origins: FX nodes.
        kernel: what runs it.
    """

    name: str
    nodes: tuple[str, ...]
    buffers: tuple[str, ...]
    top: str | None
    kind: str
    device: str | None
    iteration: tuple[Dim | tuple[Dim, ...], ...] | None
    sizes: tuple[tuple[Dim, ...], ...] | None
    origins: tuple[str, ...] = ()
    kernel: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SharedBuffer:
    """A buffer that both sides use. `first` and `second` are their accesses, index over ranges.

    Attributes:
        relation: `both read`, `first writes, second reads`, ...
        matches: whether an access of one side is the same as one of the other, which is what torch counts.
        bytes: of the accesses that are the same, by torch's count; None when not known.
    """

    buffer: str
    relation: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    matches: bool
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PairFacts:
    """What the IR alone proves about a pair.

    Attributes:
        order: which side must come first. direct: one reads what the other writes.
        path: the way through other nodes that one depends on the other: `op0`, `buf0`, `op1`, `buf1`, `op4`.
        loops_fit: whether the loops of both can be one nest by the rules of the backend; None when not known.
        loops: that in words.
    """

    first: Side
    second: Side
    order: Order
    direct: bool
    path: tuple[str, ...]
    shared: tuple[SharedBuffer, ...]
    loops_fit: bool | None
    loops: str


@dataclass(frozen=True, slots=True)
class FusionDecision:
    """What became of a pair, and why.

    Attributes:
        group: the node after fusion that holds both, if one does.
        step: the fusion that brought them together, if the log has it.
        same_kernel: the kernel that runs both although they are not fused (the C++ backend puts several
            nodes into one function).
        refusal: the last reason given, as far as any.
        because: the conclusion in words, a sentence each.
        attempts: every mention in the log, in order.
        next_steps: how to learn what is not known here.
    """

    graph: str
    outcome: Outcome
    facts: PairFacts
    log: LogMatch
    group: FusionGroup | None = None
    step: FusionStep | None = None
    same_kernel: str | None = None
    refusal: Refusal | None = None
    because: tuple[str, ...] = ()
    attempts: tuple[PairAttempt, ...] = ()
    next_steps: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FusionOutput(Output):
    """What is known of fusion: of each graph, of a node in each, or of a pair in each."""

    verb: Literal["fusion"] = "fusion"
    rows: tuple[GraphFusion | NodeFusion | FusionDecision, ...]
