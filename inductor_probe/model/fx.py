"""The FX graph that inductor lowered, as `fx_graph_transformed.py` or `fx_graph_readable.py` prints it."""

from __future__ import annotations

from dataclasses import dataclass, field

from inductor_probe.model.span import SourceLine, Span


@dataclass(frozen=True, slots=True)
class FxNode:
    """One node: `target(args)`, with its printed type (`f32[4, 3]`) and the user's line it came from.

    `arguments` is the text between the brackets of the call, `inputs` the nodes it names, each once.
    """

    name: str
    target: str
    type: str | None
    source: SourceLine | None
    arguments: str = ""
    inputs: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FxGraph:
    """The graph's nodes in order, its inputs and the names of what it returns (None for a None output)."""

    inputs: tuple[FxNode, ...]
    nodes: tuple[FxNode, ...]
    outputs: tuple[str | None, ...]

    def node(self, name: str) -> FxNode | None:
        """Return the node called `name`."""
        return next((node for node in self.nodes if node.name == name), None)
