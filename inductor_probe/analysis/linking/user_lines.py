"""The user's lines that FX nodes came from."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.span import SourceLine


class UserLines:
    """Lines by FX node. One that a pass made has none: then those of the nodes it was made from."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._after = {node.name: node.source for node in graph.fx.nodes} if graph.fx else {}
        self._before = {node.name: node.source for node in graph.fx_before.nodes} if graph.fx_before else {}
        self._made_from = graph.provenance.post_to_pre if graph.provenance else {}

    def of(self, name: str) -> tuple[SourceLine, ...]:
        """Return the lines of an FX node, each once."""
        own = self._after.get(name)
        if own is not None:
            return (own,)
        made_from = self._made_from.get(name, (name,))
        lines = (self._before.get(before) for before in made_from)
        return tuple(dict.fromkeys(line for line in lines if line is not None))

    def of_all(self, names: Iterable[str]) -> tuple[SourceLine, ...]:
        """Return the lines of several FX nodes, each once."""
        return tuple(dict.fromkeys(line for name in names for line in self.of(name)))
