"""The index of a graph: each map from a name to what has it, made when first asked for, once per graph.

Every analysis takes its maps from here, and `once_per_graph` stores further conclusions beside the index.
Both are in the graph itself (`CompiledGraph.derived`), and live as long as it does. A cache by `id(graph)`
would have to hold graphs alive: Python gives the number of one that is gone to another.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, wraps
from typing import TypeVar

from msgspec.structs import replace

from inductor_probe.analysis.index import parse_expression
from inductor_probe.model.code import Allocation, Kernel, OutputCode
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FxNode
from inductor_probe.model.ir import Buffer, BufferLayout, MemoryDep, SchedulerNode, StarDep
from inductor_probe.model.record import collected
from inductor_probe.model.span import SourceLine
from inductor_probe.reader.wrapper import view_layout

Derived = TypeVar("Derived")

_NAME = re.compile(r"[A-Za-z_]\w*")
_VIEW = re.compile(r"(?:reinterpret_tensor|alloc_from_pool)\((\w+),")
_SAME_MEMORY = ("reuse", "view", "alias")
_SAME_LAYOUT = ("reuse", "alias")
OUTPUT = "OUTPUT"
"""The user of a buffer that the graph returns (`OutputNode.get_name` in `torch/_inductor/scheduler.py`)."""


def once_per_graph(derive: Callable[[CompiledGraph], Derived]) -> Callable[[CompiledGraph], Derived]:
    """Decorate a function of a graph: what it returns is stored in the graph, and returned again.

    The result must not hold the graph: a cycle would keep both until the garbage collector runs.
    """
    key = f"{derive.__module__}.{derive.__qualname__}"

    @wraps(derive)
    def stored(graph: CompiledGraph) -> Derived:
        if key not in graph.derived:
            graph.derived[key] = derive(graph)
        derived: Derived = graph.derived[key]
        return derived

    return stored


class NodeIndex:
    """The scheduler's nodes of one IR file, `tops` as they stand there: fused ones with their children.

    Of two of one name, as a damaged dump has, the last counts.
    """

    def __init__(self, tops: Sequence[SchedulerNode]) -> None:
        self.tops = tops

    @cached_property
    def leaves(self) -> tuple[SchedulerNode, ...]:
        """The unfused nodes, in order."""
        return tuple(leaf for top in self.tops for leaf in top.leaves())

    @cached_property
    def leaf(self) -> dict[str, SchedulerNode]:
        """Each unfused node by name."""
        return {leaf.name: leaf for leaf in self.leaves}

    def named(self, names: Iterable[str]) -> list[SchedulerNode]:
        """Return the unfused nodes of some names, as far as they are there."""
        return [self.leaf[name] for name in names if name in self.leaf]

    @cached_property
    def top(self) -> dict[str, SchedulerNode]:
        """By unfused node, the node that it is fused into; itself where it is not fused."""
        return {leaf.name: top for top in self.tops for leaf in top.leaves()}

    @cached_property
    def members(self) -> dict[str, tuple[str, ...]]:
        """By node of the file, the unfused nodes in it; itself where it is not fused."""
        return {top.name: tuple(leaf.name for leaf in top.leaves()) for top in self.tops}

    @cached_property
    def node(self) -> dict[str, SchedulerNode]:
        """Each node by name: unfused ones, fused ones, and those fused on the way to a larger one."""
        nodes: dict[str, SchedulerNode] = {}
        stack = list(reversed(self.tops))
        while stack:
            node = stack.pop()
            nodes.setdefault(node.name, node)
            stack.extend(reversed(node.children))
        return nodes

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of each unfused node in the order of the file."""
        return {name: place for place, name in enumerate(self.leaf)}

    @cached_property
    def buffers(self) -> dict[str, Buffer]:
        """Each buffer that a node writes, in the order of the nodes."""
        return {buffer.name: buffer for leaf in self.leaves for buffer in leaf.outputs}

    @cached_property
    def producer(self) -> dict[str, str]:
        """By buffer, the unfused node that writes it."""
        return {buffer.name: leaf.name for leaf in self.leaves for buffer in leaf.outputs}

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """By buffer or input, the unfused nodes that read it, in order."""
        return collected((name, leaf.name) for leaf in self.leaves for name in read_names(leaf))

    @cached_property
    def mutated_as(self) -> dict[str, tuple[str, ...]]:
        """By buffer or input, the names that nodes have for it once one of them has changed it in place."""
        buffers = self.buffers.values()
        return collected((mutated, buffer.name) for buffer in buffers for mutated in buffer.mutations)

    @cached_property
    def layouts(self) -> dict[str, BufferLayout]:
        """By buffer or input, the first layout that the file prints; none before torch 2.4."""
        layouts: dict[str, BufferLayout] = {}
        for leaf in self.leaves:
            for buffer in leaf.outputs:
                if buffer.layout is not None:
                    layouts.setdefault(buffer.name, buffer.layout)
            for name, layout, _ in leaf.layouts:
                layouts.setdefault(name, layout)
        return layouts

    @cached_property
    def returned(self) -> tuple[str, ...]:
        """The buffers that the graph returns, by their users, in the order of the nodes."""
        return tuple(
            buffer.name
            for leaf in self.leaves
            for buffer in leaf.outputs
            if any(user.node == OUTPUT for user in buffer.users)
        )


class GraphIndex:
    """What a graph has by name. A part that was not dumped has no names.

    Attributes:
        pre, post: the nodes before fusion and after, as in `CompiledGraph`.
        nodes: those that code was generated for: `post`, or else `pre`.
        before: those that fusion began with: `pre`, or else `post`.
        subgraphs: the names of its subgraphs, the longest first.
    """

    def __init__(self, graph: CompiledGraph) -> None:
        self._code: OutputCode | None = graph.code
        names = [function.name for function in self._code.subgraphs] if self._code else []
        self.subgraphs = tuple(sorted(names, key=len, reverse=True))
        self._fx = graph.fx
        self.pre = NodeIndex(graph.pre)
        self.post = NodeIndex(graph.post)
        self.before = self.pre if graph.pre else self.post
        self.nodes = self.post if graph.post else self.pre

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The generated kernels, in the order of the code."""
        return self._code.by_name if self._code else {}

    @cached_property
    def allocations(self) -> dict[str, Allocation]:
        """What the wrapper names memory by: inputs, constants, buffers."""
        return {item.name: item for item in self._code.allocations} if self._code else {}

    @cached_property
    def fx(self) -> dict[str, FxNode]:
        """The nodes of the FX graph that was lowered and of its subgraphs, without inputs."""
        return {node.name: node for node in self._fx.nodes} if self._fx else {}

    def source(self, fx: str) -> SourceLine | None:
        """Return the user's line that an FX node came from; one that a pass made has none."""
        node = self.fx.get(fx)
        return node.source if node else None

    def sources(self, fx: Iterable[str]) -> tuple[SourceLine, ...]:
        """Return the lines of FX nodes, each once."""
        return tuple(dict.fromkeys(line for line in map(self.source, fx) if line is not None))

    @cached_property
    def layouts(self) -> dict[str, BufferLayout]:
        """The layout of each buffer: as the IR prints it with size and dtype, else as the wrapper does."""
        layouts: dict[str, BufferLayout] = {}
        for allocation in self._code.allocations if self._code else ():
            layout = allocation.layout
            if layout is None and allocation.of is not None and allocation.kind in _SAME_LAYOUT:
                layout = layouts.get(allocation.of)
            if layout is not None:
                layouts[allocation.name] = layout
        for name, layout in self.nodes.layouts.items():
            if layout.size is not None and layout.dtype is not None:
                layouts[name] = layout
        return layouts

    @cached_property
    def returned(self) -> frozenset[str]:
        """The buffers that the graph returns: as the wrapper says, or else by their users."""
        if self._code is not None:
            return frozenset(buffer_in(text) for text in self._code.returns if _NAME.match(text))
        return frozenset(self.nodes.returned)

    @cached_property
    def returned_by(self) -> dict[str, frozenset[str]]:
        """By subgraph, the buffers that it returns."""
        return {
            part.name: frozenset(buffer_in(text) for text in part.returns if _NAME.match(text))
            for part in (self._code.subgraphs if self._code else ())
        }

    @cached_property
    def _older(self) -> dict[str, str]:
        return {
            item.name: item.of
            for item in (self._code.allocations if self._code else ())
            if item.of is not None and item.kind in _SAME_MEMORY
        }

    def subgraph(self, name: str) -> str | None:
        """Return the subgraph that a node or buffer is of; None for the graph's own.

        `GraphLowering.qualify_name` puts the name of the subgraph before each: `true_graph_0_buf0`.
        """
        return next((part for part in self.subgraphs if name.startswith(f"{part}_")), None)

    def memory_names(self, buffer: str) -> tuple[str, ...]:
        """Return `buffer` and those whose memory it has, latest first: `buf3 = buf1; del buf1  # reuse`."""
        names = [buffer]
        while (older := self._older.get(names[-1])) and older not in names:
            names.append(older)
        return tuple(names)


@once_per_graph
def index_of(graph: CompiledGraph) -> GraphIndex:
    """Return the index of a graph."""
    return GraphIndex(graph)


def without_subgraphs(graph: CompiledGraph) -> CompiledGraph:
    """Return a graph with its own nodes alone: torch schedules each subgraph by itself, behind it."""
    subgraph = index_of(graph).subgraph
    if not (index_of(graph).subgraphs and any(subgraph(top.name) for top in (*graph.pre, *graph.post))):
        return graph
    pre, post = (tuple(top for top in tops if not subgraph(top.name)) for tops in (graph.pre, graph.post))
    return replace(graph, pre=pre, post=post) if pre or post else graph


def read_names(leaf: SchedulerNode) -> tuple[str, ...]:
    """Return the buffers that `leaf` reads, each once; what it only waits for is left out."""
    return tuple(dict.fromkeys(dep.name for dep in leaf.reads if isinstance(dep, MemoryDep | StarDep)))


def buffer_in(text: str) -> str:
    """Return the buffer that an argument names: `reinterpret_tensor(buf3, ...)` names buf3."""
    match = _VIEW.match(text)
    return match[1] if match else text


def view_of(text: str, base: BufferLayout | None = None) -> BufferLayout | None:
    """Return the layout of `reinterpret_tensor(buf0, (4, 3), (3, 1), 12)`, of dtype and device of `base`."""
    try:
        node = parse_expression(text)
    except ValueError:
        return None
    match node:
        case ast.Call(func=ast.Name(id="reinterpret_tensor" as target)):
            layout = view_layout(target, node, base)
            return replace(layout, kind="View") if layout else None
    return None
