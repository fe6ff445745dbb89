"""An FX graph with its nodes by name, their users and shapes, and the walks over it that linking needs."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Collection, Iterable
from functools import lru_cache

from msgspec import Struct

from inductor_probe.analysis.graph import once_per_graph
from inductor_probe.analysis.linking.fx_ops import ITEM, VIEWS
from inductor_probe.analysis.operators import operator
from inductor_probe.model.code import OutputCode
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FX_DTYPES, FxGraph, FxNode
from inductor_probe.model.ir import Dim, SchedulerNode, as_dim

_FAR = 400
"""FX nodes that a walk visits at most: no kernel computes more of them for one node."""
_SEEDS = "inductor_seeds"
_LISTS = "_foreach_"
_LIST = re.compile(r"\[([^\[\]]*)\]")
_TYPE = re.compile(r"(?P<dtype>[a-z]+\d+\w*)\[(?P<dims>[^\]]*)\]")


class Shape(Struct, frozen=True):
    """Dimensions and dtype, None where they are not known; `numel` is None when it is symbolic, too."""

    dims: tuple[Dim, ...] | None = None
    dtype: str | None = None
    numel: int | None = None

    @property
    def floating(self) -> bool:
        """Whether it is of floating point."""
        return self.dtype is not None and self.dtype.startswith(("float", "bfloat"))

    def may_hold(self, value: Shape) -> bool:
        """Whether a buffer of this shape can hold the value, seen through any view."""
        if value.dims is None or (self.dtype and value.dtype and self.dtype != value.dtype):
            return False
        if self.dims is None:
            return True
        if self.numel is not None and value.numel is not None:
            return self.numel == value.numel
        one, other = (Counter(str(dim) for dim in dims if dim != 1) for dims in (self.dims, value.dims))
        return one == other


def _shape(dims: tuple[Dim, ...] | None, dtype: str | None) -> Shape:
    numel: int | None = None if dims is None else 1
    for dim in dims or ():
        numel = numel * dim if isinstance(dim, int) and numel is not None else None
    return Shape(dims, dtype, numel)


@lru_cache(maxsize=4096)
def _fx_shape(text: str) -> Shape:
    """Read `f32[512, 1000]`."""
    match = _TYPE.match(text)
    if match is None:
        return Shape()
    sizes = tuple(as_dim(size) for part in match["dims"].split(",") if (size := part.strip()))
    return _shape(sizes, FX_DTYPES.get(match["dtype"]))


def buffer_shapes(leaves: Iterable[SchedulerNode], code: OutputCode | None) -> dict[str, Shape]:
    """Return the shape of each buffer that `leaves` write: as printed, or as the wrapper allocates it."""
    shapes = {
        allocation.name: _shape(allocation.layout.size, allocation.layout.dtype)
        for allocation in (code.allocations if code else ())
        if allocation.layout is not None
    }
    for leaf in leaves:
        for buffer in leaf.outputs:
            if buffer.layout is not None and buffer.layout.size is not None:
                shapes[buffer.name] = _shape(buffer.layout.size, buffer.layout.dtype)
            elif buffer.name not in shapes and leaf.sizes:
                shapes[buffer.name] = _shape(leaf.sizes[0], None)
    return shapes


class Cone(Struct, frozen=True):
    """What computes `value` from the values that are in memory.

    Attributes:
        nodes: in the order of the graph, `value` last; empty when `value` is in memory itself.
        reached: the values in memory that it starts from.
    """

    value: str
    nodes: tuple[str, ...]
    reached: frozenset[str] = frozenset()


class FxIndex:
    """The graph by name.

    Attributes:
        inputs: of the graph, and of its subgraphs. nodes: inputs, then the others in order.
        op: what each node does, in a word. An item of an operation on lists does what that operation does.
        does: the same, and whether its value is of floating point.
        needs: what each node computes with. That is not what it overwrites, and for an item of an operation
            on lists it is the elements of the lists at its position.
        users: the other way round.
        seeds: random seeds.
        roots: what is in memory before anything is computed: inputs, constants of the module, random seeds.
        sizes: nodes that are numbers (`Sym(s77)`): kernels are passed them, none computes them.
        free: nodes that need nothing from memory.
    """

    def __init__(self, graph: FxGraph) -> None:
        self.graph = graph
        self.inputs = {node.name: node for node in (*graph.inputs, *graph.subgraph_inputs)}
        self.nodes = {**self.inputs, **{node.name: node for node in graph.nodes}}
        self.position = {name: position for position, name in enumerate(self.nodes)}
        self.op = {name: operator(node.target).name for name, node in self.nodes.items()}
        self.shape = {name: _fx_shape(node.type or "") for name, node in self.nodes.items()}
        self.seeds = {name for name, op in self.op.items() if op == _SEEDS}
        constants = (node.name for node in graph.nodes if node.target == "self")
        self.roots = {*self.inputs, *self.seeds, *constants}
        self.sizes = {
            name
            for name, node in self.nodes.items()
            if self.op[name] == "sym_size" or (node.type or "").startswith(("Sym(", "sym", "int"))
        }
        self.free = self.sizes & self.inputs.keys()
        self.users: dict[str, list[str]] = {}
        self.needs: dict[str, tuple[str, ...]] = dict.fromkeys(self.inputs, ())
        self._lists: dict[str, list[list[str]]] = {}
        for node in graph.nodes:
            needs = self.needs[node.name] = self._needed(node)
            for name in needs:
                self.users.setdefault(name, []).append(node.name)
            if node.name not in self.roots and self.free.issuperset(needs):
                self.free.add(node.name)
        self._from_memory = self.roots - self.free
        self.does = {name: (op, self.shape[name].floating) for name, op in self.op.items()}

    def _needed(self, node: FxNode) -> tuple[str, ...]:
        if self.op[node.name] == "copy_":
            return node.inputs[1:]
        result = self.result(node.name)
        if result == node.name or not self.op[result].startswith(_LISTS):
            return node.inputs
        # Item 1 of `_foreach_add.List([a, b], [c, d])` is `b + d`.
        self.op[node.name] = self.op[result].removeprefix(_LISTS).removesuffix("_")
        if result not in self._lists:
            lists = _LIST.finditer(self.nodes[result].arguments)
            self._lists[result] = [[part.strip() for part in match[1].split(",")] for match in lists]
        text = node.arguments.rpartition("[")[2].rstrip("]")
        item = int(text) if text.isdecimal() and len(text) < 9 else -1
        elements = (names[item] for names in self._lists[result] if 0 <= item < len(names))
        return tuple(name for name in elements if name in self.nodes)

    def overwrites(self, name: str, buffer: str) -> bool:
        """Whether a node changes `buffer` in place: `copy_`, `index_put_`, an item of `_foreach_add_`."""
        result = self.result(name)
        changed = self.needs[name][:1] if result != name else self.nodes[name].inputs[:1]
        return self.op[result].endswith("_") and buffer in changed

    def result(self, name: str) -> str:
        """Return the node that `name` is an item of, itself when it is no item: items are not computed."""
        node = self.nodes[name]
        return node.inputs[0] if node.target == ITEM and node.inputs else name

    def cone(self, value: str, known: Collection[str]) -> Cone | None:
        """Walk back from `value` to the values in `known`, which are in memory (its cone of influence).

        None when it needs something else from memory, or very many nodes.
        """
        inside: set[str] = set()
        reached: set[str] = set()
        needs, sizes, from_memory = self.needs, self.sizes, self._from_memory
        stack = [value]
        while stack:
            name = stack.pop()
            if name in inside or name in reached:
                continue
            if name in known:
                reached.add(name)
                continue
            if name not in sizes:
                inside.add(name)
            if name in from_memory or name not in needs or len(inside) > _FAR:
                return None
            stack += needs[name]
        return Cone(value, self.sorted(inside), frozenset(reached))

    def reachable(self, known: Collection[str], within: Collection[str] | None) -> tuple[str, ...]:
        """Return the nodes that can be computed from `known` alone, in order; those in `within` if given."""
        covered: set[str] = set()
        available = {*known, *self.free}
        queue = deque(known)
        while queue and len(covered) < _FAR:
            for user in self.users.get(queue.popleft(), ()):
                if user in covered or user in known:
                    continue
                if within is not None and user not in within and self.result(user) not in within:
                    continue
                if available.issuperset(self.needs[user]):
                    covered.add(user)
                    available.add(user)
                    queue.append(user)
        return self.sorted(covered)

    def before(self, value: str, within: Collection[str]) -> set[str]:
        """Return the nodes of `within` that lead to `value` through nodes of `within` and views alone."""
        seen = {value}
        stack = [value]
        while stack:
            for name in self.needs.get(stack.pop(), ()):
                if name not in seen and (name in within or self.op.get(name) in VIEWS):
                    seen.add(name)
                    stack.append(name)
        return {name for name in seen if name in within and name != value}

    def sorted(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return `names` in the order of the graph; those it does not have come last."""
        listed = list(names)
        if len(listed) < 2:
            return tuple(listed)
        last = len(self.position)
        return tuple(sorted(listed, key=lambda name: self.position.get(name, last)))


@once_per_graph
def fx_index(graph: CompiledGraph) -> FxIndex | None:
    """Return the index of the FX graph that was lowered, None where it was not dumped."""
    return FxIndex(graph.fx) if graph.fx else None
