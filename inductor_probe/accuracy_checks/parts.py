"""The nodes of a graph that one launch computes, as a graph that reads what the launch reads."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from inductor_probe.accuracy_checks.faults import draws, operator_of
from inductor_probe.accuracy_checks.values import Value, outputs_of


class Part:
    """The nodes of a graph that a launch computes, as a graph that reads what the launch reads.

    Args:
        graph: of all. targets: names of the nodes whose values are looked at.
        stored: names of those that other launches store: they are read. known: gives their values.

    Attributes:
        nodes: in the order of the graph. reads: nodes whose values it reads, and their `inputs`.
        targets: nodes; of a copy to an input what is copied.
    """

    def __init__(
        self, graph: Any, targets: Iterable[str], stored: set[str], known: Callable[[Any], Any]
    ) -> None:
        nodes = {node.name: node for node in graph.graph.nodes}
        self.targets = [source(nodes[name]) for name in targets]
        self.nodes: list[Any] = []
        self.reads: list[Any] = []
        seen: set[str] = set()
        for target in self.targets:
            self._collect(target, stored, seen)
        order = {name: place for place, name in enumerate(nodes)}
        self.nodes.sort(key=lambda node: order[node.name])
        self.inputs: list[Any] = [known(node) for node in self.reads]
        self._root = graph

    def _collect(self, node: Any, stored: set[str], seen: set[str]) -> None:
        """Find what a node is computed from, as far as the kernel computes it."""
        if node.name in seen:
            return
        seen.add(node.name)
        is_drawn = node.target is operator.getitem and draws(operator_of(node))
        leaf = node.op in ("placeholder", "get_attr") or node.name in stored or is_drawn
        if leaf and node not in self.targets:
            self.reads.append(node)
            return
        for operand in node.all_input_nodes:
            self._collect(operand, stored, seen)
        self.nodes.append(node)

    def graph(self, outputs: Sequence[Any]) -> Any:
        """Return the graph, with some of its nodes as outputs."""
        made = torch.fx.Graph()
        of: dict[Any, Any] = {}
        for node in self.reads:
            of[node] = made.placeholder(node.name)
            of[node].meta = dict(node.meta)
        for node in self.nodes:
            of[node] = made.node_copy(node, lambda one: of[one])
        end = made.output(tuple(of[node] for node in outputs))
        end.meta["user_visible_output_idxs"] = list(range(len(outputs)))
        return torch.fx.GraphModule(self._root, made)

    def depends(self, node: Any, others: Iterable[Any]) -> bool:
        """Whether a node is computed from one of others."""
        wanted, left, seen = {*others}, [node], set[Any]()
        while left:
            one = left.pop()
            for operand in one.all_input_nodes:
                if operand in wanted:
                    return True
                if operand not in seen and operand in self.nodes:
                    seen.add(operand)
                    left.append(operand)
        return False

    def values(self) -> list[Any]:
        """Return the nodes whose value a kernel can store: no views, and no tuples."""
        return [
            node
            for node in self.nodes
            if isinstance(node.meta.get("val"), torch.Tensor) and not getattr(node.target, "is_view", False)
        ]

    def references(self, noise: int | None = None) -> list[Value | None]:
        """Run it in float64 beside its dtypes, from exact operands: what the targets are; see `Shadow`."""
        return outputs_of(self.graph(self.targets), self.inputs, noise)[: len(self.targets)]


def source(node: Any) -> Any:
    """Return the value that a copy at the end of a graph writes to an input."""
    return node.args[1] if operator_of(node) in ("aten.copy_", "aten.copy") else node
