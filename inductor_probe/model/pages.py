"""What `probe show` puts on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.cause import Cause
from inductor_probe.model.formula import Formula
from inductor_probe.model.fx import FxNode
from inductor_probe.model.ir import Dep, Dim
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.layouts import LayoutRow, Symbol
from inductor_probe.model.links import KernelFx
from inductor_probe.model.manifest import GraphRecord
from inductor_probe.model.nodes import NodeBuffer, NodeRow
from inductor_probe.model.output import Output
from inductor_probe.model.proof import Proof
from inductor_probe.model.record import Compared
from inductor_probe.model.runs import GraphSummary
from inductor_probe.model.span import SourceLine, Span


class NodePart(Compared, frozen=True):
    """An unfused node with all that its page needs.

    Attributes:
        formula: None where it has no loop body.
        met, unmet: its dependencies as printed: on what is there from the start, and on other nodes.
        body: where its loop body stands; its whole text is at `row.span`.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("body",)

    row: NodeRow
    formula: Formula | None
    met: tuple[Dep, ...]
    unmet: tuple[Dep, ...]
    body: Span | None = None


class NodePage(Struct, frozen=True):
    """A node of the scheduler, fused or not.

    Attributes:
        name: its name. node_class: the class inductor prints.
        parts: the unfused nodes in it; itself alone when it is not fused.
        writes, reads: buffers that it writes, and those it reads from outside. inside: what it writes and
            only itself reads.
        removed: it is there before fusion, and not after it.
        conflicts: where torch's list for its kernel and the data flow differ.
        causes: recorded decisions about it, and why they fell so.
    """

    graph: str
    name: str
    node_class: str
    parts: tuple[NodePart, ...]
    writes: tuple[LayoutRow, ...]
    reads: tuple[LayoutRow, ...]
    inside: tuple[LayoutRow, ...] = ()
    removed: bool = False
    conflicts: tuple[KernelFx, ...] = ()
    causes: tuple[Cause, ...] = ()


class BufferPage(Struct, frozen=True):
    """A buffer or an input.

    `producer` is the node that writes it, None for an input; `causes` are recorded decisions about it.
    """

    row: LayoutRow
    producer: NodePart | None
    causes: tuple[Cause, ...] = ()


class TracePage(Struct, frozen=True):
    """What became of an FX node, or of a line of the user's.

    Attributes:
        what: the FX node's name, or `file.py:12`. lines: the user's lines.
        before: FX nodes before inductor's passes that are not there after them, or were made into others.
        fx: FX nodes after the passes.
        holds: the buffer that holds the value of each of `fx`, where one does.
        nodes: scheduler nodes that compute any of `fx`. maybe: those that may, for all that is known.
        kernels: those that compute any of `fx`, with what says so, in the order of the code.
        absent: for each of `fx` without a kernel or a node, what is known of why.
        rewrites: what patterns and passes made of them, or nearly did, and what freezing folded.
    """

    graph: str
    what: str
    lines: tuple[SourceLine, ...]
    before: tuple[FxNode, ...]
    fx: tuple[FxNode, ...]
    holds: tuple[tuple[str, str], ...]
    nodes: tuple[NodeRow, ...]
    maybe: tuple[NodeRow, ...]
    kernels: tuple[KernelFx, ...]
    absent: tuple[Absence, ...] = ()
    rewrites: tuple[Cause, ...] = ()


AbsenceReason: TypeAlias = Literal["view", "item", "number", "attribute", "unused", "unknown"]


class Absence(Struct, frozen=True):
    """An FX node that no kernel and no scheduler node is known to compute.

    Attributes:
        fx: its name.
        reason: `view` of another value, `item` of a result, a `number` that kernels are handed, an
            `attribute` of the module, a value that is `unused`, or `unknown`.
        of: what it is a view or an item of. Of an unknown one: the kernels that compute its users.
        searched: the records of torch that there are for the graph; none of them names it.
    """

    fx: str
    reason: AbsenceReason
    of: tuple[str, ...] = ()
    searched: tuple[Proof, ...] = ()


class SourceTrace(Struct, frozen=True):
    """A line of the user's in one row: FX nodes, scheduler nodes and kernels that come from it."""

    line: SourceLine
    fx: tuple[str, ...]
    nodes: tuple[str, ...]
    kernels: tuple[str, ...]


class FusedNode(Struct, frozen=True):
    """A fused node with its class and the number of unfused nodes in it."""

    name: str
    node_class: str
    nodes: int


class CollectiveRow(Compared, frozen=True):
    """A collective that the wrapper calls, and what waits for it.

    Attributes:
        place: which one of the graph it is, from 1; ranks must call them in this order.
        name: `all_reduce`, `all_gather_into_tensor`. reduction: `sum`, where it reduces.
        group: name of the process group. group_size: how many ranks are in it, where the call says so.
        buffers: what it is passed. results: what holds its result, the same ones where it writes in place.
        bytes_in, bytes_out: of these; None where a layout is not known, text where it is symbolic.
        nodes: scheduler nodes. fx: FX nodes.
        span: the call. waits: the calls of `wait_tensor` for its results.
        meanwhile: kernels and library calls that are launched between the call and the first wait.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("span", "waits")

    place: int
    name: str
    reduction: str | None
    group: str | None
    group_size: int | None
    buffers: tuple[str, ...]
    results: tuple[str, ...]
    bytes_in: Dim | None
    bytes_out: Dim | None
    nodes: tuple[str, ...]
    fx: tuple[str, ...]
    span: Span
    waits: tuple[Span, ...] = ()
    meanwhile: tuple[str, ...] = ()


class GraphPage(Struct, frozen=True):
    """A graph in outline.

    Attributes:
        recorded: what `probe dump` recorded of it.
        inputs, outputs: buffers. constants: of the module, by the names that it has for them where the dump
            has those; `constant_bytes` is how much they are. sizes: inputs that are numbers. symbols:
            symbolic sizes.
        kinds: how many nodes there are of each kind after fusion, unfused ones counted.
        fused: the fused nodes. kernels: generated ones and library functions.
        lines: the user's lines in order, with what became of them.
        unlinked: nodes that must run somewhere, it is not known where.
        problems: how many parts could not be read.
        collectives: in the order of their calls.
    """

    graph: str
    torch_version: str | None
    recorded: GraphRecord | None
    summary: GraphSummary
    inputs: tuple[LayoutRow, ...]
    outputs: tuple[LayoutRow, ...]
    sizes: tuple[str, ...]
    kinds: tuple[tuple[str, int], ...]
    fused: tuple[FusedNode, ...]
    kernels: tuple[KernelRow, ...]
    lines: tuple[SourceTrace, ...]
    unlinked: tuple[str, ...]
    problems: int
    symbols: tuple[Symbol, ...] = ()
    constants: tuple[NodeBuffer, ...] = ()
    constant_bytes: Dim = 0
    collectives: tuple[CollectiveRow, ...] = ()


PageRecord: TypeAlias = GraphPage | NodePage | BufferPage | TracePage | KernelRow


class ShownPage(Struct, frozen=True):
    """A page, and the lines of text on it.

    Attributes:
        page: what is shown.
        text: of each node its formula, or with `--raw` its loop body as dumped; with `--code` the text of the
            kernel. By the name of the node or kernel.
    """

    page: PageRecord
    text: Mapping[str, tuple[str, ...]]


class ShowOutput(Output, frozen=True, kw_only=True):
    """A page for each graph that has the name."""

    verb: Literal["show"] = "show"
    pages: tuple[ShownPage, ...]
