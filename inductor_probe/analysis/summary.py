"""A run in one table: what was compiled, the remarks about it, and what to look into next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from inductor_probe.analysis.graph import index_of, read_names
from inductor_probe.analysis.index import dims_sum
from inductor_probe.analysis.kernels import fallbacks, kernel_rows
from inductor_probe.analysis.layout_remarks import remarks
from inductor_probe.analysis.layouts import layouts, outlines
from inductor_probe.analysis.memory_format import size_bytes
from inductor_probe.analysis.run_remarks import added_code, run_remarks, still_made, unfinished, why_empty
from inductor_probe.analysis.symbols import recorded, used_symbols
from inductor_probe.model.code import Allocation, CppFacts, ExternCall, Launch
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.model.remark import Remark, by_cost
from inductor_probe.model.runs import GraphSummary, NextStep, RunSummary, SubgraphSummary
from inductor_probe.model.span import Problem, SourceLine, own_lines

_MOST_STEPS = 2
_LEAST_SHARED_BYTES = 4096
"""Nodes that share less are not worth a question why they were not fused."""
_TOOL_LACKING = ("InvalidCxxCompiler", "TritonMissing", "GPUTooOldForTriton")
"""Exceptions of a compile that `probe doctor` says more of."""
_GENERATED = ("ComputedBuffer", "TemplateBuffer")
"""What nodes are lowered to that inductor writes code for: those may be fused."""


def summarise(run: DebugDir, graphs: Iterable[CompiledGraph]) -> RunSummary:
    """Summarise a run from its graphs as read."""
    graphs = tuple(graphs)
    rows = tuple(_graph_summary(graph) for graph in graphs)
    if still_made(run):  # what is compiled now is not "unfinished"
        rows = tuple(
            replace(row, remarks=tuple(one for one in row.remarks if one.code != "unfinished-compile"))
            for row in rows
        )
    empty = None if rows else why_empty(run)
    return RunSummary(
        run=run.name,
        graphs=rows,
        remarks=tuple(remark for remark in run_remarks(run, compiled=bool(rows)) if remark != empty),
        problems=run.problems,
        empty=empty,
        next=next_steps(
            run.problems, graphs, measurable=not (run.manifest and run.manifest.gpu), empty=empty
        ),
    )


def _graph_summary(graph: CompiledGraph) -> GraphSummary:
    code, record = graph.code, graph.record
    allocated = [allocation for allocation in code.allocations if allocation.kind == "new"] if code else []
    sizes = (size_bytes(allocation.layout) for allocation in allocated)
    total = dims_sum(size for size in sizes if size is not None)
    kernels, buffers = kernel_rows(graph), layouts(graph)
    about = tuple(sorted(_remarks(graph, kernels, buffers), key=by_cost))
    return GraphSummary(
        graph=graph.name,
        case=record.case if record else None,
        compile_kind=record.why if record else None,
        guard=next(iter(record.guards), None) if record else None,
        nodes_before=graph.nodes_before,
        nodes_after=len(graph.post),
        kernels=tuple(Counter(kernel.backend for kernel in code.kernels).items()) if code else (),
        externs=len(code.externs) if code else 0,
        buffers=len(allocated),
        buffer_bytes=total,
        recorded_bytes=recorded(total, used_symbols(graph, total)),
        remarks=about,
        problems=graph.problems,
        subgraphs=tuple(_subgraphs(graph)),
        sources=tuple(_sources(about, kernels, buffers)),
    )


def _subgraphs(graph: CompiledGraph) -> Iterator[SubgraphSummary]:
    index, code = index_of(graph), graph.code
    for part in code.subgraphs if code else ():

        def within(place: Launch | ExternCall | Allocation, name: str = part.name) -> bool:
            line = place.span.first if place.span else 0
            return code is not None and code.subgraph_at(line) == name

        kernels = dict.fromkeys(launch.kernel for launch in code.launches if within(launch)) if code else {}
        allocated = [item for item in code.allocations if item.kind == "new" and within(item)] if code else []
        sizes = (size_bytes(item.layout) for item in allocated)
        yield SubgraphSummary(
            name=part.name,
            nodes=sum(index.subgraph(top.name) == part.name for top in graph.nodes),
            kernels=tuple(Counter(index.kernels[name].backend for name in kernels).items()),
            externs=sum(map(within, code.externs)) if code else 0,
            buffers=len(allocated),
            buffer_bytes=dims_sum(size for size in sizes if size is not None),
        )


def _sources(
    about: Iterable[Remark], kernels: Iterable[KernelRow], buffers: Iterable[LayoutRow]
) -> Iterator[tuple[str, SourceLine]]:
    """Yield the subjects of remarks with the user's line of each: kernels, nodes and buffers."""
    lines: dict[str, SourceLine] = {}
    for kernel in kernels:
        if kernel.sources:
            first = own_lines(kernel.sources)[0]
            lines |= dict.fromkeys((kernel.name, *kernel.nodes, *kernel.tops), first)
    for row in buffers:
        if row.origin and row.origin.source:
            lines[row.producer or row.buffer] = row.origin.source
    for name in dict.fromkeys(remark.subject.name for remark in about):
        if name in lines:
            yield name, lines[name]


def _remarks(
    graph: CompiledGraph, kernels: Sequence[KernelRow], buffers: Sequence[LayoutRow]
) -> Iterator[Remark]:
    yield from unfinished(graph)
    yield from added_code(graph)
    yield from remarks(buffers)
    of_kernels = [remark for row in kernels for remark in row.remarks]
    yield from of_kernels
    called = {remark.number("kernel") for remark in of_kernels}
    yield from (remark for kernel, remark in fallbacks(graph).items() if kernel not in called)


def next_steps(
    problems: Sequence[Problem],
    graphs: Sequence[CompiledGraph],
    *,
    measurable: bool = True,
    empty: Remark | None = None,
) -> tuple[NextStep, ...]:
    """Return the steps that a run calls for, the most urgent first: what is missing, then what is slow.

    Where nothing does, kernels can be measured, unless they were generated for a GPU that is not there. A
    graph whose compile failed has no code that is slow. `empty` is why there are no graphs.
    """
    if not graphs:
        failed = empty is not None and empty.code == "compile-failed"
        lacking = failed and empty is not None and empty.number("exception") in _TOOL_LACKING
        return (NextStep("doctor"),) if lacking or not failed else ()
    if problems or any(graph.problems for graph in graphs):
        return (NextStep("unread"),)
    graphs = [graph for graph in graphs if not graph.failures]
    if not graphs:
        return ()
    steps = []
    graph, kernels = max(((graph, _scalar_kernels(graph)) for graph in graphs), key=lambda item: len(item[1]))
    if kernels:
        recorded = graph.decisions is not None and "vectorisation" in graph.decisions.recorders
        steps.append(NextStep("why" if recorded else "scalar", graph.name, kernels))
    pairs = [(shared, graph.name, names) for graph in graphs for shared, names in _unfused_pairs(graph)]
    shared, name, nodes = max(pairs, key=lambda pair: pair[0], default=(0, "", ("", "")))
    if shared >= _LEAST_SHARED_BYTES:  # `probe fusion` says why the scheduler did not fuse them
        steps.append(NextStep("apart", name, nodes, shared))
    in_python = [graph.name for graph in graphs if graph.code is None or graph.code.language == "python"]
    if not steps and measurable and in_python:
        steps.append(NextStep("measure", in_python[0]))
    return tuple(steps[:_MOST_STEPS])


def _scalar_kernels(graph: CompiledGraph) -> tuple[str, ...]:
    return tuple(
        kernel.name
        for kernel in graph.kernels
        if isinstance(kernel.details, CppFacts) and kernel.details.count("scalar")
    )


def _unfused_pairs(graph: CompiledGraph) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield pairs of nodes of which one reads what the other writes, with the bytes between the two."""
    sizes = {
        row.buffer: row.size_bytes if row.recorded_bytes is None else row.recorded_bytes
        for row in outlines(graph)
    }
    index = index_of(graph).post
    generated = [top.name for top in graph.post if all(leaf.ir in _GENERATED for leaf in top.leaves())]
    for reader in dict.fromkeys(generated):
        shared: dict[str, int] = {}
        read = {name for leaf in index.members[reader] for name in read_names(index.leaf[leaf])}
        for buffer in read & index.producer.keys():
            writer = index.top[index.producer[buffer]].name
            if writer in generated and writer != reader:
                size = sizes.get(buffer)
                shared[writer] = shared.get(writer, 0) + (size if isinstance(size, int) else 0)
        yield from ((size, (writer, reader)) for writer, size in shared.items())
