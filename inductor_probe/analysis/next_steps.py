"""What to look into after a dump, from what is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.analysis.graph import index_of, read_names
from inductor_probe.analysis.layouts import outlines
from inductor_probe.model.code import CppFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.runs import NextStep
from inductor_probe.model.span import Problem

_MOST = 2
_LEAST_BYTES = 4096
"""Nodes that share less are not worth a question why they were not fused."""
_GENERATED = ("ComputedBuffer", "TemplateBuffer")
"""What nodes are lowered to that inductor writes code for: those may be fused."""


def next_steps(problems: Sequence[Problem], graphs: Sequence[CompiledGraph]) -> tuple[NextStep, ...]:
    """Return the steps that a run calls for, the most urgent first: what is missing, then what is slow.

    Where nothing does, kernels can be measured.
    """
    if not graphs:
        return (NextStep("doctor"),)
    if problems or any(graph.problems for graph in graphs):
        return (NextStep("unread"),)
    steps = [*_scalar(graphs), *_apart(graphs)]
    return tuple(steps[:_MOST]) or (NextStep("measure", graphs[0].name),)


def _scalar(graphs: Sequence[CompiledGraph]) -> Iterator[NextStep]:
    """Yield the graph with most kernels that have scalar loops."""
    by_graph = {
        graph.name: tuple(
            kernel.name
            for kernel in (graph.code.kernels if graph.code else ())
            if isinstance(kernel.details, CppFacts) and kernel.details.count("scalar")
        )
        for graph in graphs
    }
    graph, kernels = max(by_graph.items(), key=lambda item: len(item[1]))
    if kernels:
        yield NextStep("scalar", graph, kernels)


def _apart(graphs: Sequence[CompiledGraph]) -> Iterator[NextStep]:
    """Yield the two nodes of which one reads most that the other writes: memory between two kernels.

    `probe fusion` says why the scheduler did not fuse them.
    """
    pairs = [(shared, graph.name, names) for graph in graphs for shared, names in _pairs(graph)]
    if pairs:
        shared, graph_name, names = max(pairs, key=lambda pair: pair[0])
        if shared >= _LEAST_BYTES:
            yield NextStep("apart", graph_name, names, shared)


def _pairs(graph: CompiledGraph) -> Iterator[tuple[int, tuple[str, str]]]:
    sizes = {row.buffer: _size(row) for row in outlines(graph)}
    index = index_of(graph).post
    generated = {top.name: top for top in graph.post if _generated(top)}
    for top in generated.values():
        shared: dict[str, int] = {}
        read = {name for leaf in index.members[top.name] for name in read_names(index.leaf[leaf])}
        for buffer in read & index.producer.keys():
            writer = index.top[index.producer[buffer]].name
            if writer in generated and writer != top.name:
                shared[writer] = shared.get(writer, 0) + sizes.get(buffer, 0)
        yield from ((size, (writer, top.name)) for writer, size in shared.items())


def _generated(node: SchedulerNode) -> bool:
    return all(leaf.ir in _GENERATED for leaf in node.leaves())


def _size(row: LayoutRow) -> int:
    size = row.size_bytes if row.recorded_bytes is None else row.recorded_bytes
    return size if isinstance(size, int) else 0
