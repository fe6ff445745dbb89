"""The user's line behind a line of a kernel, where one is proved."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.operators import operator
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.links import NodeLink
from inductor_probe.model.span import SourceLine


class Sources:
    """Answers for the nodes of one kernel."""

    def __init__(self, graph: CompiledGraph, linked: Iterable[NodeLink]) -> None:
        self._links = {link.node: link for link in linked}
        self._fx = index_of(graph).fx

    def of_node(self, node: str) -> tuple[SourceLine, ...]:
        """Return the lines that a node may come from."""
        link = self._links.get(node)
        return link.sources if link else ()

    def of_line(self, nodes: Iterable[str], calls: frozenset[str]) -> tuple[SourceLine, ...]:
        """Return the lines that a statement of `nodes` may come from: one where it is proved.

        A function that it calls is told by its name: `.rsqrt()` is of `aten.rsqrt`.
        """
        found: dict[tuple[str, int], SourceLine] = {}
        for node in nodes:
            lines = self.of_node(node)
            if len(lines) > 1:
                lines = self._of_calls(node, calls) or lines
            found.update({(line.path, line.line): line for line in lines})
        return tuple(found.values())

    def _of_calls(self, node: str, calls: frozenset[str]) -> tuple[SourceLine, ...]:
        names = self._links[node].fx
        nodes = [self._fx[name] for name in names if name in self._fx]
        called = [node for node in nodes if operator(node.target).name in calls]
        return tuple(node.source for node in called if node.source is not None)
