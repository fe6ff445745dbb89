"""One of the two graphs, indexed for the comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inductor_probe.analysis.canonical import canonical
from inductor_probe.analysis.diff.body import BodyText, body_text
from inductor_probe.analysis.diff.placed import Placed, Returned, placed_buffers, returned_values
from inductor_probe.analysis.diff.symbols import Symbols
from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import links
from inductor_probe.analysis.operators import operator
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode, WeakDep
from inductor_probe.model.links import Links


@dataclass(frozen=True, slots=True)
class ComparedGraph:
    """A graph with everything that matching asks for by name.

    Attributes:
        nodes: unfused nodes in the order of the IR. group: the fused node that holds each.
        texts: the body of each node that has one.
        work: what each node does, in a form that equals that of any node that does the same. loose: the
            same without indices and trip counts.
        reads, writes: buffers of each node; those of a body in the order of first use.
        producer: the node that writes a buffer. readers: the nodes that read it.
        placed: buffers and inputs.
        returns: what the graph returns. returned_at: the positions at which each buffer is returned.
    """

    graph: CompiledGraph
    symbols: Symbols
    nodes: dict[str, SchedulerNode]
    group: dict[str, str]
    texts: dict[str, BodyText]
    work: dict[str, str]
    loose: dict[str, str]
    reads: dict[str, tuple[str, ...]]
    writes: dict[str, tuple[str, ...]]
    producer: dict[str, str]
    readers: dict[str, tuple[str, ...]]
    placed: dict[str, Placed]
    returns: tuple[Returned, ...]
    returned_at: dict[str, tuple[int, ...]]
    links: Links

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the devices of its nodes and buffers, each once, sorted."""
        found = {node.device for node in self.nodes.values()}
        found |= {placed.layout.device for placed in self.placed.values() if placed.layout}
        return tuple(sorted(device for device in found if device))

    def in_order(self) -> list[str]:
        """Return the nodes, producers before readers, whatever the order of the file."""
        waiting = {
            name: {self.producer[read] for read in reads if read in self.producer} - {name}
            for name, reads in self.reads.items()
        }
        counts = {name: len(before) for name, before in waiting.items()}
        after: dict[str, list[str]] = {}
        for name, before in waiting.items():
            for earlier in before:
                after.setdefault(earlier, []).append(name)
        ready = [name for name, count in counts.items() if not count]
        for name in ready:  # grows while it is walked
            for later in after.get(name, ()):
                counts[later] -= 1
                if not counts[later]:
                    ready.append(later)
        done = set(ready)
        return [*ready, *(name for name in self.nodes if name not in done)]  # a damaged dump can have a cycle


def compared_graph(graph: CompiledGraph) -> ComparedGraph:
    """Index a graph."""
    symbols = Symbols(graph)
    index = index_of(graph).nodes
    nodes = index.leaf
    texts = {name: body_text(node.body, symbols) for name, node in nodes.items() if node.body}
    writes = {name: tuple(buffer.name for buffer in node.outputs) for name, node in nodes.items()}
    reads = {name: tuple(_reads(node, texts.get(name))) for name, node in nodes.items()}
    readers: dict[str, list[str]] = {}
    for name, buffers in reads.items():
        for buffer in buffers:
            readers.setdefault(buffer, []).append(name)
    returns = returned_values(graph)
    returned_at: dict[str, list[int]] = {}
    for at, value in enumerate(returns):
        if value.buffer is not None:
            returned_at.setdefault(value.buffer, []).append(at)
    return ComparedGraph(
        graph=graph,
        symbols=symbols,
        nodes=nodes,
        group={name: top.name for name, top in index.top.items()},
        texts=texts,
        work={name: _work(node, texts.get(name)) for name, node in nodes.items()},
        loose={name: _loose(node, texts.get(name)) for name, node in nodes.items()},
        reads=reads,
        writes=writes,
        producer=index.producer,
        readers={buffer: tuple(names) for buffer, names in readers.items()},
        placed=placed_buffers(graph),
        returns=returns,
        returned_at={buffer: tuple(places) for buffer, places in returned_at.items()},
        links=links(graph),
    )


def _reads(node: SchedulerNode, text: BodyText | None) -> Iterator[str]:
    """Buffers whose values a node uses: those that its body loads, else those that it depends on."""
    if text is not None:
        yield from text.reads
        return
    own = {buffer.name for buffer in node.outputs}
    yield from dict.fromkeys(
        dep.name for dep in node.reads if not isinstance(dep, WeakDep) and dep.name not in own
    )


def _work(node: SchedulerNode, text: BodyText | None) -> str:
    return canonical(node) or _loose(node, text)


def _loose(node: SchedulerNode, text: BodyText | None) -> str:
    if text is not None:
        return "\n".join(text.bare)
    return f"{node.ir} {called(node.kernel)} {len(node.outputs)}"


def called(target: str | None) -> str:
    """Return a library call's target as all versions spell it: `aten.cumsum`, also of `default` and `out`."""
    call = operator(target or "")
    return call.packet if call.overload == "out" else call.signature
