"""A run in one table: what was compiled, and the remarks about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from inductor_probe.analysis.kernel_remarks import fallbacks
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layout_remarks import remarks
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.memory_format import size_bytes
from inductor_probe.analysis.next_steps import next_steps
from inductor_probe.analysis.run_remarks import run_remarks, unfinished, why_empty
from inductor_probe.analysis.symbols import recorded, used_symbols
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.ir import Dim
from inductor_probe.model.remark import Remark, by_cost
from inductor_probe.model.runs import GraphSummary, RunSummary


def summarise(run: DebugDir, graphs: Iterable[CompiledGraph]) -> RunSummary:
    """Summarise a run from its graphs as read."""
    graphs = tuple(graphs)
    rows = tuple(_graph(graph) for graph in graphs)
    return RunSummary(
        run=run.name,
        graphs=rows,
        remarks=run_remarks(run, compiled=bool(rows)),
        problems=run.problems,
        empty=None if rows else why_empty(run),
        next=next_steps(run.problems, graphs),
    )


def _graph(graph: CompiledGraph) -> GraphSummary:
    code = graph.code
    allocated = [allocation for allocation in code.allocations if allocation.how == "new"] if code else []
    sizes = [size for allocation in allocated if (size := size_bytes(allocation.layout)) is not None]
    total = _total(sizes)
    return GraphSummary(
        graph=graph.name,
        case=graph.record.case if graph.record else None,
        why=graph.record.why if graph.record else None,
        guard=next(iter(graph.record.guards), None) if graph.record else None,
        nodes_before=graph.nodes_before,
        nodes_after=len(graph.post),
        kernels=tuple(Counter(kernel.backend for kernel in code.kernels).items()) if code else (),
        externs=len(code.externs) if code else 0,
        buffers=len(allocated),
        buffer_bytes=total,
        recorded_bytes=recorded(total, used_symbols(graph, (total,))),
        remarks=tuple(sorted(_remarks(graph), key=by_cost)),
        problems=graph.problems,
    )


def _total(sizes: list[Dim]) -> Dim:
    number = sum(size for size in sizes if isinstance(size, int))
    symbolic = [size for size in sizes if isinstance(size, str)]
    if not symbolic:
        return number
    return " + ".join([*symbolic, *([str(number)] if number else [])])


def _remarks(graph: CompiledGraph) -> Iterator[Remark]:
    yield from unfinished(graph)
    yield from remarks(layouts(graph))
    kernels = [remark for row in kernel_rows(graph) for remark in row.remarks]
    yield from kernels
    called = {remark.number("kernel") for remark in kernels}
    yield from (remark for kernel, remark in fallbacks(graph).items() if kernel not in called)
