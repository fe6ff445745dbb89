"""Buffers while a graph is walked: what the IR and the wrapper say of each, and who reaches it how."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from inductor_probe.analysis.access import accesses, touched
from inductor_probe.analysis.generated_access import GeneratedAccesses
from inductor_probe.analysis.graph import GraphIndex, index_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.layouts import Access, Evidence
from inductor_probe.model.links import Links
from inductor_probe.model.span import Span


@dataclass(slots=True)
class Draft:
    """A buffer while the nodes are walked."""

    name: str
    layout: BufferLayout | None = None
    producer: str | None = None
    kernel: str | None = None
    writes: list[Access] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    local: bool = False
    evidence: list[Evidence] = field(default_factory=list)

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
            self.evidence.append(Evidence(what, span))


def drafts(graph: CompiledGraph, linked: Links, buffers: Collection[str] | None) -> dict[str, Draft]:
    """Return a draft for each buffer of the graph, inputs first, then in the order they are written.

    Working out accesses takes longest: those of nodes that reach none of `buffers` are left out where there
    are `buffers`, so that none are worked out if `buffers` is empty.
    """
    drafts: dict[str, Draft] = {}
    index = index_of(graph)
    leaves = index.nodes.leaves
    for allocation in graph.code.allocations if graph.code else ():
        if allocation.how == "input":  # symbolic sizes are inputs without an allocation
            drafts[allocation.name] = Draft(allocation.name)
    for leaf in leaves:
        for buffer in leaf.outputs:
            draft = drafts.setdefault(buffer.name, Draft(buffer.name))
            draft.producer = leaf.name
            draft.see_layout(buffer.layout, "layout", buffer.span)
            if leaf.span:
                draft.evidence.append(Evidence("written by", leaf.span))
    for leaf in leaves:
        for name, layout, span in leaf.layouts:
            drafts.setdefault(name, Draft(name)).see_layout(layout, "layout", span)
    _see_wrapper(graph, drafts)
    _see_mutations(index, drafts)
    dtypes = {
        name: draft.layout.dtype for name, draft in drafts.items() if draft.layout and draft.layout.dtype
    }
    kernels = {name: link.kernel for name, link in linked.nodes.items()}
    generated = GeneratedAccesses(graph, linked) if buffers is None or buffers else None
    for leaf in leaves:
        if generated is None or (buffers and touched(leaf).isdisjoint(buffers)):
            continue
        for reach in accesses(leaf, kernels.get(leaf.name), dtypes):
            draft = drafts.setdefault(reach.buffer, Draft(reach.buffer))
            access = reach.access
            if leaf.body is not None:
                made = generated.of(access, reach.buffer, reach.direction, draft.local)
                access = replace(access, generated=made)
            (draft.reads if reach.direction == "read" else draft.writes).append(access)
    _see_constants(graph, drafts)
    for draft in drafts.values():
        draft.kernel = kernels.get(draft.producer) if draft.producer else None
    return drafts


def _see_mutations(index: GraphIndex, drafts: dict[str, Draft]) -> None:
    """Torch before 2.4 prints no layout for the result of a mutation: it lies as what it mutates."""
    for buffer in index.nodes.buffers.values():
        mutated = drafts.get(buffer.mutations[0]) if buffer.mutations else None
        if mutated and drafts[buffer.name].layout is None:
            drafts[buffer.name].see_layout(mutated.layout, f"mutates {mutated.name}", buffer.span)


def _see_constants(graph: CompiledGraph, drafts: dict[str, Draft]) -> None:
    """Take the layouts of constants; one that no node reads has no draft."""
    for allocation in graph.code.allocations if graph.code else ():
        if allocation.how == "constant" and allocation.name in drafts:
            drafts[allocation.name].see_layout(allocation.layout, "constant", allocation.span)


def _see_wrapper(graph: CompiledGraph, drafts: dict[str, Draft]) -> None:
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
