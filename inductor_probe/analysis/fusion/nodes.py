"""The nodes of a graph as fusion sees them: before it, after it, and by any name they go by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from inductor_probe.analysis.links import links
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, SchedulerNode
from inductor_probe.model.links import NodeLink


@dataclass
class GraphNodes:
    """Indexes over the nodes of a graph, made when first asked for."""

    graph: CompiledGraph

    @cached_property
    def leaves(self) -> dict[str, SchedulerNode]:
        """The unfused nodes by name, as they were before fusion where that is known."""
        tops = self.graph.pre or self.graph.post
        return {leaf.name: leaf for top in tops for leaf in top.leaves()}

    @cached_property
    def top_of(self) -> dict[str, SchedulerNode]:
        """The node after fusion that holds each unfused node; empty when that is not known."""
        return {leaf.name: top for top in self.graph.post for leaf in top.leaves()}

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each unfused node in the order before fusion."""
        return {name: at for at, name in enumerate(self.leaves)}

    @cached_property
    def links(self) -> Mapping[str, NodeLink]:
        """The kernel and FX nodes of each unfused node."""
        return links(self.graph).nodes

    @cached_property
    def producers(self) -> dict[str, str]:
        """The unfused node that writes each buffer."""
        return {buffer.name: leaf.name for leaf in self.leaves.values() for buffer in leaf.outputs}

    @cached_property
    def layouts(self) -> dict[str, BufferLayout]:
        """The layout of each buffer, as far as printed."""
        found: dict[str, BufferLayout] = {}
        for leaf in self.leaves.values():
            for name, layout, _ in leaf.layouts:
                found.setdefault(name, layout)
            for buffer in leaf.outputs:
                if buffer.layout is not None:
                    found.setdefault(buffer.name, buffer.layout)
        return found

    @cached_property
    def _composed(self) -> dict[str, tuple[str, ...]]:
        """The unfused nodes in every fused one, nested ones too."""
        found: dict[str, tuple[str, ...]] = {}
        stack = [*self.graph.pre, *self.graph.post]
        while stack:
            node = stack.pop()
            if node.children:
                found[node.name] = tuple(leaf.name for leaf in node.leaves())
                stack.extend(node.children)
        return found

    def named(self, name: str) -> tuple[str, ...]:
        """Return the unfused nodes that `name` means: a node, a fused one, or a buffer that one writes.

        Raises:
            NotFoundError: nothing of that name; near names are offered.
        """
        if name in self.leaves:
            return (name,)
        if name in self._composed:
            return self._composed[name]
        if name in self.producers:
            return (self.producers[name],)
        if (parts := self.members(name)) is not None:
            return parts
        if name in self.inputs:
            raise NotFoundError(
                f"{name} is an input of {self.graph.name}: no node makes it, so that none can be fused",
                "name a node (op3) or a buffer that one writes (buf3)",
            )
        known = [*self.leaves, *self.producers, *self._composed]
        raise NotFoundError(f"{self.graph.name} has no node or buffer {name}", near_names(name, known))

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Buffers that are read and that no node writes."""
        read = {dep.name for leaf in self.leaves.values() for dep in leaf.reads}
        return frozenset(read - self.producers.keys())

    def members(self, name: str) -> tuple[str, ...] | None:
        """Take a name of the log apart (`op3_op4`); None when it has nodes that are not of this graph."""
        if name in self.leaves:
            return (name,)
        if name in self._composed:
            return self._composed[name]
        parts = tuple(name.split("_"))
        return parts if all(part in self.leaves for part in parts) else None
