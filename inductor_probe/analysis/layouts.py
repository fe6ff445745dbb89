"""Who writes and reads each buffer, how it lies in memory, and who pays for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from inductor_probe.analysis.access import accesses
from inductor_probe.analysis.links import links, returned_buffers
from inductor_probe.analysis.memory_format import memory_format, size_bytes
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, SchedulerNode
from inductor_probe.model.layouts import Access, LayoutRow, Mark
from inductor_probe.model.links import Links
from inductor_probe.model.span import Span

_MEANINGFUL_RANK = 3
"""Formats are compared from this rank on: a matrix next to its transpose is the rule, not a surprise."""


def layouts(graph: CompiledGraph, name: str | None = None) -> tuple[LayoutRow, ...]:
    """Return a row for each buffer of the graph, inputs first, then in the order they are written.

    Args:
        graph: as read.
        name: a buffer or input (`buf3`, `arg0_1`), or a node (`op3`, `op3_op4`): then the buffers it writes
            come first, and those it reads follow.

    Raises:
        NotFoundError: the graph has nothing of that name; near names are offered.
    """
    linked = links(graph)
    drafts = _drafts(graph, linked)
    returned = returned_buffers(graph)
    rows = {name: _row(graph, draft, returned, linked) for name, draft in drafts.items()}
    read_by: dict[str, list[LayoutRow]] = {}
    for row in rows.values():
        for reader in dict.fromkeys(access.node for access in row.reads):
            read_by.setdefault(reader, []).append(row)
    marked = {
        buffer: replace(row, marks=tuple(_marks(row, read_by.get(row.producer or "", []))))
        for buffer, row in rows.items()
    }
    if name is None:
        return tuple(marked.values())
    if name in marked:
        return (marked[name],)
    node = _node_called(graph, name)
    if node is None:
        known = [*marked, *(leaf.name for top in graph.nodes for leaf in top.leaves())]
        raise NotFoundError(f"{graph.name} has no buffer or node {name}", near_names(name, known))
    inside = {leaf.name for leaf in node.leaves()}
    written = [row for row in marked.values() if any(access.node in inside for access in row.writes)]
    read = [row for row in marked.values() if any(access.node in inside for access in row.reads)]
    return tuple(dict.fromkeys([*written, *read]))


def _node_called(graph: CompiledGraph, name: str) -> SchedulerNode | None:
    for top in graph.nodes:
        for node in (top, *top.children, *top.leaves()):
            if node.name == name:
                return node
    return None


@dataclass(slots=True)
class _Draft:
    """A buffer while the nodes are walked."""

    name: str
    layout: BufferLayout | None = None
    producer: str | None = None
    kernel: str | None = None
    writes: list[Access] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    local: bool = False
    evidence: list[tuple[str, Span]] = field(default_factory=list)

    def see_layout(self, layout: BufferLayout | None, what: str, span: Span | None) -> None:
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
            self.evidence.append((what, span))


def _drafts(graph: CompiledGraph, linked: Links) -> dict[str, _Draft]:
    drafts: dict[str, _Draft] = {}
    leaves = [leaf for top in graph.nodes for leaf in top.leaves()]
    for allocation in graph.code.allocations if graph.code else ():
        if allocation.how == "input":  # symbolic sizes are inputs without an allocation
            drafts[allocation.name] = _Draft(allocation.name)
    for leaf in leaves:
        for buffer in leaf.outputs:
            draft = drafts.setdefault(buffer.name, _Draft(buffer.name))
            draft.producer = leaf.name
            draft.see_layout(buffer.layout, "layout", buffer.span)
            if leaf.span:
                draft.evidence.append(("written by", leaf.span))
    for leaf in leaves:
        for name, layout, span in leaf.layouts:
            drafts.setdefault(name, _Draft(name)).see_layout(layout, "layout", span)
    _see_wrapper(graph, drafts)
    _see_mutations(leaves, drafts)
    dtypes = {
        name: draft.layout.dtype for name, draft in drafts.items() if draft.layout and draft.layout.dtype
    }
    kernels = {name: link.kernel for name, link in linked.nodes.items()}
    for leaf in leaves:
        for found in accesses(leaf, kernels.get(leaf.name), dtypes):
            draft = drafts.setdefault(found.buffer, _Draft(found.buffer))
            (draft.reads if found.direction == "read" else draft.writes).append(found.access)
    for draft in drafts.values():
        draft.kernel = kernels.get(draft.producer) if draft.producer else None
    return drafts


def _see_mutations(leaves: list[SchedulerNode], drafts: dict[str, _Draft]) -> None:
    """Torch before 2.4 prints no layout for the result of a mutation: it lies as what it mutates."""
    for leaf in leaves:
        for buffer in leaf.outputs:
            mutated = drafts.get(buffer.mutations[0]) if buffer.mutations else None
            if mutated and drafts[buffer.name].layout is None:
                drafts[buffer.name].see_layout(mutated.layout, f"mutates {mutated.name}", buffer.span)


def _see_wrapper(graph: CompiledGraph, drafts: dict[str, _Draft]) -> None:
    """Take from the wrapper what the IR does not print: all layouts before torch 2.4, dtypes of inputs."""
    if graph.code is None:
        return
    placed = set()
    for allocation in graph.code.allocations:
        placed.add(allocation.name)
        if allocation.name in drafts:
            what = "input" if allocation.how == "input" else "allocation"
            drafts[allocation.name].see_layout(allocation.layout, what, allocation.span)
    placed.update(name for call in graph.code.externs for name in call.outputs)
    for draft in drafts.values():
        draft.local = draft.producer is not None and draft.name not in placed


def _row(graph: CompiledGraph, draft: _Draft, returned: frozenset[str], linked: Links) -> LayoutRow:
    described = memory_format(draft.layout)
    role: Literal["input", "output", "intermediate"] = "intermediate"
    if draft.producer is None:
        role = "input"
    elif draft.name in returned:
        role = "output"
    return LayoutRow(
        graph=graph.name,
        buffer=draft.name,
        role=role,
        layout=draft.layout,
        memory_format=described.name,
        dim_order=described.dim_order,
        size_bytes=size_bytes(draft.layout),
        producer=draft.producer,
        kernel=draft.kernel,
        writes=tuple(draft.writes),
        reads=tuple(draft.reads),
        origin=linked.origins.get(draft.name),
        local=draft.local,
        evidence=tuple(draft.evidence),
    )


def _marks(row: LayoutRow, sources: list[LayoutRow]) -> Iterator[Mark]:
    """Say where the layout disagrees with its producer's inputs, and whose contiguity it costs.

    `sources` are the rows that its producer reads.
    """
    for other in sources:
        own_reads = [access for access in other.reads if access.node == row.producer]
        if other.buffer == row.buffer or not _disagree(row, other):
            continue
        text = (
            f"{row.buffer} is {row.format_in_words}, but {row.producer} makes it from {other.buffer}, "
            f"which is {other.format_in_words}"
        )
        paying = next((access for access in own_reads if _costs(access)), None)
        if paying:
            text += f"; {paying.node} pays: reads {other.buffer} {_how(paying)}"
        yield Mark("disagrees", paying.node if paying else str(row.producer), text)
    seen = set()
    for verb, uses in (("writes", row.writes), ("reads", row.reads)):
        for access in uses:
            text = f"{access.node} {verb} it {_how(access)}"
            if _costs(access) and text not in seen:
                seen.add(text)
                yield Mark("costs", access.node, text)


def _disagree(row: LayoutRow, other: LayoutRow) -> bool:
    if row.layout is None or other.layout is None or row.layout.size is None or other.layout.size is None:
        return False
    if len(row.layout.size) != len(other.layout.size) or len(row.layout.size) < _MEANINGFUL_RANK:
        return False
    if row.dim_order is None or other.dim_order is None:
        return False
    return _real_order(row) != _real_order(other)


def _real_order(row: LayoutRow) -> list[int]:
    """The order of the dimensions that are longer than 1."""
    size = row.layout.size if row.layout and row.layout.size else ()
    return [dim for dim in row.dim_order or () if size[dim] != 1]


def _costs(access: Access) -> bool:
    """A plain reversal is what the user asked for: no layout would make it contiguous."""
    return access.contiguous is False and not access.pattern.startswith("reversed")


def _how(access: Access) -> str:
    """`strided by 3 (innermost loop p2, 256 steps), though p1 is the loop it is contiguous along`."""
    steps = dict(access.ranges).get(access.innermost or "")
    text = f"{access.pattern} (innermost loop {access.innermost}, {steps} steps)"
    better = next((name for name, stride in access.strides if stride == 1 and name != access.innermost), None)
    return f"{text}, though {better} is the loop it is contiguous along" if better else text
