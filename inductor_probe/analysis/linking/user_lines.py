"""The user's lines that FX nodes came from."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.span import SourceLine


class UserLines:
    """Lines by FX node; one that a pass made has none."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._lines = {node.name: node.source for node in graph.fx.nodes} if graph.fx else {}

    def of(self, name: str) -> SourceLine | None:
        """Return the line of an FX node."""
        return self._lines.get(name)

    def of_all(self, names: Iterable[str]) -> tuple[SourceLine, ...]:
        """Return the lines of FX nodes, each once."""
        lines = map(self.of, names)
        return tuple(dict.fromkeys(line for line in lines if line is not None))
