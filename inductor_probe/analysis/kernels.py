"""A row for each kernel: what it runs and computes, what it is passed, and what its text tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from inductor_probe.analysis.graph import index_of, once_per_graph
from inductor_probe.analysis.kernel_remarks import fallbacks, kernel_remarks, moved_bytes
from inductor_probe.analysis.launches import launches
from inductor_probe.analysis.linking.fx_ops import VIEWS
from inductor_probe.analysis.links import links
from inductor_probe.analysis.operators import operator
from inductor_probe.analysis.symbols import recorded, used_symbols
from inductor_probe.analysis.traffic import Traffic
from inductor_probe.backends import backend_called
from inductor_probe.model.code import CppFacts, Kernel, TritonFacts
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.links import KernelFx, NodeLink
from inductor_probe.model.span import SourceLine

_ATEN = re.compile(r"Original ATen: \[(?P<names>[^\]]*)\]")
_POINTERS = ("in", "out", "inout", "workspace", "pointer")


@once_per_graph
def kernel_rows(graph: CompiledGraph) -> tuple[KernelRow, ...]:
    """Return a row for each generated kernel, and one for each library function, in order of first use."""
    if graph.code is None:
        return ()
    reader = _Reader(graph)
    rows = [reader.generated(kernel) for kernel in graph.code.kernels]
    rows += [reader.library(target) for target in dict.fromkeys(call.target for call in graph.code.externs)]
    return tuple(sorted(rows, key=_first_use))


def _first_use(row: KernelRow) -> tuple[int, int]:
    """Kernels that are never launched come last, in the order they are defined."""
    if row.launches:
        return (0, row.launches[0].span.first)
    return (1, row.span.first if row.span else 0)


class _Reader:
    """Makes the rows of one graph from indexes that are built once."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._graph = graph
        self._links: dict[str, list[NodeLink]] = {}
        self._linked = links(graph)
        for link in self._linked.nodes.values():
            if link.kernel is not None:
                self._links.setdefault(link.kernel, []).append(link)
        self._leaves = index_of(graph).nodes.leaf
        self._fx = index_of(graph).fx
        self._launches = launches(graph)
        self._traffic = Traffic(graph)
        self._fallbacks = fallbacks(graph)
        kernels = graph.code.kernels if graph.code else ()
        self._chosen = {name for kernel in kernels for name in kernel.chooses}

    def generated(self, kernel: Kernel) -> KernelRow:
        """Return the row of a generated kernel."""
        linked = self._links.get(kernel.name, [])
        proofs = self._linked.fx_of_kernel(kernel.name)
        nodes = tuple(link.node for link in linked)
        leaves = [self._leaves[node] for node in nodes]
        placed = self._launches.get(kernel.name, ())
        read, written = self._traffic.of_kernel(placed, nodes)
        loads, stores = _accesses(kernel)
        fx = _fx(proofs)
        kind = _kind(kernel)
        reductions = sum(_reduces(leaf) for leaf in leaves) if leaves else None
        symbols = used_symbols(self._graph, (read, written))
        recorded_read, recorded_written = recorded(read, symbols), recorded(written, symbols)
        cost = moved_bytes(recorded_read or read, recorded_written or written)
        remarks = kernel_remarks(kernel, launched=bool(placed), linked=bool(nodes), cost=cost)
        return KernelRow(
            graph=self._graph.name,
            name=kernel.name,
            backend=kernel.backend,
            kind=kind,
            nodes=nodes,
            tops=tuple(dict.fromkeys(link.top for link in linked)),
            fx=fx,
            fx_proofs=proofs,
            ops=self._ops(fx) or _commented_ops(kernel.comments),
            sources=_sources(linked),
            args=kernel.args,
            launches=placed,
            bytes_read=read,
            bytes_written=written,
            recorded_read=recorded_read,
            recorded_written=recorded_written,
            symbols=symbols,
            loads=loads,
            stores=stores,
            reductions=reductions,
            facts=kernel.facts,
            details=kernel.details,
            traits=tuple(dict.fromkeys(_traits(kernel, kind, reductions or 0, bool(nodes)))),
            remarks=() if kernel.name in self._chosen else remarks,
            source=kernel.source,
            span=kernel.span,
        )

    def library(self, target: str) -> KernelRow:
        """Return the row of a library function: all calls of it."""
        placed = self._launches.get(target, ())
        linked = self._links.get(target, [])
        proofs = self._linked.fx_of_kernel(target)
        nodes = tuple(link.node for link in linked)
        read, written = self._traffic.of_calls(placed, nodes)
        fallback = any(self._leaves[node].ir == "FallbackKernel" for node in nodes)
        kind = "fallback" if fallback else "library"
        fx = self._called_fx(target, linked) or _fx(proofs)
        symbols = used_symbols(self._graph, (read, written))
        recorded_read, recorded_written = recorded(read, symbols), recorded(written, symbols)
        remark = self._fallbacks.get(target)
        cost = moved_bytes(recorded_read or read, recorded_written or written)
        return KernelRow(
            graph=self._graph.name,
            name=target,
            backend="extern",
            kind=kind,
            nodes=nodes,
            tops=tuple(dict.fromkeys(link.top for link in linked)),
            fx=fx,
            fx_proofs=proofs,
            ops=self._ops(fx),
            sources=self._sources_of(fx) or _sources(linked),
            args=(),
            launches=placed,
            bytes_read=read,
            bytes_written=written,
            recorded_read=recorded_read,
            recorded_written=recorded_written,
            symbols=symbols,
            loads=None,
            stores=None,
            reductions=None,
            facts=(),
            details=None,
            traits=("extern", kind) if nodes else ("extern", kind, "unlinked"),
            remarks=(replace(remark, cost=cost),) if remark else (),
            span=placed[0].span if placed else None,
        )

    def _called_fx(self, target: str, linked: list[NodeLink]) -> tuple[str, ...]:
        """Return the FX nodes that a library function computes.

        `GraphLowering.run_node` adds the origins of the arguments (`gather_origins`): for an `addmm` after a
        layer norm, `var_mean`, `sub`, ... and `permute` of the weight. What other kernels compute, and mere
        views, are left out; the last one is the node that was lowered to the call.
        """
        others = (links for kernel, links in self._links.items() if kernel != target)
        elsewhere = {name for links in others for link in links for name in link.fx}
        return tuple(
            dict.fromkeys(
                name
                for link in linked
                for name in link.fx
                if name == link.fx[-1] or (name not in elsewhere and not self._is_view(name))
            )
        )

    def _sources_of(self, fx: tuple[str, ...]) -> tuple[SourceLine, ...]:
        return _sorted(self._fx[name].source for name in fx if name in self._fx)

    def _is_view(self, name: str) -> bool:
        node = self._fx.get(name)
        return node is not None and operator(node.target).name in VIEWS

    def _ops(self, fx: Iterable[str]) -> tuple[str, ...]:
        # A target without a dot takes an item or computes a size.
        nodes = (self._fx[name] for name in fx if name in self._fx)
        return tuple(dict.fromkeys(operator(node.target).packet for node in nodes if "." in node.target))


def _fx(proofs: Iterable[KernelFx]) -> tuple[str, ...]:
    """Return the FX nodes of a kernel; torch 2.8 lists some of graphs that were compiled before, too."""
    return tuple(pair.fx for pair in proofs if pair.conflict != "not-in-fx-graph")


def _commented_ops(comments: tuple[str, ...]) -> tuple[str, ...]:
    found = next((match for line in comments if (match := _ATEN.search(line))), None)
    return tuple(name for part in found["names"].split(",") if (name := part.strip())) if found else ()


def _sources(linked: list[NodeLink]) -> tuple[SourceLine, ...]:
    return _sorted(source for link in linked for source in link.sources)


def _sorted(sources: Iterable[SourceLine | None]) -> tuple[SourceLine, ...]:
    lines = {(source.path, source.line): source for source in sources if source is not None}
    return tuple(lines[place] for place in sorted(lines))


def _accesses(kernel: Kernel) -> tuple[int | None, int | None]:
    """Count the loads and stores in the text; those of vectorised and tail code both count."""
    if isinstance(kernel.details, TritonFacts):
        return kernel.details.loads, kernel.details.stores + kernel.details.atomics
    backend = backend_called(kernel.backend)
    pointers = frozenset(arg.name for arg in kernel.args if arg.role in _POINTERS)
    if backend is None or not pointers:
        return None, None
    uses = backend.pointer_uses(kernel.source, pointers)
    loads = sum(use.how == "load" for use in uses)
    return loads, len(uses) - loads


def _reduces(leaf: SchedulerNode) -> bool:
    """Whether a node has reduction loops."""
    return leaf.sizes is not None and len(leaf.sizes) > 1 and bool(leaf.sizes[1])


def _kind(kernel: Kernel) -> str:
    match kernel.details:
        case CppFacts(templates=templates):
            return "template" if templates else "loops"
        case TritonFacts(heuristic=str(heuristic)):
            return heuristic
    return "kernel"


def _traits(kernel: Kernel, kind: str, reductions: int, linked: bool) -> Iterator[str]:
    yield from (kernel.backend, kind)
    if reductions or "reduction" in kind:
        yield "reduction"
    match kernel.details:
        case CppFacts() as facts:
            yield from (kind for kind in ("scalar", "vectorised") if facts.count(kind))
            if facts.atomics:
                yield "atomic"
        case TritonFacts() as facts:
            if facts.atomics:
                yield "atomic"
            if facts.index_width == "int64":
                yield "int64"
    if not linked:
        yield "unlinked"
