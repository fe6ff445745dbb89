"""The FX graph that inductor lowered, as `fx_graph_transformed.py` or `fx_graph_readable.py` prints it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from inductor_probe.model.span import Problem, SourceLine, Span


@dataclass(frozen=True, slots=True)
class FxNode:
    """One node: `target(args)`, with its printed type (`f32[4, 3]`) and the user's line it came from.

    `target` is `[]` for an item (`getitem = var_mean[0]`), `self` for an attribute of the module, and the
    operator for arithmetic on sizes. `arguments` is the text it is applied to, `inputs` the nodes named
    there, each once.
    """

    name: str
    target: str
    type: str | None
    source: SourceLine | None
    arguments: str = ""
    inputs: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class FxGraph:
    """The graph's nodes in order, its inputs and the names of what it returns (None for a None output)."""

    inputs: tuple[FxNode, ...]
    nodes: tuple[FxNode, ...]
    outputs: tuple[str | None, ...]
    problems: tuple[Problem, ...] = ()

    def node(self, name: str) -> FxNode | None:
        """Return the node called `name`."""
        return self._by_name.get(name)

    @cached_property  # which needs a `__dict__`, so this record has no slots
    def _by_name(self) -> dict[str, FxNode]:
        return {node.name: node for node in reversed(self.nodes)}
