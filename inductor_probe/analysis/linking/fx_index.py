"""An FX graph with its nodes by name, their users, and the walks over it that linking needs."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from inductor_probe.analysis.graph import once_per_graph
from inductor_probe.analysis.linking.fx_ops import ITEM, VIEWS
from inductor_probe.analysis.linking.shapes import fx_shape
from inductor_probe.analysis.operators import operator
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxGraph, FxNode

_FAR = 400
"""FX nodes that a walk visits at most: no kernel computes more of them for one node."""
_SEEDS = "inductor_seeds"
_LISTS = "_foreach_"
_LIST = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Cone:
    """What computes `value` from the values that are in memory.

    Attributes:
        nodes: in the order of the graph, `value` last; empty when `value` is in memory itself.
        reached: the values in memory that it starts from.
        closed: False when it needs something else from memory, or very many nodes: the others are empty then.
    """

    value: str
    nodes: tuple[str, ...]
    reached: frozenset[str]
    closed: bool


class FxIndex:
    """The graph by name.

    Attributes:
        nodes: inputs, then the others in order.
        op: what each node does, in a word. An item of an operation on lists does what that operation does.
        does: the same, and whether its value is of floating point.
        needs: what each node computes with. That is not what it overwrites, and for an item of an operation
            on lists it is the elements of the lists at its place.
        users: the other way round.
        seeds: random seeds.
        roots: what is in memory before anything is computed: inputs, constants of the module, random seeds.
        sizes: nodes that are numbers (`Sym(s77)`): kernels are handed them, none computes them.
        free: nodes that need nothing from memory.
    """

    def __init__(self, graph: FxGraph) -> None:
        self.graph = graph
        self.inputs = {node.name: node for node in graph.inputs}
        self.nodes = {**self.inputs, **{node.name: node for node in graph.nodes}}
        self.place = {name: at for at, name in enumerate(self.nodes)}
        self.op = {name: operator(node.target).name for name, node in self.nodes.items()}
        self.shape = {name: fx_shape(node) for name, node in self.nodes.items()}
        self.seeds = {name for name, op in self.op.items() if op == _SEEDS}
        self.roots = {
            *self.inputs,
            *self.seeds,
            *(node.name for node in graph.nodes if node.target == "self"),
        }
        self.sizes = {
            name for name, node in self.nodes.items() if self.op[name] == "sym_size" or _is_size(node)
        }
        self.free = self.sizes & self.inputs.keys()
        self.users: dict[str, list[str]] = {}
        self.needs: dict[str, tuple[str, ...]] = dict.fromkeys(self.inputs, ())
        self._lists: dict[str, list[list[str]]] = {}
        for node in graph.nodes:
            self.needs[node.name] = self._needs(node)
            for name in self.needs[node.name]:
                self.users.setdefault(name, []).append(node.name)
            if node.name not in self.roots and all(name in self.free for name in self.needs[node.name]):
                self.free.add(node.name)
        self.does = {name: (op, self.shape[name].floating) for name, op in self.op.items()}

    def _needs(self, node: FxNode) -> tuple[str, ...]:
        if self.op[node.name] == "copy_":
            return node.inputs[1:]
        whole = self.whole(node.name)
        if whole == node.name or not self.op[whole].startswith(_LISTS):
            return node.inputs
        self.op[node.name] = self.op[whole].removeprefix(_LISTS).removesuffix("_")
        if whole not in self._lists:
            found = _LIST.finditer(self.nodes[whole].arguments)
            self._lists[whole] = [[part.strip() for part in match[1].split(",")] for match in found]
        place = node.arguments.rpartition("[")[2].rstrip("]")
        at = int(place) if place.isdecimal() and len(place) < 9 else -1
        return tuple(
            names[at] for names in self._lists[whole] if 0 <= at < len(names) and names[at] in self.nodes
        )

    def overwrites(self, name: str, buffer: str) -> bool:
        """Whether a node changes `buffer` in place: `copy_`, `index_put_`, an item of `_foreach_add_`."""
        whole = self.whole(name)
        changed = self.needs[name][:1] if whole != name else self.nodes[name].inputs[:1]
        return self.op[whole].endswith("_") and buffer in changed

    def whole(self, name: str) -> str:
        """Return the node that `name` is an item of, itself when it is no item: items are not computed."""
        node = self.nodes[name]
        return node.inputs[0] if node.target == ITEM and node.inputs else name

    def cone(self, value: str, known: Collection[str]) -> Cone:
        """Walk back from `value` to the values in `known`, which are in memory."""
        needs, sizes, roots, free = self.needs, self.sizes, self.roots, self.free
        found: set[str] = set()
        reached: set[str] = set()
        stack = [value]
        while stack:
            name = stack.pop()
            if name in found or name in reached:
                continue
            if name in known:
                reached.add(name)
                continue
            if name not in sizes:
                found.add(name)
            stack.extend(needs.get(name, ()))
            if name not in needs or (name in roots and name not in free) or len(found) > _FAR:
                return Cone(value, (), frozenset(), closed=False)
        return Cone(value, tuple(sorted(found, key=self.place.__getitem__)), frozenset(reached), closed=True)

    def reachable(self, known: Collection[str], within: Collection[str] | None) -> tuple[str, ...]:
        """Return the nodes that can be computed from `known` alone, in order; those in `within` if given."""
        needs, users = self.needs, self.users
        covered: set[str] = set()
        there = {*known, *self.free}
        queue = deque(known)
        while queue and len(covered) < _FAR:
            for user in users.get(queue.popleft(), ()):
                if user in covered or user in known:
                    continue
                if within is not None and user not in within and self.whole(user) not in within:
                    continue
                if there.issuperset(needs[user]):
                    covered.add(user)
                    there.add(user)
                    queue.append(user)
        return tuple(sorted(covered, key=self.place.__getitem__))

    def before(self, value: str, within: Collection[str]) -> set[str]:
        """Return the nodes of `within` that lead to `value` through nodes of `within` and views alone."""
        found: set[str] = set()
        seen = {value}
        stack = [value]
        while stack:
            for name in self.needs.get(stack.pop(), ()):
                if name not in seen and (name in within or self.op.get(name) in VIEWS):
                    seen.add(name)
                    stack.append(name)
                    if name in within:
                        found.add(name)
        return found

    def sorted(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return `names` in the order of the graph; those it does not have come last."""
        known: list[str] = []
        strange: list[str] = []
        for name in names:
            (known if name in self.place else strange).append(name)
        return (*sorted(known, key=self.place.__getitem__), *strange)


@once_per_graph
def fx_index(graph: CompiledGraph) -> FxIndex | None:
    """Return the index of the FX graph that was lowered, None where it was not dumped."""
    return FxIndex(graph.fx) if graph.fx else None


def _is_size(node: FxNode) -> bool:
    return (node.type or "").startswith(("Sym(", "sym", "int"))
