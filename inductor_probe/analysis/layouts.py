"""The layout of each buffer, and which nodes write and read it with which strides."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from inductor_probe.analysis.access import accesses, touched
from inductor_probe.analysis.generated_access import GeneratedAccesses
from inductor_probe.analysis.graph import GraphIndex, index_of, once_per_graph
from inductor_probe.analysis.layout_remarks import with_remarks
from inductor_probe.analysis.links import links, nodes_of
from inductor_probe.analysis.memory_format import memory_format, size_bytes
from inductor_probe.analysis.names import NameType, resolve
from inductor_probe.analysis.symbols import recorded, used_symbols
from inductor_probe.analysis.work import parts_passed
from inductor_probe.errors import NotFoundError
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import PRINTED_STRIDE, BufferLayout
from inductor_probe.model.layouts import Access, Evidence, LayoutRow, Packing, Pattern
from inductor_probe.model.links import Links
from inductor_probe.model.manifest import ConstantFact
from inductor_probe.model.span import Span

_TYPES: tuple[NameType, ...] = ("buffer", "node", "kernel", "fx", "line", "operator")


def layouts(graph: CompiledGraph, name: str | None = None) -> tuple[LayoutRow, ...]:
    """Return a row for each buffer of the graph, inputs first, then in the order they are written.

    Of a buffer or input alone if it is named (`buf3`, `arg0_1`), of anything else (`op3`, `op3_op4`, a
    kernel, an FX node, a line, an operator) the buffers that its nodes write, then those that they read.

    Raises:
        NotFoundError: nothing in the graph has that name, or it has no memory; the hint names another verb.
        AmbiguousError: several kernels fit.
    """
    if name is None:
        return tuple(layout_rows(graph).values())
    subject = resolve(graph, name, _TYPES)
    nodes = () if subject.type == "buffer" else nodes_of(graph, subject)
    leaf = index_of(graph).nodes.leaf
    leaves = tuple(leaf[node] for node in nodes if node in leaf)
    rows = _rows(graph, {subject.name} | {buffer for leaf in leaves for buffer in touched(leaf)})
    if subject.name in rows:
        return (rows[subject.name],)
    if not leaves:
        raise NotFoundError(
            f"no node of the code of {graph.name} writes or reads memory for {subject.name}",
            f"probe why {subject.name} has what was decided about it",
        )
    inside = {leaf.name for leaf in leaves}
    written = [row for row in rows.values() if any(access.node in inside for access in row.writes)]
    read = [row for row in rows.values() if any(access.node in inside for access in row.reads)]
    return tuple(dict.fromkeys([*written, *read]))


@once_per_graph
def outlines(graph: CompiledGraph) -> tuple[LayoutRow, ...]:
    """Return the rows of all buffers without accesses and remarks, which take longest to work out."""
    return tuple(_rows(graph, ()).values())


@once_per_graph
def layout_rows(graph: CompiledGraph) -> dict[str, LayoutRow]:
    """Return the row of each buffer by name."""
    return _rows(graph, None)


def _rows(graph: CompiledGraph, buffers: Collection[str] | None) -> dict[str, LayoutRow]:
    """Return a row for each buffer without `buffers`; else for those, and what the same nodes reach.

    If `buffers` is empty, rows of all buffers without accesses.
    """
    linked = links(graph)
    index = index_of(graph)
    rows = {
        name: _row(graph, draft, index, linked)
        for name, draft in _drafts(graph, linked, buffers).items()
        if not buffers or name in buffers or draft.reads or draft.writes
    }
    if buffers is not None and not buffers:
        return rows
    return with_remarks(rows, {leaf.name for leaf in index.nodes.leaves if leaf.body})


@dataclass(slots=True)
class _Draft:
    """A buffer while the nodes are walked."""

    name: str
    layout: BufferLayout | None = None
    producer: str | None = None
    writes: list[Access] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    local: bool = False
    packing: Packing | None = None
    evidence: list[Evidence] = field(default_factory=list)

    def add_layout(self, layout: BufferLayout | None, fact: str, span: Span | None) -> None:
        """Keep the first layout; a later one only adds the dtype or device that the first lacks."""
        if layout is None:
            return
        if self.layout is None:
            self.layout = layout
        elif self.layout.size is None and layout.size is not None:
            self.layout = replace(layout, kind=self.layout.kind)
        elif self.layout.dtype is None and layout.dtype is not None:
            self.layout = replace(self.layout, dtype=layout.dtype, device=self.layout.device or layout.device)
        else:
            return
        if span is not None:
            self.evidence.append(Evidence(fact, span))


def _row(graph: CompiledGraph, draft: _Draft, index: GraphIndex, linked: Links) -> LayoutRow:
    described = memory_format(draft.layout)
    size = size_bytes(draft.layout)
    symbols = used_symbols(graph, size)
    subgraph = index.subgraph(draft.name)
    returned = index.returned_by.get(subgraph, frozenset()) if subgraph else index.returned
    role: Literal["input", "constant", "output", "intermediate"]
    role = "output" if draft.name in returned else "intermediate"
    if draft.producer is None:
        allocation = index.allocations.get(draft.name)
        role = "constant" if allocation is not None and allocation.kind == "constant" else "input"
    link = linked.nodes.get(draft.producer or "")
    return LayoutRow(
        graph=graph.name,
        buffer=draft.name,
        role=role,
        layout=draft.layout,
        memory_format=described.name,
        dim_order=described.dim_order,
        size_bytes=size,
        recorded_bytes=recorded(size, symbols),
        symbols=symbols,
        producer=draft.producer,
        kernel=link.kernel if link else None,
        writes=tuple(draft.writes),
        reads=tuple(draft.reads),
        origin=linked.origins.get(draft.name),
        local=draft.local,
        packing=draft.packing,
        evidence=tuple(draft.evidence),
        subgraph=subgraph,
    )


def _drafts(graph: CompiledGraph, linked: Links, buffers: Collection[str] | None) -> dict[str, _Draft]:
    """Return a draft for each buffer of the graph, inputs first, then in the order they are written.

    Working out accesses takes longest: those of nodes that reach none of `buffers` are left out where there
    are `buffers`, so that none are worked out if `buffers` is empty.
    """
    index = index_of(graph)
    leaves = index.nodes.leaves
    allocations = graph.code.allocations if graph.code else ()
    # Symbolic sizes are inputs without an allocation.
    drafts = {item.name: _Draft(item.name) for item in allocations if item.kind == "input"}
    inputs = {item.name: item.inputs for item in graph.code.subgraphs} if graph.code else {}
    for leaf in leaves:
        for name in inputs.pop(index.subgraph(leaf.name) or "", ()):
            if name in index.nodes.layouts:
                drafts.setdefault(name, _Draft(name))
        for buffer in leaf.outputs:
            draft = drafts.setdefault(buffer.name, _Draft(buffer.name))
            draft.producer = leaf.name
            draft.add_layout(buffer.layout, "layout", buffer.span)
            if leaf.span:
                draft.evidence.append(Evidence("written by", leaf.span))
    for leaf in leaves:
        for name, layout, span in leaf.layouts:
            drafts.setdefault(name, _Draft(name)).add_layout(layout, "layout", span)
    _add_wrapper(graph, drafts)
    # Torch before 2.4 prints no layout for the result of a mutation: it lies as what it mutates.
    for buffer in index.nodes.buffers.values():
        mutated = drafts.get(buffer.mutations[0]) if buffer.mutations else None
        if mutated and drafts[buffer.name].layout is None:
            drafts[buffer.name].add_layout(mutated.layout, f"mutates {mutated.name}", buffer.span)
    if buffers is None or buffers:
        _add_accesses(graph, linked, buffers, drafts)
    for item in allocations:
        if item.kind == "constant" and item.name in drafts:  # one that no node reads has no draft
            drafts[item.name].add_layout(item.layout, "constant", item.span)
    _add_packings(graph, drafts)
    return drafts


def _add_packings(graph: CompiledGraph, drafts: Mapping[str, _Draft]) -> None:
    facts = {fact.name: fact for fact in (graph.record.constants if graph.record else None) or ()}
    for name, draft in drafts.items():
        draft.layout, draft.packing = layout_and_packing(draft.layout, facts.get(name))


def layout_and_packing(
    layout: BufferLayout | None, fact: ConstantFact | None
) -> tuple[BufferLayout | None, Packing | None]:
    """Return the layout of a constant, and how a library packed it, by what the manifest records of it.

    `output_code.py` has `(1, 0)` as the stride of a weight that oneDNN packed, and `(1, 0)` as that of a
    column that was expanded: the manifest knows which it is, and so the stride of the second.
    """
    if fact is not None and fact.layout == "torch._mkldnn":
        return layout, Packing(fact.operator if fact.kind == "packed" else None, "recorded")
    if layout is None or PRINTED_STRIDE not in dict(layout.extras):
        return layout, None
    if fact is not None and fact.kind == "plain" and layout.size == fact.size:
        return replace(layout, stride=fact.stride, extras=()), None
    return layout, Packing(None, "inferred")


def _add_wrapper(graph: CompiledGraph, drafts: dict[str, _Draft]) -> None:
    """Add what the IR does not print and the wrapper does: all layouts before torch 2.4, dtypes of inputs."""
    if graph.code is None:
        return
    for item in graph.code.allocations:
        if item.name in drafts:
            fact = "input" if item.kind == "input" else "allocation"
            drafts[item.name].add_layout(item.layout, fact, item.span)
    allocated = {item.name for item in graph.code.allocations}
    allocated.update(name for call in graph.code.externs for name in call.outputs)
    for draft in drafts.values():
        draft.local = draft.producer is not None and draft.name not in allocated


def _add_accesses(
    graph: CompiledGraph, linked: Links, buffers: Collection[str] | None, drafts: dict[str, _Draft]
) -> None:
    dtypes = {
        name: draft.layout.dtype for name, draft in drafts.items() if draft.layout and draft.layout.dtype
    }
    generated = GeneratedAccesses(graph, linked)
    for leaf in index_of(graph).nodes.leaves:
        if buffers and touched(leaf).isdisjoint(buffers):
            continue
        link = linked.nodes.get(leaf.name)
        parts = parts_passed(graph, leaf.name) if leaf.body is None else {}
        for buffer, direction, access in accesses(leaf, link.kernel if link else None, dtypes):
            draft = drafts.setdefault(buffer, _Draft(buffer))
            if buffer in parts and access.pattern.kind == "whole_buffer":
                access = replace(access, pattern=Pattern("part"), parts=parts[buffer])  # noqa: PLW2901
            if leaf.body is not None:
                access = replace(access, generated=generated.of(access, buffer, direction, draft.local))  # noqa: PLW2901
            (draft.reads if direction == "read" else draft.writes).append(access)
