"""A run in one table: what was compiled, and what deserves a look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.layout_remarks import remarks
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.memory_format import size_bytes
from inductor_probe.analysis.next_steps import next_steps
from inductor_probe.analysis.symbols import recorded, used_symbols
from inductor_probe.model.debug_dir import CompiledGraph, DebugDir
from inductor_probe.model.ir import Dim
from inductor_probe.model.manifest import GraphRecord, Manifest
from inductor_probe.model.summary import GraphSummary, RunSummary

_NAMED = 3
"""So many nodes, buffers or kernels are named in one line."""


def summarise(run: DebugDir, graphs: Iterable[CompiledGraph]) -> RunSummary:
    """Summarise a run from its graphs as read."""
    graphs = tuple(graphs)
    rows = tuple(_graph(graph) for graph in graphs)
    looks = [str(problem) for problem in run.problems]
    if run.manifest:
        if rows and (sentence := cut_short(run.manifest)):
            looks.append(sentence)
        looks += _dynamo(run.manifest)
    return RunSummary(
        run.name, rows, tuple(looks), None if rows else _why_empty(run), next_steps(run.problems, graphs)
    )


def cut_short(manifest: Manifest) -> str | None:
    """Say which signal ended or interrupted the script, if one did."""
    if manifest.outcome != "interrupted" and (manifest.exit_status or 0) >= 0:
        return None
    return f"the script {manifest.how_it_ended}: what it would have compiled later, if anything, is missing"


def _graph(graph: CompiledGraph) -> GraphSummary:
    code = graph.code
    allocated = [allocation for allocation in code.allocations if allocation.how == "new"] if code else []
    sizes = [size for allocation in allocated if (size := size_bytes(allocation.layout)) is not None]
    total = _total(sizes)
    return GraphSummary(
        graph=graph.name,
        case=graph.record.case if graph.record else None,
        why=_why(graph.record),
        nodes_before=graph.nodes_before,
        nodes_after=len(graph.post),
        kernels=tuple(Counter(kernel.backend for kernel in code.kernels).items()) if code else (),
        externs=len(code.externs) if code else 0,
        buffers=len(allocated),
        buffer_bytes=total,
        recorded_bytes=recorded(total, used_symbols(graph, (total,))),
        looks=tuple(_looks(graph)),
        remarks=remarks(layouts(graph)),
    )


def _why(record: GraphRecord | None) -> str | None:
    if record is None or record.why is None:
        return None
    return f"recompile: {record.guards[0]}" if record.guards else record.why


def _total(sizes: list[Dim]) -> Dim:
    number = sum(size for size in sizes if isinstance(size, int))
    symbolic = [size for size in sizes if isinstance(size, str)]
    if not symbolic:
        return number
    return " + ".join([*symbolic, *([str(number)] if number else [])])


def _looks(graph: CompiledGraph) -> Iterator[str]:
    """What is so for several nodes, buffers or kernels in the same way takes one line."""
    if graph.record and not graph.record.finished:
        yield "its compile did not come to its end: files are missing, or end early"
    for problem in graph.problems:
        yield str(problem)
    fallbacks: dict[str, list[str]] = {}
    for leaf in index_of(graph).post.leaves:
        if leaf.ir == "FallbackKernel":
            fallbacks.setdefault(leaf.kernel or "a library kernel", []).append(leaf.name)
    for kernel, nodes in fallbacks.items():
        verb = "falls" if len(nodes) == 1 else "fall"
        yield f"{_named(nodes, 'node')} {verb} back to {kernel}"
    scalar: dict[str, list[str]] = {}
    for kernel_text in graph.code.kernels if graph.code else ():
        facts = dict(kernel_text.facts)
        if int(facts.get("scalar", "0")):
            scalar.setdefault(f"{facts['scalar']} of {facts['loop nests']}", []).append(kernel_text.name)
    for nests, kernels in scalar.items():
        yield f"{nests} loop nests of {_named(kernels, 'kernel')} are scalar C++"


def _named(names: list[str], noun: str) -> str:
    """`op7`; `op7 and op19`; `24 nodes (op7, op19, op31 and 21 more)`."""
    if len(names) <= _NAMED:
        return " and ".join(names)
    return f"{len(names)} {noun}s ({', '.join(names[:_NAMED])} and {len(names) - _NAMED} more)"


def _dynamo(manifest: Manifest) -> Iterator[str]:
    for hit in manifest.limit_hits:
        where = f" ({hit.where})" if hit.where else ""
        yield f"recompile limit hit by {hit.function}{where}: from then on it ran eagerly"
    breaks = Counter((broken.where, broken.reason.splitlines()[0]) for broken in manifest.graph_breaks)
    for (place, reason), times in breaks.items():
        where = f" at {place}" if place else ""
        again = f" ({times} times)" if times > 1 else ""
        yield f"graph break{where}: {reason}{again}"
    yield from manifest.notes


def _why_empty(run: DebugDir) -> str:
    manifest = run.manifest
    if run.empty_graphs:
        return "its graphs compute nothing (views and identities), so inductor left their folders empty"
    if manifest is None:
        return (
            "no graph was dumped, and no probe.json says why; a warm cache is the usual reason: "
            "`probe dump` gives each run its own"
        )
    if manifest.outcome != "ok":
        return f"the script {manifest.how_it_ended} before inductor compiled anything"
    if manifest.compiled_frames:
        return (
            f"dynamo handed over {manifest.compiled_frames} graph(s), but none to inductor: "
            "the script chose another backend"
        )
    if manifest.limit_hits or manifest.graph_breaks:
        return "everything ran eagerly: dynamo gave up on every function it was handed"
    return "nothing was compiled: torch.compile was not called, or what it returned never ran"
