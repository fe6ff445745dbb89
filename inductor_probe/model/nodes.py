"""What `probe nodes` shows of a scheduler node."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.codec import written
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.links import NodeLink
from inductor_probe.model.output import Output
from inductor_probe.model.record import Compared
from inductor_probe.model.span import Span

NodeKind: TypeAlias = Literal[
    "pointwise", "reduction", "scan", "sort", "scatter", "template", "extern", "fallback", "result", "nop",
    "other",
]  # fmt: skip
"""What an unfused node does.

`extern` is a library call, `fallback` one for want of a lowering, `result` one of several results of such a
call (`MultiOutput`), `nop` needs no code.
"""


class Ranges(Struct, frozen=True):
    """Trip counts of a node's loops: of those that stay, and of those that are reduced over."""

    iteration: tuple[Dim, ...]
    reduction: tuple[Dim, ...]


class NodeBuffer(Struct, frozen=True):
    """A buffer that a node writes. `layout` is None where neither the IR nor the wrapper has it."""

    name: str
    layout: BufferLayout | None


class MemoryEffect(Struct, frozen=True):
    """What a node does to memory beside writing buffers of its own.

    Attributes:
        kind: `mutates`: it writes into `buffer` in place. `aliases`: its result may be `buffer`'s memory.
            `reuses`: the wrapper gives it the memory of `buffer`, which is not needed any more. `view_of`:
            its buffer is a part of `buffer` (`reinterpret_tensor`).
    """

    kind: Literal["mutates", "aliases", "reuses", "view_of"]
    buffer: str


class NodeRow(Compared, frozen=True):
    """An unfused node of the scheduler.

    Attributes:
        kind: what it does. node_class, ir: the classes inductor prints: `SchedulerNode`, `ComputedBuffer`.
        top: the node after fusion that holds it, None when it was not fused; `top_class` its class.
        link: its kernel, launches, FX nodes and user's lines, with their proofs.
        writes: its buffers. reads: buffers it reads, each once. waits: buffers it only has to wait for.
        ranges: of its loops, None for a node without any.
        agrees: whether it and all nodes it is fused with fit into one nest of loops, None when not fused.
        operations: what its loop body calls, with how often, most first; `op_count` their sum.
        reductions: kinds, in order: `sum`, `welford_reduce`.
        effects: what it does to memory of other buffers. store_modes: of its stores (`atomic_add`).
        users: nodes that use its buffers, and `OUTPUT`.
        subgraph: whose node it is (`true_graph_0`), None for the graph's own.
    """

    graph: str
    node: str
    kind: NodeKind
    node_class: str
    ir: str
    top: str | None
    top_class: str | None
    link: NodeLink
    writes: tuple[NodeBuffer, ...]
    reads: tuple[str, ...]
    waits: tuple[str, ...] = ()
    ranges: Ranges | None = None
    agrees: bool | None = None
    operations: tuple[tuple[str, int], ...] = ()
    reductions: tuple[str, ...] = ()
    effects: tuple[MemoryEffect, ...] = ()
    store_modes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    device: str | None = None
    subgraph: str | None = None
    span: Span | None = None

    @property
    def mutates(self) -> tuple[str, ...]:
        """Buffers and inputs that it writes into in place."""
        return tuple(effect.buffer for effect in self.effects if effect.kind == "mutates")

    @property
    @written
    def op_count(self) -> int:
        """How many operations its loop body calls."""
        return sum(count for _, count in self.operations)

    @property
    def traits(self) -> tuple[str, ...]:
        """What `--kind` filters by, in lower case: its kind and classes, `fused`, `foreach`, `unlinked`."""
        words = [self.kind, self.node_class.lower(), self.ir.lower()]
        if self.top_class is not None:
            words += ["fused", self.top_class.lower()]
            if "foreach" in self.top_class.lower():
                words.append("foreach")
        if self.link.kernel is None:
            words.append("ambiguous" if self.link.kernel_candidates else "no kernel")
            if self.link.is_unlinked:
                words.append("unlinked")
        return tuple(dict.fromkeys(words))


class NodesOutput(Output, frozen=True, kw_only=True):
    """Unfused nodes of the scheduler, in the order of the table."""

    verb: Literal["nodes"] = "nodes"
    rows: tuple[NodeRow, ...]
