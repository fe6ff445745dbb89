"""One of the two graphs, indexed for the comparison: what each node does, and where each buffer lies.

The IR says how a buffer was planned, the wrapper how it was allocated; a comparison needs both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.canonical import canonical
from inductor_probe.analysis.diff.normal_forms import BodyText, Symbols, body_text
from inductor_probe.analysis.graph import buffer_in, index_of, view_of
from inductor_probe.analysis.links import links
from inductor_probe.analysis.operators import operator
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout, SchedulerNode, WeakDep
from inductor_probe.model.record import collected

Labels = dict[int, tuple[int | None, int]]
"""Positions of what a graph returns, each with a label that its partner on the other side has as well: the FX
value that both return, None for others, and how many of the same stand before it."""


class PlacedBuffer(Struct, frozen=True):
    """A buffer: its layout as planned and as allocated, and where its memory comes from.

    `memory` is `new`, `reuse`, `view`, `alias`, `input`, or `none` for a buffer without memory of its own.
    """

    planned: BufferLayout | None
    allocated: BufferLayout | None
    memory: str | None

    @property
    def layout(self) -> BufferLayout | None:
        """The planned layout, completed from the allocated one."""
        if self.planned is None or self.planned.size is None:
            return self.allocated or self.planned
        if self.planned.dtype is None and self.allocated is not None:
            return replace(self.planned, dtype=self.allocated.dtype, device=self.allocated.device)
        return self.planned


class ComparedGraph:
    """A graph with everything that matching asks for by name, and the pairs that its parts belong to.

    Attributes:
        nodes: unfused nodes in the order of the IR. group: the fused node that holds each.
        texts: the body of each node that has one.
        work: what each node does, in a form that equals that of any node that does the same. loose: the
            same without indices and trip counts.
        reads, writes: buffers of each node; those of a body in the order of first use.
        producer: the node that writes a buffer. readers: the nodes that read it.
        placed: buffers and inputs.
        returns: for each returned value its buffer (None for None and numbers), and the view of it, if any.
        returned_at: the positions at which each buffer is returned. labels: see `Labels`.
        node_pairs, buffer_pairs: the number of the pair that a node or buffer belongs to.
    """

    def __init__(self, graph: CompiledGraph) -> None:
        self.graph = graph
        self.symbols = Symbols(graph)
        self.links = links(graph)
        index = index_of(graph).nodes
        self.nodes = index.leaf
        self.group = {name: top.name for name, top in index.top.items()}
        self.producer = index.producer
        self.texts = {
            name: body_text(node.body, self.symbols) for name, node in self.nodes.items() if node.body
        }
        self.loose = {name: _loose(node, self.texts.get(name)) for name, node in self.nodes.items()}
        self.work = {name: canonical(node) or self.loose[name] for name, node in self.nodes.items()}
        self.writes = {name: [buffer.name for buffer in node.outputs] for name, node in self.nodes.items()}
        self.reads = {name: _reads(node, self.texts.get(name)) for name, node in self.nodes.items()}
        self.readers = collected((buffer, name) for name, buffers in self.reads.items() for buffer in buffers)
        self.placed = _placed_buffers(graph)
        self.returns = tuple(_returned_values(graph))
        placed = ((returned, place) for place, (returned, _) in enumerate(self.returns))
        self.returned_at = collected((returned, place) for returned, place in placed if returned is not None)
        self.labels: Labels = {}
        self.node_pairs: dict[str, int] = {}
        self.buffer_pairs: dict[str, int] = {}

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The graph's inputs in calling order."""
        names = self.graph.code.inputs if self.graph.code else ()
        return names or tuple(node.name for node in (self.graph.fx.inputs if self.graph.fx else ()))

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """The devices of its nodes and buffers, each once, sorted."""
        devices = {node.device for node in self.nodes.values()}
        devices |= {placed.layout.device for placed in self.placed.values() if placed.layout}
        return tuple(sorted(device for device in devices if device))

    def layout(self, buffer: str | None) -> BufferLayout | None:
        """Return how a buffer lies, None where that is not known."""
        placed = self.placed.get(buffer or "")
        return placed.layout if placed else None

    def unmatched(self) -> list[str]:
        """Return the nodes without a partner, in order."""
        return [name for name in self.nodes if name not in self.node_pairs]

    def in_order(self) -> list[str]:
        """Return the nodes, producers before readers (Kahn's algorithm), whatever the order of the file."""
        before = {
            name: {self.producer[read] for read in reads if read in self.producer} - {name}
            for name, reads in self.reads.items()
        }
        counts = {name: len(earlier) for name, earlier in before.items()}
        after = collected((producer, name) for name, earlier in before.items() for producer in earlier)
        ready = [name for name, count in counts.items() if not count]
        for name in ready:  # grows while it is walked
            for reader in after.get(name, ()):
                counts[reader] -= 1
                if not counts[reader]:
                    ready.append(reader)
        return list(dict.fromkeys([*ready, *self.nodes]))  # a damaged dump can have a cycle

    def around(self, name: str, reading: bool, using: bool) -> Hashable | None:
        """Return the pairs of what stands before and after a node; None where nothing of that has one."""
        pairs = sorted(map(self.buffer_pairs.get, self.reads[name]), key=_none_first)
        reads = tuple(pairs) if reading else ()
        uses = self._use_pairs(name) if using else ()
        known = (any(part is not None for part in parts) for parts in (reads, uses) if parts)
        return (reads, uses) if (reads or uses) and all(known) else None

    def _use_pairs(self, name: str) -> tuple[Hashable, ...]:
        readers = dict.fromkeys(
            reader for buffer in self.writes[name] for reader in self.readers.get(buffer, ())
        )
        pairs = sorted((self.node_pairs.get(reader) for reader in readers if reader != name), key=_none_first)
        return (*pairs, *sorted(f"returned {self.labels.get(place)}" for place in self.returned_places(name)))

    def returned_places(self, name: str) -> list[int]:
        """Return the positions at which what a node writes is returned."""
        return [place for buffer in self.writes[name] for place in self.returned_at.get(buffer, ())]


def _none_first(number: int | None) -> int:
    return -1 if number is None else number


def _reads(node: SchedulerNode, text: BodyText | None) -> list[str]:
    """Buffers whose values a node uses: those that its body loads, else those that it depends on."""
    if text is not None:
        return list(text.reads)
    outputs = {buffer.name for buffer in node.outputs}
    deps = (dep.name for dep in node.reads if not isinstance(dep, WeakDep) and dep.name not in outputs)
    return list(dict.fromkeys(deps))


def _loose(node: SchedulerNode, text: BodyText | None) -> str:
    return "\n".join(text.bare) if text else f"{node.ir} {called(node.kernel)} {len(node.outputs)}"


def called(target: str | None) -> str:
    """Return a library call's target as all versions spell it: `aten.cumsum`, also of `default` and `out`."""
    call = operator(target or "")
    return call.packet if call.overload == "out" else call.signature


def _placed_buffers(graph: CompiledGraph) -> dict[str, PlacedBuffer]:
    """Return every buffer and input of the graph."""
    index = index_of(graph)
    planned, buffers, allocations = index.nodes.layouts, index.nodes.buffers, index.allocations
    filled_by_calls = {name for call in (graph.code.externs if graph.code else ()) for name in call.outputs}
    placed: dict[str, PlacedBuffer] = {}
    for name in dict.fromkeys([*allocations, *planned, *buffers]):
        mutated = buffers[name].mutations[:1] if name in buffers else ()
        allocation = next((allocations[alias] for alias in (name, *mutated) if alias in allocations), None)
        memory = None if graph.code is None else "new" if name in filled_by_calls else "none"
        if allocation is None:
            placed[name] = PlacedBuffer(planned.get(name), None, memory)
        else:
            placed[name] = PlacedBuffer(planned.get(name), allocation.layout, allocation.kind)
    return placed


def _returned_values(graph: CompiledGraph) -> Iterator[tuple[str | None, BufferLayout | None]]:
    """Yield what the graph returns, in order; without a wrapper, the buffers with OUTPUT as a user."""
    if graph.code is None or graph.code.entry is None:
        yield from ((name, None) for name in index_of(graph).nodes.returned)
        return
    for text in graph.code.returns:
        view = view_of(text)
        name = buffer_in(text)
        is_buffer = name.isidentifier() and name != "None" and (view is not None or name == text)
        yield name if is_buffer else None, view
